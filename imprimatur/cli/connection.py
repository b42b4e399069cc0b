"""Which service a command talks to: named by option, by environment, or the `up` running in a data directory."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from imprimatur.cli.output import Exit, Failure, note
from imprimatur.cli.target import Target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from imprimatur.client import Client

DEFAULT_DATA = Path("imprimatur-data")

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
    from imprimatur import running
    from imprimatur.errors import Unreachable

    try:
        found = running.running_in(data)
    except Unreachable as error:
        raise Failure(str(error), Exit.UNAVAILABLE, "unreachable") from None
    return None if found is None else Target(found.url, found.key, data)


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
    with Client(target.url, target.key, on_retry=note) as client:
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
