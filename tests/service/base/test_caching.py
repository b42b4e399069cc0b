"""One computation per answer, however many ask at once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from service.base.caching import computed_once


def test_threads_that_ask_together_share_one_computation():
    calls, start, release = [], threading.Barrier(8), threading.Event()

    @computed_once(capacity=10)
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

    @computed_once(capacity=2)
    def picky(x):
        calls.append(x)
        if len(calls) == 1:
            raise ValueError("not yet")
        return x

    with pytest.raises(ValueError, match="not yet"):
        picky(1)
    assert [picky(1), picky(1), picky(2), picky(3), picky(1)] == [1, 1, 2, 3, 1]
    assert calls == [1, 1, 2, 3, 1]
