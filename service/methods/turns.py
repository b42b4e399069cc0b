"""Whose turn it is to have a price computed. Prices that are cached need none."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from service.base.errors import PricingBusy
from service.base.messages import Message

AT_ONCE = 3
"""Threads of this process that compute a price or wait for another's: fewer than answer requests (`service.http.quick_routes`)."""
OF_A_TENANT = 2
OF_A_KEY = 1
SLOW_AT_ONCE = 1
"""Prices computed in a child process."""
WANTED_SECONDS = 15.0
"""A tenant that was refused a slow price comes before one that has just had one, for so long."""
RETRY_SECONDS = 1


@dataclass(frozen=True, slots=True)
class Asker:
    """The key and the tenant for which a price is computed."""

    key: Hashable
    tenant: Hashable


class _Thread(threading.local):
    asker: Asker | None = None
    has_turn = False


class Turns:
    """Who computes now. One for a process; threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._computing: Counter[Hashable] = Counter()
        self._slow = 0
        self._last_slow: Hashable = None
        self._wanted_slow: dict[Hashable, float] = {}

    @contextmanager
    def take(self, asker: Asker) -> Iterator[None]:
        """Compute here, or be refused at once: a thread that waited would be missing elsewhere."""
        limits = ((None, AT_ONCE), (("tenant", asker.tenant), OF_A_TENANT), (("key", asker.key), OF_A_KEY))
        with self._lock:
            if any(self._computing[name] >= most for name, most in limits):
                raise busy()
            self._computing.update(name for name, _ in limits)
        try:
            yield
        finally:
            with self._lock:
                self._computing.subtract(name for name, _ in limits)
                self._computing += Counter()  # names at zero are forgotten

    @contextmanager
    def take_slow(self, asker: Asker) -> Iterator[None]:
        """Compute in a child process, or be refused at once; the tenant that had the last one lets the others go first."""
        now = time.monotonic()
        with self._lock:
            self._wanted_slow = {
                tenant: since for tenant, since in self._wanted_slow.items() if now - since < WANTED_SECONDS
            }
            yields = self._last_slow == asker.tenant and any(tenant != asker.tenant for tenant in self._wanted_slow)
            if self._slow >= SLOW_AT_ONCE or yields:
                self._wanted_slow[asker.tenant] = now
                raise busy()
            self._wanted_slow.pop(asker.tenant, None)
            self._slow, self._last_slow = self._slow + 1, asker.tenant
        try:
            yield
        finally:
            with self._lock:
                self._slow -= 1


TURNS = Turns()
_thread = _Thread()


def busy() -> PricingBusy:
    """The refusal of a price while others are being computed."""
    return PricingBusy(
        Message(
            "other prices are being computed, for this key or for others; ask again in %(retry_seconds)s s",
            retry_seconds=RETRY_SECONDS,
        ),
        retry_after_seconds=RETRY_SECONDS,
    )


@contextmanager
def on_behalf_of(asker: Asker) -> Iterator[None]:
    """What this thread computes here is bounded and takes turns. Elsewhere it is not: workers, measurements."""
    _thread.asker = asker
    try:
        yield
    finally:
        _thread.asker = None


def asker() -> Asker | None:
    """The key and the tenant for which this thread computes."""
    return _thread.asker


def turn() -> AbstractContextManager[None]:
    """The turn of a missing price; nothing where there is no asker, or within another turn."""
    if _thread.asker is None or _thread.has_turn:
        return nullcontext()
    return _with_turn(_thread.asker)


@contextmanager
def _with_turn(asker: Asker) -> Iterator[None]:
    with TURNS.take(asker):
        _thread.has_turn = True
        try:
            yield
        finally:
            _thread.has_turn = False
