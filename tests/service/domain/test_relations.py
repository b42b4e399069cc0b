"""Roles and relations are checked for sense when they are declared, in sentences."""

from __future__ import annotations

import json

import pytest

from service.base.errors import InvalidSchema
from service.domain.grids import shape_of
from service.domain.row_config import written_to_config
from service.domain.table_schema import parse_table_schema

FIELDS = [
    {"name": "id", "type": "string", "role": "identifier", "pattern": "P[0-9]{6}"},
    {"name": "start", "type": "date", "constraints": {"minimum": "2019-01-01", "maximum": "2023-12-31"}},
    {"name": "end", "type": "date", "constraints": {"minimum": "2019-01-01", "maximum": "2023-12-31"}},
    {"name": "days on leave", "type": "integer", "constraints": {"minimum": 0, "maximum": 30}},
    {"name": "icd", "type": "string", "hierarchy": {"I": ["I10", "I20"], "J": {"J00": 3, "J01": 1}}},
    {"name": "net", "type": "number", "decimals": 2, "constraints": {"minimum": 0, "maximum": 100}},
    {"name": "open", "type": "number", "constraints": {"minimum": 0, "maximum": 100}},
    {"name": "must", "type": "integer", "constraints": {"minimum": 1, "maximum": 20, "required": True}},
    {"name": "made", "type": "number", "decimals": 2, "constraints": {"minimum": 0, "maximum": 500}},
    {"name": "city", "type": "string", "constraints": {"enum": ["Graz", "Wien"]}},
    {"name": "flag", "type": "boolean", "constraints": {"required": True}},
]


def schema(*relations, fields=(), target=None):
    document = {"fields": [*FIELDS, *fields], "relations": list(relations)}
    return parse_table_schema(document if target is None else document | {"target": target})


@pytest.mark.parametrize(
    ("relation", "derived"),
    [
        ("start <= end", None),
        ("start < end", None),
        ("end >= start + `days on leave`", None),
        ("start <= end <= '2023-06-30'", None),
        ("made = net * 1.19", "made"),
        ("net * 1.19 = made", "made"),
        ("made = net / must", "made"),
        ("made = max(net, 3) + abs(-must) - min(net, must)", "made"),
        ("`days on leave` = made", "days on leave"),
        ("year(start) >= 2019", None),
        ("open <= made", None),
        ("must**2 <= made", None),
        ({"column": "city", "by": ["icd", "flag"], "table": [["I10", True, "Graz"]]}, "city"),
        ({"columns": ["city", "flag"], "allowed": [["Graz", True], [None, False]]}, None),
        ({"unique": ["id", "start"]}, None),
    ],
)
def test_what_makes_sense_is_taken(relation, derived):
    declared = schema(relation)
    names = [f["name"] for f in FIELDS if f["name"] not in {"id", derived}]
    assert list(declared.modelled.names) == names
    assert list(shape_of(declared, numeric_bins=8).cells) == names
    assert shape_of(declared, numeric_bins=8).cells["icd"] == 3
    assert parse_table_schema(json.loads(json.dumps(declared.as_json()))) == declared
    json.dumps(written_to_config(declared))


