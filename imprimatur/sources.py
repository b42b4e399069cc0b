"""Rows from where tables live, and synthetic rows back to there: databases and object stores. Extra `imprimatur[sources]`.

    with imprimatur.sources.opened("postgresql://me@host/db", query="select * from visits") as rows:
        client.create_dataset(rows.path, schema, epsilon=5)

PostgreSQL by ADBC, DuckDB by its own library, SQLite by Python's; S3, GCS and Azure by obstore. Rows pass through in pieces into an
unnamed temporary file: neither memory nor a name on the disk holds the table. Passwords come from the address, the environment
(PGPASSWORD, ~/.pgpass; AWS_…, GOOGLE_…, AZURE_…) or a question, are given to the driver alone, and are in no error.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from imprimatur import databases, stores
from imprimatur.addresses import Place, scrubbed, without_secrets
from imprimatur.databases import Ask
from imprimatur.formats import invalid

__all__ = [
    "Ask",
    "Place",
    "Rows",
    "check_destination",
    "destination",
    "opened",
    "temporary",
    "without_secrets",
    "write",
]

Report = Callable[[int], None]
"""Hears how many bytes have come so far."""


@dataclass(frozen=True)
class Rows:
    """Rows as a file: its path, which may be a descriptor, and a name for the dataset."""

    path: Path
    name: str


def place_of(address: str, query: str | None, table: str | None) -> Place:
    """The place that rows are read from: of a database by a query or a table, of a store the whole object."""
    place = Place.of(address)
    if place.is_store and (query or table):
        raise invalid("source", "an object of a store is taken whole: leave query and table out")
    if not place.is_store and (query is None) == (table is None):
        raise invalid("source", "say which rows: either a query (--query) or a table (--table)")
    return place


@contextmanager
def opened(
    address: str,
    query: str | None = None,
    table: str | None = None,
    *,
    ask: Ask | None = None,
    on_bytes: Report | None = None,
) -> Iterator[Rows]:
    """The rows of a query or a table of a database, or an object of a store, as a file for the time of the `with`.

    Of a folder of a store, its Parquet files: one table in parts, as Spark writes it. `ask` is given a question and answers
    a password, where a database wants one and none is known.
    """
    place = place_of(address, query, table)
    with _temporary() as (file, path):
        with scrubbed(place):
            if place.is_store:
                stores.fetch(place.url, place.file, file, on_bytes)
            else:
                heard = file if on_bytes is None else cast("IO[bytes]", _Heard(file, on_bytes))
                databases.read(place, query, table, heard, ask)
            file.flush()
        yield Rows(path, place.name(table))


def write(stream: IO[bytes], address: str, table: str = "synthetic", *, ask: Ask | None = None) -> None:
    """Rows of an Arrow stream into a new table of a database, whole or not at all; bytes into an object of a store."""
    place = destination(address)
    stream.seek(0)
    with scrubbed(place, "to"):
        if place.is_store:
            stores.put(place.url, place.file, stream)
            return
        databases.write(place, table, stream, ask)


def destination(address: str) -> Place:
    """The place that rows are written to: a database, or one object of a store."""
    place = Place.of(address)
    if place.is_store and place.file.endswith("/"):
        raise invalid(
            "to", f"{place.shown}: this is a folder; name the object to write, as in {place.shown}rows.parquet"
        )
    return place


def check_destination(address: str, table: str = "synthetic", *, ask: Ask | None = None) -> None:
    """Whether it answers, takes the credentials and has no such table yet: what can be known before anything is paid."""
    place = destination(address)
    with scrubbed(place, "to"):
        if place.is_store:
            return stores.check_reachable(place.url, place.file)
        if databases.has_table(place, table, ask):
            raise invalid("to", f"{place.shown}: table {table} is there already; name a new one, or drop that one")
    return None


# -- common -------------------------------------------------------------------------------------------------------


@contextmanager
def _temporary() -> Iterator[tuple[IO[bytes], Path]]:
    """A file that has no name, where a descriptor can be opened again as a path; else one that only this person can read."""
    if Path("/proc/self/fd").is_dir():
        with tempfile.TemporaryFile(prefix="imprimatur-") as file:
            yield file, Path(f"/proc/self/fd/{file.fileno()}")
        return
    with tempfile.TemporaryDirectory(prefix="imprimatur-") as folder:
        path = Path(folder) / "rows"
        with path.open("w+b") as file:
            yield file, path


temporary = _temporary
"""For rows on their way to a place."""


class _Heard:
    """A file that says how much has been written to it."""

    def __init__(self, file: IO[bytes], report: Report) -> None:
        self._file, self._report = file, report

    def write(self, piece: Any) -> int:
        size = self._file.write(piece)
        self._report(self._file.tell())
        return size

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)
