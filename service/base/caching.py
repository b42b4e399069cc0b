"""A cache for slow, pure functions that many threads ask at once: each answer is computed by one of them, and all together are bounded in bytes."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields, is_dataclass
from functools import wraps
from itertools import count
from typing import Any, Generic, ParamSpec, TypeVar
from weakref import WeakSet

P = ParamSpec("P")
R = TypeVar("R")
V = TypeVar("V")

ENTRY_BYTES = 512
"""Of a cache, beside what it holds."""


class Room:
    """What several caches may hold together, in bytes: the entry that was used longest ago goes first, whichever cache it is in."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.lock = threading.Lock()
        self._caches: WeakSet[BoundedCache[Any]] = WeakSet()
        self._uses = count()

    @property
    def bytes(self) -> int:
        return sum(cache.bytes for cache in self._caches)

    def add(self, cache: BoundedCache[Any]) -> None:
        with self.lock:
            self._caches.add(cache)

    def use(self) -> int:
        """A number larger than all before."""
        return next(self._uses)

    def shrink(self) -> None:
        """Let go of the oldest until the rest fits; under the lock."""
        while self.bytes > self.most_bytes:
            min((cache for cache in self._caches if len(cache)), key=lambda cache: cache.oldest_use()).drop_oldest()


ALL = Room(32 << 20)
"""Of this process. Each cache has a bound of its own, so that none crowds out all others; what they hold together would be nearly twice this."""


class BoundedCache(Generic[V]):
    """The values used last, as many as fit into so many bytes, and with all others into their room. Threads may share it."""

    def __init__(self, most_bytes: int, room: Room = ALL) -> None:
        self._most_bytes = min(most_bytes, room.most_bytes)
        self._room = room
        self._values: OrderedDict[Hashable, tuple[V, int, int]] = OrderedDict()
        self.bytes = 0
        room.add(self)

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> tuple[V] | None:
        """The value in a tuple of its own, so that None may be one."""
        with self._room.lock:
            found = self._values.pop(key, None)
            if found is None:
                return None
            value, size, _ = found
            self._values[key] = value, size, self._room.use()
            return (value,)

    def put(self, key: Hashable, value: V, size: int) -> None:
        """Keep it, and let go of the oldest; what alone is larger than the cache is not kept."""
        size += ENTRY_BYTES
        with self._room.lock:
            _, before, _ = self._values.pop(key, (None, 0, 0))
            self.bytes -= before
            if size > self._most_bytes:
                return
            self._values[key] = value, size, self._room.use()
            self.bytes += size
            while self.bytes > self._most_bytes:
                self.drop_oldest()
            self._room.shrink()

    def oldest_use(self) -> int:
        """When the entry that was used longest ago was used; called by the room, under its lock."""
        return next(iter(self._values.values()))[2]

    def drop_oldest(self) -> None:
        """Drop the entry that was used longest ago; called by the room, under its lock."""
        _, (_, freed, _) = self._values.popitem(last=False)
        self.bytes -= freed


def computed_once(
    *, most_bytes: int, turn: Callable[[], AbstractContextManager[None]] = nullcontext
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Like `functools.lru_cache`, but threads that ask for the same missing answer wait for the first one's.

    With `lru_cache` fifty equal orders that arrive together would be priced fifty times. Errors are not remembered.
    turn: entered by each thread that computes a missing answer or waits for it; it may refuse.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        answers: BoundedCache[R] = BoundedCache(most_bytes)
        running: dict[Hashable, threading.Lock] = {}
        guard = threading.Lock()

        @wraps(function)
        def ask(*args: P.args, **kwargs: P.kwargs) -> R:
            key = (args, tuple(sorted(kwargs.items())))
            if (known := answers.get(key)) is not None:
                return known[0]
            with turn():
                with guard:
                    mine = running.setdefault(key, threading.Lock())
                with mine:
                    if (known := answers.get(key)) is not None:
                        return known[0]
                    try:
                        answer = function(*args, **kwargs)
                        answers.put(key, answer, size_of((key, answer)))
                    finally:
                        with guard:
                            running.pop(key, None)
                    return answer

        return ask

    return decorate


def size_of(value: object) -> int:
    """Bytes of a value and of all it refers to, each object once; classes, modules and functions are shared, so they do not count."""
    seen: set[int] = set()
    waiting: list[object] = [value]
    total = 0
    while waiting:
        one = waiting.pop()
        if id(one) in seen or isinstance(one, type) or callable(one):
            continue
        seen.add(id(one))
        total += sys.getsizeof(one)
        waiting.extend(_parts(one))
    return total


def _parts(one: object) -> Iterable[object]:
    if isinstance(one, dict):
        yield from one.keys()
        yield from one.values()
    elif isinstance(one, list | tuple | set | frozenset):
        yield from one
    elif not isinstance(one, str | bytes | int | float | complex | bool | None):
        if is_dataclass(one):
            yield from (getattr(one, each.name) for each in fields(one))
        yield from _slots(one)
        if hasattr(one, "__dict__"):
            yield one.__dict__


def _slots(one: object) -> Iterable[object]:
    """Pydantic's models keep a set of the fields that were given beside their `__dict__`: a quarter of a wide schema."""
    for kind in type(one).__mro__:
        names = vars(kind).get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if hasattr(one, name):
                yield getattr(one, name)
