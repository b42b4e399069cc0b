"""One computation per answer, however many ask at once."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from service.base.caching import ENTRY_BYTES, BoundedCache, computed_once, size_of


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


def test_sizes_count_what_is_reached_through_fields_and_each_object_once():
    text = "x" * 5_000
    assert 5_000 < size_of([text, text, {"again": text}]) < 6_000
    assert size_of([text, "y" * 5_000]) > 10_000


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
