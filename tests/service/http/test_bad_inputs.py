"""Every bad input of bad_inputs.py against a real API process, all at once and from several connections.

Each is answered with a 4xx problem where HTTP allows an answer, quotes nothing of what was sent and leaves nothing behind;
meanwhile the process stays small and answers others.
"""

import http.client
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest

from service.auth.service import create_tenant
from service.local.servers import free_port
from service.platform.context import open_context
from service.platform.settings import Settings
from tests.service.http.bad_inputs import (
    ABSOLUTE,
    CASES,
    CLIMBED,
    DATASET,
    FIELDS,
    GOOD_ROWS,
    MARKER,
    Bad,
    streamed_field,
)

GB = 10**9
PATIENCE_SECONDS = 600.0
LIMITS = {
    "UPLOAD_LIMIT_BYTES": 32 << 20,
    "INGEST_MEMORY_BYTES": 1 << 30,
    "INGEST_PROCESSES_PER_TENANT": 2,
    "REQUEST_HEAD_SECONDS": 4,
    "BODY_GRACE_SECONDS": 4,
    "BODY_BYTES_PER_SECOND": 1_000,
}


@dataclass
class Reply:
    status: int
    headers: dict
    body: bytes


@dataclass
class Storm:
    """What came of sending everything."""

    replies: dict
    largest: dict
    """Largest resident memory seen, in bytes: of the API, and of any process it started."""
    others: list
    """Statuses of ordinary requests made meanwhile."""
    log: str
    context: object
    folder: Path
    left: dict


class Server:
    """An API process of its own with small limits and an empty database."""

    def __init__(self, database, folder, **limits):
        self.folder = folder
        self.port = free_port()
        (folder / "scratch").mkdir()
        (folder / "objects").mkdir()
        (folder / "secret.key").write_bytes(os.urandom(32))
        self.environment = {
            "IMPRIMATUR_DATABASE_URL": database.api_url,
            "IMPRIMATUR_REDIS_URL": "redis://127.0.0.1:1/0",
            "IMPRIMATUR_STORAGE_URL": (folder / "objects").as_uri(),
            "IMPRIMATUR_SECRET_KEY_FILE": str(folder / "secret.key"),
            "IMPRIMATUR_SCRATCH_DIR": str(folder / "scratch"),
            **{f"IMPRIMATUR_{name}": str(value) for name, value in {**LIMITS, **limits}.items()},
        }
        names = {name.removeprefix("IMPRIMATUR_").lower(): value for name, value in self.environment.items()}
        self.context = open_context(Settings(**names | {"database_url": database.owner_url}))
        with self.context.transaction() as session:
            self.key = create_tenant(session, self.context.secrets, "sender of bad things")

    def __enter__(self):
        self.output = (self.folder / "api.log").open("w")
        self.process = subprocess.Popen(
            [
                *(
                    sys.executable,
                    "-m",
                    "uvicorn",
                    "service.http.app:create_app",
                    "--factory",
                    "--port",
                    str(self.port),
                ),
                *("--no-access-log", "--http", "service.http.protocol:ImpatientProtocol"),
                "--no-proxy-headers",
            ],
            env={**os.environ, **self.environment},
            stdout=self.output,
            stderr=subprocess.STDOUT,
        )
        deadline = time.monotonic() + 600
        while True:
            try:
                httpx.get(f"http://127.0.0.1:{self.port}/healthz")
            except httpx.TransportError:
                assert time.monotonic() < deadline, "the API did not start"
                time.sleep(0.1)
            else:
                break
        reply = httpx.post(
            f"http://127.0.0.1:{self.port}/v1/datasets",
            headers={"Authorization": f"Bearer {self.key}"},
            data=FIELDS,
            files={"file": GOOD_ROWS},
            timeout=PATIENCE_SECONDS,
        )
        self.dataset = reply.json()["id"]
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(30)
        self.output.close()

    def send(self, bad: Bad) -> Reply:
        """Send piece after piece until the server speaks or closes; then listen."""
        authorization = f"Authorization: Bearer {self.key}".encode()
        dataset = DATASET.encode(), self.dataset.encode()
        pieces = bad.pieces()  # made before the clock of the connection starts
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_SECONDS) as connection:
            try:
                for number, piece in enumerate(pieces):
                    sent = piece if number else piece.replace(b"{key}", authorization).replace(*dataset)
                    if not send_unless_answered(connection, sent):
                        break
                    time.sleep(bad.pause)
            except (BrokenPipeError, ConnectionResetError):
                pass  # it has heard enough; what it said is still to be read
            return listen(connection)


def send_unless_answered(connection, piece):
    view = memoryview(piece)
    for start in range(0, len(view), 1 << 16):
        if select.select([connection], [], [], 0)[0]:
            return False
        connection.sendall(view[start : start + (1 << 16)])
    return True


