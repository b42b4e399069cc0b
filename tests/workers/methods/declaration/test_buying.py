"""What is bought: never the rows' own ends, never a key of one unit alone, and nothing without its event."""

from __future__ import annotations

import io

import numpy as np
import polars as pl
import pytest

from service.domain.open_columns import candidates, open_columns, open_fields
from service.domain.table_schema import parse_table_schema
from service.methods.declaration.order import DeclarationOrder, Purchase
from service.methods.declaration.price import DELTA_SHARE, declaration_events
from service.methods.declaration.ranks import part_beyond, rows_off
from service.privacy.events import ExponentialEvent, ThresholdEvent
from workers.encoding.values import TableValues, read_values
from workers.mechanism.key_threshold import threshold
from workers.mechanism.secure_random import SecureRandom
from workers.methods.declaration.buying import Buying
from workers.plan import Plan

DELTA = 1e-6


def schema_of(*fields, **words):
    return parse_table_schema({"fields": list(fields), **words})


AGE = {"name": "age", "type": "integer", "infer": {"epsilon": 1.0}}
CITY = {"name": "city", "type": "string", "infer": {"epsilon": 1.0}}


def bought(schema, *, numbers=None, codes=None, texts=None, epsilon=1.0, most=1, starts=None, seed=1):
    """All purchases of a schema, on these values."""
    rows = len(next(iter({**(numbers or {}), **(codes or {})}.values())))
    values = TableValues(
        {field.name: field for field in schema.fields},
        {name: np.asarray(own) for name, own in (codes or {}).items()},
        {name: np.asarray(own, dtype=np.float64) for name, own in (numbers or {}).items()},
        rows,
        starts,
        most,
        texts or {},
        {field.name: candidates(schema, field) for field in open_fields(schema) if field.type != "string"},
    )
    order = order_of(schema, epsilon)
    plan = Plan(declaration_events(order, noise_multiplier=1.0, delta=DELTA))
    buying = Buying(plan, values, SecureRandom.from_test_seed(seed))
    found = {one["column"]: one for one in (buying.buy(each) for each in order.purchases)}
    assert plan.position == sum(event.count for event in declaration_events(order, noise_multiplier=1.0, delta=DELTA))
    return found


def order_of(schema, epsilon):
    purchases = tuple(
        Purchase(column=one.name, ends=one.ends, epsilon=epsilon, candidates=one.candidates)
        for one in open_columns(schema)
    )
    return DeclarationOrder(method="declaration", epsilon=epsilon, purchases=purchases)


def test_a_range_holds_all_rows_but_those_that_the_price_leaves_out():
    ages = np.random.default_rng(3).integers(18, 91, 20_000)
    (found,) = bought(schema_of(AGE), numbers={"age": ages}, epsilon=2.0).values()
    low, high = found["constraints"]["minimum"], found["constraints"]["maximum"]
    assert 10 <= low <= 22
    assert 87 <= high <= 99
    how = {"candidates": 2_701, "epsilon": 1.0, "most_per_unit": 1}
    beyond = part_beyond(**how, units=20_000) / 10_000
    for outside in ((ages < low).mean(), (ages > high).mean()):
        assert outside <= beyond + found["rows_off_by_at_most"] / 20_000
    assert found["rows_off_by_at_most"] == rows_off(**how)


@pytest.mark.slow
def test_bounds_are_drawn_and_not_read_from_the_rows():
    """So little epsilon says next to nothing of where the rows are: the same rows give other bounds each time."""
    ages = np.full(200, 40)
    found = {
        str(bought(schema_of(AGE), numbers={"age": ages}, epsilon=0.01, seed=seed)["age"]["constraints"])
        for seed in range(8)
    }
    assert len(found) >= 7


def test_a_bound_is_a_public_value_whatever_the_rows_hold():
    schema = schema_of({**AGE, "missingValues": ["", "99"]})
    ages = np.random.default_rng(4).integers(41_237, 41_239, 5_000)
    constraints = bought(schema, numbers={"age": ages}, epsilon=20.0)["age"]["constraints"]
    said = {one.said for one in candidates(schema, schema.fields[0])}
    assert set(constraints.values()) <= said
    assert 99 not in said
    assert constraints == {"minimum": 41_000, "maximum": 42_000}


def test_equal_ends_are_moved_apart_and_crossed_ones_are_exchanged():
    for seed in range(6):
        ages = np.full(3_000, 40)
        found = bought(schema_of(AGE), numbers={"age": ages}, epsilon=30.0, seed=seed)["age"]["constraints"]
        assert found["minimum"] < 40 <= found["maximum"] or found["minimum"] <= 40 < found["maximum"]
    nothing = bought(schema_of(AGE), numbers={"age": np.full(50, np.nan)}, epsilon=0.5)["age"]["constraints"]
    assert nothing["minimum"] < nothing["maximum"]


