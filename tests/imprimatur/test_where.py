"""The client takes just the conditions that the service takes: what it lets through is not refused after it is paid."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from imprimatur.errors import InvalidInput
from imprimatur.where import check_where, where_texts
from service.samples.table.base import SamplingError
from service.samples.table.conditions import Conditions
from tests.tiny_generators import tiny_sampler

AMOUNTS = {"minimum": -5000, "maximum": 5000}
DAYS = {"minimum": "2020-01-01", "maximum": "2024-12-31"}
SCHEMA = {
    "missingValues": ["", "NA"],
    "fields": [
        {"name": "plain", "type": "number", "constraints": AMOUNTS},
        {
            "name": "amount",
            "type": "number",
            "decimalChar": ",",
            "groupChar": ".",
            "suffix": " €",
            "constraints": AMOUNTS,
        },
        {
            "name": "loss",
            "type": "number",
            "negative": "parentheses",
            "prefix": "$",
            "decimals": 2,
            "constraints": AMOUNTS,
        },
        {"name": "rate", "type": "number", "decimalChar": ",", "constraints": {"enum": [1, 2.5], "required": True}},
        {"name": "rank", "type": "integer", "constraints": {"enum": [1, 2, 9007199254740993]}},
        {"name": "count", "type": "integer", "groupChar": " ", "constraints": {"minimum": 0, "maximum": 9000}},
        {"name": "day", "type": "date", "constraints": DAYS},
        {"name": "visit", "type": "date", "format": "%d.%m.%Y", "constraints": DAYS},
        {"name": "short", "type": "date", "format": "%-d %b %y", "constraints": DAYS},
        {"name": "seen", "type": "datetime", "constraints": DAYS},
        {
            "name": "local",
            "type": "datetime",
            "format": "%m/%d/%Y %I:%M %p %Z",
            "timezone": "Europe/Berlin",
            "constraints": DAYS,
        },
        {"name": "clock", "type": "datetime", "timezone": "Europe/Berlin", "constraints": DAYS},
        {"name": "member", "type": "boolean", "trueValues": ["Yes", "Y"], "falseValues": ["No", "N"]},
        {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m", "<=50K", "a&b"]}},
        {"name": "icd", "type": "string", "hierarchy": {"I": ["I10", "I20"], "J": {"J00": 3}}},
        {"name": "city", "type": "string", "role": "derived"},
        {"name": "id", "type": "string", "role": "identifier"},
    ],
    "relations": [{"column": "city", "by": "icd", "table": {"I10": "Wien", "J00": "Graz"}}],
}
COLUMNS = [field["name"] for field in SCHEMA["fields"]]
VALUES = [
    *(
        "3",
        "2.5",
        "2,5",
        "1.234,56",
        "1.234,56 €",
        "2023-04-17T10:00:30+02:00",
        "-1.234,5",
        "1.234",
        "1,234.56",
        "($5.00)",
        "$1,234.5",
        "(5)",
        "1 234",
        "1e3",
        "nan",
    ),
    *(
        "9999",
        "-9999",
        "9007199254740993",
        "9007199254740992",
        "2.0",
        "02",
        " 3 ",
        '"3"',
        "",
        "NA",
        "x",
        "true",
        "Yes",
        "Y",
        "ja",
    ),
    *(
        "2023-04-17",
        "17.04.2023",
        "7.4.2023",
        "17/04/2023",
        "31.02.2023",
        "17 Apr 23",
        "7 apr 2023",
        "2019-12-31",
        "20230417",
    ),
    *(
        "2023-04-17T10:00:00",
        "2023-04-17 10:00",
        "2023-04-17T10:00:00+02:00",
        "2023-03-26T02:30:00",
        "04/17/2023 10:00 AM CEST",
    ),
    *(
        "04/17/2023 13:00 AM CET",
        "04/17/2023 10:00 AM EST",
        "03/26/2023 02:30 AM CET",
        "2035-01-01",
        "f",
        "m",
        "fm",
        "<=50K",
        "a&b",
        "I",
        "I20",
    ),
    *("XX", "Wien", "Paris"),
]
SIGNS = ["=", "!=", "<", "<=", ">", ">=", ":", " = "]


@pytest.fixture(scope="module")
def conditions():
    return Conditions(tiny_sampler(SCHEMA).columns)


def is_taken(conditions, where):
    """By the service."""
    try:
        for text in where_texts(where):
            conditions.selections(text)
    except SamplingError as error:
        return str(error)
    return ""


def is_let_through(where):
    """By the client."""
    try:
        check_where(where, SCHEMA)
    except InvalidInput as refusal:
        return refusal.detail
    return ""


def is_open(refused):
    """Which numbers a range without decimals has, counts decide."""
    return "between two of its values; it holds numbers" in refused


@pytest.mark.slow
@pytest.mark.parametrize("column", COLUMNS)
def test_client_and_service_take_the_same_values(conditions, column):
    wheres = [f"{column}{sign}{value}" for sign in SIGNS for value in VALUES]
    wheres += [f"{column} in [{value}]" for value in VALUES if "," not in value]
    wheres += [f"{column} missing", f"{column} not missing", f"{column} is missing"]
    wheres += [{column: value} for value in (3, 2.5, True, None, dt.date(2023, 4, 17), [1, 2], {"minimum": "2,5"})]
    wheres += [{column: {word: value}} for word in ("minimum", "exclusiveMaximum", "not") for value in VALUES]
    differing = {
        str(where): (refused, by_client)
        for where in wheres
        if bool(refused := is_taken(conditions, where)) != bool(by_client := is_let_through(where))
        and not is_open(refused)
    }
    assert not differing


@given(
    st.lists(
        st.tuples(st.sampled_from(COLUMNS), st.sampled_from(SIGNS), st.sampled_from(VALUES)), min_size=1, max_size=3
    )
)
@settings(max_examples=150, deadline=None)
def test_what_the_service_takes_of_several_conditions_the_client_lets_through(conditions, parts):
    where = "&".join(f"{column}{sign}{value}" for column, sign, value in parts)
    assert is_taken(conditions, where) or not is_let_through(where)


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("plain>=1.234,56", "'1.234,56' is not a value of a column of type number; write it like 1234.5"),
        ("amount>=1,234.56", "write it like 1234.5 or 1.234,5 €, as the schema spells it"),
        ("day>=17.04.2023", "write it like 2024-03-17"),
        ("visit>=17/04/2023", "write it like 2024-03-17 or 17.03.2024, as the schema spells it"),
        ({"day": dt.datetime(2023, 4, 17)}, "write it like 2024-03-17"),  # noqa: DTZ001 - of no zone
        ("sex>=f", "this column holds categories"),
        ("member:Y", "its values are 'false', 'true', 'No', 'Yes'"),
        ("sex=NA", "write sex missing"),
    ],
)
def test_a_refusal_says_how_to_write_it(where, why):
    assert why in is_let_through(where)
