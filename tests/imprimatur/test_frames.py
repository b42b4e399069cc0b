"""`imprimatur.publish`: a DataFrame in, a DataFrame out, against the real service."""

from __future__ import annotations

import polars as pl
import pytest

import imprimatur


def test_a_table_in_a_synthetic_table_out(client, small_csv, small_schema, small_order):
    table = pl.read_csv(small_csv)
    drawn = imprimatur.publish(table, small_schema, small_order, epsilon=9.0, rows=30, client=client)
    assert isinstance(drawn, pl.DataFrame)
    assert (drawn.height, set(drawn.columns)) == (30, set(table.columns))
    (dataset,) = client.datasets()
    assert (dataset["name"], dataset["epsilon"]) == ("table", 9.0)

    again = imprimatur.publish(str(small_csv), small_schema, small_order, epsilon=9.0, rows=5, client=client)
    assert again.height == 5
    assert [each["id"] for each in client.datasets()] == [dataset["id"]], "the same rows keep their budget"
    assert len(client.releases(dataset["id"])) == 2

    with pytest.raises(imprimatur.ApiError) as refused:
        imprimatur.publish(table, small_schema | {"target": "colour"}, small_order, epsilon=9.0, client=client)
    assert refused.value.code == "duplicate_rows"


def test_what_is_missing_is_said_before_anything_is_sent(small_csv, small_schema, monkeypatch):
    monkeypatch.delenv("IMPRIMATUR_URL", raising=False)
    with pytest.raises(ValueError, match="IMPRIMATUR_URL"):
        imprimatur.publish(small_csv, small_schema, {"epsilon": 1.0})
    with pytest.raises(ValueError, match="give the ε"):
        imprimatur.publish(small_csv, small_schema, {"share": 0.5})


def test_a_release_that_failed_says_so():
    release = {"id": "r", "state": "failed", "failure": "out of memory"}
    assert str(imprimatur.NotPublished(release)) == "release r failed: out of memory (its charge stands)"
    assert str(imprimatur.NotPublished({"id": "r", "state": "voided"})) == "release r voided (nothing was charged)"


def test_every_name_of_the_package_is_there_and_an_unknown_one_is_not():
    assert all(getattr(imprimatur, name) is not None for name in imprimatur.__all__)
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        _ = imprimatur.nothing_of_this_name
