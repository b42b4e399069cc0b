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
_M_ARENA_MAX = -8
GROWTH_BYTES = 8 << 20
"""Resident memory may grow by so much before free memory is given back."""
LOOK_SECONDS = 1.0
"""Between two looks; giving back takes some milliseconds, and other threads wait."""


def use_few_arenas() -> None:
    """For a process of many threads; before they allocate much."""
    if hasattr(libc := _libc(), "mallopt"):
        libc.mallopt(_M_ARENA_MAX, ARENAS)


def give_back() -> None:
    """Return free memory."""
    if hasattr(libc := _libc(), "malloc_trim"):
        libc.malloc_trim(0)


def resident_bytes() -> int | None:
    """Of this process; None where the system does not say."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return None
    return int(pages) * resource.getpagesize()


class Tidy:
    """Gives free memory back once the process has grown, whatever made it grow: prices, samples, lists, uploads.

    To do so at the end of certain requests is not enough: what the last of a burst leaves stays for as long as nothing else comes.
    """

    def __init__(
        self, resident: Callable[[], int | None] = resident_bytes, give_back: Callable[[], None] = give_back
    ) -> None:
        self._resident, self._give_back = resident, give_back
        self._least: int | None = None
        self._over = threading.Event()

    def look(self) -> bool:
        """Whether memory was given back."""
        now = self._resident()
        if now is None:
            return False
        if self._least is None or now < self._least:
            self._least = now
        if now < self._least + GROWTH_BYTES:
            return False
        self._give_back()
        self._least = self._resident()  # what is in use stays, and is not looked for again
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
