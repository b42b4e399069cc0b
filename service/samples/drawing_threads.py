"""The threads in which samples are drawn."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import TYPE_CHECKING, TypeVar

import anyio

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterable
    from concurrent.futures import Future
    from contextlib import AbstractAsyncContextManager

T = TypeVar("T")
Part = TypeVar("Part")
CHUNKS_NICENESS = 10
"""Of threads that draw chunks; requests beside two samples wait half as long as without (docs/log.md)."""
MOST_SIDE_BY_SIDE = 4
"""More threads that draw do not help one that writes; each holds some ten megabytes."""


class DrawingThreads:
    """A few threads in which all samples of this process are drawn, one piece of one sample at a time.

    Samples take turns, piece by piece. A sample whose client is slow holds one piece, a few chunks of rows and no
    thread. One whose client has gone ends with what is being drawn. Parts of samples (`service/samples/table/blocks.py`)
    are drawn side by side, in threads of a lower priority, so that requests need not wait for them.
    """

    def __init__(self, count: int | None = None) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.at_once = count or max(1, cores - 1)
        self._threads = ThreadPoolExecutor(self.at_once, "drawing")
        self._side_by_side = min(cores, MOST_SIDE_BY_SIDE)
        self._chunks = ThreadPoolExecutor(self._side_by_side, "drawing-chunks", initializer=_lower_priority)

    def each(self, draw: Callable[[Part], T], parts: Iterable[Part]) -> Generator[T]:
        """As `map`, but a few at a time, ahead of the one that is asked for."""
        drawing: deque[Future[T]] = deque()
        try:
            for part in parts:
                drawing.append(self._chunks.submit(draw, part))
                if len(drawing) > self._side_by_side:
                    yield drawing.popleft().result()
            while drawing:
                yield drawing.popleft().result()
        finally:
            for chunk in drawing:
                chunk.cancel()

    async def stream(
        self, pieces: Generator[bytes], turn: Callable[[], AbstractAsyncContextManager[object]] = nullcontext
    ) -> AsyncGenerator[bytes]:
        """The pieces, each drawn in a turn when the one before has been taken. Empty ones only let the others have one."""
        try:
            while True:
                async with turn():
                    piece = await self.call(lambda: next(pieces, None))
                if piece is None:
                    return
                if piece:
                    yield piece
        finally:
            pieces.close()

    async def call(self, function: Callable[[], T]) -> T:
        """The function's result, from one of the threads. Who is cancelled meanwhile waits until it has ended."""
        drawing = asyncio.get_running_loop().run_in_executor(self._threads, function)
        try:
            return await asyncio.shield(drawing)
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):  # a generator at work cannot be closed
                await asyncio.wait({drawing})
            raise


def _lower_priority() -> None:
    """Let the system prefer every other thread of the process. Linux alone has priorities of threads."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), CHUNKS_NICENESS)
