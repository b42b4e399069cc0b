"""Rows from where tables live, and synthetic rows back to there: databases and object stores. Extra `imprimatur[sources]`.

    with imprimatur.sources.opened("postgresql://me@host/db", query="select * from visits") as rows:
        client.create_dataset(rows.path, schema, epsilon=5)

PostgreSQL by ADBC, DuckDB by its own library, SQLite by Python's; S3, GCS and Azure by obstore. Rows pass through in pieces into an
unnamed temporary file: neither memory nor a name on the disk holds the table. Passwords come from the address, the environment
(PGPASSWORD, ~/.pgpass; AWS_…, GOOGLE_…, AZURE_…) or a question, are given to the driver alone, and are in no error.
"""

from __future__ import annotations

import csv
import importlib
import io
import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from imprimatur.errors import ApiError, MissingExtra
from imprimatur.formats import invalid

if TYPE_CHECKING:
    import pyarrow as pa

POSTGRES = ("postgresql", "postgres")
STORES = ("s3", "gs", "az", "file")
ALIASES = {"s3a": "s3", "gcs": "gs", "azure": "az", "abfs": "az", "abfss": "az"}
ENDINGS = {".sqlite": "sqlite", ".sqlite3": "sqlite", ".duckdb": "duckdb"}
ACCEPTED = "postgresql://USER@HOST/DATABASE, sqlite:///FILE, duckdb:///FILE, s3://BUCKET/FILE, gs://BUCKET/FILE or az://CONTAINER/FILE"
PIECE_ROWS = 65_536
PIECE_BYTES = 8 << 20
_USER_INFO = re.compile(r"(://[^:/@\s]*):[^@\s]*@")
_PASSWORD = re.compile(r"(password\s*=\s*)('[^']*'|\S+)", re.IGNORECASE)

Ask = Callable[[str], str]


@dataclass(frozen=True)
class Rows:
    """Rows as a file: its path, which may be a descriptor, and a name for the dataset."""

    path: Path
    name: str


@dataclass(frozen=True)
class Place:
    """One address, taken apart."""

    kind: str
    url: str
    file: str = ""
    """Of SQLite and DuckDB; of a store, the path in its bucket."""

    @classmethod
    def of(cls, address: str) -> Place:
        parts = urlsplit(address)
        scheme = ALIASES.get(parts.scheme, parts.scheme)
        if not parts.scheme and Path(address).suffix.lower() in ENDINGS:
            return cls(ENDINGS[Path(address).suffix.lower()], address, address)
        if scheme in POSTGRES:
            return cls("postgresql", address)
        if scheme in {"sqlite", "duckdb"}:
            file = unquote(address.partition("://")[2])
            if not file.startswith("/") or len(file) < 2:
                raise invalid("source", f"write {scheme}:///FILE, and {scheme}:////FOLDER/FILE from the root")
            return cls(scheme, address, file[1:])
        if scheme in STORES:
            return cls._of_store(scheme, parts.netloc, parts.path, parts.query)
        raise invalid("source", f"{scheme or 'this'}: no such place is known here; there are {ACCEPTED}")

    @classmethod
    def _of_store(cls, scheme: str, netloc: str, path: str, query: str) -> Place:
        if query or "@" in netloc:
            raise invalid(
                "source",
                "leave credentials out of the address of a store: its variables (AWS_…, GOOGLE_…, AZURE_…) hold them",
            )
        file = unquote(path.lstrip("/"))
        if not file or file.endswith("/") or (not netloc and scheme != "file"):
            raise invalid("source", f"name one file of the store: {scheme}://BUCKET/FOLDER/FILE")
        return cls("store", f"{scheme}://{netloc}" + ("/" if scheme == "file" else ""), file)

    @property
    def is_store(self) -> bool:
        return self.kind == "store"

    @property
    def secrets(self) -> list[str]:
        """What must not be shown: the password, as it was typed and as it is meant."""
        if self.kind != "postgresql":
            return []
        typed = urlsplit(self.url).netloc.rpartition("@")[0].partition(":")[2]
        asked = re.findall(r"[?&]password=([^&]*)", self.url)
        return [form for each in (typed, *asked) if each for form in (each, unquote(each))]


