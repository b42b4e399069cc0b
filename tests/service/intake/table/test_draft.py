from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from service.base.errors import InvalidFile
from service.domain.table_schema import parse_table_schema
from service.intake.table.draft import draft_schema

EXAMPLES = Path(__file__).parents[4] / "examples"

ADULT = """\
age, workclass, fnlwgt, education-num, sex, capital-gain, hours, income
39, State-gov, 77516, 13, Male, 2174, 40, <=50K
50, Self-emp-not-inc, 83311, 13, Male, 0, 13, <=50K
38, Private, 215646, 9, Male, 0, 40, <=50K
53, ?, 234721, 7, Male, 0, 40, <=50K
28, Private, 338409, 13, Female, 0, 40, <=50K
37, Private, 284582, 14, Female, 0, 40, <=50K
49, ?, 160187, 5, Female, 0, 16, <=50K
52, Self-emp-not-inc, 209642, 9, Male, 0, 45, >50K
31, Private, 45781, 14, Female, 14084, 50, >50K
42, Private, 159449, 13, Male, 5178, 40, >50K
"""


def _fields(draft: dict) -> dict[str, dict]:
    return {field["name"]: field for field in draft["fields"] if "role" not in field}


def test_poker_hand():
    draft = draft_schema(EXAMPLES / "poker_hand.csv")
    declared = parse_table_schema(json.loads((EXAMPLES / "poker_hand.schema.json").read_text()))
    drafted = parse_table_schema(json.loads(json.dumps(draft)))
    assert drafted.names == declared.names
    assert [f.constraints for f in drafted.fields] == [f.constraints for f in declared.fields]


def test_a_table_like_adult(reader):
    path = reader.write(ADULT)
    draft = draft_schema(path)
    schema = parse_table_schema(json.loads(json.dumps(draft)))
    fields = _fields(draft)
    assert fields["age"]["constraints"] == {"minimum": 20, "maximum": 60, "required": True}, "each age is of one row"
    assert fields["workclass"]["constraints"] == {"enum": ["Private", "Self-emp-not-inc"]}
    assert fields["income"]["constraints"]["enum"] == ["<=50K", ">50K"]
    assert draft["missingValues"] == ["", "?"]
    answer, canonical = reader.read(path, schema)
    assert answer["notices"] == [
        "Column 'workclass': 2 cells are read as missing: their text is among missingValues.",
        "Column 'workclass': 1 cell is not among the enum's values and became missing.",
    ], "one that a single row has is not listed"
    assert canonical["workclass"].null_count() == 3


def test_it_says_that_it_comes_from_the_data():
    draft = draft_schema(EXAMPLES / "poker_hand.csv")
    assert "made by reading the private data" in draft["description"]
    assert "publicly known" in draft["description"]
    for field in draft["fields"]:
        assert "DRAFT" in field["description"]


def test_it_says_that_required_and_the_missing_values_were_read_from_rows_too(reader):
    """An accepted upload certifies them of every row, so they must be known without the rows."""
    draft = draft_schema(reader.write("full,gaps\n" + "red,1\nred,\ngreen,2\n" * 9))
    assert "read from the rows, and so were `required` and `missingValues`" in draft["description"]
    assert "accepted says that every row meets its schema" in draft["description"]
    full, gaps = draft["fields"]
    assert full["constraints"]["required"] is True
    assert "(`required`) was read from the rows" in full["description"]
    assert "required" not in gaps["constraints"]
    assert "required" not in gaps["description"]


def test_every_kind_of_column(reader):
    frame = pl.DataFrame(
        {
            "flag": ["true", "false"] * 50,
            "one": [7] * 100,
            "many": [i * 37 for i in range(100)],
            "real": [i / 7 for i in range(100)],
            "day": [f"20{i % 30:02}-06-15" for i in range(100)],
            "time": [f"20{i % 30:02}-06-15T12:30:00" for i in range(100)],
            "town": ["Ulm", "Bern"] * 50,
            "name": [f"person {i}" for i in range(100)],
            "empty": [""] * 100,
        }
    )
    frame = pl.concat([frame, frame.with_columns(name=pl.lit("another ") + pl.col("name"))])
    for parquet in (False, True):
        draft = draft_schema(reader.write(frame, parquet=parquet))
        schema = parse_table_schema(json.loads(json.dumps(draft)))
        fields = _fields(draft)
        assert {name: field["type"] for name, field in fields.items()} == {
            "flag": "boolean",
            "one": "integer",
            "many": "integer",
            "real": "number",
            "day": "date",
            "time": "datetime",
            "town": "string",
        }
        assert fields["one"]["constraints"]["enum"] == [7]
        assert (fields["many"]["constraints"]["minimum"], fields["many"]["constraints"]["maximum"]) == (0, 4000)
        assert (fields["real"]["constraints"]["minimum"], fields["real"]["constraints"]["maximum"]) == (0.0, 20.0)
        assert fields["day"]["constraints"]["maximum"] == "2029-12-31"
        assert "'name' (its name says that it points to a person); 'empty' (it is empty)" in draft["description"]
        kept = frame.select(schema.names)
        assert reader.read(reader.write(kept, parquet=parquet), schema)[0]["notices"] == []


@pytest.mark.parametrize("parquet", [False, True])
def test_numbers_with_digits_after_the_point(reader, parquet):
    """Few that rows share are categories, others have as many decimals as they are written with."""
    places = range(400)
    frame = pl.DataFrame(
        {
            "age": [(17.5, 22.0, 27.0)[i % 3] for i in places],
            "price": [i % 50 + 0.99 for i in places],
            "share": [i / 700 for i in places],
            "tiny": [(i % 50 + 1) * 1e-9 for i in places],
        }
    )
    draft = draft_schema(reader.write(frame, parquet=parquet))
    fields = _fields(draft)
    parse_table_schema(json.loads(json.dumps(draft)))
    assert fields["age"]["constraints"] == {"enum": [17.5, 22.0, 27.0], "required": True}
    assert {name: field.get("decimals") for name, field in fields.items()} == {
        "age": None if parquet else 1,
        "price": 2,
        "share": None,
        "tiny": None,
    }
    assert "decimals" in fields["price"]["description"]
    few = _fields(draft_schema(reader.write(frame[:30], parquet=parquet)))
    assert (few["age"]["constraints"]["minimum"], few["age"]["decimals"]) == (17.0, 1)


@pytest.mark.parametrize(
    ("low", "high", "bounds"),
    [(0.1, 0.7, (0.1, 0.7)), (0.12, 0.78, (0.1, 0.8)), (-3.2, 47.0, (-10.0, 50.0)), (1e-7, 2e-7, (1e-7, 2e-7))],
)
def test_bounds_are_rounded_outwards(low, high, bounds, reader):
    step = (high - low) / 29
    cells = [repr(low), *(repr(low + i * step) for i in range(1, 29)), repr(high)]
    constraints = draft_schema(reader.write("x\n" + "\n".join(cells)))["fields"][0]["constraints"]
    assert (constraints["minimum"], constraints["maximum"]) == pytest.approx(bounds)
    assert constraints["minimum"] <= low
    assert constraints["maximum"] >= high


def test_large_close_numbers_have_bounds_that_differ(reader):
    cells = [str(1_700_000_000_000 + i) for i in range(30)]
    draft = draft_schema(reader.write("x\n" + "\n".join(cells)))
    parse_table_schema(draft)


def test_what_is_no_table(reader):
    with pytest.raises(InvalidFile):
        draft_schema(reader.write("a\n" + "\n".join(f"text {i}" for i in range(500))))
    with pytest.raises(InvalidFile):
        draft_schema(reader.write(b""))
