"""Rows from where tables live and back: real files of SQLite and DuckDB, a real Postgres, a local store."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import sqlite3
import sys
from pathlib import Path

import duckdb
import polars as pl
import psycopg
import pyarrow as pa
import pytest

from imprimatur import databases, sources
from imprimatur.errors import InvalidInput, MissingExtra

BIG = 2**53 + 1


@pytest.fixture
def places(tmp_path, database):
    """The same two rows everywhere: address by kind."""
    rows = "(id bigint, name text, weight double precision)"
    values = f"({BIG}, 'a,\"b', 1e-12), (2, NULL, NULL)"
    with sqlite3.connect(tmp_path / "t.sqlite") as connection:
        connection.executescript(f"CREATE TABLE people {rows}; INSERT INTO people VALUES {values}")
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute(f"CREATE TABLE people {rows}; INSERT INTO people VALUES {values}")
    postgres = database.owner_url.replace("+psycopg", "")
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE people {rows}; INSERT INTO people VALUES {values}")
    return {
        "sqlite": f"sqlite:///{tmp_path}/t.sqlite",
        "duckdb": f"duckdb:///{tmp_path}/t.duckdb",
        "postgresql": postgres,
    }


def read(path: Path) -> pl.DataFrame:
    content = path.read_bytes()
    return pl.read_parquet(content) if content.startswith(b"PAR1") else pl.read_csv(content)


@pytest.mark.parametrize("kind", ["sqlite", "duckdb", "postgresql"])
def test_rows_come_exactly_and_leave_no_file(places, kind):
    for which in ({"table": "people"}, {"query": "SELECT * FROM people ORDER BY id DESC"}):
        with sources.opened(places[kind], **which) as rows:
            assert sorted(read(rows.path).rows(), key=str) == [(2, None, None), (BIG, 'a,"b', 1e-12)]
            assert not Path(rows.path.readlink()).exists()
    assert not rows.path.exists()


@pytest.mark.parametrize("kind", ["sqlite", "duckdb", "postgresql"])
def test_nothing_is_written_where_rows_are_read(places, kind):
    with pytest.raises(InvalidInput), sources.opened(places[kind], query="DELETE FROM people"):
        pass
    with sources.opened(places[kind], table="people") as rows:
        assert read(rows.path).height == 2


@pytest.mark.parametrize("kind", ["sqlite", "duckdb", "postgresql"])
def test_synthetic_rows_go_into_a_new_table_whole_or_not_at_all(places, kind):
    names = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), pa.array(["x", "y"], pa.large_string()))
    table = pa.table(
        {
            "name": names,
            "count": pa.array([BIG, None, 3], pa.uint64()),
            "at": pa.array([dt.date(2024, 2, 29), None, dt.date(1, 1, 1)], pa.date32()),
        }
    )
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    sources.write(stream, places[kind], "made")
    with sources.opened(places[kind], query="SELECT name, count FROM made") as rows:
        assert sorted(read(rows.path).rows(), key=str) == [("x", BIG), ("y", None), (None, 3)]
    with pytest.raises(InvalidInput, match="exists"):
        sources.write(stream, places[kind], "made")
    with sources.opened(places[kind], query="SELECT * FROM made") as rows:
        assert read(rows.path).height == 3


def test_exact_decimals_and_kinds_that_no_declaration_has(places):
    with sources.opened(places["postgresql"], query="SELECT 12345678901234567890.123456789::numeric AS price") as rows:
        (value,) = pl.read_parquet(rows.path.read_bytes())["price"]
    assert decimal.Decimal(value) == decimal.Decimal("12345678901234567890.123456789")
    with (
        pytest.raises(InvalidInput, match=r'column .where. .*CAST\("where" AS text\)'),
        sources.opened(places["postgresql"], query="SELECT point(1, 2) AS where"),
    ):
        pass


def test_a_password_is_in_no_error(places):
    server = places["postgresql"].partition("@")[2]
    for secret in ("hunter%402", "hunter2", "hunter%2"):  # the last one is quoted by the driver: no percent-encoding
        address = f"postgresql://nobody:{secret}@{server}&sslmode=never"
        with pytest.raises(InvalidInput) as refused, sources.opened(address, table="people"):
            pass
        assert "hunter" not in str(refused.value)
        assert refused.value.__cause__ is None
        assert refused.value.__suppress_context__ or refused.value.__context__ is None
    said = sources.without_secrets("at postgresql://me:pw1@h/db?x password='p w2' password=pw3", [])
    assert "pw" not in said
    assert "p w2" not in said


def test_a_missing_password_is_asked_for_once(monkeypatch):
    asked, seen = [], []

    class Driver:
        @staticmethod
        def connect(url):
            seen.append(url)
            if len(seen) == 1:
                raise RuntimeError("fe_sendauth: no password supplied")
            return "connected"

    monkeypatch.setattr(databases, "_needed", lambda _: Driver)
    place = sources.Place.of("postgresql://me@host:5433/db")
    assert databases._connect_postgres(place, lambda question: asked.append(question) or "p/w@d") == "connected"
    assert seen[1] == "postgresql://me:p%2Fw%40d@host:5433/db"
    assert asked == ["Password of me at host:5433"]


def test_an_object_of_a_store_comes_and_goes_in_pieces(tmp_path):
    (tmp_path / "in.csv").write_bytes(b"a\n" + b"1\n" * 9_000_000)
    with sources.opened(f"file://{tmp_path}/in.csv") as rows:
        assert rows.name == "in"
        assert rows.path.stat().st_size == 18_000_002
        sources.write(rows.path.open("rb"), f"file://{tmp_path}/out.csv")
    assert (tmp_path / "out.csv").read_bytes() == (tmp_path / "in.csv").read_bytes()


@pytest.mark.parametrize(
    ("address", "options", "said"),
    [
        ("mysql://h/db", {"table": "t"}, "postgresql://USER@HOST/DATABASE"),
        ("s3://key:secret@bucket/x.csv", {}, "AWS_"),
        ("s3://bucket/x.csv?X-Amz-Signature=secret", {}, "AWS_"),
        ("s3://bucket/", {}, "s3://BUCKET/FOLDER/FILE"),
        ("s3://bucket/x.csv", {"table": "t"}, "taken whole"),
        ("sqlite:///nowhere.sqlite", {"table": "t"}, "no such file"),
        ("sqlite:///nowhere.sqlite", {}, "--query"),
        ("sqlite:///nowhere.sqlite", {"table": "t", "query": "SELECT 1"}, "--query"),
    ],
)
def test_a_wrong_address_says_what_to_write(address, options, said):
    with pytest.raises(InvalidInput, match=said) as refused, sources.opened(address, **options):
        pass
    assert "secret" not in str(refused.value)


def test_what_is_not_installed_is_said_in_one_line(monkeypatch, places):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtra, match=r"imprimatur\[sources\]"), sources.opened(places["duckdb"], table="people"):
        pass
