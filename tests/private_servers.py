"""Servers of one test alone, which it may break: a Postgres that is restarted at will, and API processes on it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from typing import TYPE_CHECKING

from psycopg import sql

from service.local import Postgres
from service.local.servers import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def drop_database(postgres: Postgres, name: str) -> None:
    """Drop it, whatever is connected."""
    with postgres.connect() as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


SURVIVES_A_RESTART = {"fsync": "off", "full_page_writes": "off", "autovacuum": "off"}
"""Commits are handed to the kernel before they are answered, so they survive whatever happens to Postgres alone."""


class PrivatePostgres:
    """A migrated cluster; `restart` does what `pg_ctl restart -m` does."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.server = Postgres(folder / "postgres", folder, SURVIVES_A_RESTART)
        self.program = self.server.program()
        self.process = self._spawn()

    def restart(self, mode: str) -> None:
        """`fast` breaks off every connection and writes all out; `immediate` is a crash, and the start after it a recovery."""
        self.stop(mode)
        self.process = self._spawn()

    def stop(self, mode: str = "fast") -> None:
        self.process.send_signal({"fast": signal.SIGINT, "immediate": signal.SIGQUIT}[mode])
        self.process.wait(60)

    def _spawn(self) -> subprocess.Popen[bytes]:
        with self.program.log.open("ab") as log:
            process = subprocess.Popen(
                self.program.command, env=dict(self.program.environment), cwd="/", stdout=log, stderr=log
            )
        wait_until(self.program.ready)
        return process


def wait_until(ready, seconds: float = 180.0) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline, "not ready in time"
        time.sleep(0.05)


@contextmanager
def private_postgres(folder: Path) -> Iterator[PrivatePostgres]:
    """With a migrated database `imprimatur`."""
    from service.platform.database import migrate
    from tests.database_roles import create_test_roles, let_tests_prepare

    made = PrivatePostgres(folder)
    try:
        create_test_roles(made.server)
        made.server.create_database("imprimatur")
        migrate(made.server.url("imprimatur"))
        let_tests_prepare(made.server, "imprimatur")
        yield made
    finally:
        made.stop()
        made.server.forget_socket_directory()


@contextmanager
def api_process(settings, log: Path, *, forgotten: str | None = None) -> Iterator[str]:
    """One API as `imprimatur up` runs it, less the option that was `forgotten`; gives its address."""
    port = free_port()
    environment = {f"IMPRIMATUR_{name.upper()}": str(v) for name, v in settings.model_dump().items() if v is not None}
    command = [
        *(sys.executable, "-m", "uvicorn", "service.http.app:create_app", "--factory", "--port", str(port)),
        *("--http", "service.http.protocol:ImpatientProtocol", "--no-proxy-headers", "--no-server-header"),
        *("--no-access-log", "--timeout-graceful-shutdown", "1"),
    ]
    if forgotten is not None:
        command.remove(forgotten)
    with log.open("ab") as output:
        process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=output, stderr=output)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: _answers(f"{url}/healthz"))
        yield url
    finally:
        process.terminate()
        process.wait(30)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as reply:
            return reply.status == 200
    except OSError:
        return False
