"""Whose turn is next: so many at once, of one tenant fewer, and the tenant that was served longest ago first."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from contextlib import asynccontextmanager, nullcontext
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from uuid import UUID

    from service.intake.caller import Caller


class FairTurns:
    """Lives in one event loop. Who waits holds no thread."""

    def __init__(self, at_once: int, of_one_tenant: int) -> None:
        self._free = at_once
        self._most = min(at_once, of_one_tenant)
        self._running: dict[UUID, int] = defaultdict(int)
        self._waiting: dict[UUID, deque[asyncio.Future[None]]] = {}
        self._served: dict[UUID, int] = {}
        """When the last turn of a tenant began that still runs or waits, as a number that grows."""
        self._numbers = count(1)

    @property
    def taken(self) -> int:
        """Turns that are taken now; for other threads, as good as a moment ago."""
        return sum(list(self._running.values()))

    @property
    def waiting(self) -> int:
        """Callers that wait for one."""
        return sum(len(each) for each in list(self._waiting.values()))

    @asynccontextmanager
    async def turn(self, tenant: UUID, caller: Caller | None = None) -> AsyncIterator[None]:
        """Wait for a place, and give it back at the end of the block. A caller who leaves waits no longer."""
        mine = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant, deque()).append(mine)
        self._admit()
        try:
            with nullcontext() if caller is None else caller.taking_along(mine.cancel):
                await mine
        except BaseException:
            if mine.done() and not mine.cancelled():  # admitted at the same moment
                self._leave(tenant)
            else:
                mine.cancel()
                self._admit()
            if caller is not None:
                caller(caller.share)  # raises `CallerLeft` where that is why
            raise
        try:
            yield
        finally:
            self._leave(tenant)

    def _leave(self, tenant: UUID) -> None:
        self._free += 1
        self._running[tenant] -= 1
        if not self._running[tenant]:
            del self._running[tenant]
        self._admit()

    def _admit(self) -> None:
        """Let in as many as there are places for, and forget who does not wait any more."""
        self._waiting = {
            tenant: left
            for tenant, waiting in self._waiting.items()
            if (left := deque(one for one in waiting if not one.done()))
        }
        while self._free:
            entitled = [one for one in self._waiting if self._running.get(one, 0) < self._most]
            if not entitled:
                break
            tenant = min(entitled, key=lambda one: self._served.get(one, 0))
            self._waiting[tenant].popleft().set_result(None)
            if not self._waiting[tenant]:
                del self._waiting[tenant]
            self._free -= 1
            self._running[tenant] += 1
            self._served[tenant] = next(self._numbers)
        self._served = {one: n for one, n in self._served.items() if one in self._running or one in self._waiting}
