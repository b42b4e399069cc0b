"""Samples that are read at this moment: how many of a tenant, and whose next piece is drawn."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Self, TypeVar

from service.base.errors import RateLimited
from service.base.messages import Message
from service.requests.streaming import ClosingStream
from service.requests.turns import FairTurns

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from contextlib import AbstractAsyncContextManager
    from uuid import UUID

    from service.samples.drawing_threads import DrawingThreads

MOST_OF_A_TENANT = 200
"""Each holds what of it was drawn and not yet sent: a row group of Parquet at most."""

T = TypeVar("T")


class OpenSamples:
    """The samples of one process that are being read; lives in its event loop."""

    def __init__(self, drawing: DrawingThreads) -> None:
        self._drawing = drawing
        self._turns = FairTurns(drawing.at_once, drawing.at_once)
        self._open: Counter[UUID] = Counter()

    @property
    def count(self) -> int:
        """Samples that are being read."""
        return self._open.total()

    def open(self, tenant: UUID) -> OpenSample:
        """One more of this tenant, or `RateLimited`."""
        if self._open[tenant] >= MOST_OF_A_TENANT:
            raise RateLimited(
                Message(
                    "your keys read %(most_of_a_tenant)s samples at this moment; ask again when one has ended",
                    most_of_a_tenant=MOST_OF_A_TENANT,
                ),
                retry_after_seconds=5,
            )
        self._open[tenant] += 1
        return OpenSample(self._drawing, lambda: self._turns.turn(tenant), lambda: self._close(tenant))

    def _close(self, tenant: UUID) -> None:
        self._open[tenant] -= 1
        if not self._open[tenant]:
            del self._open[tenant]


class OpenSample:
    """One sample, counted until the block ends, or, once there is a reply, until that has ended."""

    def __init__(
        self,
        drawing: DrawingThreads,
        turn: Callable[[], AbstractAsyncContextManager[None]],
        close: Callable[[], None],
    ) -> None:
        self._drawing, self._turn, self._close = drawing, turn, close
        self._is_replied = False
        self.each = drawing.each

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._is_replied:
            self._close()

    async def draw(self, function: Callable[[], T]) -> T:
        """The function's result, from a thread that draws, in the tenant's turn."""
        async with self._turn():
            return await self._drawing.call(function)

    def reply(self, pieces: Generator[bytes], media_type: str, headers: dict[str, str]) -> ClosingStream:
        """The pieces, each drawn in the tenant's turn once the one before has been taken."""
        self._is_replied = True
        return ClosingStream(self._drawing.stream(pieces, self._turn), media_type, headers, on_close=self._close)
