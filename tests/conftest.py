"""The servers tests talk to: real Postgres and real Redis, shared by all pytest-xdist workers.

    database    URLs of a fresh, migrated database of this test alone
    redis_url   a real Redis, emptied before the test
    settings    `service.settings.Settings` for both, with storage in the test's own folder
    stack       the whole service as `imprimatur up` starts it (API, relay, worker are real processes)
    api_key     the key of a new owner in a new tenant of that stack, so that tests do not meet
    client      a `service.client.Client` with that key

Whoever needs a server first starts it, under a file lock; the main pytest process stops it at the end.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from service.embedded import Postgres

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).parent
TEMPLATE = "template_imprimatur"
START_SECONDS = 180.0


@dataclass(frozen=True)
class Database:
    """One database, by its owning role and by the role the service uses."""

    name: str
    owner_url: str
    app_url: str


# -- one set of servers for all workers ---------------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    """The main process names the folder of shared servers; xdist workers inherit the name."""
    if not hasattr(config, "workerinput"):
        os.environ["IMPRIMATUR_TEST_SERVERS"] = tempfile.mkdtemp(prefix="imprimatur-tests-")
        os.environ["IMPRIMATUR_TEST_PID"] = str(os.getpid())


def pytest_unconfigure(config: pytest.Config) -> None:
    """The main process ends last and stops what any worker has started."""
    if hasattr(config, "workerinput"):
        return
    folder = Path(os.environ["IMPRIMATUR_TEST_SERVERS"])
    for pid_file in folder.glob("*/supervisor.pid"):
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(int(pid_file.read_text()))
            process.send_signal(signal.SIGTERM)
            process.wait(60)
    shutil.rmtree(folder, ignore_errors=True)


def _shared(name: str) -> dict[str, Any]:
    """What the shared servers `name` (see shared_servers.py) say about themselves; starts them when nobody has yet."""
    folder = Path(os.environ["IMPRIMATUR_TEST_SERVERS"]) / name
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "supervisor.pid").exists():
            with (folder / "output").open("w") as output:
                process = subprocess.Popen(
                    [sys.executable, HERE / "shared_servers.py", name, folder, os.environ["IMPRIMATUR_TEST_PID"]],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            (folder / "supervisor.pid").write_text(str(process.pid))
            deadline = time.monotonic() + START_SECONDS
            while not (folder / "ready.json").exists() and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
    if not (folder / "ready.json").exists():
        pytest.fail(f"the shared {name} did not start:\n{(folder / 'output').read_text()[-4000:]}", pytrace=False)
    return json.loads((folder / "ready.json").read_text())


# -- Postgres and Redis -------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def postgres() -> Postgres:
    """The shared cluster, holding a migrated template database."""
    _shared("postgres")
    folder = Path(os.environ["IMPRIMATUR_TEST_SERVERS"]) / "postgres"
    return Postgres(folder / "postgres", folder)


@pytest.fixture(scope="session")
def new_database(postgres: Postgres) -> Callable[[], Database]:
    """Makes fresh, migrated databases, for tests that need more than one."""
    numbers = itertools.count()

    def make() -> Database:
        name = f"test_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}_{next(numbers)}"
        postgres.create_database(name, template=TEMPLATE)
        return Database(name, postgres.url(name), postgres.url(name, user="imprimatur_app"))

    return make


@pytest.fixture
def database(postgres: Postgres, new_database: Callable[[], Database]) -> Iterator[Database]:
    """A fresh, migrated database of this test alone."""
    made = new_database()
    yield made
    postgres.drop_database(made.name)


@pytest.fixture(scope="session")
def _redis_url() -> str:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    return _shared(f"redis-{worker}")["url"]


@pytest.fixture
def redis_url(_redis_url: str) -> str:
    """A real Redis of this worker, emptied before the test."""
    import redis

    with redis.Redis.from_url(_redis_url) as connection:
        connection.flushall()
    return _redis_url


@pytest.fixture
def settings(database: Database, redis_url: str, tmp_path: Path) -> Any:
    """Settings of a service on the test's own database, Redis and storage."""
    from service.settings import Settings

    (tmp_path / "objects").mkdir()
    secret = tmp_path / "secret.key"
    secret.touch(mode=0o600)
    secret.write_bytes(os.urandom(32))
    return Settings(
        database_url=database.app_url,
        migration_database_url=database.owner_url,
        redis_url=redis_url,
        storage_url=(tmp_path / "objects").as_uri(),
        secret_key_file=secret,
    )
