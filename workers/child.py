"""The process of one attempt, watched from outside: its claim is renewed, its clock and memory are limited, a cancel reaches it.

What is enforced depends on settings and on nothing else (docs/privacy.md, Limits). The child limits itself too, by the kernel,
for what grows between two looks and for the case that its watcher is gone.
"""

from __future__ import annotations

import logging
import math
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from service.base.errors import Unavailable
from service.platform.broker import beat
from service.platform.context import Context
from workers import lease as leases
from workers.lease import Lease, LeaseLost

try:
    import resource
except ImportError:  # not a Unix
    resource = None  # type: ignore[assignment]

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.2
"""Between two looks at the child's clock and memory."""
LOOK_SECONDS = 1.0
"""Between two looks at whether somebody has cancelled; a read of one row by its key."""
STOP_SECONDS = 10.0
"""For a child that is told to hand over, or whose claim is lost, to end by itself."""
CANCEL_SECONDS = 3.0
"""The same for one that is cancelled: with a look and a poll it is gone within five seconds, whatever it does."""
ALARM_SECONDS = 60
"""The child's own alarm comes so much later than its watcher, and is for the case that there is none."""
SPARE_BYTES = 1 << 30
"""The child may reserve so much more than it may hold: reserved memory that is never touched costs nothing."""

