"""How often something may happen: token buckets in this process's memory.

Generic cell rate algorithm: of every name only the time is kept at which its bucket would be full again.
Not shared by processes and forgotten at a restart, on purpose: docs/decisions/0006-rate-limits-in-memory.md.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable

MINUTE = 60.0


class Rates:
    """At most `per_minute` events a minute for each name, of which `burst_seconds` worth may come at once."""

    def __init__(
        self,
        per_minute: float,
        *,
        burst_seconds: float = MINUTE,
        names: int = 100_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pause = MINUTE / per_minute
        self._depth = max(burst_seconds, self._pause)
        self._names = names
        self._clock = clock
        self._full_at: dict[Hashable, float] = {}
        self._lock = threading.Lock()

    def seconds_until_free(self, name: Hashable, *, take: bool = True) -> float:
        """0 when the event may happen, which is then counted (unless `take` is false); else how long to wait."""
        now = self._clock()
        with self._lock:
            owed = max(self._full_at.get(name, now) - now, 0.0)
            wait = owed + self._pause - self._depth
            if wait > 0.0:
                return wait
            if take:
                if len(self._full_at) >= self._names and name not in self._full_at:
                    self._forget(now)
                self._full_at[name] = now + owed + self._pause
        return 0.0

    def knows(self, name: Hashable) -> bool:
        """Whether an event of this name was counted not long ago."""
        return name in self._full_at

    def drop(self, name: Hashable) -> None:
        """Count this name no longer."""
        with self._lock:
            self._full_at.pop(name, None)

    def _forget(self, now: float) -> None:
        """Make room: first who owes nothing, then, where somebody has filled the table, a tenth of it at once."""
        owing = [item for item in self._full_at.items() if item[1] > now]
        self._full_at = dict(owing[max(0, len(owing) - self._names * 9 // 10) :])
