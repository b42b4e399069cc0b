"""Memory that this process no longer needs goes back to the system. On systems without glibc nothing happens here.

Large arrays come and go in many threads. glibc keeps what they leave: up to 64 MiB for each of many arenas, and holes in each.
Measured with hostile requests (`bench.memory`): hundreds of MiB, of which the caches were a tenth.
"""

from __future__ import annotations

import ctypes
import resource
import threading
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ARENAS = 2
MAPPED_BYTES = 256 << 10
"""From this size on an array is mapped by itself and gone when it is freed. Left alone, glibc raises the size to 32 MiB with the first
large array that is freed, and prices and samples leave their holes among what stays."""
_M_MMAP_THRESHOLD, _M_ARENA_MAX = -3, -8
GROWTH_BYTES = 8 << 20
"""Free memory may grow by so much before it is given back."""
LOOK_SECONDS = 1.0
"""Between two looks; giving back takes some milliseconds, and other threads wait."""


def use_few_arenas() -> None:
    """Limit the memory arenas of a process of many threads; call it before they allocate much."""
    if hasattr(libc := _libc(), "mallopt"):
        libc.mallopt(_M_ARENA_MAX, ARENAS)
        libc.mallopt(_M_MMAP_THRESHOLD, MAPPED_BYTES)


def give_back() -> None:
    """Return free memory."""
    if hasattr(libc := _libc(), "malloc_trim"):
        libc.malloc_trim(0)


def resident_bytes() -> int | None:
    """Resident memory of this process; None where the system does not say."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return None
    return int(pages) * resource.getpagesize()


def idle_bytes() -> int | None:
    """Resident memory of this process without what its code holds by `malloc`: what is free, and a part that does not change much.

    Resident memory alone does not say it: what is in use at one look and freed by the next stays resident, so nothing seems to have grown.
    """
    resident = resident_bytes()
    if resident is None or not hasattr(libc := _libc(), "mallinfo2"):  # glibc before 2.33
        return resident
    libc.mallinfo2.restype = _Mallinfo
    counted = libc.mallinfo2()
    return resident - int(counted.uordblks) - int(counted.hblkhd)


class _Mallinfo(ctypes.Structure):
    """`struct mallinfo2`: uordblks are in use within arenas, hblkhd are mapped by themselves."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in [
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        ]
    )


class Tidy:
    """Gives free memory back once there is more of it, whatever left it: prices, samples, lists, uploads.

    To do so at the end of certain requests is not enough: what the last of a burst leaves stays for as long as nothing else comes.
    """

    def __init__(self, idle: Callable[[], int | None] = idle_bytes, give_back: Callable[[], None] = give_back) -> None:
        self._idle, self._give_back = idle, give_back
        self._least: int | None = None
        self._over = threading.Event()

    def look(self) -> bool:
        """Whether memory was given back."""
        now = self._idle()
        if now is None:
            return False
        if self._least is None or now < self._least:
            self._least = now
        if now < self._least + GROWTH_BYTES:
            return False
        self._give_back()
        self._least = self._idle()  # what could not be given back is not looked for again
        return True

    def start(self) -> None:
        """Look once in a while, in a thread, until `stop`."""
        threading.Thread(target=self._run, name="tidy", daemon=True).start()

    def stop(self) -> None:
        self._over.set()

    def _run(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            self.look()


@cache
def _libc() -> Any:
    return ctypes.CDLL(None)
