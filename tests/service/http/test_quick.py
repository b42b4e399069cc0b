"""The routes that bypass the framework: which they are, that they answer as it would, and what holds their threads up."""

import asyncio
import threading

import pytest
from starlette.responses import Response

from service.base.errors import Unavailable
from service.datasets.endpoints import router as datasets
from service.http import quick_routes as quick
from service.http.quick_routes import QuickRoutes, QuickThreads
from service.platform.database import get_engine, kept_connection
from service.releases.endpoints import router as releases

ORDER = {"method": "idpgan", "epsilon": 0.5, "steps": 4}
FRAMEWORKS_WAY = {"Content-Type": "application/json; charset=utf-8"}
"""A media type with a parameter is not plain, and means the same."""


def test_the_busiest_operations_are_quick():
    plans = QuickRoutes(None, (datasets, releases)).plans
    assert {
        ("GET", "/v1/datasets/{}/budget"),
        ("POST", "/v1/datasets/{}/quotes"),
        ("POST", "/v1/datasets/{}/releases"),
        ("GET", "/v1/releases/{}"),
    } <= set(plans)
    assert ("POST", "/v1/datasets") not in plans  # an upload is the framework's


def _post(api, path, content, **headers):
    return api.http.post(path, content=content, headers={**api.owner, "Content-Type": "application/json", **headers})


BODIES = (
    b'{"method": "idpgan", "epsilon": 0.5, "steps": 4}',
    b'{"method": "idpgan", "epsilon": -1}',
    b'{"method": "idpgan"',
    b"\xff\xfe",
    b"[]",
    b"",
)


def test_plain_and_not_plain_requests_get_the_same_reply(api, dataset_id, monkeypatch, subtests):
    path = f"/v1/datasets/{dataset_id}/quotes"
    answered = []
    answer = quick._answer
    monkeypatch.setattr(quick, "_answer", lambda *given: (answered.append(1), answer(*given))[1])
    for body in BODIES:
        with subtests.test(body):
            answered.clear()
            plain = _post(api, path, body)
            assert len(answered) == (plain.status_code == 200 or b"-1" in body or body == b"[]")
            slow = _post(api, path, body, **FRAMEWORKS_WAY)
            assert (slow.status_code, slow.json()) == (plain.status_code, plain.json())
            shown = {name: value for name, value in plain.headers.items() if name != "x-request-id"}
            assert shown == {name: value for name, value in slow.headers.items() if name != "x-request-id"}
            assert plain.headers["x-request-id"] != slow.headers["x-request-id"]


def test_a_long_segment_that_is_no_id_is_refused_as_ever(api, dataset_id):
    reply = api.http.get(f"/v1/datasets/{'x' * 36}/budget", headers=api.owner)
    assert reply.status_code == 422
    assert api.http.get(f"/v1/datasets/{dataset_id}/budget", headers=api.owner).status_code == 200
    assert api.http.put(f"/v1/datasets/{dataset_id}/budget", headers=api.owner).status_code == 405


def test_a_body_in_pieces_is_put_together_and_can_be_told_again():
    pieces = [
        {"type": "http.request", "body": b"[1,", "more_body": True},
        {"type": "http.request", "body": b"2]", "more_body": False},
    ]

    async def scenario():
        waiting = list(pieces)

        async def receive():
            return waiting.pop(0)

        body, again = await quick._small_body(receive)
        return body, [await again(), await again()]

    assert asyncio.run(scenario()) == (b"[1,2]", pieces)


def test_a_body_that_breaks_off_or_fails_is_left_to_the_framework():
    async def scenario():
        first = [{"type": "http.request", "body": b"[1,", "more_body": True}]

        async def failing():
            if first:
                return first.pop(0)
            raise TimeoutError

        body, again = await quick._small_body(failing)
        assert body is None
        assert (await again())["body"] == b"[1,"
        with pytest.raises(TimeoutError):
            await again()

        async def gone():
            return {"type": "http.disconnect"}

        body, again = await quick._small_body(gone)
        assert body is None
        assert (await again())["type"] == "http.disconnect"

    asyncio.run(scenario())


def test_who_waits_too_long_for_a_thread_is_told_and_never_served(monkeypatch):
    threads, begun, held, served = QuickThreads(2), threading.Event(), threading.Event(), []

    def wait_at_most(seconds):
        monkeypatch.setattr(quick, "LONGEST_WAIT_SECONDS", seconds)

    def hold():
        begun.set()
        held.wait(300)
        return Response()

    def serve():
        served.append(1)
        return Response()

    async def scenario():
        wait_at_most(300.0)
        first = asyncio.create_task(threads.run(hold))
        assert await asyncio.to_thread(begun.wait, 300)
        wait_at_most(0.2)
        with pytest.raises(Unavailable):
            await threads.run(serve)
        wait_at_most(300.0)
        held.set()
        assert (await first).status_code == 200
        assert (await threads.run(Response)).status_code == 200  # behind the one that was given up
        with pytest.raises(ZeroDivisionError):
            await threads.run(lambda: 1 / 0)
        threads.close()

    asyncio.run(scenario())
    assert served == []


def test_a_kept_connection_is_kept_until_its_server_process_ends(context):
    engine = get_engine(context.settings.database_url, context.settings.database_pool_size)

    def backend():
        with context.driver() as connection:
            return connection.execute("SELECT pg_backend_pid()").fetchone()[0]

    with kept_connection():
        first = backend()
        assert engine.pool.checkedout() == 1
        assert backend() == first
        with context.driver() as outer, context.driver() as inner:
            assert inner is outer
        with context.transaction() as session:
            session.connection().exec_driver_sql("SELECT pg_terminate_backend(%s, 5000)", (first,))
        second = backend()
        assert second != first
        assert engine.pool.checkedout() == 1
    assert engine.pool.checkedout() == 0