def listen(connection):
    """The reply; status 0 for a connection that was closed without one."""
    try:
        reply = http.client.HTTPResponse(connection)
        reply.begin()
        return Reply(reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read())
    except (http.client.BadStatusLine, ConnectionResetError):
        return Reply(0, {}, b"")


class Watch(threading.Thread):
    """Looks at the memory of the API and of its children, and asks ordinary things."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.process = psutil.Process(server.process.pid)
        self.http = httpx.Client(
            base_url=f"http://127.0.0.1:{server.port}",
            headers={"Authorization": f"Bearer {server.key}"},
            timeout=PATIENCE_SECONDS,
        )
        self.largest = {"api": 0, "child": 0}
        self.statuses = []
        self.ended = threading.Event()

    def run(self):
        asked = 0.0
        while not self.ended.wait(0.03):
            self.largest["api"] = max(self.largest["api"], self.process.memory_info().rss)
            for child in self.process.children(recursive=True):
                try:
                    self.largest["child"] = max(self.largest["child"], child.memory_info().rss)
                except psutil.NoSuchProcess:
                    continue
            if time.monotonic() - asked > 0.3:
                asked = time.monotonic()
                self.statuses += [self.http.get(path).status_code for path in ("/healthz", "/v1/datasets")]


@pytest.fixture(scope="module")
def storm(new_database, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad")
    with Server(new_database(), folder) as server:
        watch = Watch(server)
        watch.start()
        with ThreadPoolExecutor(12) as pool:  # the slow ones first: they only wait
            names = sorted(CASES, key=lambda name: -CASES[name].pause)
            replies = dict(zip(names, pool.map(lambda name: server.send(CASES[name]), names), strict=True))
        watch.ended.set()
        watch.join()
        owner = {"Authorization": f"Bearer {server.key}"}
        with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", headers=owner) as http:
            left = {path: http.get(f"/v1/{path}").json()["items"] for path in ("datasets", "releases", "keys")}
    log = (folder / "api.log").read_text(errors="replace")
    return Storm(replies, watch.largest, watch.statuses, log, server.context, folder, left)


@pytest.mark.parametrize("name", CASES)
def test_a_bad_input_is_refused_and_not_repeated(storm, name):
    reply, bad = storm.replies[name], CASES[name]
    may_reset = bool(bad.statuses & {400, 431})  # a server that closes on unread bytes may take its own reply back
    assert reply.status in bad.statuses | ({0} if may_reset else set()), (reply.status, reply.body[:500])
    assert MARKER.encode() not in reply.body
    assert not any(MARKER in value for value in reply.headers.values())
    if reply.status not in {0, 400, 431, 501}:
        assert reply.headers["content-type"] == "application/problem+json"
        problem = json.loads(reply.body)
        assert problem["status"] == reply.status
        assert len(problem["detail"]) > 10


def test_there_are_at_least_sixty_and_no_two_are_one(storm):
    assert len(storm.replies) == len(CASES) >= 60


def test_nothing_is_left_of_them(storm):
    left = storm.left
    assert {name: len(items) for name, items in left.items()} == {"datasets": 1, "releases": 0, "keys": 1}
    assert len(list(storm.context.storage.list())) == 2  # rows and upload of the dataset that was there
    assert list((storm.folder / "scratch").iterdir()) == []
    assert not any(Path(name.decode()).exists() for name in (CLIMBED, ABSOLUTE))
    assert MARKER not in storm.log


def test_the_process_stays_small_and_answers_others(storm):
    assert storm.largest["api"] < GB, storm.largest
    assert 0 < storm.largest["child"] < int(LIMITS["INGEST_MEMORY_BYTES"]) + GB // 4, storm.largest
    assert set(storm.others) == {200}
    assert len(storm.others) >= 20


@pytest.mark.long
def test_one_cell_of_1_gb_reaches_the_parser_and_is_refused(new_database, tmp_path):
    """Under the default limit of an upload (1 GiB), so it is received whole, on disk."""
    with Server(new_database(), tmp_path, UPLOAD_LIMIT_BYTES=1 << 30) as server:
        watch = Watch(server)
        watch.start()
        pieces = streamed_field("file", b"t.csv", count=GB // (1 << 20), start=GOOD_ROWS + b"30,")
        reply = server.send(Bad(lambda: pieces, frozenset({422})))
        watch.ended.set()
        watch.join()
    assert (reply.status, json.loads(reply.body)["code"]) == (422, "invalid_file")
    assert watch.largest["api"] < GB
    assert watch.largest["child"] < GB
    assert set(watch.statuses) == {200}
