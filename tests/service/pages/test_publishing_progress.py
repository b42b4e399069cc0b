"""Publishing that says how far it is: events for a script, and in the last one the page that a form would have shown."""

from imprimatur.streams import server_sent_events
from tests.service.pages.test_upload_walk import declared, owner, staged, values_of

__all__ = ["owner", "staged"]

EVENTS = {"Accept": "text/event-stream, text/html"}


def events_of(reply):
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert reply.headers["cache-control"] == "no-store"
    return list(server_sent_events(iter(reply.text.split("\n"))))


def test_the_last_event_holds_the_page_that_a_form_would_have_shown(api, owner, staged):
    budget = declared(owner, staged)
    filled = {**values_of(budget.text), "step": "publish"}
    *progress, (kind, last) = events_of(owner.post(budget.url.path, filled, **EVENTS))
    assert kind == "dataset"
    assert "Published:" in last["html"]
    assert progress
    assert {event for event, _ in progress} == {"progress"}
    assert all(0 <= document["share"] <= 1 for _, document in progress)
    assert len(api.http.get("/v1/datasets", headers=api.owner).json()["items"]) == 1
    again = owner.post(budget.url.path, filled, **EVENTS)  # a second sending ends at the dataset, as without a script
    assert again.url.path.startswith("/datasets/")
    assert "text/html" in again.headers["content-type"]


def test_a_refusal_is_the_form_with_what_was_typed(api, owner, staged):
    budget = declared(owner, staged)
    filled = {**values_of(budget.text), "name": "kept as typed", "epsilon": "a lot", "step": "publish"}
    *_, (_, last) = events_of(owner.post(budget.url.path, filled, **EVENTS))
    assert 'role="alert"' in last["html"]
    assert "kept as typed" in last["html"]
    assert api.http.get("/v1/datasets", headers=api.owner).json()["items"] == []


def test_what_needs_no_work_is_an_ordinary_reply(owner, staged):
    budget = declared(owner, staged)
    back = owner.post(budget.url.path, {**values_of(budget.text), "step": "back"}, **EVENTS)
    assert back.url.path.endswith("/declare")
