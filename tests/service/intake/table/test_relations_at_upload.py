"""Rows that break a relation are counted and refused; columns with a role are not stored."""

from __future__ import annotations

import random
import uuid

import pytest

from service.base.errors import InvalidFile
from service.domain.table_schema import parse_table_schema
from service.intake.table.alike import FIRST_DERIVED_PLACE, ColumnFingerprint, Match, alike, count_columns

FIELDS = [
    {"name": "id", "type": "string", "role": "identifier", "pattern": "P[0-9]{4}"},
    {"name": "note", "type": "string", "role": "free_text", "placeholder": "left out"},
    {"name": "line", "type": "integer", "role": "ignore"},
    {"name": "start", "type": "date", "constraints": {"minimum": "2019-01-01", "maximum": "2023-12-31"}},
    {"name": "end", "type": "date", "constraints": {"minimum": "2019-01-01", "maximum": "2023-12-31"}},
    {"name": "icd", "type": "string", "hierarchy": {"I": ["I10", "I20"], "J": {"J00": 3, "J01": 1}}},
    {"name": "net", "type": "number", "decimals": 2, "constraints": {"minimum": 0, "maximum": 100}},
    {"name": "tax", "type": "number", "decimals": 2, "constraints": {"minimum": 0, "maximum": 20}},
    {"name": "gross", "type": "number", "role": "derived"},
    {"name": "third", "type": "number", "decimals": 2, "role": "derived"},
    {"name": "chapter", "type": "string", "role": "derived"},
    {"name": "x", "type": "string", "constraints": {"enum": ["a", "b"]}},
    {"name": "y", "type": "string", "constraints": {"enum": ["p", "q"]}},
]
RELATIONS = [
    "start <= end",
    "net + tax = gross",
    {"column": "chapter", "by": "icd", "table": {"I10": "Heart", "I20": "Heart", "J00": "Cold"}},
    {"columns": ["x", "y"], "allowed": [["a", "p"], ["b", "q"]]},
    {"unique": ["id"]},
    "third = net / 3",
]
SCHEMA = parse_table_schema({"fields": FIELDS, "relations": RELATIONS})
GOOD = [
    "P0001,Ann said so,1,2019-01-01,2019-01-01,I10,0.10,0.20,0.30,0.03,Heart,a,p",
    'P0002,"a, b",2,2019-05-01,2020-01-01,J00,70.07,13.31,83.38,23.36,Cold,b,q',
    "P0003,,3,,2020-01-01,J01,,1.00,,,,,q",
    ",x,4,2020-01-01,,,1.00,,,0.33,,a,",
    ",x,5,2020-01-01,,XX,1.00,,,0.33,Cold,a,",
]
BREAKING = {
    1: ["start", 1, "P9,x,1,2019-01-02,2019-01-01,I10,0,0,0,0,Heart,a,p"],
    2: ["gross", 1, "P9,x,1,2019-01-02,2019-01-02,I10,0.10,0.20,0.31,0.03,Heart,a,p"],
    3: ["chapter", 2, "P9,x,1,,,J00,0,0,0,0,Heart,a,p", "P8,x,1,,,J01,0,0,0,0,Heart,a,p"],
    4: ["x", 1, "P9,x,1,,,J00,0,0,0,0,Cold,a,q"],
    5: ["id", 1, "P0001,x,1,,,J00,0,0,0,0,Cold,a,p"],
    6: ["third", 1, "P9,x,1,,,J00,1,0,1,0.34,Cold,a,p"],
}


def text(rows):
    return "\n".join([",".join(field["name"] for field in FIELDS), *rows, ""])


def test_what_holds_is_taken_in_and_only_modelled_columns_are_stored(reader):
    answer, stored = reader.read(reader.write(text(GOOD)), SCHEMA)
    assert answer["rows"] == len(GOOD)
    assert stored.columns == ["start", "end", "icd", "net", "tax", "x", "y"]
    assert stored["icd"].to_list() == ["I", "J", "J", None, None]


@pytest.mark.parametrize("number", BREAKING)
def test_rows_that_break_a_relation_are_counted(reader, says_nothing, number):
    column, count, *rows = BREAKING[number]
    with pytest.raises(InvalidFile, match=f"relation {number} of the schema") as raised:
        reader.read(reader.write(text([*GOOD, *rows])), SCHEMA)
    assert (raised.value.values["column"], raised.value.values["count"]) == (column, count)
    assert len(raised.value.values["problems"]) == 1
    says_nothing(raised.value)


def test_ids_may_be_missing_where_they_are_unique(reader):
    reader.read(reader.write(text([*GOOD, GOOD[3], GOOD[3]])), SCHEMA)


def prints(reader, rows, schema=SCHEMA):
    answer, _ = reader.read(reader.write(text(rows)), schema)
    return set(answer["fingerprints"]), {one[1] for one in answer["columns"] if 0 < one[0] < FIRST_DERIVED_PLACE}


def test_other_cells_in_columns_with_a_role_make_no_other_rows(reader):
    """Or an owner would have a second budget by changing a column that nothing depends on."""
    rows = [f"P{n:04},said {n},{n},2019-01-{n:02},2020-01-01,J00,{n}.50,1,{n + 1}.50,,Cold,a,p" for n in range(1, 29)]
    changed = [f"Q{n:04},did {n},{n * n},2019-01-{n:02},2020-01-01,J00,{n}.50,1,,,,a,p" for n in range(1, 29)]
    first, columns = prints(reader, rows)
    again, columns_again = prints(reader, changed)
    assert first & again
    assert columns == columns_again


