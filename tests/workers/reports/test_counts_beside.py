"""Counts of cells, real beside synthetic: every row is in one bar, and bars are called what they hold."""

import datetime as dt

import numpy as np
import polars as pl
import pytest

from service.domain.table_schema import parse_table_schema
from workers.reports.beside import MISSING, MOST_CATEGORIES, MOST_CELLS, REST, counts_beside
from workers.reports.rows import Rows, domain_of, rows_of

FIELDS = [
    {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m"]}},
    {"name": "place", "type": "string", "constraints": {"enum": [f"p{n}" for n in range(50)], "required": True}},
    {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 3, "required": True}},
    {"name": "cost", "type": "number", "constraints": {"minimum": 0, "maximum": 320}},
    {"name": "day", "type": "date", "constraints": {"minimum": "2024-01-01", "maximum": "2024-12-31"}},
]


def frame(seed, rows=200):
    random = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "sex": [random.choice(["f", "m", None]) for _ in range(rows)],
            "place": [f"p{min(49, int(random.exponential(8)))}" for _ in range(rows)],
            "age": random.integers(0, 4, rows),
            "cost": [None if n % 10 == 0 else float(random.uniform(0, 320)) for n in range(rows)],
            "day": [dt.date(2024, 1, 1) + dt.timedelta(days=int(random.integers(0, 366))) for _ in range(rows)],
        },
        schema_overrides={"sex": pl.String, "cost": pl.Float64},
    )


@pytest.fixture(scope="module")
def counted():
    domain = domain_of(parse_table_schema({"fields": FIELDS}))
    halves: list[Rows] = [rows_of(frame(seed), domain) for seed in (1, 2)]
    found = counts_beside(domain, halves, rows_of(frame(3, 400), domain))
    return dict(zip(domain.names, found, strict=True))


def test_ends_of_bars_are_written_without_powers_of_ten():
    field = {"name": "amount", "type": "number", "constraints": {"minimum": 0, "maximum": 20_000}}
    domain = domain_of(parse_table_schema({"fields": [field]}))
    rows = rows_of(pl.DataFrame({"amount": [1.0, 15_000.0]}), domain)
    (cells,) = counts_beside(domain, [rows, rows], rows)
    assert cells["names"][-2].endswith(" – 20000")


def test_every_row_is_in_one_bar(counted):
    for cells in counted.values():
        assert len(cells["names"]) == len(cells["real"]) == len(cells["synthetic"])
        assert sum(cells["real"]) == sum(cells["synthetic"]) == 400
        assert len(set(cells["names"])) == len(cells["names"])


def test_counts_are_those_of_the_rows(counted):
    both = pl.concat([frame(1), frame(2)])
    assert counted["sex"]["names"] == ["f", "m", MISSING]
    assert counted["sex"]["real"] == [(both["sex"] == "f").sum(), (both["sex"] == "m").sum(), both["sex"].null_count()]
    assert counted["age"]["names"] == ["0", "1", "2", "3"]
    assert counted["age"]["synthetic"] == [(frame(3, 400)["age"] == n).sum() for n in range(4)]
    assert counted["cost"]["names"][0] == "0 – 10"
    assert counted["cost"]["names"][-1] == MISSING
    assert counted["cost"]["real"][-1] == 40
    assert counted["cost"]["real"][0] == both["cost"].is_between(0, 10, closed="left").sum()


def test_rare_categories_are_one_bar_and_ranges_have_few(counted):
    assert len(counted["place"]["names"]) == MOST_CATEGORIES + 1
    assert counted["place"]["names"][-1] == REST
    assert len(counted["day"]["names"]) <= MOST_CELLS
    assert counted["day"]["names"][0].startswith("2024-01-01 – 2024-01-")
    assert counted["day"]["names"][-2].endswith("2024-12-31")


SPELLED = [
    {"name": "paid", "type": "boolean", "trueValues": ["Ja"], "falseValues": ["Nein"]},
    {"name": "rank", "type": "number", "decimalChar": ",", "constraints": {"enum": [0.5, 2], "required": True}},
    {
        "name": "cost",
        "type": "number",
        "decimals": 2,
        "decimalChar": ",",
        "groupChar": ".",
        "suffix": " €",
        "constraints": {"minimum": 0, "maximum": 4000},
    },
    {"name": "visits", "type": "integer", "groupChar": "'", "constraints": {"minimum": 0, "maximum": 63_999}},
    {
        "name": "day",
        "type": "date",
        "format": "%d.%m.%Y",
        "constraints": {"minimum": "2023-04-17", "maximum": "2023-04-18"},
    },
    {
        "name": "moment",
        "type": "datetime",
        "format": "%d.%m.%Y %H:%M",
        "timezone": "Europe/Berlin",
        "resolution": "hour",
        "constraints": {"minimum": "2023-07-01T00:00:00Z", "maximum": "2023-07-01T01:00:00Z"},
    },
]


def test_bars_are_called_as_their_column_is_spelled():
    """As charts of synthetic rows are: test_synthetic_columns.py."""
    domain = domain_of(parse_table_schema({"fields": SPELLED}))
    types = {"paid": pl.Boolean, "rank": pl.Float64, "cost": pl.Float64, "visits": pl.Int64, "day": pl.Date}
    types["moment"] = pl.Datetime
    rows = rows_of(pl.DataFrame({name: [None] for name in types}, schema=types), domain)
    names = {
        name: found["names"] for name, found in zip(domain.names, counts_beside(domain, [rows], rows), strict=True)
    }
    assert names["paid"] == ["Nein", "Ja", MISSING]
    assert names["rank"] == ["0,5", "2"]
    assert names["cost"][-2:] == ["3.875,00 € – 4.000,00 €", MISSING]
    assert names["visits"][1] == "2'000 – 3'999"
    assert names["day"] == ["17.04.2023", "18.04.2023", MISSING]
    assert names["moment"] == ["01.07.2023 02:00", "01.07.2023 03:00", MISSING]
