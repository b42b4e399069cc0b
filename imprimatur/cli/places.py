"""Rows of an upload from a file or from where the table lives, and synthetic rows back to there."""

from __future__ import annotations

import functools
import getpass
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from imprimatur.cli.output import note
from imprimatur.cli.progress import byte_count
from imprimatur.preflight import check_output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from imprimatur.cli.publishing_plan import Declared, Wanted
    from imprimatur.client import Client
    from imprimatur.sources import Ask, Rows


def read_from(file: Path | None, source: str | None, query: str | None, table: str | None) -> Path | None:
    """The private file on this machine, if it is one. Raises where not exactly one source is named, or its address is wrong."""
    from imprimatur import sources

    if (file is None) == (source is None):
        raise typer.BadParameter("give either a file or --from", param_hint="FILE / --from")
    if source is not None:
        return sources.place_of(source, query, table).local_file
    if query or table:
        raise typer.BadParameter("they are for a database: --from", param_hint="--query / --table")
    return file


def name_of_source(file: Path | None, source: str | None, table: str | None) -> str:
    """The name of a dataset that is given none: that of the file, the table or the object."""
    from imprimatur import sources

    return file.stem if file is not None else sources.Place.of(source or "").name(table)


@contextmanager
def opened(file: Path | None, source: str | None, query: str | None, table: str | None) -> Iterator[Rows]:
    """The one of both that was named."""
    from imprimatur import sources

    read_from(file, source, query, table)
    if file is not None:
        yield sources.Rows(file, file.stem)
        return
    with ExitStack() as stack:
        with byte_count(f"Reading {sources.Place.of(source or '').shown}") as report:
            rows = stack.enter_context(sources.opened(source or "", query, table, ask=_ask(), on_bytes=report))
        yield rows


def check_place(wanted: Wanted, table: Declared, *, for_excel: bool) -> None:
    """What can be known of --to before anything is paid."""
    from imprimatur import sources
    from imprimatur.formats import chosen_format, invalid

    to = wanted.to or ""
    refuse_file_options(wanted.output, wanted.draw["format"], for_excel=for_excel)
    place = sources.destination(to)
    if table.source is not None and place.is_store and sources.Place.of(table.source) == place:
        raise invalid("to", f"{place.shown}: this is the private table itself; give another name")
    if place.is_store:
        chosen_format(None, place.local_file or Path(place.file), table.schema)
    elif table.schema.get("type") == "image":
        raise invalid(
            "to", f"{place.shown}: a table of a database holds no images; write to a file, or an object of a store"
        )
    if place.local_file is not None and table.private_file is not None and place.is_store:
        check_output(place.local_file, table.private_file)
    check_destination(to, wanted.to_table)


def check_destination(to: str, table: str) -> None:
    """Whether rows can be written there."""
    from imprimatur import sources

    with byte_count(f"Looking at {sources.destination(to).shown}"):
        sources.check_destination(to, table, ask=_ask())


def refuse_file_options(output: Path | None, format_: str | None, *, for_excel: bool) -> None:
    """What does not go with --to."""
    if output is not None:
        raise typer.BadParameter("give -o or --to, not both", param_hint="--to")
    if for_excel or format_ is not None:
        raise typer.BadParameter("rows go there typed: leave --format and --for-excel out", param_hint="--to")


def draw_to(client: Client, release_id: str, rows: int, wanted: dict[str, Any], to: str, table: str) -> None:
    """Draw rows into a new table of a database, or into an object of a store."""
    from imprimatur import sources
    from imprimatur.formats import chosen_format

    place = sources.destination(to)
    format_ = chosen_format(None, Path(place.file)) if place.is_store else "arrow"
    with sources.temporary() as (file, _):
        with byte_count("Drawing rows") as report, client.sample(release_id, rows, format=format_, **wanted) as chunks:
            size = 0
            for chunk in chunks:
                size += file.write(chunk)
                if report is not None:
                    report(size)
        with byte_count(f"Writing to {place.shown}"):
            sources.write(file, to, table, ask=_ask())
    note(f"{rows} rows, {size} bytes" + ("" if place.is_store else f", into the new table {table}"))


def _ask() -> Ask | None:
    """On a terminal, without showing what is typed; in a script a missing password is an error."""
    return _password if sys.stdin.isatty() else None


@functools.cache
def _password(question: str) -> str:
    """Asked for once in a command."""
    return getpass.getpass(f"{question}: ")