@pytest.mark.parametrize(
    ("relation", "said"),
    [
        ("start <= nothing", "there is no field 'nothing'"),
        ("start <= net", "a date cannot be compared with a number"),
        ("start + end <= end", "has no meaning"),
        ("city <= net", "'city' is not a number"),
        ("id <= net", "'id' is not a number"),
        ("net", "is not a relation"),
        ("net <=", "cannot be read"),
        ("1 <= 2", "compares no column"),
        ("net <= 'a'", "is not a date or time"),
        ("made = net / `days on leave`", "must be above 0"),
        ("made = open + net", "declare decimals for open"),
        ("made = made + 1", "in a circle"),
        ("net + 1 = made + 2", "one column alone"),
        ("must = `days on leave`", "may be missing"),
        ("start = net", "is date, but its expression a number"),
        ("city = net", "follows from an expression, so it is a number"),
        ("made = net**4 * net**4 * net**4", "too large"),
        ("net.real < 1", "has only columns"),
        ("__import__('os') < 1", "has only columns"),
        ("(lambda: 1)() < net", "has only columns"),
        ("[net][0] < 1", "has only columns"),
        ("net < 1e999", "below 2**62"),
        ("(((net**4)**4)**4)**4 < 1", "at most 200 parts"),
        ("-" * 1_500 + "net < 1", "nested too deeply"),
        ("(" * 900 + "net" + ")" * 900 + " < 1", "cannot be read"),
        ({"column": "city", "by": "net", "table": {"1": "Graz"}}, "has a range"),
        ({"column": "city", "by": "icd", "table": {"X": "Graz"}}, "'X' is not a declared value of icd"),
        ({"column": "city", "by": "icd", "table": {"I10": "Linz"}}, "'Linz' is not a declared value of city"),
        ({"column": "city", "by": "icd", "table": [["I10", "Graz"], ["I10", "Wien"]]}, "twice"),
        ({"column": "flag", "by": "icd", "table": {"I10": True}}, "may be missing"),
        ({"columns": ["city", "net"], "allowed": [["Graz", 1]]}, "'net' is not a column with declared categories"),
        ({"columns": ["city", "flag"], "allowed": [["Graz", None]]}, "required"),
        ({"columns": ["city", "flag"], "allowed": [["Graz"]]}, "has 2 values"),
        ({"unique": ["start"]}, "identifier"),
    ],
)
def test_what_makes_none_is_refused_in_a_sentence(relation, said):
    with pytest.raises(InvalidSchema) as raised:
        schema(relation)
    assert said in raised.value.detail
    if isinstance(relation, str):
        assert "relation" in raised.value.detail


def test_two_relations_for_one_column_and_circles_are_refused():
    with pytest.raises(InvalidSchema, match="already"):
        schema("made = net + 1", "made = net + 2")
    with pytest.raises(InvalidSchema, match="circle"):
        schema("made = net + 1", "net = made - 1")


def test_derived_columns_may_follow_from_derived_ones():
    fields = [
        {"name": "stay", "type": "integer", "role": "derived"},
        {"name": "cost", "type": "number", "role": "derived"},
    ]
    declared = schema("cost = stay * 1.5", "stay = end - start", "cost <= 900", fields=fields)
    assert [one.column for one in declared.understood.derived] == ["stay", "cost"]
    assert {field.name: field for field in declared.understood.read()}["stay"].bounds == (-1825, 1825)


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ({"name": "a", "type": "number", "role": "identifier"}, "string or an integer"),
        ({"name": "a", "type": "string", "role": "identifier", "pattern": "P[0-9]+"}, "uuid"),
        ({"name": "a", "type": "string", "role": "identifier", "pattern": "(a|b)"}, "uuid"),
        ({"name": "a", "type": "integer", "role": "identifier", "pattern": "[0-9]{3}"}, "must not begin with 0"),
        ({"name": "a", "type": "integer", "role": "identifier", "pattern": "uuid"}, "digits"),
        ({"name": "a", "type": "string", "pattern": "P[0-9]"}, "identifier"),
        ({"name": "a", "type": "string", "role": "ignore", "placeholder": "x"}, "free_text"),
        ({"name": "a", "type": "integer", "role": "free_text"}, "string"),
        ({"name": "a", "type": "string", "role": "derived"}, "write a relation"),
        ({"name": "a", "type": "string", "hierarchy": {"I": ["x"], "J": ["x"]}}, "one coarse one only"),
        ({"name": "a", "type": "string", "hierarchy": {"I": []}}, "at least one"),
        ({"name": "a", "type": "string", "hierarchy": {"I": {"x": 0}}}, "hierarchy"),
        (
            {"name": "a", "type": "string", "hierarchy": {"I": ["x"]}, "constraints": {"enum": ["x"]}},
            "either enum or hierarchy",
        ),
    ],
)
def test_roles_that_make_no_sense_are_refused(field, said):
    with pytest.raises(InvalidSchema) as raised:
        schema(fields=[field])
    assert said in raised.value.detail


