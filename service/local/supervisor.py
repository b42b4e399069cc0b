"""Child processes that are kept alive, and that are gone soon after the supervisor is gone, or at its next start."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import psutil

from service.local import logs, processes
from service.local.errors import CannotStart
from service.local.private_files import UMASK, append_private, write_private

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

GATE = ("/bin/sh", "-c", 'read -r go && exec "$@" </dev/null', "gate")
"""The same process, by number and moment of birth, becomes the program once it is told to go."""


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
    """Starts programs, restarts those that die, stops them in reverse order. One thread watches.

    A process of its own, the guardian (`service/local/processes.py`), stops them when the supervisor is killed. A program runs
    only once the guardian and `pids_file` know it, so none is forgotten, whenever that happens.
    """

    pids_file: Path
    _children: list[_Child] = field(default_factory=list)
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _stopping: threading.Event = field(default_factory=threading.Event)
    _watcher: threading.Thread | None = None
    _guardian: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def launch(self, program: Program) -> None:
        """Start the program without waiting for it."""
        with self._lock:
            child = _Child(program, _spawn(program), time.monotonic())
            self._children.append(child)
            self._remember()
            _let_go(child.process)
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
        """End a waiting start(). Not for a signal handler: it takes a lock."""
        self._stopping.set()

    def stop(self) -> None:
        """Stop all programs, the last started first."""
        self._stopping.set()
        if self._watcher is not None:
            self._watcher.join()
        for child in reversed(self._children):
            if child.process.poll() is None:
                process = psutil.Process(child.process.pid)
                processes.stop(process, child.program.stop_signal, child.program.stop_seconds)
            child.process.wait()
        if self._children:
            self._children.clear()
            self.pids_file.unlink(missing_ok=True)
        with self._lock:
            self._dismiss_guardian()

    def _watch(self) -> None:
        look_at_logs = time.monotonic()
        while not self._stopping.wait(POLL_SECONDS):
            with self._lock:
                for child in self._children:
                    # No room on the disk, no memory for a fork: looked after again at the next round.
                    with suppress(OSError):
                        self._look_after(child, time.monotonic())
                if self._guardian is None or self._guardian.poll() is not None:
                    self._tell_guardian()
                files = [child.program.log for child in self._children]
            if time.monotonic() >= look_at_logs:
                look_at_logs = time.monotonic() + logs.LOOK_SECONDS
                for file in files:
                    with suppress(OSError):
                        logs.bound(file)

    def _look_after(self, child: _Child, now: float) -> None:
        if child.process.poll() is None:
            return
        if child.restart_at is None:
            steady = now - child.started_at > STEADY_SECONDS
            child.deaths = 1 if steady else child.deaths + 1
            backoff = min(FIRST_BACKOFF_SECONDS * 2 ** (child.deaths - 1), LONGEST_BACKOFF_SECONDS)
            child.restart_at = now + backoff
            processes.kill_group(child.process.pid)  # what the dead one left behind, for example a training process
            _note(child.program, f"ended with {child.process.returncode}; starting again in {backoff:g} s")
        elif now >= child.restart_at:
            child.process, child.started_at, child.restart_at = _spawn(child.program), now, None
            self._remember()
            _let_go(child.process)

    def _remember(self) -> None:
        self._tell_guardian()
        with suppress(OSError):  # on a full disk the old file stays, whole
            write_private(self.pids_file, self._list())

    def _list(self) -> str:
        rows = [
            {
                "name": child.program.name,
                "pid": child.process.pid,
                "created": processes.created(child.process.pid),
                "stop_signal": int(child.program.stop_signal),
                "stop_seconds": child.program.stop_seconds,
                "log": str(child.program.log),
            }
            for child in self._children
        ]
        return json.dumps(rows)

    def _tell_guardian(self) -> None:
        """Give it the list, or a new guardian in its place where it is gone."""
        for _ in range(2):
            with suppress(OSError):
                if self._guardian is None or self._guardian.poll() is not None:
                    self._guardian = _start_guardian()
                _say(self._guardian, self._list() + "\n")
                return

    def _dismiss_guardian(self) -> None:
        if self._guardian is not None:
            with suppress(OSError):
                _say(self._guardian, "[]\n")
            _close(self._guardian)
            self._guardian.wait()
            self._guardian = None

    @property
    def pids(self) -> dict[str, int]:
        """Process id of every program, by name."""
        with self._lock:
            return {child.program.name: child.process.pid for child in self._children}

    @property
    def guardian_pid(self) -> int | None:
        """Process id of the guardian."""
        with self._lock:
            return None if self._guardian is None else self._guardian.pid


def stop_leftovers(pids_file: Path) -> list[str]:
    """Stop what a killed supervisor left running; the names of what was found."""
    try:
        rows: list[dict[str, Any]] = json.loads(pids_file.read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return []
    found = processes.stop_listed(rows)
    pids_file.unlink(missing_ok=True)
    return found


def tail(log: Path, lines: int = 15) -> str:
    """The last lines of a log."""
    try:
        return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return "(no log)"


def _spawn(program: Program) -> subprocess.Popen[bytes]:
    """Start it at a gate: it waits for `_let_go`, and ends where the supervisor is gone before that."""
    with append_private(program.log) as log:
        # Its own session: Ctrl-C in the terminal reaches the supervisor alone, which then stops all in order.
        return subprocess.Popen(  # noqa: S603 - the commands are our own
            (*GATE, *program.command),
            env=dict(program.environment),
            cwd=program.working_directory,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            umask=UMASK,
        )


def _let_go(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        _say(process, "go\n")
    _close(process)


def _start_guardian() -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - our own file
        (sys.executable, "-P", processes.__file__, str(os.getpid())),
        cwd="/",
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        umask=UMASK,
    )


def _say(process: subprocess.Popen[bytes], text: str) -> None:
    if process.stdin is not None:
        process.stdin.write(text.encode())


def _close(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()


def _note(program: Program, sentence: str) -> None:
    with suppress(OSError), append_private(program.log) as log:
        log.write(f"[supervisor] {program.name} {sentence}\n".encode())
