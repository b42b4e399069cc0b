"""The servers tests talk to: real Postgres and real Redis, shared by all pytest-xdist workers.

    database    URLs of a fresh, migrated database of this test alone
    redis_url   a real Redis, emptied before the test
    settings    `service.platform.settings.Settings` for both, with storage in the test's own folder
    stack       the whole service as `imprimatur up` starts it (API, relay, worker are real processes)
    api_key     the key of a new owner in a new tenant of that stack, so that tests do not meet
    client      a `imprimatur.client.Client` with that key
    published   one small published release, for tests that only look
    small_csv, small_schema, small_order    a fresh table that trains in a moment
    loops_or_torch    runs a test with the compiled loops and without
    one_thread  torch has one thread

The process that needs a server first starts it, under a file lock; the main pytest process stops it at the end.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from service.local import Postgres
from service.local.database_access import PROCESS_ROLES, SUPERUSER
from tests.database_roles import TEST_ROLE
from tests.prepared_readers import PreparedReaders
from tests.private_servers import drop_database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from imprimatur import Client

HERE = Path(__file__).parent
TEMPLATE = "template_imprimatur"
START_SECONDS = 600.0


@dataclass(frozen=True)
class Database:
    """One database, by its owning role, by each process's role, and by all of these together (`tests.database_roles`)."""

    name: str
    owner_url: str
    app_url: str
    api_url: str
    relay_url: str
    worker_url: str


@pytest.fixture(params=["compiled", "torch"])
def loops_or_torch(request: pytest.FixtureRequest) -> Iterator[None]:
    """With the compiled loops, where there is a compiler, and without."""
    from tests.without_kernels import without_kernels

    with without_kernels() if request.param == "torch" else contextlib.nullcontext():
        yield


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Two threads that share a busy core spin."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def remembers_nothing(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command remembers keys and heads of services; each test begins without, and none touches a person's own."""
    monkeypatch.setenv("IMPRIMATUR_CONFIG", str(tmp_path_factory.mktemp("config", numbered=True) / "imprimatur"))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """What torch draws from its own generator is the same in every run, whatever ran before; torch itself would begin anywhere (`tests/test_repeatable.py`)."""
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)


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
    """What the shared servers `name` (see shared_servers.py) say about themselves; starts them if that was not done yet."""
    folder = Path(os.environ["IMPRIMATUR_TEST_SERVERS"]) / name
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "supervisor.pid").exists():
            with (folder / "output").open("w") as output:
                process = subprocess.Popen(
                    # -P: this folder is not searched, whose `service` would pass for the package.
                    [sys.executable, "-P", HERE / "shared_servers.py", name, folder, os.environ["IMPRIMATUR_TEST_PID"]],
                    env={
                        **os.environ,
                        "PYTHONPATH": os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")]),
                    },
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
        return Database(name, *(postgres.url(name, user) for user in (SUPERUSER, TEST_ROLE, *PROCESS_ROLES)))

    return make


@pytest.fixture
def database(postgres: Postgres, new_database: Callable[[], Database]) -> Iterator[Database]:
    """A fresh, migrated database of this test alone."""
    made = new_database()
    yield made
    drop_database(postgres, made.name)


@pytest.fixture(scope="session")
def _redis_url() -> str:
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    return _shared(f"redis-{worker}")["url"]


def forget_everything(redis_url: str) -> None:
    """What FLUSHALL would do; the service's own account may not."""
    from service.platform.broker_address import broker_client

    with broker_client(redis_url) as connection:
        for key in connection.scan_iter():
            connection.delete(key)


@pytest.fixture
def redis_url(_redis_url: str) -> str:
    """A real Redis of this worker, emptied before the test."""
    forget_everything(_redis_url)
    return _redis_url


@pytest.fixture
def settings(database: Database, redis_url: str, tmp_path: Path) -> Any:
    """Settings of a service on the test's own database, Redis and storage."""
    from service.platform.settings import Settings

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
        serve_docs=True,
        metrics="open",
    )


@pytest.fixture
def signing_key(settings: Any) -> Any:
    """The key that signs certificates and tree heads in the test's own database, as an installation makes it."""
    from service.platform.crypto import Secrets
    from service.platform.signing import SigningKey
    from service.upkeep.installation import install_signing_key

    install_signing_key(settings, Secrets.load(settings.secret_key_file))
    return SigningKey.load(settings.signing_key_path)


@pytest.fixture(scope="session")
def prepared_readers() -> Iterator[PreparedReaders]:
    """Instead of `subprocess` in `service.intake.ingest`: a process that reads a file starts in milliseconds."""
    readers = PreparedReaders()
    yield readers
    readers.stop()


