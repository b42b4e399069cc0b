"""Prices that a caller asked for are computed within bounds: a little work here, more in a child process, no more than that.

Bounds are counted in work, so an order is refused or priced whatever else the machine does. The clock only ends a child.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from service.base.caching import BoundedCache
from service.base.carried import unpacked
from service.base.errors import InvalidOrder, TooExpensiveToPrice, Unpriceable
from service.base.messages import Message
from service.base.work import TooMuchWork, at_most
from service.methods.knobs import Order
from service.methods.turns import TURNS, asker
from service.privacy.filters import Budget

A = TypeVar("A")

WORK_HERE = 500_000_000
"""Of a price in a thread that answers requests; in about nanoseconds of a processor."""
WORK_OF_A_CHILD = 20_000_000_000
CHILD_CPU_SECONDS = 60
CHILD_SECONDS = 90.0
OUT_OF_TIME_SECONDS = 300.0
"""How long an order whose child the clock ended is refused without another: it would hold the slow turn again, and a busy machine must not refuse it for ever."""
CHILD_MEMORY_BYTES = 4 << 30
"""Address space; the largest list of noise levels on the largest grid takes about 1 GiB."""

WHAT_TO_DO = Message(
    "computing this price takes more work than is allowed: give the order fewer different noise levels (noise_decay: constant, or"
    " thresholds.every_steps: 1), fewer steps, or a larger sampling_probability"
)


class _OutOfTime(Exception):
    """The clock ended a child, which says nothing of how much work its price is."""


_refused: BoundedCache[tuple[str, float]] = BoundedCache(1 << 20)
"""What was said, and until when it holds, by the hash of a job: what was too much work once always is. An error that is raised again and again would hold the frames of every time."""

_log = logging.getLogger(__name__)


def bounded(here: Callable[[], A], job: Callable[[], dict[str, Any]], read: Callable[[Any], A]) -> A:
    """`here` where that is little work or no caller asked for it; else `job` in a child, whose answer `read` understands."""
    caller = asker()
    if caller is None:
        return here()
    try:
        with at_most(WORK_HERE):
            return here()
    except TooMuchWork:
        pass
    text = json.dumps(job())
    name = hashlib.sha256(text.encode()).digest()
    if (refused := _refused.get(name)) is not None and time.monotonic() < refused[0][1]:
        raise TooExpensiveToPrice(refused[0][0])
    with TURNS.take_slow(caller):
        try:
            return read(_ask_child(text))
        except TooExpensiveToPrice as error:
            _remember(name, error.detail, math.inf)
            raise
        except _OutOfTime:
            _remember(name, WHAT_TO_DO, time.monotonic() + OUT_OF_TIME_SECONDS)
            raise TooExpensiveToPrice(WHAT_TO_DO) from None


def _remember(name: bytes, detail: str, until: float) -> None:
    _refused.put(name, (detail, until), sys.getsizeof(detail))


def job_of(kind: str, order: Order, budget: Budget, **values: Any) -> dict[str, Any]:
    """JSON keeps every digit of a double."""
    named = order.model_copy(update={"epsilon": 1.0})  # every order that is read has one; the child takes it out again
    return {"kind": kind, "order": named.model_dump_json(), "budget": asdict(budget), **values}


def _ask_child(job: str) -> Any:
    child = subprocess.Popen(
        [sys.executable, "-m", "service.methods.child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=_environment(),
        start_new_session=True,
    )
    try:
        said, _ = child.communicate(job.encode(), timeout=CHILD_SECONDS)
    except subprocess.TimeoutExpired:
        raise _OutOfTime from None
    finally:
        child.kill()
        status = child.wait()
    if not said or status != 0:
        if status not in {-signal.SIGKILL, -signal.SIGXCPU, 0}:
            _log.error("the pricing process ended with status %s", status)
        raise TooExpensiveToPrice(WHAT_TO_DO)
    answer = json.loads(said)
    if "error" in answer:
        kinds = {kind.code: kind for kind in (TooExpensiveToPrice, Unpriceable, InvalidOrder)}
        raise kinds.get(answer["error"], Unpriceable)(unpacked(answer["detail"]), **answer["values"])
    return answer["answer"]


def _environment() -> dict[str, str]:
    """Only what Python and the libraries need: no database URL, no credentials."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL", "SYSTEMROOT") if name in os.environ}
    root = str(Path(__file__).parents[2])
    return kept | {
        "PYTHONPATH": os.pathsep.join([root, *(entry for entry in sys.path if entry)]),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "MALLOC_ARENA_MAX": "1",
    }
