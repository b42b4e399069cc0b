"""What the load benches stand on: a private Postgres with its durable settings, a dataset, a tenant's keys."""

from __future__ import annotations

import os
import platform
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from service.local import Postgres, Supervisor


@contextmanager
def private_postgres(settings: dict[str, str] | None = None) -> Iterator[Postgres]:
    """A migrated cluster of its own; `fsync` and `synchronous_commit` as in service, unless `settings` say otherwise."""
    from service.platform.database import migrate
    from tests.database_roles import create_test_roles, let_tests_prepare

    with tempfile.TemporaryDirectory(prefix="imprimatur-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        server = Postgres(folder / "postgres", folder, settings or {})
        with Supervisor(folder / "pids.json") as supervisor:
            supervisor.start(server.program())
            create_test_roles(server)
            server.create_database("imprimatur")
            migrate(server.url("imprimatur"))
            let_tests_prepare(server, "imprimatur")
            yield server
        server.forget_socket_directory()


def bare_dataset(url: str) -> uuid.UUID:
    """A dataset without an upload, with an empty account."""
    from sqlalchemy import create_engine
    from sqlalchemy.orm import Session

    from tests.bare_rows import add_bare_dataset

    engine = create_engine(url)
    with Session(engine) as session, session.begin():
        made: uuid.UUID = add_bare_dataset(session)[1]
    engine.dispose()
    return made


def machine() -> str:
    """The hardware, as results name it, and how fast it was just then: a shared host may halve it for an hour."""
    memory = psutil.virtual_memory().total / 2**30
    return (
        f"{os.cpu_count()} cores, {memory:.0f} GiB, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}, "
        f"{additions_per_second() / 1e6:.0f} million additions a second in the interpreter"
    )


def additions_per_second(count: int = 3_000_000) -> float:
    """Additions per second of one thread, by its own processor time."""
    total, began = 0, time.thread_time()
    for number in range(count):
        total += number
    return count / (time.thread_time() - began)


def percentile(values: list[float], share: float) -> float:
    """The value below which this share of the values lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
