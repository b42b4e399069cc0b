"""One tenant's samples: so many at once, and another tenant's next piece does not wait for all of them."""

import asyncio
import uuid

import pytest
from starlette.requests import ClientDisconnect

from service.base.errors import RateLimited
from service.releases import open_samples
from service.releases.open_samples import OpenSamples
from service.samples.drawing_threads import DrawingThreads

OURS, THEIRS = uuid.UUID(int=1), uuid.UUID(int=2)
SCOPE = {"type": "http", "asgi": {"spec_version": "2.4"}}


def endless(drawn, name):
    while True:
        drawn.append(name)
        yield b"x"


async def receive():
    await asyncio.Event().wait()


async def read(samples, tenant, pieces, count):
    """Take so many pieces of a reply at full speed, then hang up."""
    taken = 0

    async def send(message):
        nonlocal taken
        taken += message["type"] == "http.response.body"
        if taken == count:
            raise OSError("gone")

    with samples.open(tenant) as one:
        reply = one.reply(pieces, "text/csv", {})
    with pytest.raises(ClientDisconnect):
        await reply(SCOPE, receive, send)


def test_another_tenant_has_every_second_turn():
    drawn = []

    async def play():
        samples = OpenSamples(DrawingThreads(1))
        ours = [asyncio.ensure_future(read(samples, OURS, endless(drawn, "ours"), 10_000)) for _ in range(50)]
        while len(drawn) < 200:  # noqa: ASYNC110 - all of ours are at work
            await asyncio.sleep(0)
        before = len(drawn)
        await read(samples, THEIRS, endless(drawn, "theirs"), 20)
        after = len(drawn)
        for one in ours:
            one.cancel()
        await asyncio.gather(*ours, return_exceptions=True)
        assert samples.count == 0
        return after - before

    assert asyncio.run(play()) < 20 * 4, "20 of theirs, about as many of ours; without turns 50 of ours for each"


def test_a_tenant_reads_so_many_at_once(monkeypatch):
    monkeypatch.setattr(open_samples, "MOST_OF_A_TENANT", 2)
    samples = OpenSamples(DrawingThreads(1))
    with samples.open(OURS), samples.open(OURS):
        with pytest.raises(RateLimited) as caught:
            samples.open(OURS)
        assert caught.value.values["retry_after_seconds"] > 0
        with samples.open(THEIRS):
            assert samples.count == 3
    assert samples.count == 0
    with samples.open(OURS) as one:
        one.reply(endless([], "ours"), "text/csv", {})
    assert samples.count == 1, "until the reply has ended"
    asyncio.run(read(samples, THEIRS, endless([], "theirs"), 3))
    assert samples.count == 1
