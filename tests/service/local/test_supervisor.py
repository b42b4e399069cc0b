"""Children are restarted when they die, stopped in order, and found again after the supervisor itself was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from service.local import CannotStart, Supervisor
from service.local.supervisor import Program, stop_leftovers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def script(tmp_path: Path, name: str, code: str, *, ready: Callable[[], bool] = lambda: True) -> Program:
    return Program(
        name=name,
        command=(sys.executable, "-c", code),
        environment=os.environ,
        log=tmp_path / f"{name}.log",
        ready=ready,
        working_directory=tmp_path,
        stop_seconds=2.0,
    )


def sleeper(tmp_path: Path, name: str) -> Program:
    """Notes when it starts and when it is asked to stop."""
    code = (
        "import signal, sys, time\n"
        f"log = open({str(tmp_path / 'order')!r}, 'a')\n"
        f"signal.signal(signal.SIGTERM, lambda *_: (log.write('stop {name}\\n'), sys.exit()))\n"
        f"log.write('start {name}\\n'); log.flush()\n"
        "time.sleep(600)"
    )
    return script(tmp_path, name, code, ready=lambda: f"start {name}" in (tmp_path / "order").read_text())


def until(condition: Callable[[], bool]) -> None:
    for _ in range(300):
        if condition():
            return
        time.sleep(0.1)
    pytest.fail("it never came true")


def test_stops_the_last_started_first(tmp_path):
    (tmp_path / "order").touch()
    with Supervisor(tmp_path / "pids.json") as supervisor:
        supervisor.start(sleeper(tmp_path, "a"))
        supervisor.start(sleeper(tmp_path, "b"))
    assert (tmp_path / "order").read_text().split("\n") == ["start a", "start b", "stop b", "stop a", ""]
    assert not (tmp_path / "pids.json").exists()


def test_starts_a_dead_child_again(tmp_path):
    (tmp_path / "order").touch()
    with Supervisor(tmp_path / "pids.json") as supervisor:
        supervisor.start(sleeper(tmp_path, "a"))
        first = supervisor.pids["a"]
        os.kill(first, signal.SIGKILL)
        until(lambda: (tmp_path / "order").read_text().count("start a") == 2)
        assert supervisor.pids["a"] != first
    assert "[supervisor] a ended with -9" in (tmp_path / "a.log").read_text()


def test_gives_up_on_a_child_that_never_gets_ready_and_shows_why(tmp_path):
    broken = script(tmp_path, "broken", "raise SystemExit('the disk is full')", ready=lambda: False)
    with Supervisor(tmp_path / "pids.json") as supervisor, pytest.raises(CannotStart, match="the disk is full"):
        supervisor.start(broken)


def test_kills_what_will_not_stop_with_all_its_descendants(tmp_path):
    stubborn = (
        "import signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid) + '.')\n"
        "time.sleep(600)"
    )
    program = script(tmp_path, "stubborn", stubborn, ready=lambda: (tmp_path / "pid").read_text().endswith("."))
    (tmp_path / "pid").touch()
    with Supervisor(tmp_path / "pids.json") as supervisor:
        supervisor.start(program)
        grandchild = psutil.Process(int((tmp_path / "pid").read_text()[:-1]))
        assert grandchild.is_running()
    until(lambda: not grandchild.is_running() or grandchild.status() == psutil.STATUS_ZOMBIE)


def test_finds_the_children_of_a_killed_supervisor(tmp_path):
    killed = (
        "import os, signal, sys\n"
        f"sys.path.insert(0, {os.path.dirname(__file__)!r})\n"  # noqa: PTH120
        "from pathlib import Path\n"
        "from test_supervisor import Supervisor, sleeper\n"
        f"folder = Path({str(tmp_path)!r})\n"
        "supervisor = Supervisor(folder / 'pids.json')\n"
        "supervisor.start(sleeper(folder, 'orphan'))\n"
        "print(supervisor.pids['orphan'], flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    (tmp_path / "order").touch()
    done = subprocess.run([sys.executable, "-c", killed], capture_output=True, text=True, check=False, timeout=60)
    orphan = psutil.Process(int(done.stdout))
    assert orphan.is_running()
    assert stop_leftovers(tmp_path / "pids.json") == ["orphan"]
    assert not orphan.is_running() or orphan.status() == psutil.STATUS_ZOMBIE


def test_leaves_a_stranger_with_a_reused_number_alone(tmp_path):
    (tmp_path / "pids.json").write_text(f'[{{"name": "x", "pid": {os.getpid()}, "created": 1.0, "stop_signal": 9}}]')
    assert stop_leftovers(tmp_path / "pids.json") == []
