"""Many samples in few threads: turns, slow clients, clients that leave."""

import asyncio
import itertools
import os
import sys
import threading
import time

import pytest
from tiny_generators import tiny_sampler

from service.requests.streaming import ClosingStream
from service.samples.drawing_threads import CHUNKS_NICENESS, MOST_SIDE_BY_SIDE, DrawingThreads
from service.samples.streams import stream_rows

SCOPES = [{"type": "http", "asgi": {"spec_version": version}} for version in ("2.3", "2.4")]


class Pieces:
    """An endless source that knows how often it was asked and whether it was closed."""

    def __init__(self):
        self.asked = 0
        self.closed = threading.Event()
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def generate(self):
        try:
            while True:
                self.asked += 1
                self.may_go_on.wait(10)
                yield b"x"
        finally:
            self.closed.set()


def test_a_slow_client_has_nothing_drawn_ahead():
    source = Pieces()

    async def take_two():
        stream = DrawingThreads(1).stream(source.generate())
        for _ in range(2):
            assert await anext(stream) == b"x"
            await asyncio.sleep(0.05)
        asked = source.asked
        await stream.aclose()
        return asked

    assert asyncio.run(take_two()) == 2
    assert source.closed.is_set()


def test_samples_take_turns():
    """On one thread a small sample ends while an endless one goes on."""
    sampler = tiny_sampler()
    expected = b"".join(stream_rows(sampler, rows=9_000, seed=3))

    async def both():
        threads = DrawingThreads(1)
        endless = threads.stream(stream_rows(sampler, rows=10**12, format="parquet"))
        going = asyncio.ensure_future(_exhaust(endless))
        small = [piece async for piece in threads.stream(stream_rows(sampler, rows=9_000, seed=3))]
        assert not going.done()
        going.cancel()
        await asyncio.wait({going})
        await endless.aclose()
        return b"".join(small)

    assert asyncio.run(both()) == expected


async def _exhaust(stream):
    async for _ in stream:
        pass


@pytest.mark.parametrize("sample_format", ["csv", "parquet"])
@pytest.mark.parametrize("where", [None, "flag:true"])
def test_chunks_drawn_side_by_side_are_the_same_rows(sample_format, where):
    sampler, asked = tiny_sampler(), {"rows": 30_000, "seed": 3, "where": where, "format": sample_format}
    one_by_one, side_by_side = (
        b"".join(stream_rows(sampler, **asked, each=each)) for each in (map, DrawingThreads(1).each)
    )
    assert side_by_side == one_by_one


def test_chunks_are_drawn_in_order_a_few_ahead_and_by_threads_that_step_back():
    threads, drawn, priorities = DrawingThreads(1), [], set()

    def draw(place):
        drawn.append(place)
        priorities.add(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        time.sleep(0.01 if place % 2 else 0.0)  # they end in another order than they began
        return place

    taken = list(itertools.islice(threads.each(draw, itertools.count()), 20))
    assert taken == list(range(20))
    assert len(drawn) <= 20 + MOST_SIDE_BY_SIDE
    if sys.platform == "linux":
        assert priorities == {CHUNKS_NICENESS}
    assert os.getpriority(os.PRIO_PROCESS, 0) != CHUNKS_NICENESS


def test_a_chunk_that_fails_ends_the_sample_with_its_error():
    def draw(place):
        if place == 3:
            raise ValueError("no")
        return place

    chunks, taken = DrawingThreads(1).each(draw, itertools.count()), []
    with pytest.raises(ValueError, match="no"):
        taken.extend(chunks)
    assert taken == [0, 1, 2]


def test_a_generator_at_work_is_closed_when_its_piece_is_done():
    source = Pieces()

    async def leave():
        stream = DrawingThreads(1).stream(source.generate())
        await anext(stream)
        source.may_go_on.clear()
        waiting = asyncio.ensure_future(anext(stream))
        while source.asked < 2:  # noqa: ASYNC110 - it is a thread that moves on
            await asyncio.sleep(0.01)
        waiting.cancel()
        asyncio.get_running_loop().call_later(0.05, source.may_go_on.set)
        await asyncio.wait({waiting})
        return waiting.cancelled()

    assert asyncio.run(leave())
    assert source.closed.is_set()


@pytest.mark.parametrize("scope", SCOPES, ids=["2.3", "2.4"])
@pytest.mark.parametrize("pieces_sent", [0, 3])
def test_a_client_that_hangs_up_stops_the_drawing(scope, pieces_sent):
    source, sent = Pieces(), itertools.count()

    async def receive():
        if scope["asgi"]["spec_version"] == "2.3":
            while source.asked < pieces_sent:  # noqa: ASYNC110 - it is a thread that moves on
                await asyncio.sleep(0.01)
            return {"type": "http.disconnect"}
        await asyncio.sleep(60)
        raise AssertionError("not asked in this version")

    async def send(message):
        if message["type"] == "http.response.body" and next(sent) >= pieces_sent:
            raise OSError

    async def serve():
        reply = ClosingStream(DrawingThreads(1).stream(source.generate()), "text/plain", {})
        try:
            await reply(scope, receive, send)
        except Exception as error:  # noqa: BLE001 - Starlette's ClientDisconnect, or a group with it
            return error
        return None

    asyncio.run(serve())
    assert source.closed.is_set() or source.asked == 0
    assert source.asked <= pieces_sent + 50
