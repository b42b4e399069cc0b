"""The declared schema: what is accepted, and that every refusal names the field and the rule."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.base.errors import InvalidSchema
from service.domain.field_schema import MAX_CATEGORIES
from service.domain.table_schema import MAX_FIELDS, parse_table_schema

EXAMPLES = Path(__file__).parents[3] / "examples"


def _field(kind: str, *, name: str = "x", constraints: dict | None = None, **more) -> dict:
    return {"name": name, "type": kind, "constraints": constraints or {}, **more}


GOOD = {
    "boolean": _field("boolean"),
    "string enum": _field("string", constraints={"enum": ["a", "b"], "required": True}),
    "integer enum": _field("integer", constraints={"enum": [1, -(2**63), 2**63 - 1]}),
    "number enum": _field("number", constraints={"enum": [1, 2.5]}),
    "integer range": _field("integer", constraints={"minimum": 0, "maximum": 9}),
    "whole floats as bounds": _field("integer", constraints={"minimum": 0.0, "maximum": 9.0}),
    "number range": _field("number", constraints={"minimum": -0.5, "maximum": 2**53}),
    "bins": _field("number", constraints={"minimum": 0, "maximum": 1}, bins=10),
    "edges": _field("integer", constraints={"minimum": 0, "maximum": 10}, edges=[0, 3, 10]),
    "date": _field("date", constraints={"minimum": "2000-01-01", "maximum": "2024-02-29"}),
    "datetime": _field("datetime", constraints={"minimum": "2000-01-01", "maximum": "2024-02-29T12:00:00+02:00"}),
    "every year": _field("datetime", constraints={"minimum": "0001-01-01T00:00:00+23:00", "maximum": "9999-12-31"}),
    "words": _field("boolean", title="t", description="d", example=5, rdfType="http://x"),
}

BAD_FIELDS = {
    "open text": _field("string"),
    "open integer": _field("integer"),
    "half-open number": _field("number", constraints={"minimum": 0}),
    "open date": _field("date"),
    "empty enum": _field("string", constraints={"enum": []}),
    "repeated enum": _field("string", constraints={"enum": ["a", "a"]}),
    "repeated number in enum": _field("number", constraints={"enum": [1, 1.0]}),
    "too many categories": _field("integer", constraints={"enum": list(range(MAX_CATEGORIES + 1))}),
    "number in a text enum": _field("string", constraints={"enum": ["a", 1]}),
    "text in an integer enum": _field("integer", constraints={"enum": [1, "2"]}),
    "fraction in an integer enum": _field("integer", constraints={"enum": [1, 2.5]}),
    "boolean in an integer enum": _field("integer", constraints={"enum": [1, True]}),
    "NaN in an enum": _field("number", constraints={"enum": [1.0, float("nan")]}),
    "infinity in an enum": _field("number", constraints={"enum": [1.0, float("inf")]}),
    "huge integer in an enum": _field("integer", constraints={"enum": [2**63]}),
    "huge number in an enum": _field("number", constraints={"enum": [10**400]}),
    "NUL in an enum": _field("string", constraints={"enum": ["a\x00"]}),
    "surrogate in an enum": _field("string", constraints={"enum": ["\ud800"]}),
    "enum of booleans": _field("boolean", constraints={"enum": [True]}),
    "enum of dates": _field("date", constraints={"enum": ["2000-01-01"]}),
    "enum and range": _field("integer", constraints={"enum": [1], "minimum": 0, "maximum": 2}),
    "range of a boolean": _field("boolean", constraints={"minimum": 0, "maximum": 1}),
    "bounds the wrong way round": _field("integer", constraints={"minimum": 9, "maximum": 0}),
    "equal bounds": _field("integer", constraints={"minimum": 9, "maximum": 9}),
    "NaN bound": _field("number", constraints={"minimum": 0, "maximum": float("nan")}),
    "infinite bound": _field("number", constraints={"minimum": 0, "maximum": float("inf")}),
    "bound beyond 2^53": _field("integer", constraints={"minimum": 0, "maximum": 2**53 + 1}),
    "bound of 400 digits": _field("integer", constraints={"minimum": 0, "maximum": 10**400}),
    "fractional bound": _field("integer", constraints={"minimum": 0.5, "maximum": 9}),
    "text bound": _field("number", constraints={"minimum": "0", "maximum": "9"}),
    "boolean bound": _field("number", constraints={"minimum": False, "maximum": True}),
    "not a date": _field("date", constraints={"minimum": "\ud800", "maximum": "2024-02-30"}),
    "number as date": _field("date", constraints={"minimum": 0, "maximum": "2024-01-01"}),
    "unknown constraint": _field("integer", constraints={"minimum": 0, "maximum": 9, "pattern": "x"}),
    "unknown property": _field("boolean", colour="red"),
    "unknown type": _field("geopoint"),
    "no bins": _field("number", constraints={"minimum": 0, "maximum": 1}, bins=0),
    "too many bins": _field("number", constraints={"minimum": 0, "maximum": 1}, bins=2_000),
    "bins and edges": _field("number", constraints={"minimum": 0, "maximum": 1}, bins=1, edges=[0, 1]),
    "edges that fall": _field("number", constraints={"minimum": 0, "maximum": 2}, edges=[0, 2, 1, 2]),
    "NaN edge": _field("number", constraints={"minimum": 0, "maximum": 2}, edges=[0, float("nan"), 2]),
    "edges beside the bounds": _field("number", constraints={"minimum": 0, "maximum": 2}, edges=[0, 1]),
    "edges of dates": _field("date", constraints={"minimum": "2000-01-01", "maximum": "2001-01-01"}, edges=[0, 1]),
    "edges of a boolean": _field("boolean", edges=[0, 1]),
    "empty name": _field("boolean", name=""),
    "long name": _field("boolean", name="x" * 201),
    "name with a line end": _field("boolean", name="a\nb"),
    "name with a space before": _field("boolean", name=" a"),
    "surrogate name": _field("boolean", name="\ud800"),
    "no field": 5,
}

BAD_DOCUMENTS = [
    None,
    [],
    "x",
    5,
    {},
    {"fields": []},
    {"fields": {}},
    {"fields": [GOOD["boolean"], GOOD["boolean"]]},
    {"fields": [_field("boolean", name=f"x{i}") for i in range(MAX_FIELDS + 1)]},
    {"fields": [GOOD["boolean"]], "missingValues": "NA"},
    {"fields": [GOOD["boolean"]], "missingValues": [5]},
    {"fields": [GOOD["boolean"]], "missingValues": ["x"] * 21},
    {"fields": [GOOD["boolean"]], "more": 1},
]


@pytest.mark.parametrize("case", GOOD)
def test_good_fields_keep_their_declaration(case):
    schema = parse_table_schema({"fields": [GOOD[case]]})
    again = parse_table_schema(json.loads(json.dumps(schema.as_json())))
    assert again.as_json() == schema.as_json()
    assert schema.names == ("x",)
    assert schema.field("x") == schema.fields[0]
    assert schema.field("y") is None


@pytest.mark.parametrize("case", BAD_FIELDS)
def test_bad_fields_are_refused_by_name(case):
    with pytest.raises(InvalidSchema) as caught:
        parse_table_schema({"fields": [GOOD["boolean"] | {"name": "first"}, BAD_FIELDS[case]]})
    assert caught.value.values["where"].startswith("fields.1")
    json.dumps(caught.value.values, ensure_ascii=False).encode()
    caught.value.detail.encode()


@pytest.mark.parametrize("document", BAD_DOCUMENTS, ids=range(len(BAD_DOCUMENTS)))
def test_bad_documents_are_refused(document):
    with pytest.raises(InvalidSchema):
        parse_table_schema(document)


EXCLUDABLE = [
    _field("string", name="net", constraints={"enum": ["none", "slow", "fast"], "required": True}),
    _field("string", name="films", constraints={"enum": ["yes", "no"]}),
    _field("integer", name="age", constraints={"minimum": 0, "maximum": 120, "required": True}),
    _field("date", name="seen", constraints={"minimum": "2000-01-01", "maximum": "2024-02-29"}),
    _field("boolean", name="married", constraints={"required": True}),
    _field("number", name="rate", constraints={"enum": [1, 2.5]}),
    _field("integer", name="class", constraints={"enum": [1, 2]}),
]
GOOD_EXCLUSIONS = {
    "values": {"net": ["none"], "films": ["yes", "no"]},
    "missing": {"net": ["slow", "fast"], "films": [None]},
    "a range and a boolean": {"age": {"maximum": 14}, "married": [True]},
    "a date and three columns": {"seen": {"minimum": "2020-01-01"}, "rate": [2.5, None], "net": ["fast"]},
    "missing of a range": {"seen": [None], "net": ["slow"]},
    "beyond the end of a range": {"age": {"minimum": 100, "maximum": 900}, "rate": [1]},
}
BAD_EXCLUSIONS = {
    "one column": {"net": ["none"]},
    "no such column": {"net": ["none"], "tv": ["yes"]},
    "undeclared value": {"net": ["none"], "films": ["maybe"]},
    "no value": {"net": ["none"], "films": []},
    "a value twice": {"net": ["none"], "films": ["yes", "yes"]},
    "one for true": {"net": ["none"], "married": [1]},
    "true for one": {"net": ["none"], "rate": [True]},
    "a fraction for a whole number": {"net": ["none"], "class": [1.0]},
    "missing where it is required": {"net": [None], "films": ["yes"]},
    "values of a range": {"age": [14], "married": [True]},
    "a range of values": {"net": {"minimum": "none"}, "married": [True]},
    "an open range": {"age": {}, "married": [True]},
    "an empty range": {"age": {"minimum": 20, "maximum": 10}, "married": [True]},
    "beyond the range": {"age": {"minimum": 121}, "married": [True]},
    "a range of text": {"age": {"minimum": "x"}, "married": [True]},
    "another word": {"age": {"min": 3}, "married": [True]},
    "no object": ["net", "films"],
}


@pytest.mark.parametrize("case", GOOD_EXCLUSIONS)
def test_exclusions_keep_their_declaration(case):
    document = {"fields": EXCLUDABLE, "exclusions": [GOOD_EXCLUSIONS[case]]}
    schema = parse_table_schema(document)
    assert json.loads(json.dumps(schema.as_json()))["exclusions"] == document["exclusions"]
    assert parse_table_schema(schema.as_json()) == schema


@pytest.mark.parametrize("case", BAD_EXCLUSIONS)
def test_exclusions_that_mean_nothing_are_refused(case):
    with pytest.raises(InvalidSchema, match="exclusion"):
        parse_table_schema({"fields": EXCLUDABLE, "exclusions": [GOOD_EXCLUSIONS["values"], BAD_EXCLUSIONS[case]]})


def test_bounds_are_numbers():
    bounds = {
        name: parse_table_schema({"fields": [GOOD[name]]}).fields[0].bounds for name in ("date", "datetime", "bins")
    }
    assert bounds == {"date": (10957.0, 19782.0), "datetime": (946684800.0, 1709200800.0), "bins": (0.0, 1.0)}


def test_the_example_is_declared_completely():
    document = json.loads((EXAMPLES / "poker_hand.schema.json").read_text())
    schema = parse_table_schema(document)
    header = (EXAMPLES / "poker_hand.csv").read_text().partition("\n")[0]
    assert ",".join(schema.names) == header
    assert schema.as_json() == document


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=6,
)


@settings(deadline=None)
@given(
    kind=st.sampled_from(["string", "integer", "number", "boolean", "date", "datetime"]),
    constraints=st.fixed_dictionaries(
        {}, optional={"enum": json_values, "minimum": json_values, "maximum": json_values, "required": json_values}
    ),
    bins=json_values,
)
def test_any_json_is_accepted_or_refused(kind, constraints, bins):
    try:
        parse_table_schema({"fields": [{"name": "x", "type": kind, "constraints": constraints, "bins": bins}]})
    except InvalidSchema:
        return