def test_only_what_is_modelled_is_excluded_or_predicted():
    fields = [{"name": "who", "type": "string", "role": "ignore"}]
    with pytest.raises(InvalidSchema, match="not modelled, as it has a role"):
        schema(fields=fields, target="who")
    looked_up = {"column": "chapter", "by": "icd", "table": {"I10": "Heart"}}
    with pytest.raises(InvalidSchema, match=r"looked up in a table: choose 'icd'.*or take its relation away"):
        schema(looked_up, fields=[{"name": "chapter", "type": "string", "role": "derived"}], target="chapter")
    document = {"fields": [*FIELDS, *fields], "exclusions": [{"who": ["x"], "flag": [True]}]}
    with pytest.raises(InvalidSchema, match="has the role ignore"):
        parse_table_schema(document)
    with pytest.raises(InvalidSchema, match="at least one field"):
        parse_table_schema({"fields": fields})
    assert schema(target="icd").modelled.field("icd").categories == ("I", "J")


def test_a_schema_without_the_new_words_is_stored_as_before():
    plain = parse_table_schema({"fields": FIELDS[1:4]})
    assert plain.modelled is plain
    assert set(plain.as_json()) == {"fields"}
    assert written_to_config(plain) == {}


@pytest.mark.parametrize("relation", [{"holds": "a <= b"}, 3, {"columns": ["a"], "allowed": 5}])
def test_a_relation_of_no_form_is_answered_with_the_forms(relation):
    fields = [{"name": name, "type": "integer", "constraints": {"minimum": 0, "maximum": 9}} for name in "ab"]
    with pytest.raises(InvalidSchema, match=r"relation 1: write a text like .start <= end.") as caught:
        parse_table_schema({"fields": fields, "relations": [relation]})
    assert "constrained" not in str(caught.value)


def nested(depth):
    text = "must"
    for _ in range(depth):
        text = f"max({text}, made)"
    return text


@pytest.mark.parametrize(
    ("relation", "sentence"),
    [
        ("must <= " + "9" * 400, "below 2**62"),
        ("must <= 0x" + "f" * 1900, "below 2**62"),
        (f"must <= {2**62}", "below 2**62"),
        ("must <= 1e999", "below 2**62"),
        (f"{nested(12)} <= 600", "too many operations"),
        (f"made = {nested(24)}", "too many operations"),
        ("month(start + year(start + year(start))) <= 12", "too many operations"),
    ],
)
def test_what_cannot_be_computed_is_refused_in_a_sentence(relation, sentence):
    with pytest.raises(InvalidSchema, match=sentence.replace("*", r"\*")):
        schema(relation)


@pytest.mark.parametrize(
    "relation", ["max(max(max(must, made), net), must) <= 600", "year(start) * 12 + month(end) >= must"]
)
def test_what_is_nested_a_little_is_computed(relation):
    assert schema(relation).understood.inequalities


def test_values_of_a_condition_are_looked_for_among_the_declared_ones_by_type():
    numbers = schema(fields=[{"name": "n", "type": "integer", "constraints": {"enum": [0, 1, 2]}}])
    n, flag = (next(field for field in numbers.fields if field.name == name) for name in ("n", "flag"))
    n.check_condition((1, 2))
    flag.check_condition((True,))
    for field, value in ((n, True), (n, 1.0), (n, 3), (flag, 1), (flag, 1.0)):
        with pytest.raises(ValueError, match="is not a declared value"):
            field.check_condition((value,))


class _Value(str):
    """Counts comparisons."""

    __slots__ = ()
    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        _Value.compared += 1
        return str.__eq__(self, other)


def test_a_long_condition_is_not_compared_with_every_declared_value():
    values = [f"v{place}" for place in range(1_000)]
    field = schema(fields=[{"name": "v", "type": "string", "constraints": {"enum": values}}]).fields[-1]
    field.check_condition(tuple(map(_Value, values)))
    assert _Value.compared < 10 * len(values)