def test_other_fine_categories_of_the_same_coarse_ones_are_the_same_column(reader):
    schema = parse_table_schema({"fields": [FIELDS[5]]})
    first, second = (
        reader.read(reader.write("\n".join(["icd", *codes, ""])), schema)[0]["columns"]
        for codes in (["I10", "J00", "J01", "XX"] * 40, ["I20", "J01", "J01", ""] * 40)
    )
    assert {one[1] for one in first if one[0]} & {one[1] for one in second if one[0]}


def test_the_same_file_under_another_choice_of_roles_is_the_same_rows(reader):
    """Each half of a file modelled by itself would be a budget for each."""
    other = [
        {"name": f["name"], "type": f["type"], "role": "ignore"}
        if f["name"] in {"start", "end", "icd", "net", "tax", "x"}
        else f
        for f in FIELDS
        if f.get("role") != "derived"
    ]
    other += [{"name": name, "type": "number", "role": "ignore"} for name in ("gross", "third", "chapter")]
    first, _ = prints(reader, GOOD)
    second, _ = prints(reader, GOOD, parse_table_schema({"fields": other}))
    assert first & second


def test_a_file_without_roles_has_the_fingerprints_it_had(reader):
    plain = parse_table_schema({"fields": FIELDS[3:5]})
    answer, _ = reader.read(reader.write("start,end\n2019-01-01,2019-01-02\n2020-01-01,2019-01-02\n"), plain)
    assert len(answer["fingerprints"]) == 1


AMOUNTS = {"net": 1000, "tax": 200, "gross": 1200}


def amounts(*, most=1000, seed=7, ids="P", rows=400):
    chance = random.Random(seed)
    pairs = [(chance.randrange(most), chance.randrange(max(2, most // 5))) for _ in range(rows)]
    lines = [f"{net},{tax},{net + tax},{ids}{place}" for place, (net, tax) in enumerate(pairs)]
    return "\n".join(["net,tax,gross,pid", *lines, ""])


def modelling(names, relation=None):
    fields = [
        {"name": name, "type": "integer", "constraints": {"minimum": 0, "maximum": most}}
        if name in names
        else {"name": name, "type": "integer", "role": "derived" if relation else "ignore"}
        for name, most in AMOUNTS.items()
    ]
    fields.append({"name": "pid", "type": "string", "role": "identifier"})
    return parse_table_schema({"fields": fields} | ({"relations": [relation]} if relation else {}))


SPLIT = modelling(("net", "tax"), "gross = net + tax")
OTHERWISE = [
    modelling(("net", "gross"), "tax = gross - net"),
    modelling(("tax", "gross"), "net = gross - tax"),
    modelling(("net", "tax", "gross")),
    modelling(("net", "gross")),
    SPLIT,
]


def columns_of(reader, content, schema):
    answer, _ = reader.read(reader.write(content), schema)
    return [ColumnFingerprint(place, bytes.fromhex(digest), bits) for place, digest, bits in answer["columns"]]


def are_alike(old, new):
    known = {one.fingerprint for one in new}
    matches = [
        Match(uuid.UUID(int=1), one.place, one.fingerprint, count_columns(old))
        for one in old
        if one.fingerprint in known
    ]
    return bool(alike(new, matches))


@pytest.mark.parametrize("schema", OTHERWISE)
def test_what_follows_from_what_opens_no_second_budget(reader, schema):
    first, second = columns_of(reader, amounts(), SPLIT), columns_of(reader, amounts(ids="Q"), schema)
    assert are_alike(first, second)
    assert are_alike(second, first)
    other = columns_of(reader, amounts(seed=8), schema)
    assert not are_alike(first, other)
    assert not are_alike(other, first)


def test_what_follows_from_what_is_no_matter_where_columns_say_little(reader):
    first, second, other = (
        columns_of(reader, amounts(most=3, seed=seed, rows=60), schema)
        for seed, schema in ((1, SPLIT), (1, OTHERWISE[0]), (2, SPLIT))
    )
    assert are_alike(first, second)
    assert not are_alike(first, other)


def test_columns_that_follow_are_no_column_of_the_number(reader):
    """Nor do they make it larger, so that fewer columns match, nor are they evidence beside what they follow from."""
    follows = [f"f{place} = {place} * net" for place in range(2, 8)]
    fields = [*modelling(("net", "tax"), "gross = net + tax").as_json()["fields"]]
    header, *lines = amounts().split()
    wide = "\n".join(
        [
            ",".join([header, *(text.split()[0] for text in follows)]),
            *(",".join([line, *(str(k * int(line.split(",")[0])) for k in range(2, 8))]) for line in lines),
            "",
        ]
    )
    fields += [{"name": text.split()[0], "type": "integer", "role": "derived"} for text in follows]
    schema = parse_table_schema({"fields": fields, "relations": ["gross = net + tax", *follows]})
    first, second = columns_of(reader, amounts(ids="Q"), modelling(("net", "tax"))), columns_of(reader, wide, schema)
    assert count_columns(second) == 2
    assert are_alike(first, second)
    assert are_alike(second, second)
    others = amounts(seed=8).split()[1:]
    same_net = [
        ",".join(
            [
                one.split(",")[0],
                tax := two.split(",")[1],
                str(int(one.split(",")[0]) + int(tax)),
                "P",
                *one.split(",")[4:],
            ]
        )
        for one, two in zip(wide.split()[1:], others, strict=True)
    ]
    third = columns_of(reader, "\n".join([wide.split()[0], *same_net, ""]), schema)
    assert not are_alike(second, third), "one of two columns, and what follows from it"