@pytest.fixture
def reads_at_once(prepared_readers: PreparedReaders, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that reads a file is forked, where the test is about something else."""
    from service.intake import ingest

    monkeypatch.setattr(ingest, "subprocess", prepared_readers)


# -- the whole service --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stack:
    """A running `up`: real API, relay and worker processes."""

    url: str
    data: Path
    settings: Any


@pytest.fixture(scope="session")
def stack() -> Stack:
    """The whole service, one for all workers and tests: share it, do not break it."""
    from service.platform.settings import Settings

    facts = _shared("stack")
    settings = Settings(**{k.removeprefix("IMPRIMATUR_").lower(): v for k, v in facts["environment"].items()})
    return Stack(facts["url"], Path(facts["data"]), settings)


@pytest.fixture(scope="session")
def new_tenant(stack: Stack) -> Callable[[], str]:
    """Makes tenants of the stack; gives the owner's key of each."""
    from service.auth.service import create_tenant
    from service.platform.crypto import Secrets
    from service.platform.database import transaction

    def make() -> str:
        with transaction(stack.settings) as session:
            return create_tenant(session, Secrets.load(stack.settings.secret_key_file), f"tenant {uuid.uuid4()}")

    return make


@pytest.fixture
def api_key(new_tenant: Callable[[], str]) -> str:
    """The owner's key of a tenant of this test alone."""
    return new_tenant()


@pytest.fixture
def client(stack: Stack, api_key: str) -> Iterator[Client]:
    """A client of the stack for this test's own tenant."""
    from imprimatur import Client

    with Client(stack.url, api_key) as made:
        yield made


@dataclass(frozen=True)
class Published:
    """A release that is done, and everything needed to look at it."""

    api_key: str
    dataset_id: str
    release_id: str
    table: Path
    schema: dict[str, Any]


@pytest.fixture(scope="session")
def published(stack: Stack, new_tenant: Callable[[], str]) -> Published:
    """One small published release in a tenant of its own, made once for all workers, for tests that only look."""
    from imprimatur import Client

    folder = Path(os.environ["IMPRIMATUR_TEST_SERVERS"])
    facts, table = folder / "published.json", folder / "small.csv"
    with (folder / "published.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not facts.exists():
            key = new_tenant()
            with Client(stack.url, key) as client:
                dataset = client.create_dataset(small_table(table), SMALL_SCHEMA, epsilon=5.0, name="small")
                release = client.create_release(dataset["id"], SMALL_ORDER)
                ended = client.wait(release["id"], timeout=START_SECONDS)
            assert ended["state"] == "published", ended
            made = {"api_key": key, "dataset_id": dataset["id"], "release_id": release["id"]}
            facts.write_text(json.dumps(made))
    return Published(**json.loads(facts.read_text()), table=table, schema=SMALL_SCHEMA)


SMALL_SCHEMA: dict[str, Any] = {
    "fields": [
        {"name": "colour", "type": "string", "constraints": {"enum": ["red", "green", "blue"], "required": True}},
        {"name": "size", "type": "integer", "constraints": {"minimum": 0, "maximum": 1000, "required": True}},
        {"name": "weight", "type": "number", "constraints": {"minimum": 0.0, "maximum": 10.0}},
    ],
    "missingValues": [""],
}
SMALL_ORDER: dict[str, Any] = {
    "method": "idpgan",
    "epsilon": 2.0,
    "steps": 4,
    "condition_on": "colour",
    "networks": {"generator_hidden": [8], "critic_hidden": [8], "noise_dimension": 4},
    "warm_start": {"kind": "none"},
}


def small_table(path: Path, rows: int = 200) -> Path:
    """A table of SMALL_SCHEMA that was never uploaded before: the same rows would share one budget for ever."""
    rng = random.Random()
    lines = ["colour,size,weight"]
    for _ in range(rows):
        weight = "" if rng.random() < 0.1 else f"{rng.uniform(0, 10):.6f}"
        lines.append(f"{rng.choice(['red', 'green', 'blue'])},{rng.randint(0, 1000)},{weight}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def small_csv(tmp_path: Path) -> Path:
    """A fresh small table."""
    return small_table(tmp_path / "small.csv")


@pytest.fixture
def small_schema() -> dict[str, Any]:
    """The declared schema of `small_csv`."""
    return json.loads(json.dumps(SMALL_SCHEMA))


@pytest.fixture
def small_order() -> dict[str, Any]:
    """An order that trains in a moment and is worth nothing."""
    return json.loads(json.dumps(SMALL_ORDER))
