"""One computation per answer, however many ask at once."""

import gc
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from pydantic import BaseModel

from service.base.caching import ALL, ENTRY_BYTES, BoundedCache, Room, computed_once, size_of


def test_threads_that_ask_together_share_one_computation():
    calls, start, release = [], threading.Barrier(8), threading.Event()

    @computed_once(most_bytes=10_000)
    def slow(x):
        calls.append(x)
        release.wait(5)
        return x * 2

    def ask(_):
        start.wait()
        return slow(21)

    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(ask, i) for i in range(8)]
        release.set()
        assert {future.result() for future in futures} == {42}
    assert calls == [21]


def test_errors_are_not_remembered_and_old_answers_are_dropped():
    calls = []

    @computed_once(most_bytes=2 * (ENTRY_BYTES + size_of((((1,), ()), 1))))
    def picky(x):
        calls.append(x)
        if len(calls) == 1:
            raise ValueError("not yet")
        return x

    with pytest.raises(ValueError, match="not yet"):
        picky(1)
    assert [picky(1), picky(1), picky(2), picky(3), picky(1)] == [1, 1, 2, 3, 1]
    assert calls == [1, 1, 2, 3, 1]


def test_a_cache_is_bounded_in_bytes_and_not_in_entries():
    cache = BoundedCache(100_000)
    for number in range(1_000):
        cache.put(number, "x" * 10_000, 10_000)
        assert cache.bytes <= 100_000
    assert len(cache) == 9
    assert cache.get(999) == ("x" * 10_000,)
    assert cache.get(0) is None


def test_what_is_larger_than_the_cache_is_not_kept_and_empties_nothing():
    cache = BoundedCache(10_000)
    cache.put("small", 1, 100)
    cache.put("huge", 2, 1_000_000)
    assert cache.get("huge") is None
    assert cache.get("small") == (1,)


def test_caches_are_bounded_together_and_the_entry_used_longest_ago_goes_first():
    room = Room(100_000)
    first, second = BoundedCache(80_000, room), BoundedCache(80_000, room)
    for number in range(100):
        first.put(number, number, 9_000)
        assert first.get(0) == (0,)
        second.put(number, number, 9_000)
        assert room.bytes == first.bytes + second.bytes <= 100_000
    assert len(first) + len(second) == 10
    assert len(second) >= 4
    assert first.get(0) == (0,), "used all the time"
    second.put("all of it", 1, 75_000)
    assert second.get("all of it") == (1,)
    assert room.bytes <= 100_000


def test_no_cache_is_larger_than_its_room_and_one_that_is_gone_takes_none():
    room = Room(10_000)
    cache = BoundedCache(1 << 30, room)
    cache.put("huge", 1, 20_000)
    assert cache.get("huge") is None
    cache.put("large", 1, 8_000)
    del cache
    gc.collect()
    assert room.bytes == 0


def test_all_caches_of_the_service_share_one_room():
    """Each alone is within its bound; together they held 92 MiB."""
    code = """
import service.http.app, service.methods.pricing, service.methods.bounded, service.methods.facts
from service.base.caching import ALL, BoundedCache
from service.samples.cache import SamplerCache
samplers = SamplerCache(lambda key: b"")
import gc
caches = [one for one in gc.get_objects() if isinstance(one, BoundedCache)]
assert len(caches) >= 7
for cache in caches:
    for number in range(200):
        cache.put(number, number, 500_000)
assert ALL.bytes == sum(cache.bytes for cache in caches) <= ALL.most_bytes
assert ALL.bytes > ALL.most_bytes / 2
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert ALL.most_bytes <= 32 << 20


def test_sizes_count_what_is_reached_through_fields_and_each_object_once():
    text = "x" * 5_000
    assert 5_000 < size_of([text, text, {"again": text}]) < 6_000
    assert size_of([text, "y" * 5_000]) > 10_000


def test_sizes_count_what_models_keep_beside_their_fields():
    class Model(BaseModel):
        value: int = 0

    given = Model(value=1)
    assert size_of(given) >= sum(map(sys.getsizeof, (given, given.__dict__, given.__pydantic_fields_set__)))


def test_a_refused_turn_computes_nothing_and_what_is_known_needs_none():
    open_ = [True]

    @contextmanager
    def turn():
        if not open_[0]:
            raise RuntimeError("busy")
        yield

    @computed_once(most_bytes=10_000, turn=turn)
    def double(x):
        return 2 * x

    assert double(1) == 2
    open_[0] = False
    assert double(1) == 2
    with pytest.raises(RuntimeError, match="busy"):
        double(2)
