"""Streams of events: one look for all who watch, an end with the key, and so many a key."""

from __future__ import annotations

import asyncio
import json
import time
import uuid

import pytest
from sqlalchemy import text

from service.auth.principal import Principal
from service.auth.service import authenticate
from service.base.errors import RateLimited, Unauthenticated
from service.releases import watching
from service.releases.watching import ReleaseEvents, Watching, wait_for_end


@pytest.fixture
def release_id(api, dataset_id):
    reply = api.order(dataset_id, {"method": "marginals", "epsilon": 0.01, "pairs": "all"})
    return uuid.UUID(reply.json()["id"])


PATIENCE_SECONDS = 60.0


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(watching, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(watching, "KEY_SECONDS", 0.05)


def principal_of(api, context, scope="reader") -> Principal:
    with context.driver() as connection:
        return authenticate(connection, context.secrets, getattr(api, scope)["Authorization"].partition(" ")[2])


def change(context, release_id, **values):
    with context.transaction() as session:
        for name, value in values.items():
            session.execute(
                text(f"UPDATE releases SET {name} = :value WHERE id = :id"), {"value": value, "id": release_id}
            )


def cancel(api, release_id):
    """Before its charge: it ends at once."""
    assert api.http.post(f"/v1/releases/{release_id}/cancel", headers=api.owner).status_code == 200


def revoke(api, context, scope="reader"):
    key_id = principal_of(api, context, scope).key_id
    assert api.http.delete(f"/v1/keys/{key_id}", headers=api.owner).status_code == 204


async def until_each_has_heard(count, heard):
    """However slow the machine is; the looks go on meanwhile."""
    while any(len(parsed(one)) < count for one in heard):  # noqa: ASYNC110 - streams of looks, which no one is told of
        await asyncio.sleep(0.01)


async def all_of(stream, heard):
    async for piece in stream:
        heard.append(piece)


def parsed(heard):
    events = [piece for piece in heard if piece.startswith("event: ")]
    return [(e.split("\n")[0][7:], json.loads(e.split("data: ")[1])) for e in events]


@pytest.mark.usefixtures("quick")
def test_many_watchers_cost_one_look_each_time(api, context, release_id, monkeypatch):
    looks, pauses = [], []
    look = watching.look
    monkeypatch.setattr(watching, "look", lambda *given: (looks.append(list(given[1])), look(*given))[1])
    principal = principal_of(api, context)

    async def run():
        mine, heard = Watching(context), [[] for _ in range(15)]
        streams = [asyncio.create_task(all_of(watching._events(mine, principal, release_id), one)) for one in heard]
        began = time.monotonic()
        await asyncio.wait_for(until_each_has_heard(1, heard), PATIENCE_SECONDS)
        change(context, release_id, step=3, phase="training")
        await asyncio.wait_for(until_each_has_heard(2, heard), PATIENCE_SECONDS)
        await asyncio.sleep(0.3)
        await asyncio.to_thread(cancel, api, release_id)
        await asyncio.wait_for(asyncio.gather(*streams), PATIENCE_SECONDS)
        assert not mine._watchers
        await asyncio.wait_for(mine._poll, PATIENCE_SECONDS)
        pauses.append((time.monotonic() - began) / watching.POLL_SECONDS)
        return heard

    heard = asyncio.run(run())
    assert all(parsed(one) == parsed(heard[0]) for one in heard)
    assert [(kind, e["state"], e["progress"]["step"]) for kind, e in parsed(heard[0])] == [
        ("state", "reserved", 0),
        ("progress", "reserved", 3),
        ("state", "voided", 3),
    ]
    assert all(asked == [release_id] for asked in looks)
    # Between two looks is a pause; fifteen watchers that ask for themselves would look many times as often.
    assert 3 <= len(looks) <= pauses[0] + 5


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("end", ["revoked_at = now()", "expires_at = now()"])
def test_a_stream_ends_with_its_key_and_says_so(api, context, release_id, end):
    principal, other = principal_of(api, context), principal_of(api, context, "analyst")

    async def run():
        mine, heard, going_on = Watching(context), [], []
        stream = asyncio.create_task(all_of(watching._events(mine, principal, release_id), heard))
        another = asyncio.create_task(all_of(watching._events(mine, other, release_id), going_on))
        await asyncio.wait_for(until_each_has_heard(1, (heard, going_on)), PATIENCE_SECONDS)
        with context.transaction() as session:
            session.execute(text(f"UPDATE api_keys SET {end} WHERE id = :id"), {"id": principal.key_id})
        await asyncio.wait_for(stream, PATIENCE_SECONDS)
        await asyncio.to_thread(cancel, api, release_id)
        await asyncio.wait_for(another, PATIENCE_SECONDS)
        return heard, going_on

    heard, going_on = asyncio.run(run())
    kind, document = parsed(heard)[-1]
    assert (kind, document["code"], document["status"]) == ("problem", "unauthenticated", 401)
    assert [kind for kind, _ in parsed(heard)] == [
        "state",
        "problem",
    ]  # nothing of the release after the end of the key
    assert [kind for kind, _ in parsed(going_on)] == ["state", "state"]


@pytest.mark.usefixtures("quick")
def test_who_waits_for_a_release_hears_of_its_end_and_of_the_end_of_the_key(api, context, release_id):
    principal = principal_of(api, context)

    async def until(what):
        waiting = asyncio.create_task(wait_for_end(Watching(context), principal, release_id, 60.0))
        await asyncio.sleep(0.2)
        await asyncio.to_thread(what)
        await asyncio.wait_for(waiting, PATIENCE_SECONDS)

    asyncio.run(asyncio.wait_for(wait_for_end_soon(context, principal, release_id), PATIENCE_SECONDS))
    with pytest.raises(Unauthenticated):
        asyncio.run(until(lambda: revoke(api, context)))
    principal = principal_of(api, context, "analyst")
    asyncio.run(until(lambda: cancel(api, release_id)))


async def wait_for_end_soon(context, principal, release_id):
    await wait_for_end(Watching(context), principal, release_id, 0.1)


def test_a_key_has_twenty_streams_and_another_key_its_own(api, context, release_id):
    principal, other = principal_of(api, context), principal_of(api, context, "analyst")
    mine = Watching(context)
    for _ in range(watching.STREAMS_OF_A_KEY):
        ReleaseEvents(mine, principal, release_id)
    with pytest.raises(RateLimited):
        ReleaseEvents(mine, principal, release_id)
    ReleaseEvents(mine, other, release_id)
    mine.close_stream(principal)
    ReleaseEvents(mine, principal, release_id)


def test_a_stream_that_has_ended_is_counted_no_longer(api, release_id):
    cancel(api, release_id)
    for _ in range(watching.STREAMS_OF_A_KEY + 3):
        reply = api.http.get(f"/v1/releases/{release_id}/events", headers=api.reader)
        assert reply.status_code == 200
        assert reply.text.startswith("event: state\n")
    assert not api.http.app.state.watching._streams


def test_another_tenants_release_cannot_be_watched(api, release_id):
    assert api.http.get(f"/v1/releases/{release_id}/events", headers=api.stranger).status_code == 404
