"""Which service a command talks to: named by option, by environment, or the `up` running in a data directory."""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from imprimatur.cli.output import Exit, Failure
from imprimatur.cli.target import Target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from imprimatur.client import Client

DEFAULT_DATA = Path("imprimatur-data")
STARTING_SECONDS = 60.0

Url = Annotated[
    str | None,
    typer.Option("--url", envvar="IMPRIMATUR_URL", help="The service; default: the `up` running in --data."),
]
Key = Annotated[
    str | None, typer.Option("--key", envvar="IMPRIMATUR_API_KEY", help="API key; default: --data's admin.key.")
]
Data = Annotated[Path, typer.Option("--data", envvar="IMPRIMATUR_DATA", help="Data directory of an embedded service.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]


def running_in(data: Path) -> Target | None:
    """The living `up` of a data directory, if there is one; one that is still starting is waited for."""
    deadline = time.monotonic() + STARTING_SECONDS
    while _is_owned(data):
        with suppress(FileNotFoundError):
            address = (data / "address").read_text(encoding="utf-8").strip()
            return Target(address, (data / "admin.key").read_text(encoding="utf-8").strip(), data)
        if time.monotonic() > deadline:
            raise Failure(
                f"the service in {data} has not come up; see {data / 'logs'}", Exit.UNAVAILABLE, "unreachable"
            )
        time.sleep(0.2)
    return None


def _is_owned(data: Path) -> bool:
    """Whether a living process holds the directory's lock; an address left behind by a killed one proves nothing."""
    try:
        import fcntl
    except ModuleNotFoundError:  # Windows, where no service runs in a directory
        return False
    try:
        with (data / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def find_target(url: str | None, key: str | None, data: Path) -> Target | None:
    """What the options name, or what runs in the data directory."""
    running = None if url else running_in(data)
    if running is not None:
        return Target(running.url, key or running.key, data)
    return Target(url, key) if url else None


@contextmanager
def connect(url: str | None, key: str | None, data: Path) -> Iterator[Client]:
    """A client of the service that is named or running."""
    from imprimatur.client import Client

    target = find_target(url, key, data)
    if target is None:
        raise Failure(
            f"no service named and none running in {data}: give --url and --key, or start one with `imprimatur up`",
            Exit.UNAVAILABLE,
            "unreachable",
        )
    with Client(target.url, target.key) as client:
        yield client


@contextmanager
def connect_or_start(url: str | None, key: str | None, data: Path) -> Iterator[Client]:
    """A client of the service that is named or running; else of one that lives as long as this command."""
    if find_target(url, key, data) is not None:
        with connect(url, key, data) as client:
            yield client
        return
    from imprimatur.cli import server
    from imprimatur.client import Client

    here = server.needed(f"no service is named (--url, --key) and none runs in {data}; starting one")
    with here.started(data) as target, Client(target.url, key or target.key) as client:
        yield client
