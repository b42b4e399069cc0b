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

from service.local.errors import AlreadyRunning, CannotStart
from service.local.servers import Postgres, Redis, free_port
from service.local.supervisor import Program, Supervisor, stop_leftovers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from service.platform.settings import Settings

DATABASE = "imprimatur"
APPLICATION_ROLE = "imprimatur_app"
READY_SECONDS = 120.0
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
        postgres_settings: dict[str, str] | None = None,
        extra_environment: dict[str, str] | None = None,
    ) -> None:
        self.directory = data_directory.expanduser().absolute()
        self.port = port or free_port()
        self._on_part = on_part
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
        (self.directory / "address").write_text(self.url + "\n", encoding="utf-8")
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

    def environment(self) -> dict[str, str]:
        """Settings of every process of this stack, as environment variables."""
        return {
            "IMPRIMATUR_DATABASE_URL": self.postgres.url(DATABASE, APPLICATION_ROLE),
            "IMPRIMATUR_MIGRATION_DATABASE_URL": self.postgres.url(DATABASE),
            "IMPRIMATUR_REDIS_URL": self.redis.url,
            "IMPRIMATUR_STORAGE_URL": (self.directory / "objects").as_uri(),
            "IMPRIMATUR_SECRET_KEY_FILE": str(self.directory / "secret.key"),
            "IMPRIMATUR_SIGNING_KEY_FILE": str(self.directory / "signing.key"),
            "IMPRIMATUR_SCRATCH_DIR": str(self.directory / "scratch"),
        } | self._extra_environment

    def settings(self) -> Settings:
        """The same settings for code of this process."""
        from service.platform.settings import Settings

        return Settings(**{name.removeprefix("IMPRIMATUR_").lower(): v for name, v in self.environment().items()})  # type: ignore[arg-type]

    def _own_directory(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        for folder in (self.logs, self.directory / "objects"):
            folder.mkdir(exist_ok=True, mode=0o700)
        lock = self._exits.enter_context((self.directory / "lock").open("a"))
        _lock_or_refuse(lock, self.directory)
        for name in stop_leftovers(self._supervisor.pids_file):
            self._on_part(f"stopped a {name} that an earlier run had left behind")
        # An API that was killed may have left an upload there, in the clear.
        shutil.rmtree(self.directory / "scratch", ignore_errors=True)
        (self.directory / "scratch").mkdir(mode=0o700)

    def _start_postgres(self) -> None:
        self._on_part("Postgres")
        self._exits.callback(self.postgres.forget_socket_directory)
        self._supervisor.start(self.postgres.program())
        self.postgres.create_database(DATABASE)

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
            *("--http", "service.http.protocol:ImpatientProtocol"),
            *("--timeout-graceful-shutdown", "3", "--no-access-log"),
        )
        worker = (
            *("-m", "celery", "-A", "workers.app:celery", "worker", "--pool=threads", "--concurrency=1"),
            *("--loglevel=INFO", "--without-gossip", "--without-mingle"),
        )
        return (
            self._python("api", api, self._api_answers),
            self._python("relay", ("-m", "service.upkeep.relay"), _always),
            self._python("worker", worker, self._everything_ready, stop_seconds=WORKER_STOP_SECONDS),
        )

    def _python(
        self, name: str, arguments: tuple[str, ...], ready: Callable[[], bool], stop_seconds: float = 10.0
    ) -> Program:
        return Program(
            name=name,
            command=(sys.executable, *arguments),
            environment={**os.environ, "PYTHONUNBUFFERED": "1", **self.environment()},
            log=self.logs / f"{name}.log",
            ready=ready,
            working_directory=self.directory,
            stop_seconds=stop_seconds,
        )

    def _api_answers(self) -> bool:
        return _status(f"{self.url}/healthz") == 200

    def _everything_ready(self) -> bool:
        return _status(f"{self.url}/readyz") == 200


def _lock_or_refuse(lock: IO[str], directory: Path) -> None:
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
