"""Uploads that say how far they are: the same outcome as a plain upload, in the last event."""

import asyncio
import threading
import time

import anyio
import pytest

from imprimatur.streams import server_sent_events
from service.datasets.upload_events import _events
from tests.service.http.test_audit_log import acts, lines

EVENTS = {"Accept": "text/event-stream"}


def _events_of(reply):
    assert reply.status_code == 200
    assert reply.headers["content-type"].startswith("text/event-stream")
    return list(server_sent_events(iter(reply.text.split("\n"))))


def test_the_last_event_is_the_usual_reply(api):
    heard = _events_of(api.upload(key=api.owner | EVENTS))
    *progress, (kind, dataset) = heard
    assert kind == "dataset"
    plain = api.http.get(f"/v1/datasets/{dataset['id']}", headers=api.owner).json()
    assert {name: dataset[name] for name in plain} == plain
    assert dataset["notices"] == []
    assert {event for event, _ in progress} == {"progress"}
    assert all(set(document) == {"phase", "share"} and 0 <= document["share"] <= 1 for _, document in progress)


def test_a_refusal_of_the_rows_is_the_last_event_and_nothing_is_kept(api, context):
    bad = "age,income,city,smoker,born\nold,1,Rome,true,1950-01-02\n"
    plain = api.upload(bad).json()
    *_, (kind, document) = _events_of(api.upload(bad, key=api.owner | EVENTS))
    assert kind == "problem"
    assert document == plain
    assert (document["status"], document["code"]) == (422, "invalid_file")
    assert list(context.storage.list("datasets")) == []
    assert list(context.settings.scratch_dir.iterdir()) == []


def test_a_refusal_in_an_event_has_its_line_in_the_audit_log(api):
    """The reply has begun with 200 by then. It left none, where the same upload without events did."""
    assert api.upload().status_code == 201
    for key in (api.owner, api.owner | EVENTS):
        api.upload(key=key)
        assert acts(api)[-1] == ("create_dataset", None, None, "duplicate_rows")
    assert len(acts(api)) == len({line["request_id"] for line in lines(api)})


def test_what_is_wrong_before_the_rows_is_an_ordinary_refusal(api):
    assert api.upload(key=api.owner | EVENTS, budget="none").status_code == 422
    assert api.upload(key=api.reader | EVENTS).status_code == 403


@pytest.mark.parametrize("reports", [0, 2])
def test_hanging_up_stops_the_work(reports):
    """The work ends at its next report, and only then is the stream closed: nothing may still read the file."""
    ended = threading.Event()

    def work(report):
        try:
            while True:
                report(0.5)
                time.sleep(0.01)
        finally:
            ended.set()

    async def hang_up():
        events = _events(None, lambda report: anyio.to_thread.run_sync(work, report))
        first = await anext(events)
        for _ in range(reports):
            await anext(events)
        await events.aclose()
        return first

    first = asyncio.run(hang_up())
    assert first.startswith("event: progress\n")
    assert ended.is_set()
