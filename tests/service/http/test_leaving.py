"""A caller who leaves while its upload is read takes the reading process along; a real API process, a real connection.

The reading process is stopped as soon as it is seen, so that it cannot end by itself.
"""

import os
import re
import signal
import socket
import time
from contextlib import suppress

import httpx
import psutil
import pytest

from tests.service.http.bad_inputs import DATASET, FIELDS, GOOD_ROWS, form, upload
from tests.service.http.test_bad_inputs import PATIENCE_SECONDS, Server

pytestmark = pytest.mark.slow

POLLS, POLL_SECONDS = 2_000, 0.02
MOST_POLLS_TO_THE_END = 1_500
"""Half a minute's worth, of a process that would never end: a busy machine may let the API wait."""

ORDER = '{"method": "marginals", "epsilon": 0.5}'
EVENTS = "Accept: text/event-stream"
REQUESTS = {
    "an upload": lambda: upload(form()),
    "an upload with events": lambda: upload(form(), EVENTS),
    "a table to publish": lambda: upload(form(order=ORDER), path="/v1/publish"),
    "the file of a declaration": lambda: [
        piece.replace(b"POST /v1", b"PUT /v1")
        for piece in upload(form(budget=None, name="anew"), path=f"/v1/datasets/{DATASET}/declaration")
    ],
}


@pytest.fixture(scope="module")
def server(new_database, tmp_path_factory):
    folder = tmp_path_factory.mktemp("leaving")
    with Server(new_database(), folder, UPLOADS_PER_TENANT=1, INGEST_PROCESSES=1, BODY_GRACE_SECONDS=60) as running:
        yield running


def _stopped_reader(server):
    api = psutil.Process(server.process.pid)
    for _ in range(POLLS):
        for child in api.children():
            with suppress(psutil.NoSuchProcess, ProcessLookupError):
                if "service.intake.sandboxed" not in child.cmdline():
                    continue  # between fork and exec the API waits for it, also if the caller has left
                os.kill(child.pid, signal.SIGSTOP)
                return child
        time.sleep(POLL_SECONDS)
    raise AssertionError("no process read the upload")


def _polls_until_gone(process):
    for polls in range(POLLS):
        with suppress(psutil.NoSuchProcess):
            if process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
                time.sleep(POLL_SECONDS)
                continue
        return polls
    return POLLS


@pytest.mark.parametrize("what", REQUESTS)
def test_a_caller_who_leaves_takes_the_reading_process_along(server, what):
    pieces = REQUESTS[what]()
    authorization, dataset = f"Authorization: Bearer {server.key}".encode(), server.dataset.encode()
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS) as connection:
        for piece in pieces:
            connection.sendall(piece.replace(b"{key}", authorization).replace(DATASET.encode(), dataset))
        reader = _stopped_reader(server)
    assert _polls_until_gone(reader) <= MOST_POLLS_TO_THE_END
    assert list((server.folder / "scratch").iterdir()) == []
    # The one place in the quota, and the one to read, are free again: the same rows are read, and known.
    for _ in range(POLLS):
        reply = httpx.post(
            f"http://127.0.0.1:{server.port}/v1/datasets",
            headers={"Authorization": f"Bearer {server.key}"},
            data=FIELDS,
            files={"file": GOOD_ROWS},
            timeout=PATIENCE_SECONDS,
        )
        if reply.status_code != 429:
            break
        time.sleep(POLL_SECONDS)
    assert (reply.status_code, reply.json()["code"]) == (409, "duplicate_rows")


def test_the_log_says_at_start_which_layers_the_sandbox_has(server):
    lines = re.findall(r"sandbox of the process that reads uploads: .+", (server.folder / "api.log").read_text())
    assert len(lines) == 1
