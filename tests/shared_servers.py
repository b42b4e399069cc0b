"""Run by conftest.py in a process of its own: starts one kind of server, says when it is ready, stops on SIGTERM.

It also stops when the pytest that wanted it is gone, however it went.
"""

from __future__ import annotations

import json
import shutil
import signal
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from service.local import TEST_SETTINGS, EmbeddedStack, Postgres, Redis, Supervisor

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def postgres(folder: Path) -> Iterator[dict[str, Any]]:
    from service.platform.database import migrate
    from tests.database_roles import create_test_roles, let_tests_prepare

    server = Postgres(folder / "postgres", folder, TEST_SETTINGS)
    with Supervisor(folder / "pids.json") as supervisor:
        supervisor.start(server.program())
        create_test_roles(server)
        server.create_database("template_imprimatur")
        migrate(server.url("template_imprimatur"))
        let_tests_prepare(server, "template_imprimatur")
        yield {}
    server.forget_socket_directory()


@contextmanager
def redis(folder: Path) -> Iterator[dict[str, Any]]:
    server = Redis(folder / "redis", folder)
    with Supervisor(folder / "pids.json") as supervisor:
        supervisor.start(server.program())
        yield {"url": server.url}
    server.forget_socket_directory()


@contextmanager
def stack(folder: Path) -> Iterator[dict[str, Any]]:
    metrics = {"IMPRIMATUR_METRICS": "open"}
    with EmbeddedStack(folder / "data", 0, postgres_settings=TEST_SETTINGS, extra_environment=metrics) as running:
        yield {"url": running.url, "data": str(running.directory), "environment": running.environment()}


def main() -> None:
    name, folder, wanted_by = sys.argv[1], Path(sys.argv[2]), psutil.Process(int(sys.argv[3]))
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    kinds = {"postgres": postgres, "redis": redis, "stack": stack}
    with kinds[name.split("-")[0]](folder) as facts:
        unfinished = folder / "ready.unfinished"
        unfinished.write_text(json.dumps(facts))
        unfinished.rename(folder / "ready.json")
        while not stop.wait(1.0) and wanted_by.is_running():
            pass
    if not wanted_by.is_running():
        shutil.rmtree(folder.parent, ignore_errors=True)


if __name__ == "__main__":
    main()
