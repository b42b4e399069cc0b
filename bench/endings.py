"""How a bench with a limited time ends: by its own clock, which counts from the start of the process, or by SIGTERM."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class OutOfTime(Exception):
    """The minutes are over."""


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Whatever runs is broken off, and no later run begins; what was written stays."""

    def ring(_signal: int, _frame: object) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(1e-3, seconds))  # none left would set no alarm
        yield
    except OutOfTime:
        print("the time is over; what ended is written", flush=True)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def terminated() -> Iterator[None]:
    """SIGTERM raises `SystemExit` within, once: a second one does not break off what is done about it."""

    def end(number: int, _frame: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def age_seconds() -> float:
    """Since this process began: importing is a part of its minutes. 0 where the system does not tell."""
    try:
        words = Path("/proc/self/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - int(words[19]) / os.sysconf("SC_CLK_TCK"))
    except (OSError, IndexError, AttributeError):
        return 0.0