def test_dates_are_bought_as_the_first_days_of_months():
    born = {"name": "born", "type": "date", "infer": {"epsilon": 1.0}}
    days = np.random.default_rng(5).integers(0, 3_650, 20_000)  # the seventies
    constraints = bought(schema_of(born), numbers={"born": days}, epsilon=4.0)["born"]["constraints"]
    assert "1969-10-01" <= constraints["minimum"] <= "1970-06-01"
    assert "1979-08-01" <= constraints["maximum"] <= "1980-04-01"


def test_common_values_become_categories_in_an_order_that_says_nothing_of_the_rows():
    texts = ("Bonn", "Oslo", "Rome", "Ulm")
    codes = np.concatenate([np.full(500, 2), np.full(900, 0), np.full(700, 1), [3], np.full(9, -1)])
    found = bought(schema_of(CITY), codes={"city": codes}, texts={"city": texts}, epsilon=2.0)["city"]
    assert found["constraints"] == {"enum": ["Bonn", "Oslo", "Rome"]}
    assert len(found["counts"]) == 3
    assert found["within"] > 0


def test_where_nothing_is_common_nothing_is_told():
    codes, texts = np.arange(300), tuple(f"name {i:03}" for i in range(300))
    for seed in range(5):
        found = bought(schema_of(CITY), codes={"city": codes}, texts={"city": texts}, seed=seed)
        assert found["city"]["constraints"] == {"enum": []}


@pytest.mark.parametrize("most", [1, 20])
def test_a_value_of_one_unit_alone_is_below_the_threshold_by_its_failure_probability(most):
    """A unit of m rows brings m of them: the threshold that is used must be of so many."""
    starts = None if most == 1 else np.arange(0, 2_001, 20)
    codes = np.repeat(np.arange(100), 20) if most > 1 else np.arange(2_000)
    texts = tuple(f"v{i:04}" for i in range(codes.max() + 1))
    found = bought(schema_of(CITY), codes={"city": codes}, texts={"city": texts}, epsilon=5.0, most=most, starts=starts)
    told = found["city"]["events"][0]
    failure = told["failure_probability"]
    assert failure == pytest.approx(DELTA_SHARE * DELTA)
    assert found["city"]["threshold"] == threshold(epsilon=5.0, failure_probability=failure, most=most) > most
    assert found["city"]["constraints"] == {"enum": []}


@pytest.mark.slow
def test_the_bounds_of_units_of_many_rows_are_as_much_dearer():
    """One unit moves the number of rows below a value by all its rows."""
    how = {"candidates": 2_701, "epsilon": 1.0}
    assert rows_off(**how, most_per_unit=20) == pytest.approx(20 * rows_off(**how, most_per_unit=1), rel=0.01)
    starts = np.arange(0, 4_001, 20)
    ages = np.full(4_000, 40)
    how = {"numbers": {"age": ages}, "epsilon": 0.1, "most": 20, "starts": starts}
    found = {str(bought(schema_of(AGE), **how, seed=seed)["age"]["constraints"]) for seed in range(8)}
    assert len(found) >= 7


def test_open_columns_are_read_as_they_are_stored_and_texts_in_an_order_of_their_own():
    stored = io.BytesIO()
    rows = {"age": [3, None, 2**60], "city": ["Rome", None, "Bonn"]}
    pl.DataFrame(rows, schema={"age": pl.Int64, "city": pl.String}).write_parquet(stored)
    found = read_values(stored.getvalue(), schema_of(AGE, CITY), ("age", "city"), units=3)
    assert found.numbers["age"][[0, 2]].tolist() == [3.0, 2.0**53]
    assert np.isnan(found.numbers["age"][1])
    assert (found.texts["city"], found.codes["city"].tolist()) == (("Bonn", "Rome"), [1, -1, 0])


def test_every_purchase_is_on_the_price_list_and_a_failure_is_a_part_of_delta():
    schema = schema_of(AGE, CITY, {**CITY, "name": "land"}, {**AGE, "name": "size", "constraints": {"minimum": 0}})
    events = declaration_events(order_of(schema, 0.5), noise_multiplier=2.0, delta=DELTA)
    assert [(type(event), event.epsilon, event.count) for event in events] == [
        (ExponentialEvent, 0.125, 2),
        (ThresholdEvent, 0.25, 1),
        (ThresholdEvent, 0.25, 1),
        (ExponentialEvent, 0.25, 1),
    ]
    assert sum(event.failures for event in events) == pytest.approx(DELTA_SHARE * DELTA)
