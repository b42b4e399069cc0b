"""What the API knows of samples before anybody asks for one: formats, loaded samplers, and threads to draw in.

The libraries that draw and write rows (`row_streams.py`) are loaded once a sample is to be expected.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
import threading
from collections import OrderedDict, deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Literal, TypeVar, get_args

import anyio

from service.base.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Iterable
    from concurrent.futures import Future

    from service.samples.image_sampler import ImageSampler
    from service.samples.table_sampler import TableSampler

T = TypeVar("T")
Part = TypeVar("Part")
TableFormat = Literal["csv", "jsonl", "parquet", "arrow"]
ImageFormat = Literal["npz", "zip", "png"]
SampleFormat = TableFormat | ImageFormat
CHUNKS_NICENESS = 10
"""Of threads that draw chunks; requests beside two samples wait half as long as without (docs/log.md)."""
MOST_SIDE_BY_SIDE = 4
"""A thread that writes has no use for more threads that draw; each holds some ten megabytes."""
FORMATS: tuple[str, ...] = (*get_args(TableFormat), *get_args(ImageFormat))

_MEDIA_TYPES: dict[str, str] = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.stream",
    "npz": "application/x-npz",
    "zip": "application/zip",
    "png": "image/png",
}


def media_type(format: str) -> str:  # noqa: A002 - the query parameter's name
    """The media type of a sample format; raises `InvalidInput` for one we do not write."""
    if format not in FORMATS:
        raise InvalidInput(f"format must be one of {', '.join(FORMATS)}", where="format")
    return _MEDIA_TYPES[format]


def expect_samples() -> None:
    """Load the libraries that samples need, if that has not been done, in a thread of its own: a third of a second.

    Not with the process: they take 100 MiB, and a service without releases does not need them.
    """
    module = "service.samples.row_streams"
    if module not in sys.modules:
        threading.Thread(target=importlib.import_module, args=(module,), name="expect-samples", daemon=True).start()


class SamplerCache:
    """The last few samplers used, by bundle key. Threads may share it; a key's bundle never changes."""

    def __init__(self, load: Callable[[str], bytes], *, capacity: int = 16) -> None:
        self._load = load
        self._capacity = capacity
        self._samplers: OrderedDict[str, TableSampler | ImageSampler] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: str) -> TableSampler | ImageSampler:
        """The sampler of a bundle, loaded at its first use."""
        with self._lock:
            if key in self._samplers:
                self._samplers.move_to_end(key)
                return self._samplers[key]
        from service.samples.row_streams import sampler_from_bundle  # noqa: PLC0415 - see the module's first lines

        sampler = sampler_from_bundle(
            self._load(key)
        )  # outside the lock: others need not wait; loading twice is harmless
        with self._lock:
            self._samplers[key] = sampler
            while len(self._samplers) > self._capacity:
                self._samplers.popitem(last=False)
        return sampler


class DrawingThreads:
    """A few threads in which all samples of this process are drawn, one piece of one sample at a time.

    Samples take turns, piece by piece. A sample whose client is slow holds one piece, a few chunks of rows and no
    thread. One whose client has gone ends with what is being drawn. Parts of samples (see `service/samples/table_sampler.py`) are drawn
    side by side, in threads that step back for all others, so that requests need not wait for them.
    """

    def __init__(self, count: int | None = None) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self._threads = ThreadPoolExecutor(count or max(1, cores - 1), "drawing")
        self._side_by_side = min(cores, MOST_SIDE_BY_SIDE)
        self._chunks = ThreadPoolExecutor(self._side_by_side, "drawing-chunks", initializer=_step_back)

    def run(self, function: Callable[[], T]) -> T:
        """The function's result, from one of the threads."""
        return self._threads.submit(function).result()

    def each(self, draw: Callable[[Part], T], parts: Iterable[Part]) -> Generator[T]:
        """As `map`, but a few at a time, ahead of whoever takes them."""
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

    async def stream(self, pieces: Generator[bytes]) -> AsyncGenerator[bytes]:
        """The pieces, each drawn when the one before has been taken. Empty ones only let the others have a turn."""
        try:
            while (piece := await self._next(pieces)) is not None:
                if piece:
                    yield piece
        finally:
            pieces.close()

    async def _next(self, pieces: Generator[bytes]) -> bytes | None:
        drawing = asyncio.get_running_loop().run_in_executor(self._threads, next, pieces, None)
        try:
            return await asyncio.shield(drawing)
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):  # a generator at work cannot be closed
                await asyncio.wait({drawing})
            raise


def _step_back() -> None:
    """Let the system prefer every other thread of the process. Linux alone has priorities of threads."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), CHUNKS_NICENESS)
