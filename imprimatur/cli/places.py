"""Rows of an upload from a file or from where the table lives, and synthetic rows back to there."""

from __future__ import annotations

import getpass
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from imprimatur.cli.output import note
from imprimatur.cli.progress import byte_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from imprimatur.client import Client
    from imprimatur.sources import Ask, Rows


@contextmanager
def opened(file: Path | None, source: str | None, query: str | None, table: str | None) -> Iterator[Rows]:
    """The one of both that was named."""
    from imprimatur import sources

    if (file is None) == (source is None):
        raise typer.BadParameter("give either a file or --from", param_hint="FILE / --from")
    if file is not None:
        if query or table:
            raise typer.BadParameter("they are for a database: --from", param_hint="--query / --table")
        yield sources.Rows(file, file.stem)
        return
    with sources.opened(source or "", query, table, ask=_ask()) as rows:
        yield rows


def draw_to(client: Client, release_id: str, rows: int, wanted: dict[str, Any], to: str, table: str) -> None:
    """Draw rows into a new table of a database, or into an object of a store."""
    from imprimatur import sources
    from imprimatur.formats import chosen_format

    place = sources.Place.of(to)
    format_ = chosen_format(None, Path(place.file)) if place.is_store else "arrow"
    with sources.temporary() as (file, _):
        with byte_count("Drawing rows") as report, client.sample(release_id, rows, format=format_, **wanted) as chunks:
            size = 0
            for chunk in chunks:
                size += file.write(chunk)
                if report is not None:
                    report(size)
        sources.write(file, to, table, ask=_ask())
    note(f"{rows} rows, {size} bytes" + ("" if place.is_store else f", into the new table {table}"))


def _ask() -> Ask | None:
    """On a terminal, without showing what is typed; in a script a missing password is an error."""
    return (lambda question: getpass.getpass(f"{question}: ")) if sys.stdin.isatty() else None