OVER_LIMITS = 74
"""Exit status of an attempt that was refused memory: another one would be refused it too."""
OVER_LIMITS_FAILURE = "over_limits"
CANCEL_SIGNAL = signal.SIGUSR1
"""Its default action ends a child that is not yet ready for it."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended: its exit status, and what it was ended for."""

    status: int
    cancelled: bool = False
    over_limits: bool = False


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one attempt, from the settings alone: wall-clock seconds, and bytes of memory."""

    seconds: float
    memory_bytes: int

    def as_arguments(self) -> list[str]:
        return [str(self.seconds), str(self.memory_bytes)]

    @classmethod
    def from_arguments(cls, arguments: Sequence[str]) -> Limits:
        seconds, memory_bytes = arguments
        return cls(float(seconds), int(memory_bytes))


def limits_of(context: Context) -> Limits:
    """The limits that the settings give to an attempt."""
    return Limits(context.settings.job_seconds_limit, context.settings.job_memory_bytes_limit)


def run_child(
    context: Context,
    lease: Lease,
    stopping: threading.Event,
    options: Mapping[str, Any],
    command: Sequence[str] = (sys.executable, "-m", "workers.run"),
) -> Ended:
    """Run one attempt to its end, whatever the child does. options: of `Popen`."""
    limits = limits_of(context)
    settles = _look(context, lease) == _CANCELLED  # then the child has nothing else to do, and gets the time it takes
    arguments = [*command, str(lease.release_id), str(lease.token), *limits.as_arguments()]
    child = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, **options)  # noqa: S603 - our own module
    try:
        return _Watched(context, lease, child, limits, settles=settles).until_it_ends(stopping)
    finally:
        if child.poll() is None:  # else its number may be another's by now
            kill_tree(child.pid)
            child.wait()


class _Watched:
    """A running child, what it was told, and when it must have ended."""

    def __init__(
        self, context: Context, lease: Lease, child: subprocess.Popen[bytes], limits: Limits, *, settles: bool
    ) -> None:
        self.context, self.lease, self.child, self.limits = context, lease, child, limits
        self.began = time.monotonic()
        self.deadline = math.inf
        self.next_beat = self.next_look = 0.0
        self.stopped = self.over_limits = self.cancelled = False
        self.watches_cancel = not settles

    def until_it_ends(self, stopping: threading.Event) -> Ended:
        while (status := self.child.poll()) is None:
            now = time.monotonic()
            if now > self.deadline or self._is_over_limits(now):
                kill_tree(self.child.pid)
            self._keep_claim(now)
            self._look_for_cancel(now)
            if stopping.is_set() and not self.stopped:
                self.stopped = True
                self._tell(signal.SIGTERM, now + STOP_SECONDS)
            time.sleep(POLL_SECONDS)
        refused = status in {OVER_LIMITS, -signal.SIGALRM}
        return Ended(status, cancelled=self.cancelled, over_limits=status != 0 and (self.over_limits or refused))

    def _is_over_limits(self, now: float) -> bool:
        """Looked at before the database is asked for anything, which may take its time."""
        if now - self.began > self.limits.seconds or memory_of_tree(self.child.pid) > self.limits.memory_bytes:
            self.over_limits = True
        return self.over_limits

    def _keep_claim(self, now: float) -> None:
        if now < self.next_beat:
            return
        self.next_beat = now + self.context.settings.heartbeat_seconds
        if not _beat(self.context, self.lease):
            # Lost, or just published: what the child still writes is fenced off, so it may end by itself.
            self.next_beat, self.deadline = math.inf, min(self.deadline, now + STOP_SECONDS)

    def _look_for_cancel(self, now: float) -> None:
        if not self.watches_cancel or self.cancelled or now < self.next_look:
            return
        self.next_look = now + LOOK_SECONDS
        if _look(self.context, self.lease) == _CANCELLED:
            self.cancelled = True
            self._tell(CANCEL_SIGNAL, now + CANCEL_SECONDS)

    def _tell(self, what: signal.Signals, deadline: float) -> None:
        self.child.send_signal(what)
        self.deadline = min(self.deadline, deadline)


_GOES_ON, _CANCELLED = "goes on", "cancelled"


def _look(context: Context, lease: Lease) -> str:
    """Whether somebody has cancelled. A silent database says nothing; whether the claim is lost is found by the beat."""
    try:
        with context.transaction() as session:
            return _CANCELLED if leases.is_cancelled(session, lease) else _GOES_ON
    except Unavailable:
        return _GOES_ON


def _beat(context: Context, lease: Lease) -> bool:
    """Renew the claim; False once it is lost. A silent database is no reason to stop before the lease lapses."""
    try:
        with context.transaction() as session:
            leases.renew(session, lease, lease_seconds=context.settings.lease_seconds)
            beat(session, "worker")
    except LeaseLost:
        return False
    except Unavailable:
        logger.warning("release %s: no heartbeat, the database does not answer", lease.release_id)
    return True


def end_over_limits(context: Context, lease: Lease) -> None:
    """No other attempt: it would get as far. A charge stands in full, since nothing tells any more how much ran."""
    try:
        with context.transaction() as session:
            leases.end_without_publishing(session, lease, failure=OVER_LIMITS_FAILURE)
        logger.warning("release %s was ended: it was over the limits of a job", lease.release_id)
    except LeaseLost:
        logger.info("release %s has ended or has moved on", lease.release_id)
    except Unavailable:
        logger.warning("release %s: the database does not answer; its lease will lapse", lease.release_id)


# -- memory


def memory_of_tree(pid: int) -> int:
    """Bytes that a process and its descendants hold for themselves, in memory or swapped out; pages of files do not count."""
    return sum(_memory(each) for each in _tree(pid))


def kill_tree(pid: int) -> None:
    """A process that is our child and not yet waited for, and what it has started."""
    for each in _tree(pid):
        with suppress(psutil.Error):
            each.kill()


def _tree(pid: int) -> list[psutil.Process]:
    with suppress(psutil.Error):
        first = psutil.Process(pid)
        return [first, *first.children(recursive=True)]
    return []


def _memory(process: psutil.Process) -> int:
    try:
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        with suppress(psutil.Error):  # no /proc, or gone
            return int(process.memory_info().rss)
        return 0
    kept = [line.split() for line in status.splitlines() if line.startswith(("RssAnon:", "RssShmem:", "VmSwap:"))]
    return sum(int(words[1]) << 10 for words in kept)


# -- in the child


def limit_myself(limits: Limits, *, has_gpu: bool) -> None:
    """The kernel's share of the limits. Where memory is short altogether, this process is the first that it ends.

    A GPU's driver reserves address space by the gigabyte, so there the watcher alone limits memory.
    """
    if hasattr(signal, "alarm"):
        signal.alarm(min(math.ceil(limits.seconds) + ALARM_SECONDS, 2**31 - 1))
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("500", encoding="ascii")
    if resource is None:
        return
    kinds = {resource.RLIMIT_CORE: 0}  # a core dump would hold private rows
    if not has_gpu:
        kinds[resource.RLIMIT_DATA] = limits.memory_bytes + SPARE_BYTES
    for kind, limit in kinds.items():
        with suppress(ValueError, OSError):  # where the system has no such limit, or a stricter one
            resource.setrlimit(kind, (limit, limit))


def was_refused_memory(error: Exception) -> bool:
    """Python and numpy say so by class, torch by a text of its own."""
    said = str(error) if isinstance(error, RuntimeError) else ""
    return isinstance(error, MemoryError) or "allocate memory" in said or "bad_alloc" in said
