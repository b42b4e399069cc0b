"""Memory that this process no longer needs goes back to the system. On systems without glibc nothing happens here.

Large arrays come and go in many threads. glibc keeps what they leave: up to 64 MiB for each of many arenas, and holes in each.
Measured with hostile quotes (`bench.memory`): hundreds of MiB, of which the caches were a tenth.
"""

from __future__ import annotations

import ctypes
import threading
import time
from functools import cache
from typing import Any

ARENAS = 2
_M_ARENA_MAX = -8
LEAST_SECONDS = 1.0
"""Between two returns; one takes some milliseconds, and other threads wait."""


class _Last:
    at = 0.0


_lock = threading.Lock()


def use_few_arenas() -> None:
    """For a process of many threads; before they allocate much."""
    if hasattr(libc := _libc(), "mallopt"):
        libc.mallopt(_M_ARENA_MAX, ARENAS)


def give_back() -> None:
    """Return free memory, if that was not done a moment ago."""
    with _lock:
        if time.monotonic() - _Last.at < LEAST_SECONDS:
            return
        _Last.at = time.monotonic()
    if hasattr(libc := _libc(), "malloc_trim"):
        libc.malloc_trim(0)


@cache
def _libc() -> Any:
    return ctypes.CDLL(None)
