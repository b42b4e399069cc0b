"""Lists and ledgers take turns by tenant; a whole ledger is checked once for all who ask a moment later.

Every route of the API and of the page either takes a turn or is listed here, with what bounds it instead.
"""

import asyncio
import uuid

import anyio
import pytest
from fastapi import APIRouter
from fastapi.testclient import TestClient
from starlette.requests import ClientDisconnect

from service.auth import reading
from service.auth.dependencies import read_json_body
from service.datasets import endpoints
from service.datasets.models import Dataset
from service.http.quick_routes import QuickRoutes
from service.ledger import recent_checks, repository
from service.pages import doors
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
PAGES = (
    "/",
    "/datasets",
    "/datasets/{dataset}",
    "/datasets/{dataset}/ledger",
    "/datasets/{dataset}/order",
    "/datasets/{dataset}/buying",
    "/admin/keys",
    "/admin/audit",
)

WITHOUT_A_TURN = {
    "one row or a few, found by their ids, or what a person fills in, kept small": """
        GET /v1/datasets/{dataset_id}
        PATCH /v1/datasets/{dataset_id}
        DELETE /v1/datasets/{dataset_id}
        GET /v1/datasets/{dataset_id}/budget
        GET /v1/releases/{release_id}
        POST /v1/releases/{release_id}/cancel
        GET /v1/releases/{release_id}/preview
        POST /v1/keys
        POST /v1/keys/{key_id}/replacement
        DELETE /v1/keys/{key_id}
        GET /session
        POST /sign-out
        GET /datasets/{dataset_id}/ask
        GET /datasets/new/{staged_id}
        GET /datasets/new/{staged_id}/reading
        POST /datasets/new/sample
        POST /datasets/new/{staged_id}/declare
        POST /datasets/new/{staged_id}/discard
        GET /releases/{release_id}/progress
        GET /releases/{release_id}/preview.png
        GET /releases/{release_id}/cancel
        POST /releases/{release_id}/cancel
        GET /releases/{release_id}/owner-report/waiting
        POST /admin/keys/{key_id}/revoke
    """,
    "the turns of prices; open orders are limited": """
        POST /v1/datasets/{dataset_id}/quotes
        POST /v1/datasets/{dataset_id}/releases
        POST /datasets/{dataset_id}/order
        POST /datasets/{dataset_id}/releases
        POST /datasets/{dataset_id}/buy
        POST /datasets/{dataset_id}/ask
        POST /datasets/{dataset_id}/queries
    """,
    "the turns of uploads": """
        POST /v1/datasets
        PUT /v1/datasets/{dataset_id}/declaration
        POST /v1/publish
        POST /datasets/new
        POST /datasets/new/{staged_id}/budget
    """,
    "the turns of those who draw, or the number of streams": """
        GET /v1/releases/{release_id}/sample
        POST /v1/releases/{release_id}/complete
        GET /v1/releases/{release_id}/events
        GET /releases/{release_id}/download
        GET /releases/{release_id}/rows
        GET /releases/{release_id}/charts
    """,
    "who has no key, limited by address": """
        GET /v1/ledger/head
        GET /v1/ledger/consistency
        GET /v1/ledger/keys
        GET /sign-in
        POST /sign-in
        GET /sign-in/oidc
        GET /sign-in/oidc/callback
    """,
    "nothing of a tenant is read": """
        GET /v1/methods
        GET /datasets/new/odds
        GET /assets/{digest}/{name}
        GET /language/{language}
        GET /docs
        GET /redoc
        GET /openapi.json
        GET /help
        MOUNT /help
        GET /healthz
        GET /readyz
        GET /metrics
    """,
}
"""A new route is decided on: it takes a turn where it reads lists, ledgers, certificates, reports, or anything out of a ZIP."""


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


def routes_of(router):
    """FastAPI keeps a router that was included as it is."""
    for route in router.routes:
        yield from routes_of(route.original_router) if hasattr(route, "original_router") else [route]


TURNS = {each.dependency for each in (reading.ReadingTurn, reading.ReadingTurnAfterBody, doors.PageTurn)}
BODIES = {read_json_body, doors.OwnForm.dependency}


def called_by(dependant):
    """In the order in which they are called."""
    for each in dependant.dependencies:
        yield from called_by(each)
        yield each.call


def takes_a_turn(dependant):
    return any(call in TURNS for call in called_by(dependant))


def test_a_turn_begins_when_the_body_is_here(api):
    """Two who send theirs slowly held both turns of their tenant, four those of all. What is declared as a body or form is read before all."""
    seen = 0
    for route in routes_of(api.http.app):
        calls = list(called_by(route.dependant)) if hasattr(route, "dependant") else []
        turns, bodies = ([at for at, call in enumerate(calls) if call in wanted] for wanted in (TURNS, BODIES))
        if turns and bodies:
            seen += 1
            assert min(bodies) < min(turns), route.path
    assert seen >= 2


def test_every_route_takes_a_turn_or_is_bounded_in_another_way(api):
    """No page took one, nor did what reads answers out of a hundred ZIPs."""
    without, turning = set(), set()
    for route in routes_of(api.http.app):
        for method in sorted((getattr(route, "methods", None) or {"MOUNT"}) - {"HEAD"}):
            has_turn = hasattr(route, "dependant") and takes_a_turn(route.dependant)
            (turning if has_turn else without).add(f"{method} {route.path}")
    listed = [line.strip() for lines in WITHOUT_A_TURN.values() for line in lines.splitlines() if line.strip()]
    assert len(set(listed)) == len(listed)
    assert without == set(listed)
    assert len(turning) >= 35


def test_no_route_with_a_turn_is_answered_without_the_framework():
    """The quick routes know no dependencies of a route."""
    for dependencies in ([], [reading.ReadingTurn]):
        router = APIRouter()
        router.add_api_route("/{dataset_id}", endpoints.read_budget, dependencies=dependencies)
        assert len(QuickRoutes(None, [router]).plans) == (not dependencies)


def test_the_turns_of_pages_are_those_of_the_api(api, dataset_id, held):
    browsers = {name: TestClient(api.http.app, raise_server_exceptions=False) for name in ("owner", "stranger")}
    for name, http in browsers.items():
        sent = {"key": getattr(api, name)["Authorization"].partition(" ")[2]}
        assert http.post("/sign-in", data=sent, follow_redirects=False).status_code == 303
    paths = [path.format(dataset=dataset_id) for path in PAGES]
    for path in paths:
        refused = browsers["owner"].get(path)
        assert (refused.status_code, path) == (429, path)
        assert int(refused.headers["retry-after"]) > 0
        assert browsers["stranger"].get(path).status_code in {200, 404}
        assert TestClient(api.http.app).get(path).status_code == 200, "who is not signed in is shown where to"
    held()
    for path in paths:
        assert browsers["owner"].get(path).status_code == 200
    turns = api.http.app.state.reading_turns
    assert (turns.taken, turns.waiting) == (0, 0)


def test_what_was_asked_before_is_read_in_a_turn(api, dataset_id, held):
    asked = {"kind": "count", "epsilon": 0.01, "dry_run": True}
    path = f"/v1/datasets/{dataset_id}/queries"
    assert api.http.post(path, json=asked, headers=api.analyst).status_code == 429
    held()
    assert api.http.post(path, json=asked, headers=api.analyst).status_code == 200


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
