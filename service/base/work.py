"""A bound on what a computation may cost, counted in units of work before each part of it is done.

Not a clock: the same computation always ends in the same way, whatever else the machine does.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class TooMuchWork(Exception):
    """The next part would go over the bound."""


class _Thread(threading.local):
    left: int | None = None


_thread = _Thread()


@contextmanager
def at_most(units: int) -> Iterator[None]:
    """In this thread, `spend` raises `TooMuchWork` once so many units are spent; a bound within another one counts for both."""
    before = _thread.left
    start = units if before is None else min(units, before)
    _thread.left = start
    try:
        yield
    finally:
        spent = start - (_thread.left or 0)
        _thread.left = None if before is None else before - spent


def spend(units: int) -> None:
    """Say what comes next, before it is done. Outside `at_most` there is no bound."""
    if _thread.left is not None:
        _thread.left -= units
        if _thread.left < 0:
            raise TooMuchWork


def left() -> int | None:
    """Units that may still be spent; None: no bound."""
    return _thread.left
