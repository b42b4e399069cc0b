"""`Client.publish` refuses and asks what `imprimatur.publish` and the command do, before anything is sent."""

from __future__ import annotations

import asyncio
import gzip
import io

import pandas as pd
import polars as pl
import pytest

import imprimatur
from imprimatur.errors import DraftSchema, InvalidInput, Unreachable
from imprimatur.person_columns import header_of
from service.local.servers import free_port

WELL = {"name": "well", "type": "boolean"}
SCHEMA = {"fields": [WELL]}
ROWS = "patient_id,well\n1,true\n1,false\n2,true\n"
ASKED = r"'patient_id' looks like a person's id: do several rows belong to one person\?.*rows_are_units=True"


@pytest.fixture
def nowhere():
    """Of a service that is not there: what gets so far is sent."""
    with imprimatur.Client(f"http://127.0.0.1:{free_port()}", "imp_key", retries=0) as client:
        yield client


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(ROWS)
    return path


def publish(client, file, schema=SCHEMA, path=None, **options):
    return client.publish(file, schema, {"epsilon": 1}, epsilon=1, path=path or file.with_name("out.csv"), **options)


def parquet(path):
    pl.read_csv(io.StringIO(ROWS)).write_parquet(path)


def parts(path):
    path.mkdir()
    parquet(path / "part-0.parquet")


def gzipped(path):
    path.write_bytes(gzip.compress(ROWS.encode()))


def semicolons(path):
    path.write_text(ROWS.replace(",", ";"), encoding="utf-8-sig")


@pytest.mark.parametrize("write", [parquet, parts, gzipped, semicolons])
def test_whose_rows_they_are_is_asked_of_every_kind_of_file(nowhere, tmp_path, write):
    path = tmp_path / "rows"
    write(path)
    assert header_of(path) == ["patient_id", "well"]
    with pytest.raises(InvalidInput, match=ASKED):
        publish(nowhere, path)


def test_whose_rows_they_are_is_asked_until_it_is_answered(nowhere, rows):
    with pytest.raises(InvalidInput, match=ASKED):
        publish(nowhere, rows)
    unit = {"column": "patient_id", "max_rows_per_unit": 2}
    with pytest.raises(InvalidInput, match="leave one of the two out"):
        publish(nowhere, rows, privacy_unit=unit, rows_are_units=True)
    for answer in ({"privacy_unit": unit}, {"rows_are_units": True}):
        with pytest.raises(Unreachable):
            publish(nowhere, rows, **answer)


def test_a_client_in_a_loop_asks_the_same(rows):
    async def ask():
        async with imprimatur.AsyncClient(f"http://127.0.0.1:{free_port()}", "imp_key", retries=0) as client:
            await publish(client, rows)

    with pytest.raises(InvalidInput, match=ASKED):
        asyncio.run(ask())


def test_a_draft_is_refused_until_it_is_accepted(nowhere, rows):
    draft = {"fields": [WELL | {"description": "DRAFT: read from the rows."}]}
    with pytest.raises(DraftSchema, match="accept_draft=True"):
        publish(nowhere, rows, draft, rows_are_units=True)
    with pytest.raises(Unreachable):
        publish(nowhere, rows, draft, rows_are_units=True, accept_draft=True)


def test_no_output_replaces_the_private_file(nowhere, rows):
    with pytest.raises(InvalidInput, match="the private file itself"):
        publish(nowhere, rows, path=rows, rows_are_units=True)
    assert rows.read_text() == ROWS


def test_a_table_of_a_database_is_asked_about_by_its_columns(tmp_path):
    import sqlite3

    with sqlite3.connect(tmp_path / "t.sqlite") as connection:
        pd.read_csv(io.StringIO(ROWS)).to_sql("visits", connection, index=False)
    address = f"sqlite:///{tmp_path}/t.sqlite"

    class Sent(Exception):
        pass

    class Service:
        def datasets(self):
            return []

        def create_dataset(self, path, _schema, **options):
            raise Sent(path.read_text(), options["name"])

    def send(table=address, schema=SCHEMA, **options):
        return imprimatur.publish(table, schema, epsilon=1, client=Service(), **options)

    with pytest.raises(InvalidInput, match=ASKED):
        send(source_table="visits")
    with pytest.raises(Sent) as sent:
        send(query="SELECT well FROM visits WHERE patient_id = 2")
    assert sent.value.args == ("well\n1\n", "t")
    for wrong, said in (
        ({}, "say which rows"),
        ({"query": "SELECT 1", "schema": None}, "give the schema"),
        ({"query": "SELECT 1", "table": "t.csv"}, "for the address of a database"),
        ({"table": "s4://bucket/t.csv"}, "no such place is known"),
    ):
        with pytest.raises(InvalidInput, match=said):
            send(**wrong)
