"""Whose upload is read next, and what a tenant's uploads may hold at once."""

import asyncio
import uuid
from contextlib import suppress

import pytest

from service.base.errors import CallerLeft, RateLimited, TooLarge
from service.intake.caller import Caller
from service.requests.spool import SpoolQuotas
from service.requests.turns import FairTurns

OURS, THEIRS = uuid.UUID(int=1), uuid.UUID(int=2)


class Queue:
    """Jobs that end when they are told to, and the order in which they began."""

    def __init__(self, at_once, of_one_tenant):
        self.turns = FairTurns(at_once, of_one_tenant)
        self.began, self.ends = [], {}

    def send(self, name, tenant, caller=None):
        async def job():
            async with self.turns.turn(tenant, caller or Caller()):
                self.began.append(name)
                await self.ends.setdefault(name, asyncio.Event()).wait()

        return asyncio.ensure_future(job())

    async def end(self, name):
        self.ends.setdefault(name, asyncio.Event()).set()
        await self.rest()

    async def rest(self):
        for _ in range(10):
            await asyncio.sleep(0)


def test_one_tenants_many_do_not_hold_up_anothers_one():
    async def play():
        queue = Queue(2, 2)
        tasks = [queue.send(f"ours {i}", OURS) for i in range(50)]
        await queue.rest()
        tasks.append(queue.send("theirs", THEIRS))
        await queue.rest()
        assert queue.began == ["ours 0", "ours 1"]
        await queue.end("ours 0")
        assert queue.began[2:] == ["theirs"], "the next place is theirs"
        await queue.end("theirs")
        assert queue.began[3:] == ["ours 2"]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (queue.turns._free, dict(queue.turns._running), queue.turns._waiting) == (2, {}, {})

    asyncio.run(play())


def test_a_place_is_kept_free_of_a_tenant_that_has_its_own():
    async def play():
        queue = Queue(2, 1)
        tasks = [queue.send(f"ours {i}", OURS) for i in range(3)]
        await queue.rest()
        assert queue.began == ["ours 0"]
        tasks.append(queue.send("theirs", THEIRS))
        await queue.rest()
        assert queue.began == ["ours 0", "theirs"], "at once"
        for name in ("ours 0", "ours 1", "ours 2", "theirs"):
            await queue.end(name)
        await asyncio.gather(*tasks)
        assert queue.began == ["ours 0", "theirs", "ours 1", "ours 2"]
        assert queue.turns._free == 2

    asyncio.run(play())


def test_who_leaves_the_queue_is_not_waited_for():
    async def play():
        queue, caller = Queue(1, 1), Caller()
        first, gone = queue.send("first", OURS), queue.send("gone", OURS, caller)
        last = queue.send("last", OURS)
        await queue.rest()
        caller.leave()
        await queue.rest()
        assert gone.done()
        with pytest.raises(CallerLeft):
            gone.result()
        last.cancel()
        with suppress(asyncio.CancelledError):
            await last
        await queue.end("first")
        await first
        assert queue.began == ["first"]
        assert (queue.turns._free, dict(queue.turns._running), queue.turns._waiting) == (1, {}, {})

    asyncio.run(play())


def test_a_caller_who_has_left_is_not_begun_with():
    async def play():
        queue, caller = Queue(1, 1), Caller()
        caller.leave()
        task = queue.send("gone", OURS, caller)
        await queue.rest()
        await queue.end("gone")
        with pytest.raises(CallerLeft):
            caller(0.5)
        with suppress(CallerLeft):
            await task
        assert queue.turns._free == 1

    asyncio.run(play())


def test_leaving_ends_what_runs_and_what_begins_afterwards():
    caller, ended = Caller(), []
    with caller.taking_along(lambda: ended.append("running")):
        caller.leave()
    with caller.taking_along(lambda: ended.append("later")):
        pass
    assert ended == ["running", "later"]


def test_a_quota_is_the_tenants_and_is_given_back_on_every_way_out(tmp_path):
    quotas = SpoolQuotas(100, 2, tmp_path)
    with quotas.open(OURS) as first, quotas.open(OURS) as second, quotas.open(THEIRS) as theirs:
        first.append(b"x" * 60)
        with pytest.raises(RateLimited) as caught:
            second.append(b"x" * 41)
        assert caught.value.values == {"retry_after_seconds": 10, "limit_bytes": 100}
        second.append(b"x" * 40)
        theirs.append(b"x" * 100)
        with pytest.raises(TooLarge):
            theirs.append(b"x")
        assert quotas.held() == (200, 3)
        with pytest.raises(RateLimited, match="sends 2 uploads already"), quotas.open(OURS):
            pass
        assert quotas.held() == (200, 3)

    def fail():
        with quotas.open(OURS) as failing:
            failing.append(b"x" * 100)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert quotas.held() == (0, 0)
    assert (quotas._bytes, quotas._uploads) == ({}, {})
    assert list(tmp_path.iterdir()) == []


def test_a_spool_that_cannot_be_made_holds_no_quota(tmp_path):
    quotas = SpoolQuotas(100, 1, tmp_path / "missing")
    for _ in range(2):
        with pytest.raises(FileNotFoundError), quotas.open(OURS):
            pass
    assert quotas.held() == (0, 0)
