"""Lists and ledgers take turns by tenant; a whole ledger is checked once for all who ask a moment later."""

import asyncio
import uuid

import anyio
import pytest
from starlette.requests import ClientDisconnect

from service.auth import reading
from service.datasets.models import Dataset
from service.ledger import recent_checks, repository
from service.requests import streaming
from service.requests.streaming import ClosingStream

SLOW = (
    "/v1/datasets",
    "/v1/releases",
    "/v1/keys",
    "/v1/audit",
    "/v1/datasets/{dataset}/ledger",
    "/v1/ledger/proof?dataset_id={dataset}",
)


@pytest.fixture
def held(api, dataset_id, context, monkeypatch):
    """All turns of our tenant are taken."""
    monkeypatch.setattr(reading, "PATIENCE_SECONDS", 0.2)
    with context.transaction() as session:
        tenant = session.get_one(Dataset, uuid.UUID(dataset_id)).tenant_id
    turns = api.http.app.state.reading_turns
    entered = []

    async def take():
        for _ in range(reading.OF_ONE_TENANT):
            turn = turns.turn(tenant)
            await turn.__aenter__()
            entered.append(turn)

    async def give_back():
        for turn in entered:
            await turn.__aexit__(None, None, None)
        entered.clear()

    api.http.portal.call(take)
    yield lambda: api.http.portal.call(give_back)
    api.http.portal.call(give_back)


@pytest.mark.parametrize("path", SLOW)
def test_one_tenants_slow_reads_hold_up_no_other_tenant(api, dataset_id, held, path):
    path = path.format(dataset=dataset_id)
    refused = api.http.get(path, headers=api.owner)
    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
    assert int(refused.headers["retry-after"]) > 0
    others = api.http.get(path, headers=api.stranger)
    assert others.status_code in {200, 404}, others.text  # the dataset is ours
    held()
    assert api.http.get(path, headers=api.owner).status_code in {200, 404}  # the log has no signed head yet
    turns = api.http.app.state.reading_turns
    assert (turns.taken, turns.waiting) == (0, 0)


def test_questions_wait_for_their_turn_too(api, dataset_id, held):
    """Each is compared with all that were asked before."""
    path, question = f"/v1/datasets/{dataset_id}/queries", {"kind": "count", "epsilon": 0.1, "dry_run": True}
    refused = api.http.post(path, json=question, headers=api.analyst)
    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limited")
    held()
    assert api.http.post(path, json=question, headers=api.analyst).status_code == 200


def test_an_unchanged_ledger_is_checked_once(api, dataset_id, monkeypatch):
    checked = []
    whole = repository.lines_of_dataset
    monkeypatch.setattr(repository, "lines_of_dataset", lambda *a: checked.append(a) or whole(*a))

    def read():
        reply = api.http.get(f"/v1/datasets/{dataset_id}/ledger?limit=1", headers=api.reader).json()
        assert reply["verified"] is True, reply["faults"]
        return len(checked)

    assert [read(), read(), read()] == [1, 1, 1]
    order = {"method": "marginals", "epsilon": 0.1}
    assert api.order(dataset_id, order).status_code == 202
    assert [read(), read()] == [2, 2], "another entry"
    monkeypatch.setattr(recent_checks, "HOLDS_SECONDS", 0.0)
    assert [read(), read()] == [3, 4], "it is not believed for ever"


def test_a_reader_who_takes_nothing_is_given_up(monkeypatch):
    monkeypatch.setattr(streaming, "STALLED_SECONDS", 0.05)
    closed = []

    async def source():
        try:
            while True:
                yield b"x"
        finally:
            closed.append(True)

    async def send(message):
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    async def receive():
        await asyncio.Event().wait()

    async def play():
        reply = ClosingStream(source(), "text/csv", {})
        with pytest.raises(ClientDisconnect):
            await reply({"type": "http", "asgi": {"spec_version": "2.4"}}, receive, send)

    anyio.run(play)
    assert closed == [True]
