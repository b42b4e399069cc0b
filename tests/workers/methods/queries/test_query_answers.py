"""Answers to questions of every kind, from a table written as the service stores it."""

from __future__ import annotations

import datetime as dt
import io
import json
import re
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch

from service.base.errors import InvalidOrder
from service.domain.table_schema import UNIT_COLUMN, TableSchema, parse_table_schema
from service.methods.catalogue import parse_order
from service.methods.facts import Facts
from service.methods.pricing import price_order, resolve_order
from service.methods.queries.forecast import forecast
from service.privacy.filters import NANO, Shares, open_budget
from workers.encoding.values import read_values
from workers.hooks import UNATTENDED
from workers.mechanism.secure_random import SecureRandom
from workers.methods.queries.run import Run
from workers.plan import Plan
from workers.sources import GivenTable

ROWS = 4_000
BUDGET = open_budget(1_000.0, 1e-6)
SCHEMA = {
    "fields": [
        {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m"], "required": True}},
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99, "required": True}},
        {"name": "income", "type": "number", "decimals": 2, "constraints": {"minimum": -100, "maximum": 1000}},
        {"name": "seen", "type": "date", "constraints": {"minimum": "2020-01-01", "maximum": "2020-12-31"}},
        {"name": "rank", "type": "integer", "constraints": {"enum": [1, 2, 3]}},
    ]
}


def frame(rows: int = ROWS) -> pl.DataFrame:
    rng = np.random.default_rng(4)
    age = rng.integers(0, 100, rows)
    return pl.DataFrame(
        {
            "sex": np.where(rng.random(rows) < 0.3, "f", "m"),
            "age": age.astype(np.int64),
            "income": [
                None if u < 0.1 else round(a * 7.5 + u, 2) for a, u in zip(age.tolist(), rng.random(rows), strict=True)
            ],
            "seen": [dt.date(2020, 1, 1) + dt.timedelta(days=int(a)) for a in age],
            "rank": [None if a > 90 else int(a % 3) + 1 for a in age],
        },
        schema_overrides={"rank": pl.Int64},
    )


class Source(GivenTable):
    """Reads a frame as a worker reads the canonical file."""

    def __init__(self, table: pl.DataFrame, *, units: int, most: int = 1, schema: dict[str, Any] | None = None) -> None:
        object.__setattr__(self, "holds_images", False)
        buffer = io.BytesIO()
        table.write_parquet(buffer)
        object.__setattr__(self, "_file", buffer.getvalue())
        object.__setattr__(self, "_units", units)
        object.__setattr__(self, "_most", most)
        object.__setattr__(self, "_schema", schema or SCHEMA)

    def values(self, names: Any) -> Any:
        schema: TableSchema = parse_table_schema(self._schema)  # type: ignore[attr-defined]
        return read_values(self._file, schema, names, units=self._units, max_rows_per_unit=self._most)  # type: ignore[attr-defined]


def priced(
    questions: list[dict[str, Any]], *, epsilon: float, most: int = 1, units: int = ROWS, schema: Any = None
) -> Any:
    declared = schema or SCHEMA
    facts = Facts.of_declaration(json.dumps(declared), units=units, most_per_unit=most, budget=BUDGET)
    order = parse_order({"method": "queries", "epsilon": epsilon, "questions": questions})
    resolved = resolve_order(order, facts, Shares(NANO, NANO), parse_table_schema(declared))
    return resolved, price_order(resolved, BUDGET).events


def answered(
    questions: list[dict[str, Any]], *, epsilon: float = 90.0, source: Source | None = None, seed: int = 1, **facts: Any
) -> Any:
    order, events = priced(questions, epsilon=epsilon, **facts)
    plan = Plan(events)
    randomness = SecureRandom.from_test_seed(seed)
    run = Run(order, plan, source or Source(frame(), units=ROWS), randomness, torch.device("cpu"))
    run.measure()
    assert plan.position == sum(event.count for event in events)
    released = run.finish(UNATTENDED)
    answers = json.loads(json.dumps(released.answers))["answers"]
    return answers if len(answers) > 1 else answers[0]


def test_counts_sums_and_means_are_those_of_the_rows_that_meet_all_conditions() -> None:
    where = [{"column": "age", "minimum": 65}, {"column": "sex", "values": ["f"]}]
    table = frame()
    meant = table.filter((pl.col("age") >= 65) & (pl.col("sex") == "f"))
    count, total, mean, unknown = answered(
        [
            {"kind": "count", "where": where},
            {"kind": "sum", "column": "income", "where": where, "weight": 5.0},
            {"kind": "mean", "column": "income", "where": where, "weight": 5.0},
            {"kind": "count", "where": [{"column": "income", "values": [None]}]},
        ],
        epsilon=95.0,
    )
    assert abs(count["value"] - meant.height) <= 5
    assert count["interval"][0] <= count["value"] <= count["interval"][1]
    assert isinstance(count["value"], int)
    assert total["value"] == pytest.approx(meant["income"].sum(), abs=300.0)
    assert mean["value"] == pytest.approx(meant["income"].mean(), abs=2.0)
    assert mean["interval"][0] <= mean["value"] <= mean["interval"][1]
    assert abs(unknown["value"] - table["income"].null_count()) <= 5
    assert [event["kind"] for event in mean["events"]] == ["pure", "pure"]


