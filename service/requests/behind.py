"""Work that goes on after its reply was sent, in this process: kept until it is done, and told to end with the process."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from service.intake.caller import Caller


class Behind:
    """Lives in one event loop."""

    def __init__(self) -> None:
        self._running: dict[asyncio.Task[None], Caller] = {}

    def keep(self, work: Coroutine[None, None, None], caller: Caller) -> None:
        """Go on with it. It handles its own errors; `caller` leaves when the process ends."""
        task = asyncio.ensure_future(work)
        self._running[task] = caller
        task.add_done_callback(self._running.pop)

    async def close(self) -> None:
        """Let all of it end, and wait until it has."""
        for caller in list(self._running.values()):
            caller.leave()
        if self._running:
            await asyncio.wait(list(self._running))
