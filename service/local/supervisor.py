"""Child processes that are kept alive, and that are gone when the supervisor is gone, or at its next start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import psutil

from service.local.errors import CannotStart

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

POLL_SECONDS = 0.1
FIRST_BACKOFF_SECONDS = 0.5
LONGEST_BACKOFF_SECONDS = 30.0
STEADY_SECONDS = 60.0
"""A child that lived this long is forgiven its earlier deaths."""
DEATHS_BEFORE_READY = 3
"""A child that dies this often before it was ever ready will not get better by itself."""


@dataclass(frozen=True)
class Program:
    """What to run, how to see that it is ready, and how it likes to be stopped."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    log: Path
    ready: Callable[[], bool]
    working_directory: Path
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 10.0


@dataclass
class _Child:
    program: Program
    process: subprocess.Popen[bytes]
    started_at: float
    deaths: int = 0
    restart_at: float | None = None


@dataclass
class Supervisor:
    """Starts programs, restarts those that die, stops them in reverse order. One thread watches."""

    pids_file: Path
    _children: list[_Child] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _watcher: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def launch(self, program: Program) -> None:
        """Start the program without waiting for it."""
        with self._lock:
            self._children.append(_Child(program, _spawn(program), time.monotonic()))
            self._remember()
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._watch, name="supervisor", daemon=True)
            self._watcher.start()

    def start(self, program: Program, timeout_seconds: float = 60.0) -> None:
        """Start the program and wait until it is ready."""
        self.launch(program)
        self.wait_ready(program, timeout_seconds)

    def wait_ready(self, program: Program, timeout_seconds: float) -> None:
        """Wait for the program, unless any child shows that it never will be."""
        deadline = time.monotonic() + timeout_seconds
        while not program.ready():
            if self._stopping.is_set():
                raise CannotStart("Stopped before everything was up.")
            with self._lock:
                hopeless = next((c.program for c in self._children if c.deaths >= DEATHS_BEFORE_READY), None)
            if hopeless is not None or time.monotonic() > deadline:
                culprit = hopeless or program
                what = "keeps ending" if hopeless else f"was not ready within {timeout_seconds:.0f} seconds"
                raise CannotStart(f"{culprit.name} {what}; the end of {culprit.log}:\n{tail(culprit.log)}")
            self._stopping.wait(POLL_SECONDS)

    def request_stop(self) -> None:
        """End a waiting start(); safe in a signal handler."""
        self._stopping.set()

    def stop(self) -> None:
        """Stop all programs, the last started first."""
        self._stopping.set()
        if self._watcher is not None:
            self._watcher.join()
        for child in reversed(self._children):
            if child.process.poll() is None:
                _stop(psutil.Process(child.process.pid), child.program.stop_signal, child.program.stop_seconds)
            child.process.wait()
        if self._children:
            self._children.clear()
            self.pids_file.unlink(missing_ok=True)

    def _watch(self) -> None:
        while not self._stopping.wait(POLL_SECONDS):
            with self._lock:
                for child in self._children:
                    # No room on the disk, no memory for a fork: looked after again at the next round.
                    with suppress(OSError):
                        self._look_after(child, time.monotonic())

    def _look_after(self, child: _Child, now: float) -> None:
        if child.process.poll() is None:
            return
        if child.restart_at is None:
            steady = now - child.started_at > STEADY_SECONDS
            child.deaths = 1 if steady else child.deaths + 1
            backoff = min(FIRST_BACKOFF_SECONDS * 2 ** (child.deaths - 1), LONGEST_BACKOFF_SECONDS)
            child.restart_at = now + backoff
            _kill_group(child.process.pid)  # what the dead one left behind, for example a training process
            _note(child.program, f"ended with {child.process.returncode}; starting again in {backoff:g} s")
        elif now >= child.restart_at:
            child.process, child.started_at, child.restart_at = _spawn(child.program), now, None
            self._remember()

    def _remember(self) -> None:
        rows = [
            {
                "name": child.program.name,
                "pid": child.process.pid,
                "created": _created(child.process.pid),
                "stop_signal": int(child.program.stop_signal),
            }
            for child in self._children
        ]
        unfinished = self.pids_file.with_suffix(".unfinished")
        with suppress(OSError):  # on a full disk the old file stays, whole
            unfinished.write_text(json.dumps(rows), encoding="utf-8")
            unfinished.replace(self.pids_file)

    @property
    def pids(self) -> dict[str, int]:
        """Process id of every program, by name."""
        with self._lock:
            return {child.program.name: child.process.pid for child in self._children}


def stop_leftovers(pids_file: Path) -> list[str]:
    """Stop what a killed supervisor left running; the names of what was found."""
    try:
        rows: list[dict[str, Any]] = json.loads(pids_file.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return []
    found = []
    for row in reversed(rows):
        # A process id alone proves nothing: numbers are used again. With the moment of birth it is the same process.
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(row["pid"])
            if process.create_time() == row["created"]:
                found.append(row["name"])
                _stop(process, signal.Signals(row["stop_signal"]), seconds=10.0)
    pids_file.unlink(missing_ok=True)
    return found


def tail(log: Path, lines: int = 15) -> str:
    """The last lines of a log."""
    try:
        return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return "(no log)"


def _spawn(program: Program) -> subprocess.Popen[bytes]:
    with program.log.open("ab") as log:
        # Its own session: Ctrl-C in the terminal reaches the supervisor alone, which then stops all in order.
        return subprocess.Popen(  # noqa: S603 - the commands are our own
            program.command,
            env=dict(program.environment),
            cwd=program.working_directory,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _stop(process: psutil.Process, stop_signal: signal.Signals, seconds: float) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(stop_signal)
    deadline = time.monotonic() + seconds
    while _lives(process) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS / 2)
    _kill_group(process.pid)


def _lives(process: psutil.Process) -> bool:
    """Not gone, and not a zombie that its new parent is slow to bury."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _kill_group(pid: int) -> None:
    """Every child leads its own session, so its group is its descendants and nobody else."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _created(pid: int) -> float:
    try:
        return float(psutil.Process(pid).create_time())
    except psutil.NoSuchProcess:
        return 0.0


def _note(program: Program, sentence: str) -> None:
    with suppress(OSError), program.log.open("a", encoding="utf-8") as log:
        log.write(f"[supervisor] {program.name} {sentence}\n")
