"""A cache for slow, pure functions that many threads ask at once: each answer is computed by one of them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def computed_once(capacity: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Like `functools.lru_cache`, but threads that ask for the same missing answer wait for the first one's.

    With `lru_cache` fifty equal orders that arrive together would be priced fifty times. Errors are not remembered.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        answers: OrderedDict[Hashable, R] = OrderedDict()
        running: dict[Hashable, threading.Lock] = {}
        guard = threading.Lock()

        @wraps(function)
        def ask(*args: P.args, **kwargs: P.kwargs) -> R:
            key = (args, tuple(sorted(kwargs.items())))
            with guard:
                if key in answers:
                    answers.move_to_end(key)
                    return answers[key]
                mine = running.setdefault(key, threading.Lock())
            with mine:
                with guard:
                    if key in answers:
                        return answers[key]
                try:
                    answer = function(*args, **kwargs)
                except BaseException:
                    with guard:
                        running.pop(key, None)
                    raise
                with guard:
                    answers[key] = answer
                    running.pop(key, None)
                    while len(answers) > capacity:
                        answers.popitem(last=False)
                return answer

        return ask

    return decorate
