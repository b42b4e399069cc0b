"""Rows of PostgreSQL, DuckDB and SQLite, read in pieces into a file, and rows of Arrow into a new table of one."""

from __future__ import annotations

import csv
import io
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from imprimatur.addresses import Place, scrubbed
from imprimatur.formats import invalid
from imprimatur.preflight import check_writable
from imprimatur.stores import needed as _needed

if TYPE_CHECKING:
    import pyarrow as pa

PIECE_ROWS = 65_536

Ask = Callable[[str], str]


def read(place: Place, query: str | None, table: str | None, file: IO[bytes], ask: Ask | None) -> None:
    """The rows of a query, or of a whole table, into a file: Parquet, of SQLite CSV."""
    statement = query or f"SELECT * FROM {_quoted(table or '')}"  # noqa: S608 - quoted; the caller's own database
    _READERS[place.kind](place, statement, file, ask)


def write(place: Place, table: str, stream: IO[bytes], ask: Ask | None) -> None:
    """The rows of an Arrow stream into a new table."""
    pa = _needed("pyarrow")
    with pa.ipc.open_stream(stream) as reader:
        _WRITERS[place.kind](place, table, _plain(reader), ask)


def has_table(place: Place, table: str, ask: Ask | None) -> bool:
    """Whether there is one of this name; raises where nothing can be written."""
    return _TABLE_FINDERS[place.kind](place, table, ask)


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


def _postgres_has(place: Place, table: str, ask: Ask | None) -> bool:
    with closing(_connect_postgres(place, ask)) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT to_regclass('{_quoted(table).replace(chr(39), chr(39) * 2)}') IS NOT NULL")
        return bool(cursor.fetchone()[0])


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
    with scrubbed(Place(place.kind, with_password)):
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


def _duckdb_has(place: Place, table: str, _: Ask | None) -> bool:
    duckdb = _needed("duckdb")
    if not Path(place.file).exists():
        check_writable(Path(place.file))
        return False
    with closing(duckdb.connect(place.file)) as connection:
        try:
            connection.execute(f"SELECT * FROM {_quoted(table)} LIMIT 0")  # noqa: S608 - quoted
        except duckdb.CatalogException:
            return False
    return True


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


def _sqlite_has(place: Place, table: str, _: Ask | None) -> bool:
    if not Path(place.file).exists():
        check_writable(Path(place.file))
        return False
    with closing(sqlite3.connect(place.file, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")  # refused where nothing can be written
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master")]
        connection.execute("ROLLBACK")
    return table.lower() in {name.lower() for name in names}


def _sqlite_type(kind: pa.DataType) -> str:
    pa = _needed("pyarrow")
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return "INTEGER"
    return "REAL" if pa.types.is_floating(kind) else "TEXT"


def _sqlite_cell(cell: Any) -> Any:
    return cell if cell is None or isinstance(cell, int | float | str) else _text(cell)


def _text(cell: Any) -> str:
    return str(cell.isoformat()) if hasattr(cell, "isoformat") else str(cell)


# -- common ---------------------------------------------------------------------------------------------------------


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


def _require_file(place: Place) -> None:
    if not Path(place.file).is_file():
        raise invalid(
            "source", f"{place.file}: there is no such file; write {place.kind}:////FOLDER/FILE from the root"
        )


def _quoted(table: str) -> str:
    return ".".join(_quoted_name(part) for part in table.split("."))


def _quoted_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


_READERS = {"postgresql": _read_postgres, "sqlite": _read_sqlite, "duckdb": _read_duckdb}
_WRITERS = {"postgresql": _write_postgres, "sqlite": _write_sqlite, "duckdb": _write_duckdb}
_TABLE_FINDERS = {"postgresql": _postgres_has, "sqlite": _sqlite_has, "duckdb": _duckdb_has}
