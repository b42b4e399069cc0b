"""Children are restarted when they die, stopped in order, and found again after the supervisor itself was killed."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil
import pytest

from service.local import CannotStart, EmbeddedStack, Supervisor, logs
from service.local.supervisor import Program, stop_leftovers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def script(
    tmp_path: Path, name: str, code: str, *, ready: Callable[[], bool] = lambda: True, stop_seconds: float = 60.0
) -> Program:
    return Program(
        name=name,
        command=(sys.executable, "-c", code),
        environment=os.environ,
        log=tmp_path / f"{name}.log",
        ready=ready,
        working_directory=tmp_path,
        stop_seconds=stop_seconds,
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
    for _ in range(1_200):
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
    is_there = lambda: (tmp_path / "pid").read_text().endswith(".")  # noqa: E731
    program = script(tmp_path, "stubborn", stubborn, ready=is_there, stop_seconds=2.0)
    (tmp_path / "pid").touch()
    with Supervisor(tmp_path / "pids.json") as supervisor:
        supervisor.start(program)
        grandchild = psutil.Process(int((tmp_path / "pid").read_text()[:-1]))
        assert grandchild.is_running()
    until(lambda: not grandchild.is_running() or grandchild.status() == psutil.STATUS_ZOMBIE)


def gone(pid: int) -> bool:
    """Or a zombie, where the first process of a container buries nothing."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def killed_supervisor(tmp_path: Path, *lines: str) -> str:
    """A supervisor in a process of its own, which does this and is then killed; what it said."""
    killed = (
        "import os, signal, sys\n"
        f"sys.path.insert(0, {os.path.dirname(__file__)!r})\n"  # noqa: PTH120
        "from pathlib import Path\n"
        "from test_supervisor import Supervisor, sleeper\n"
        f"folder = Path({str(tmp_path)!r})\n"
        "supervisor = Supervisor(folder / 'pids.json')\n"
        + "".join(f"{line}\n" for line in lines)
        + "sys.stdout.flush()\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    (tmp_path / "order").touch()
    command = [sys.executable, "-c", killed]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, timeout=600).stdout


def test_the_guardian_stops_the_children_of_a_killed_supervisor_in_order(tmp_path):
    said = killed_supervisor(
        tmp_path,
        "supervisor.start(sleeper(folder, 'a'))",
        "supervisor.start(sleeper(folder, 'b'))",
        "print(*supervisor.pids.values(), supervisor.guardian_pid)",
    )
    *children, guardian = map(int, said.split())
    until(lambda: all(map(gone, (*children, guardian))))
    assert (tmp_path / "order").read_text().split() == ["start", "a", "start", "b", "stop", "b", "stop", "a"]
    assert "its supervisor was gone" in (tmp_path / "a.log").read_text()


def test_a_child_that_nothing_knows_of_yet_does_not_run(tmp_path):
    """The supervisor is killed between the child's birth and the note of it."""
    killed_supervisor(
        tmp_path,
        "Supervisor._remember = lambda self: os.kill(os.getpid(), signal.SIGKILL)",
        "supervisor.start(sleeper(folder, 'a'))",
    )
    until(
        lambda: not [p for p in psutil.process_iter(["cmdline"]) if str(tmp_path) in " ".join(p.info["cmdline"] or [])]
    )
    assert (tmp_path / "order").read_text() == ""


def test_a_guardian_that_is_killed_is_replaced(tmp_path):
    (tmp_path / "order").touch()
    with Supervisor(tmp_path / "pids.json") as supervisor:
        supervisor.start(sleeper(tmp_path, "a"))
        first = supervisor.guardian_pid
        os.kill(first, signal.SIGKILL)
        until(lambda: supervisor.guardian_pid not in {None, first})
        last = supervisor.guardian_pid
    assert gone(last)


def test_the_next_start_finds_what_a_killed_supervisor_and_a_killed_guardian_left(tmp_path):
    said = killed_supervisor(
        tmp_path,
        "supervisor.start(sleeper(folder, 'orphan'))",
        "print(supervisor.pids['orphan'])",
        "supervisor._lock.acquire()",  # so that no new guardian is made
        "os.kill(supervisor.guardian_pid, signal.SIGKILL)",
    )
    orphan = psutil.Process(int(said))
    assert orphan.is_running()
    said_next = []
    stack = EmbeddedStack(tmp_path, 0, on_part=said_next.append, on_leftover=said_next.append)
    stack._own_directory()
    stack.stop()
    assert said_next == ["stopped the orphan that an earlier, killed run had left behind"]
    assert not orphan.is_running() or orphan.status() == psutil.STATUS_ZOMBIE


def stat_of(file, name="st_ino"):
    """None between two renames."""
    with suppress(FileNotFoundError):
        return getattr(file.stat(), name)
    return None


def test_logs_are_bounded_and_go_on(tmp_path, monkeypatch):
    """What writes has the log open, and is not asked to open it anew."""
    monkeypatch.setattr(logs, "LOG_BYTES", 1 << 16)
    monkeypatch.setattr(logs, "LOOK_SECONDS", 0.1)
    code = "import time\nwhile True: print('x' * 99, flush=True); time.sleep(0.0001)"
    program = script(tmp_path, "talker", code)
    old = [tmp_path / f"talker.log.{number}" for number in (1, 2, 3)]
    with Supervisor(tmp_path / "pids.json") as supervisor:
        supervisor.start(program)
        until(old[1].exists)
        first = stat_of(old[1])
        until(lambda: stat_of(old[1]) not in {first, None})  # and again, so the oldest has gone
        assert all((stat_of(file, "st_size") or 0) <= logs.LOG_BYTES for file in old[:2])
        assert not old[2].exists()
        program.log.unlink()  # so that nothing below is a race with the writer
    for file in old[:2]:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert set(file.read_text()) == {"x", "\n"}, "no hole of zeros: the log is open to append"


def test_what_a_supervisor_writes_is_its_owners_alone_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        (tmp_path / "writer.log").write_text("of an earlier version\n")
        (tmp_path / "writer.log").chmod(0o666)
        program = script(
            tmp_path,
            "writer",
            "import pathlib, time; pathlib.Path('made').mkdir(); pathlib.Path('made/file').touch(); time.sleep(600)",
            ready=(tmp_path / "made" / "file").exists,
        )
        with Supervisor(tmp_path / "pids.json") as supervisor:
            supervisor.start(program)
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    finally:
        os.umask(before)
    assert modes == {"pids.json": 0o600, "writer.log": 0o600, "made": 0o700, "file": 0o600}


def test_leaves_a_stranger_with_a_reused_number_alone(tmp_path):
    (tmp_path / "pids.json").write_text(f'[{{"name": "x", "pid": {os.getpid()}, "created": 1.0, "stop_signal": 9}}]')
    assert stop_leftovers(tmp_path / "pids.json") == []