@contextmanager
def opened(
    address: str, query: str | None = None, table: str | None = None, *, ask: Ask | None = None
) -> Iterator[Rows]:
    """The rows of a query or a table of a database, or an object of a store, as a file for the time of the `with`.

    `ask` is given a question and answers a password, where a database wants one and none is known.
    """
    place = Place.of(address)
    if place.is_store and (query or table):
        raise invalid("source", "an object of a store is taken whole: leave query and table out")
    if not place.is_store and (query is None) == (table is None):
        raise invalid("source", "say which rows: either a query (--query) or a table (--table)")
    with _temporary() as (file, path):
        with _scrubbed(place):
            if place.is_store:
                _fetch(place, file)
            else:
                statement = query or f"SELECT * FROM {_quoted(table or '')}"  # noqa: S608 - quoted; the caller's own database
                {"postgresql": _read_postgres, "sqlite": _read_sqlite, "duckdb": _read_duckdb}[place.kind](
                    place, statement, file, ask
                )
            file.flush()
        name = Path(place.file).stem if place.is_store else table or Path(place.file).stem or "query"
        yield Rows(path, name)


def write(stream: IO[bytes], address: str, table: str = "synthetic", *, ask: Ask | None = None) -> None:
    """Rows of an Arrow stream into a new table of a database, whole or not at all; bytes into an object of a store."""
    place = Place.of(address)
    stream.seek(0)
    with _scrubbed(place):
        if place.is_store:
            obstore = _needed("obstore")
            obstore.put(_store(place), place.file, stream, chunk_size=PIECE_BYTES, max_concurrency=2)
            return
        pa = _needed("pyarrow")
        with pa.ipc.open_stream(stream) as reader:
            {"postgresql": _write_postgres, "sqlite": _write_sqlite, "duckdb": _write_duckdb}[place.kind](
                place, table, _plain(reader), ask
            )


# -- PostgreSQL ---------------------------------------------------------------------------------------------------


def _read_postgres(place: Place, statement: str, file: IO[bytes], ask: Ask | None) -> None:
    with closing(_connect_postgres(place, ask)) as connection, connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION READ ONLY")
        cursor.execute(statement)
        _write_parquet(cursor.fetch_record_batch(), file)


def _write_postgres(place: Place, table: str, rows: pa.RecordBatchReader, ask: Ask | None) -> None:
    schema, dot, name = table.rpartition(".")
    with closing(_connect_postgres(place, ask)) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest(name, rows, mode="create", **({"db_schema_name": schema} if dot else {}))
        connection.commit()


def _connect_postgres(place: Place, ask: Ask | None) -> Any:
    driver = _needed("adbc_driver_postgresql.dbapi")
    try:
        return driver.connect(place.url)
    except Exception as error:
        if ask is None or place.secrets or "password" not in str(error):
            raise
    parts = urlsplit(place.url)
    user, at, host = parts.netloc.rpartition("@")
    password = quote(ask(f"Password of {unquote(user) or 'the user'} at {host}"), safe="")
    with_password = urlunsplit(parts._replace(netloc=f"{user}:{password}{at or '@'}{host}"))
    with _scrubbed(Place(place.kind, with_password)):
        return driver.connect(with_password)


# -- DuckDB -------------------------------------------------------------------------------------------------------


def _read_duckdb(place: Place, statement: str, file: IO[bytes], _: Ask | None) -> None:
    duckdb = _needed("duckdb")
    _require_file(place)
    with closing(duckdb.connect(place.file, read_only=True)) as connection:
        _write_parquet(connection.sql(statement).to_arrow_reader(PIECE_ROWS), file)


def _write_duckdb(place: Place, table: str, rows: pa.RecordBatchReader, _: Ask | None) -> None:
    duckdb = _needed("duckdb")
    with closing(duckdb.connect(place.file)) as connection:
        connection.register("rows_to_write", rows)
        connection.execute(f"CREATE TABLE {_quoted(table)} AS SELECT * FROM rows_to_write")  # noqa: S608 - quoted


# -- SQLite -------------------------------------------------------------------------------------------------------


