"""Rows that a schema says there are none of: found chunk by chunk, refused by count, never quoted."""

from __future__ import annotations

import polars as pl
import pytest
from tiny_generators import tiny_sampler

from service.base.errors import InvalidFile
from service.domain.table_schema import parse_table_schema
from service.intake.ingest import ingest_table
from service.intake.limits import IngestLimits
from service.intake.sealed import SealedFile
from service.intake.table.exclusions import excluded

FIELDS = [
    {"name": "net", "type": "string", "constraints": {"enum": ["none", "slow", "fast"], "required": True}},
    {"name": "films", "type": "string", "constraints": {"enum": ["yes", "no"]}},
    {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}},
    {"name": "paid", "type": "number", "constraints": {"minimum": 0, "maximum": 100}},
    {"name": "married", "type": "boolean"},
    {"name": "seen", "type": "date", "constraints": {"minimum": "2000-01-01", "maximum": "2024-12-31"}},
    {"name": "at", "type": "datetime", "constraints": {"minimum": "2000-01-01T00:00:00Z", "maximum": "2024-12-31"}},
    {"name": "rate", "type": "integer", "constraints": {"enum": [1, 2, 4]}},
    {"name": "share", "type": "number", "constraints": {"enum": [0, 0.5, 1]}},
]
HEADER = "net,films,age,paid,married,seen,at,rate,share\n"
MARKER = 77
ROWS = [
    f"none,no,{MARKER},1.5,true,2001-02-03,2001-02-03T04:05:06,1,0.5",
    "slow,yes,14,0,false,2020-01-01,2020-01-01T00:00:00,2,0",
    "fast,,15,99.5,,2024-12-31,,4,1.0",
    "slow,no,130,100,true,,2019-12-31T23:59:59,,",
]

CASES = {
    "values of two columns": ({"net": ["none"], "films": ["no"]}, [0]),
    "no row": ({"net": ["none"], "films": ["yes"]}, []),
    "missing": ({"net": ["slow", "fast"], "films": [None]}, [2]),
    "missing or a value": ({"net": ["slow", "fast"], "films": [None, "no"]}, [2, 3]),
    "both ends of a range": ({"age": {"minimum": 14, "maximum": 15}, "net": ["slow", "fast"]}, [1, 2]),
    "what will be moved to the range's end": ({"age": {"minimum": 120}, "married": [True]}, [3]),
    "a number": ({"paid": {"minimum": 99.5}, "net": ["slow", "fast"]}, [2, 3]),
    "booleans": ({"married": [False, None], "net": ["slow", "fast"]}, [1, 2]),
    "dates": ({"seen": {"minimum": "2020-01-01"}, "net": ["slow", "fast"]}, [1, 2]),
    "moments": ({"at": {"maximum": "2019-12-31T23:59:59Z"}, "net": ["slow", "none"]}, [0, 3]),
    "whole numbers and missing": ({"rate": [4, None], "net": ["slow", "fast"]}, [2, 3]),
    "numbers": ({"share": [0, 0.5], "net": ["slow", "none"]}, [0, 1]),
    "a whole number and missing": ({"share": [1, None], "net": ["slow", "fast"]}, [2, 3]),
    "three columns": ({"rate": [1, 2], "net": ["slow", "none"], "age": {"maximum": 14}}, [1]),
}


def _schema(*exclusions):
    return parse_table_schema({"fields": FIELDS, "exclusions": list(exclusions)})


@pytest.mark.parametrize("case", CASES)
def test_rows_that_meet_all_conditions_are_found(reader, case):
    exclusion, expected = CASES[case]
    schema = _schema(exclusion)
    _, rows = reader.read(reader.write(HEADER + "\n".join(ROWS)), _schema())
    mask = rows.select(excluded(schema, schema.exclusions[0])).to_series()
    assert mask.null_count() == 0
    assert mask.arg_true().to_list() == expected


@pytest.mark.parametrize("case", CASES)
def test_a_file_with_such_a_row_is_refused(reader, case):
    exclusion, expected = CASES[case]
    path = reader.write(HEADER + "\n".join(ROWS))
    if not expected:
        reader.read(path, _schema(exclusion))
        return
    with pytest.raises(InvalidFile) as caught:
        reader.read(path, _schema({"net": ["none"], "films": ["yes"]}, exclusion))
    error = caught.value
    assert error.values["count"] == len(expected)
    assert error.values["column"] == next(iter(exclusion))
    assert "exclusion 2 of the schema" in error.detail
    assert str(MARKER) not in error.detail


def test_the_reading_process_knows_them(reader, tmp_path):
    schema = _schema({"age": {"maximum": 14}, "net": ["slow"]}, {"net": ["none"], "films": ["yes"]})
    path = reader.write(HEADER + "\n".join(ROWS))
    with (
        SealedFile.in_the_clear(path) as upload,
        pytest.raises(
            InvalidFile,
            match="1 row meets exclusion 1 of the schema, on 'age' and 'net': correct the rows or the exclusion",
        ),
    ):
        ingest_table(
            upload, schema, privacy_unit=None, limits=IngestLimits(), scratch_dir=tmp_path, fingerprint_key=bytes(32)
        )


def test_rows_are_counted_over_all_chunks(reader):
    count = 50_000
    table = pl.DataFrame({"net": ["none", "slow"] * count, "films": ["no", "yes"] * count})
    schema = parse_table_schema({"fields": FIELDS[:2], "exclusions": [{"net": ["none"], "films": ["no"]}]})
    limits = IngestLimits(line_bytes=16_384)
    with pytest.raises(InvalidFile) as caught:
        reader.read(reader.write(table), schema, limits=limits)
    assert caught.value.values["count"] == count


def test_other_problems_come_first(reader):
    bad = HEADER + "\n".join([*ROWS, "slow,yes,x,0,false,,,1,"])
    with pytest.raises(InvalidFile) as caught:
        reader.read(reader.write(bad), _schema({"net": ["none"], "films": ["no"]}))
    assert [problem["column"] for problem in caught.value.values["problems"]] == ["age", "net"]


@pytest.mark.slow
def test_synthetic_rows_may_be_uploaded_under_the_schema_they_come_from(reader):
    """The sampler and the reader mean the same by every kind of condition."""
    exclusions = [exclusion for exclusion, _ in CASES.values() if len(exclusion) == 2]
    schema = {"fields": FIELDS, "exclusions": exclusions}
    rows = "".join(tiny_sampler(schema).csv(20_000, seed=1))
    reader.read(reader.write(rows), parse_table_schema(schema))
    others = "".join(tiny_sampler({"fields": FIELDS}).csv(20_000, seed=1))
    with pytest.raises(InvalidFile) as caught:
        reader.read(reader.write(others), parse_table_schema(schema))
    assert len(caught.value.values["problems"]) == len(exclusions)
