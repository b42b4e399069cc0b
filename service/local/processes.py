"""End processes with all their descendants; and, run as a script, the guardian that does so when the supervisor is gone.

    python -P service/local/processes.py PID_OF_THE_SUPERVISOR      with lists of children, a JSON line each, on its input

The supervisor may be killed at any moment (SIGKILL, no memory). Its end closes the guardian's input; the guardian then stops
the children of the last list as the supervisor would have: the worker first, Postgres last and with a clean shutdown.
The kernel's own signal at a parent's death (PR_SET_PDEATHSIG) would kill all at once and leave their descendants, such as a
training, behind; it is lost where root lends Postgres another account, and it comes when a thread ends.

Imports nothing of the package, so that the guardian starts soon and is small.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

POLL_SECONDS = 0.05
STOP_SECONDS = 10.0
"""For a list that does not say how long a child may take."""
SUPERVISOR_LOOK_SECONDS = 1.0


def stop(process: psutil.Process, stop_signal: signal.Signals, seconds: float) -> None:
    """Ask it to end, wait so long, then kill what is left of its group."""
    with suppress(psutil.NoSuchProcess):
        process.send_signal(stop_signal)
    deadline = time.monotonic() + seconds
    while lives(process) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    kill_group(process.pid)


def lives(process: psutil.Process) -> bool:
    """Not gone, and not a zombie that its new parent is slow to bury."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def kill_group(pid: int) -> None:
    """Every child leads its own session, so its group is its descendants and no other process."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def created(pid: int) -> float:
    """When the process was born; 0 for one that is gone."""
    try:
        return float(psutil.Process(pid).create_time())
    except psutil.NoSuchProcess:
        return 0.0


def stop_listed(rows: list[dict[str, Any]]) -> list[str]:
    """Stop the children of a list, the last first; the names of those that were there."""
    found = []
    for row in reversed(rows):
        # A process id alone proves nothing: numbers are used again. With the moment of birth it is the same process.
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(row["pid"])
            if process.create_time() == row["created"]:
                found.append(row["name"])
                stop(process, signal.Signals(row["stop_signal"]), float(row.get("stop_seconds", STOP_SECONDS)))
    return found


def guard(supervisor: int) -> list[dict[str, Any]]:
    """Listen until the supervisor is gone; the last list that it sent."""
    rows: list[dict[str, Any]] = []
    heard = b""
    while True:
        if select.select([0], [], [], SUPERVISOR_LOOK_SECONDS)[0]:
            piece = os.read(0, 1 << 16)
            if not piece:
                return rows
            *lines, heard = (heard + piece).split(b"\n")
            rows = json.loads(lines[-1]) if lines else rows
        elif os.getppid() != supervisor:  # a process that it had forked may still hold the other end
            return rows


def _main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    rows = guard(int(sys.argv[1]))
    logs = {row["name"]: Path(row["log"]) for row in rows}
    for name in stop_listed(rows):
        with suppress(OSError), logs[name].open("a", encoding="utf-8") as log:
            log.write(f"[guardian] {name} stopped, because its supervisor was gone\n")


if __name__ == "__main__":
    _main()