def _read_sqlite(place: Place, statement: str, file: IO[bytes], _: Ask | None) -> None:
    """As CSV: a column of SQLite may hold values of any kind, and a number's text is exact."""
    _require_file(place)
    with closing(sqlite3.connect(f"file:{quote(place.file)}?mode=ro", uri=True)) as connection:
        cursor = connection.execute(statement)
        names = [column[0] for column in cursor.description or ()]
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=False)
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(names)
        while rows := cursor.fetchmany(PIECE_ROWS // 16):
            for row in rows:
                if any(isinstance(cell, bytes) for cell in row):
                    name = names[next(i for i, cell in enumerate(row) if isinstance(cell, bytes))]
                    raise invalid(
                        "source", f"column {name!r} holds bytes: leave it out, or cast it to text in the query"
                    )
                writer.writerow(row)
        text.flush()
        text.detach()


def _write_sqlite(place: Place, table: str, rows: pa.RecordBatchReader, _: Ask | None) -> None:
    columns = ", ".join(f"{_quoted_name(field.name)} {_sqlite_type(field.type)}" for field in rows.schema)
    places = ", ".join("?" * len(rows.schema))
    with closing(sqlite3.connect(place.file, isolation_level=None)) as connection:
        connection.execute("BEGIN")
        connection.execute(f"CREATE TABLE {_quoted(table)} ({columns})")
        for batch in rows:
            cells = zip(*([_sqlite_cell(cell) for cell in column.to_pylist()] for column in batch.columns), strict=True)
            connection.executemany(f"INSERT INTO {_quoted(table)} VALUES ({places})", cells)  # noqa: S608 - quoted
        connection.execute("COMMIT")


def _sqlite_type(kind: pa.DataType) -> str:
    pa = _needed("pyarrow")
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return "INTEGER"
    return "REAL" if pa.types.is_floating(kind) else "TEXT"


def _sqlite_cell(cell: Any) -> Any:
    return cell if cell is None or isinstance(cell, int | float | str) else _text(cell)


def _text(cell: Any) -> str:
    return str(cell.isoformat()) if hasattr(cell, "isoformat") else str(cell)


# -- object stores ------------------------------------------------------------------------------------------------


def _fetch(place: Place, file: IO[bytes]) -> None:
    obstore = _needed("obstore")
    for piece in obstore.get(_store(place), place.file).stream(min_chunk_size=PIECE_BYTES):
        file.write(piece)


def _store(place: Place) -> Any:
    return _needed("obstore.store").from_url(place.url)


# -- common -------------------------------------------------------------------------------------------------------


def _write_parquet(rows: pa.RecordBatchReader, file: IO[bytes]) -> None:
    pa = _needed("pyarrow")
    parquet = _needed("pyarrow.parquet")
    for field in rows.schema:
        stored = _stored_type(field.type)
        if pa.types.is_binary(stored) or pa.types.is_nested(stored):
            kind = getattr(field.type, "type_name", None) or field.type
            raise invalid(
                "source",
                f"column {field.name!r} is of type {kind}, which no declaration has: leave it out, or cast it in the query, as in "
                f"CAST({_quoted_name(field.name)} AS text)",
            )
    schema = pa.schema([pa.field(field.name, _stored_type(field.type)) for field in rows.schema])
    with parquet.ParquetWriter(file, schema) as writer:
        for batch in rows:
            columns = [getattr(column, "storage", column) for column in batch.columns]
            writer.write_batch(pa.record_batch(columns, schema=schema))


def _stored_type(kind: pa.DataType) -> pa.DataType:
    """Exact decimals of PostgreSQL come as text under a type of their own."""
    return getattr(kind, "storage_type", kind)


def _plain(rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """Without dictionaries and the newer kinds of strings, which not every database's driver takes."""
    pa = _needed("pyarrow")
    schema = pa.schema([pa.field(field.name, _plain_type(field.type)) for field in rows.schema])
    return pa.RecordBatchReader.from_batches(
        schema,
        (
            pa.record_batch(
                [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)], schema=schema
            )
            for batch in rows
        ),
    )


def _plain_type(kind: pa.DataType) -> pa.DataType:
    pa = _needed("pyarrow")
    if pa.types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    return pa.int64() if pa.types.is_unsigned_integer(kind) else kind


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


@contextmanager
def _scrubbed(place: Place) -> Iterator[None]:
    """Errors of drivers as one sentence without a password."""
    try:
        yield
    except (ApiError, MissingExtra):
        raise
    except Exception as error:  # noqa: BLE001 - each driver has errors of its own, and any may quote the address
        said = " ".join(str(error).split()) or type(error).__name__
    else:
        return
    raise invalid("source", f"{place.kind}: {without_secrets(said, place.secrets)}") from None


def without_secrets(text: str, secrets: list[str]) -> str:
    """The text with every password in it taken out."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return _PASSWORD.sub(r"\1***", _USER_INFO.sub(r"\1:***@", text))


def _needed(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtra(f"reading and writing there ({error.name})", "sources") from None


def _require_file(place: Place) -> None:
    if not Path(place.file).is_file():
        raise invalid(
            "source", f"{place.file}: there is no such file; write {place.kind}:////FOLDER/FILE from the root"
        )


def _quoted(table: str) -> str:
    return ".".join(_quoted_name(part) for part in table.split("."))


def _quoted_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