def test_tables_have_a_cell_for_each_declared_value_and_for_missing_ones() -> None:
    table = frame()
    histogram, cross, gaussian = answered(
        [
            {"kind": "histogram", "column": "rank"},
            {"kind": "cross_table", "columns": ["sex", "age"], "bins": 4},
            {"kind": "histogram", "column": "sex", "noise": "gaussian"},
        ]
    )
    assert histogram["axes"] == [{"column": "rank", "values": [1, 2, 3], "missing": True}]
    meant = [table.filter(pl.col("rank") == rank).height for rank in (1, 2, 3)] + [table["rank"].null_count()]
    assert np.abs(np.array(histogram["value"]) - meant).max() <= histogram["all_within"]
    assert cross["shape"] == [2, 4]
    assert cross["axes"][1]["edges"] == [0.0, 25.0, 50.0, 75.0, 100.0]
    women = [table.filter((pl.col("sex") == "f") & (pl.col("age") // 25 == part)).height for part in range(4)]
    assert np.abs(np.array(cross["value"][:4]) - women).max() <= cross["all_within"]
    assert np.abs(gaussian["value"][0] - table.filter(pl.col("sex") == "f").height) <= 2 * gaussian["all_within"]
    assert gaussian["events"][0]["kind"] == "gaussian"


def test_quantiles_medians_and_keys_are_near_those_of_the_rows() -> None:
    table = frame()
    quantiles, median, keys, dates = answered(
        [
            {"kind": "quantiles", "column": "age", "probabilities": [0.1, 0.5, 0.9]},
            {"kind": "median", "column": "age"},
            {"kind": "keys", "columns": ["rank", "sex"]},
            {"kind": "quantiles", "column": "seen", "probabilities": [0.5]},
        ]
    )
    assert quantiles["value"] == pytest.approx([np.quantile(table["age"], p) for p in (0.1, 0.5, 0.9)], abs=2)
    assert median["value"] == pytest.approx(table["age"].median(), abs=15)
    assert median["interval"] is None  # how large the noise was is private
    pairs = {tuple(each["values"]): each["count"] for each in keys["value"]}
    assert len(pairs) == 8
    assert abs(pairs[(None, "m")] - table.filter(pl.col("rank").is_null() & (pl.col("sex") == "m")).height) <= 9
    assert abs(dt.date.fromisoformat(dates["value"][0]) - dt.date(2020, 2, 19)) <= dt.timedelta(days=2)


def test_a_median_of_few_whole_numbers_is_not_lost_in_noise_of_whole_numbers() -> None:
    """On a grid of years alone, noise would never be less than 6/ε = 6 years, however many people have the median age."""
    median = frame()["age"].median()
    assert isinstance(median, float)
    question = [{"kind": "median", "column": "age"}]
    values = [answered(question, epsilon=1.0, seed=seed)["value"] for seed in range(15)]
    assert np.median([abs(value - median) for value in values]) <= 2
    assert all(isinstance(value, int) for value in values)


def test_the_forecast_says_what_answers_say_of_themselves() -> None:
    questions = [
        {"kind": "count"},
        {"kind": "histogram", "column": "rank", "noise": "gaussian"},
        {"kind": "mean", "column": "age"},
        {"kind": "quantiles", "column": "age"},
        {"kind": "arg_max", "column": "rank"},
        {"kind": "keys", "columns": ["rank", "sex"]},
        {"kind": "median", "column": "age"},
        {"kind": "sum", "column": "income"},
    ]
    facts = Facts.of_declaration(json.dumps(SCHEMA), units=ROWS, most_per_unit=1, budget=BUDGET)
    said = forecast(*priced(questions, epsilon=4.0), facts).sentences
    numbers = [float(re.findall(r"about ([\d,.]+)", each)[0].replace(",", "")) for each in said if "about" in each]
    count, histogram, mean, quantiles, largest, keys, _, total = answered(questions, epsilon=4.0)
    assert numbers[0] == count["within"]
    assert numbers[1] == pytest.approx(histogram["within"], rel=0.05)
    assert (mean["interval"][1] - mean["interval"][0]) / 2 / 99 <= numbers[2] / 100
    assert max(each["rows_off_by_at_most"] for each in quantiles["quantiles"]) <= numbers[3]
    assert numbers[4] == pytest.approx(largest["behind_by_at_most"], abs=1)
    assert numbers[5] == pytest.approx(keys["threshold"], abs=3)
    assert numbers[6] == pytest.approx((total["interval"][1] - total["value"]) / 1000, rel=0.05)
    assert "depends on how many values lie near it" in said[6]
    (alone,) = forecast(*priced(questions[:1], epsilon=4.0), facts).sentences
    assert alone.startswith("The count is off by at most about ")
    many = forecast(*priced(questions[:1] * 12, epsilon=4.0), facts).sentences
    assert (len(many), many[-1]) == (11, "Further questions: 2, not said here.")


def test_the_most_frequent_value_is_told_without_its_count() -> None:
    answer = answered([{"kind": "arg_max", "column": "sex"}])
    assert answer["value"] == "m"
    assert set(answer) == {"question", "key", "value", "interval", "behind_by_at_most", "events"}
    assert [event["kind"] for event in answer["events"]] == ["exponential"]


def test_a_key_of_few_rows_is_not_told() -> None:
    rare = frame().with_columns(pl.when(pl.int_range(pl.len()) == 17).then(777.77).otherwise(1.0).alias("income"))
    answer = answered([{"kind": "keys", "columns": ["income"]}], epsilon=1.0, source=Source(rare, units=ROWS))
    assert [each["values"] for each in answer["value"]] == [[1.0]]
    assert answer["threshold"] > 10
    assert answer["events"][0]["failure_probability"] > 0.0


def test_units_of_several_rows_have_all_of_them_covered() -> None:
    """Δ = m: noise, intervals and scores are for all rows that a unit may have; more rows than that are left out."""
    table = frame().with_columns(pl.Series(UNIT_COLUMN, np.arange(ROWS) // 4))
    source, facts = Source(table, units=ROWS // 4, most=3), {"most": 3, "units": ROWS // 4}
    count, total = answered([{"kind": "count"}, {"kind": "sum", "column": "age"}], epsilon=2.0, source=source, **facts)
    assert count["within"] >= 6  # ln(20)/1·3, rounded down
    assert abs(count["value"] - 3_000) <= 60
    assert total["interval"][1] - total["value"] >= 2 * 99 * 3
    with pytest.raises(InvalidOrder, match="for units of one row"):
        priced([{"kind": "median", "column": "age"}], epsilon=1.0, **facts)


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ({"kind": "sum", "column": "sex"}, "has declared values, not a range"),
        ({"kind": "sum", "column": "seen"}, "moments, which have no sum"),
        ({"kind": "mean", "column": "agee"}, "there is no column 'agee' .*age"),
        ({"kind": "median", "column": "income"}, "quantiles with probability 0.5"),
        ({"kind": "count", "where": [{"column": "sex", "values": ["x"]}]}, "'x' is not a declared value of sex"),
        ({"kind": "count", "where": [{"column": "age", "values": [3]}]}, "age has a range"),
        ({"kind": "cross_table", "columns": ["age", "age"]}, "a column is named twice"),
        ({"kind": "cross_table", "columns": ["income", "seen", "age"], "bins": 1024}, "cells; 100000 are the most"),
        ({"kind": "quantiles", "column": "age", "probabilities": [0.5, 0.2]}, "must increase"),
        ({"kind": "histogram", "column": "age", "colour": 1}, "no such knob"),
    ],
)
def test_what_cannot_be_answered_is_refused_before_any_price(question: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidOrder, match=sentence):
        priced([question], epsilon=1.0)


def test_weights_share_out_one_price() -> None:
    _, events = priced([{"kind": "count", "weight": 3.0}, {"kind": "mean", "column": "age"}], epsilon=1.0)
    of_count, *of_mean = (event.parameters()["epsilon"] for event in events)
    assert of_count == pytest.approx(0.75, rel=0.02)
    assert sum(of_mean) == pytest.approx(0.25, rel=0.02)


def test_a_price_that_leaves_too_little_for_a_number_is_refused() -> None:
    with pytest.raises(InvalidOrder, match="give more, or ask less at once"):
        priced([{"kind": "count"}, {"kind": "mean", "column": "age", "weight": 0.01}], epsilon=0.02)


def test_the_same_question_has_the_same_key_however_it_is_written() -> None:
    conditions = [{"column": "age", "minimum": 65}, {"column": "sex", "values": ["f"]}]
    (first, _), (second, _) = (
        priced([{"kind": "count", "where": where, "weight": weight}], epsilon=1.0)
        for where, weight in ((conditions, 1.0), (conditions[::-1], 3.0))
    )
    assert first.questions[0].key == second.questions[0].key
    (other, _) = priced([{"kind": "count", "where": conditions[:1]}], epsilon=1.0)
    assert other.questions[0].key != first.questions[0].key
