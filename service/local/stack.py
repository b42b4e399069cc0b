"""Everything on one machine: Postgres, Redis, API, relay and a worker, under one roof and one supervisor."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import sys
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING, Self

from service.local.database_access import API_ROLE, PROCESS_ROLES, RELAY_ROLE, SUPERUSER, WORKER_ROLE
from service.local.errors import AlreadyRunning, CannotStart
from service.local.private_files import append_private, make_private_folder, write_private
from service.local.servers import Postgres, Redis, free_port
from service.local.supervisor import Program, Supervisor, stop_leftovers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from service.platform.settings import Settings

DATABASE = "imprimatur"
READY_SECONDS = 120.0
DEFAULTS = {"IMPRIMATUR_SERVE_DOCS": "true"}
"""Where the environment says nothing else. It listens on loopback alone, for the person who has started it."""
WORKER_STOP_SECONDS = 20.0
"""Ten for the training process to leave a checkpoint, and some to give its claim back; it takes one or two."""


class EmbeddedStack:
    """The whole service out of one data directory.

    with EmbeddedStack(Path("imprimatur-data"), port=8000) as stack:
        Client(stack.url, stack.admin_key)
    """

    def __init__(
        self,
        data_directory: Path,
        port: int,
        *,
        on_part: Callable[[str], None] = lambda _: None,
        on_leftover: Callable[[str], None] = lambda _: None,
        postgres_settings: dict[str, str] | None = None,
        extra_environment: dict[str, str] | None = None,
    ) -> None:
        self.directory = data_directory.expanduser().absolute()
        self.port = port or free_port()
        self._on_part, self._on_leftover = on_part, on_leftover
        self._extra_environment = extra_environment or {}
        self.logs = self.directory / "logs"
        self.postgres = Postgres(self.directory / "postgres", self.logs, postgres_settings or {})
        self.redis = Redis(self.directory / "redis", self.logs)
        self._supervisor = Supervisor(self.directory / "pids.json")
        self._exits = ExitStack()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def admin_key(self) -> str:
        """The first owner's API key."""
        return (self.directory / "admin.key").read_text(encoding="utf-8").strip()

    @property
    def pids(self) -> dict[str, int]:
        return self._supervisor.pids

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start everything; returns when /readyz answers 200."""
        self._own_directory()
        self._check_port()
        self._start_postgres()
        self._on_part("Redis")
        self._exits.callback(self.redis.forget_socket_directory)
        self._supervisor.start(self.redis.program())
        self._on_part("migrations")
        self._prepare_database()
        self._on_part("API, relay and worker")
        programs = self._python_programs()
        for program in programs:
            self._supervisor.launch(program)
        for program in programs:
            self._supervisor.wait_ready(program, READY_SECONDS)
        write_private(self.directory / "address", self.url + "\n")
        self._exits.callback((self.directory / "address").unlink, missing_ok=True)

    @contextmanager
    def database_alone(self) -> Iterator[Settings]:
        """Postgres and nothing else, for what must be done where the rest cannot start."""
        try:
            self._own_directory()
            self._start_postgres()
            yield self.settings()
        finally:
            self.stop()

    def request_stop(self) -> None:
        """Let a start() that still waits give up; safe in a signal handler."""
        self._supervisor.request_stop()

    def stop(self) -> None:
        """Stop everything, the worker first and Postgres last."""
        self._supervisor.stop()
        self._exits.close()

    def environment(self, role: str = SUPERUSER) -> dict[str, str]:
        """Settings of this stack as environment variables: of the owner, or of the process that has a role."""
        keyring = "worker.key" if role == WORKER_ROLE else "secret.key"
        migrations = {"IMPRIMATUR_MIGRATION_DATABASE_URL": self.postgres.url(DATABASE)} if role == SUPERUSER else {}
        return (
            migrations
            | ({} if role == RELAY_ROLE else {"IMPRIMATUR_SECRET_KEY_FILE": str(self.directory / keyring)})
            | {
                "IMPRIMATUR_DATABASE_URL": self.postgres.url(DATABASE, role),
                "IMPRIMATUR_REDIS_URL": self.redis.url,
                "IMPRIMATUR_STORAGE_URL": (self.directory / "objects").as_uri(),
                "IMPRIMATUR_SIGNING_KEY_FILE": str(self.directory / "signing.key"),
                "IMPRIMATUR_SCRATCH_DIR": str(self.directory / "scratch"),
            }
            | self._extra_environment
        )

    def settings(self) -> Settings:
        """The owner's settings, for code of this process."""
        from service.platform.settings import Settings

        return Settings(**{name.removeprefix("IMPRIMATUR_").lower(): v for name, v in self.environment().items()})  # type: ignore[arg-type]

    def _own_directory(self) -> None:
        if not self.directory.is_dir() or _is_ours_alone(self.directory):
            make_private_folder(self.directory)
        for folder in (self.logs, self.directory / "objects"):
            make_private_folder(folder)
        lock = self._exits.enter_context(append_private(self.directory / "lock"))
        _lock_or_refuse(lock, self.directory)
        for name in stop_leftovers(self._supervisor.pids_file):
            self._on_leftover(f"stopped the {name} that an earlier, killed run had left behind")
        # An API that was killed may have left an upload there, in the clear.
        shutil.rmtree(self.directory / "scratch", ignore_errors=True)
        (self.directory / "scratch").mkdir(mode=0o700)

    def _start_postgres(self) -> None:
        self._on_part("Postgres")
        self._exits.callback(self.postgres.forget_socket_directory)
        self._supervisor.start(self.postgres.program())
        self.postgres.create_database(DATABASE)
        self.postgres.create_roles(PROCESS_ROLES)

    def _check_port(self) -> None:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", self.port))
            except OSError:
                raise CannotStart(
                    f"Port {self.port} is taken by another program: choose another with --port (0 picks a free one)."
                ) from None

    def _prepare_database(self) -> None:
        # SQLAlchemy, Alembic and cryptography: only when a stack really starts.
        from service.upkeep.installation import install

        install(self.settings(), self.directory / "admin.key")
        with self.postgres.connect(DATABASE) as connection:
            # What beat in an earlier run says nothing about this one's relay and worker.
            connection.execute("DELETE FROM heartbeats")

    def _python_programs(self) -> tuple[Program, ...]:
        api = (
            *(
                "-m",
                "uvicorn",
                "service.http.app:create_app",
                "--factory",
                "--host",
                "127.0.0.1",
                "--port",
                str(self.port),
            ),
            *("--http", "service.http.protocol:ImpatientProtocol", "--no-proxy-headers", "--no-server-header"),
            *("--timeout-graceful-shutdown", "3", "--no-access-log"),
        )
        worker = (
            *("-m", "celery", "-A", "workers.app:celery", "worker", "--pool=threads", "--concurrency=1"),
            *("--loglevel=INFO", "--without-gossip", "--without-mingle", "--without-heartbeat"),
        )
        return (
            self._python("api", API_ROLE, api, self._api_answers),
            self._python("relay", RELAY_ROLE, ("-m", "service.upkeep.relay"), _always),
            self._python("worker", WORKER_ROLE, worker, self._everything_ready, stop_seconds=WORKER_STOP_SECONDS),
        )

    def _python(
        self, name: str, role: str, arguments: tuple[str, ...], ready: Callable[[], bool], stop_seconds: float = 10.0
    ) -> Program:
        # What this shell has set for the owner is not the part's business.
        inherited = {key: value for key, value in os.environ.items() if key != "IMPRIMATUR_MIGRATION_DATABASE_URL"}
        return Program(
            name=name,
            command=(sys.executable, *arguments),
            environment={**DEFAULTS, **inherited, "PYTHONUNBUFFERED": "1", **self.environment(role)},
            log=self.logs / f"{name}.log",
            ready=ready,
            working_directory=self.directory,
            stop_seconds=stop_seconds,
        )

    def _api_answers(self) -> bool:
        return _status(f"{self.url}/healthz") == 200

    def _everything_ready(self) -> bool:
        return _status(f"{self.url}/readyz") == 200


def _is_ours_alone(directory: Path) -> bool:
    """Empty, or a data directory; and not a folder of other things, which is left as open as it is."""
    return (directory / "lock").exists() or next(directory.iterdir(), None) is None


def _lock_or_refuse(lock: IO[bytes], directory: Path) -> None:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise AlreadyRunning(
            f"{directory} is in use by a running `imprimatur up`: use that one, stop it, or choose another --data."
        ) from None


def _status(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=5.0) as reply:  # noqa: S310 - our own loopback address
            return int(reply.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


def _always() -> bool:
    return True
