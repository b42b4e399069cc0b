"""What is accepted, and what it becomes."""

from __future__ import annotations

import csv
import datetime as dt
import io
from decimal import Decimal

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.domain.privacy_unit import PrivacyUnit
from service.domain.table_schema import parse_table_schema
from service.intake.limits import IngestLimits

EVERY_TYPE = parse_table_schema(
    {
        "fields": [
            {"name": "whole", "type": "integer", "constraints": {"minimum": -(2**53), "maximum": 2**53}},
            {"name": "real", "type": "number", "constraints": {"minimum": -1e9, "maximum": 1e9}},
            {"name": "flag", "type": "boolean"},
            {"name": "day", "type": "date", "constraints": {"minimum": "0001-01-01", "maximum": "9999-12-31"}},
            {"name": "time", "type": "datetime", "constraints": {"minimum": "1900-01-01", "maximum": "2100-01-01"}},
            {
                "name": "text",
                "type": "string",
                "constraints": {"enum": ["a", "b,c", 'd"e', "ü\nz", " f", "007", "true"]},
            },
        ]
    }
)
DTYPES = [pl.Int64(), pl.Float64(), pl.Boolean(), pl.Date(), pl.Datetime("us"), pl.String()]

rows = st.lists(
    st.tuples(
        st.none() | st.integers(-(2**53), 2**53),
        st.none() | st.floats(allow_nan=False, allow_infinity=False),
        st.none() | st.booleans(),
        st.none() | st.dates(),
        st.none() | st.datetimes(),
        st.none() | st.sampled_from(["a", "b,c", 'd"e', "ü\nz", " f", "007", "true"]),
    ),
    min_size=2,
    max_size=30,
)


def _frame(values) -> pl.DataFrame:
    return pl.DataFrame(values, schema=dict(zip(EVERY_TYPE.names, DTYPES, strict=True)), orient="row")


def _one(kind: str, **constraints):
    return parse_table_schema({"fields": [{"name": "x", "type": kind, "constraints": constraints}]})


def _read_cells(reader, cells: list[str], schema) -> list:
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerows([["x"], *([cell] for cell in cells)])
    return reader.read(reader.write(text.getvalue()), schema)[1]["x"].to_list()


@pytest.mark.slow
@given(values=rows)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_csv_and_parquet_give_the_same_table(values, reader):
    frame = _frame(values)
    from_csv, canonical_csv = reader.read(reader.write(frame), EVERY_TYPE, accept_undeclared=EVERY_TYPE.names)
    from_parquet, canonical_parquet = reader.read(
        reader.write(frame, parquet=True), EVERY_TYPE, accept_undeclared=EVERY_TYPE.names
    )
    assert canonical_csv.equals(frame)
    assert canonical_csv.schema == frame.schema
    assert canonical_parquet.equals(frame)
    assert from_csv == from_parquet


def test_spellings_of_whole_numbers(reader):
    schema = _one("integer", minimum=-1000, maximum=1000)
    cells = ["3", "3.0", " 3", "+3", "3e0", "0003", "30e-1", "3.", "-0", ""]
    assert _read_cells(reader, cells, schema) == [3] * 8 + [0, None]


def test_large_whole_numbers_keep_every_digit(reader):
    schema = _one("integer", enum=[2**62 + 1, -(2**63)])
    assert _read_cells(reader, [str(2**62 + 1), str(-(2**63))], schema) == [2**62 + 1, -(2**63)]


def test_spellings_of_numbers(reader):
    schema = _one("number", minimum=-1000, maximum=1000)
    assert _read_cells(reader, ["1.5", "15e-1", "+1.50", " 1.5 ", ".5", "1e-400"], schema) == [1.5] * 4 + [0.5, 0.0]


def test_spellings_of_booleans(reader):
    cells = ["true", "TRUE", "True", "1", "1.0", "false", "False", "0", "", " true"]
    assert _read_cells(reader, cells, _one("boolean")) == [True] * 5 + [False] * 3 + [None, True]


def test_spellings_of_dates(reader):
    schema = _one("date", minimum="2000-01-01", maximum="2030-01-01")
    cells = ["2024-02-29", "2024-02-29T00:00:00", "2024-02-29 00:00:00.000000", "2024-02-29T02:00:00+02:00", ""]
    assert _read_cells(reader, cells, schema) == [dt.date(2024, 2, 29)] * 4 + [None]


def test_spellings_of_datetimes(reader):
    schema = _one("datetime", minimum="2000-01-01", maximum="2030-01-01")
    cells = [
        "2024-02-29T12:30:00",
        "2024-02-29 12:30",
        "2024-02-29T12:30:00Z",
        "2024-02-29T14:00:00.000+01:30",
        "2024-02-29T07:30:00-0500",
        "2024-02-29T12:30:00.5",
        "2024-02-29",
        "1969-12-31T23:59:59.999999999",
    ]
    noon = dt.datetime(2024, 2, 29, 12, 30)  # noqa: DTZ001 - the canonical table is naive UTC
    midnight = dt.datetime(2024, 2, 29)  # noqa: DTZ001 - see above
    before = dt.datetime(1969, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001 - see above
    expected = [*[noon] * 5, noon.replace(microsecond=500_000), midnight, before]
    assert _read_cells(reader, cells, schema) == expected


@pytest.mark.parametrize(
    "cell",
    ["2024-02-30", "2024-13-01", "2024-1-1", "24-01-01", "01/02/2024", "20240229", "2024-02-29T25:00", "2024-02-29T12"],
)
@pytest.mark.parametrize("kind", ["date", "datetime"])
def test_what_is_not_a_date(cell, kind, reader):
    schema = _one(kind, minimum="2000-01-01", maximum="2030-01-01")
    with pytest.raises(Exception, match=f"2 cells are not of type {kind}"):
        _read_cells(reader, [cell, cell], schema)


def test_a_date_with_a_time_is_no_date(reader):
    with pytest.raises(Exception, match="1 cell is not of type date"):
        _read_cells(
            reader, ["2024-01-01", "2024-01-01T00:01"], _one("date", minimum="2000-01-01", maximum="2030-01-01")
        )


def test_bom_line_ends_blank_lines_and_column_order(reader):
    schema = parse_table_schema(
        {
            "fields": [
                {"name": "a", "type": "integer", "constraints": {"minimum": 0, "maximum": 9}},
                {"name": "b", "type": "string", "constraints": {"enum": ["x", "y\r\nz", 'q"']}},
            ]
        }
    )
    plain = reader.read(reader.write('a,b\n1,x\n2,"y\r\nz"\n3,"q"""\n'), schema)
    odd = reader.read(reader.write('\ufeffb , a\r\nx,1\r\n\r\n"y\r\nz",2\r\n"q""",3\r\n\r\n'), schema)
    assert plain[1].equals(odd[1])
    assert plain[0]["fingerprints"] == odd[0]["fingerprints"]
    assert plain[1].columns == ["a", "b"]


def test_one_column_with_blank_lines_has_missing_values(reader):
    canonical = reader.read(reader.write("x\n1\n\n3\n"), _one("integer", minimum=0, maximum=9))[1]
    assert canonical["x"].to_list() == [1, None, 3]


def test_declared_missing_values(reader):
    schema = parse_table_schema(
        {
            "fields": [{"name": "x", "type": "number", "constraints": {"minimum": 0, "maximum": 9}}],
            "missingValues": ["", "NaN", "-999", "?"],
        }
    )
    assert _read_cells(reader, ["1", "NaN", "-999", " ?", ""], schema) == [1.0, None, None, None, None]
    parquet = reader.write(pl.DataFrame({"x": [1.0, float("nan"), -999.0, None]}), parquet=True)
    assert reader.read(parquet, schema)[1]["x"].to_list() == [1.0, None, None, None]


def test_notices_say_column_and_count(reader):
    schema = parse_table_schema(
        {
            "fields": [
                {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}},
                {"name": "town", "type": "string", "constraints": {"enum": ["Ulm"]}},
                {"name": "code", "type": "integer", "constraints": {"enum": [1, 2]}},
            ]
        }
    )
    answer, canonical = reader.read(reader.write("age,town,code\n-1,Ulm,1\n200,Paris,3\n7,,\n"), schema)
    assert canonical["age"].to_list() == [-1, 200, 7]
    assert canonical["town"].to_list() == ["Ulm", None, None]
    assert canonical["code"].to_list() == [1, None, None]
    assert answer["notices"] == [
        "Column 'age': 2 cells are outside the declared range and will be clamped.",
        "Column 'town': 1 cell is not among the enum's values and became missing.",
        "Column 'code': 1 cell is not among the enum's values and became missing.",
    ]


def test_bounds_of_dates_and_times_are_inclusive(reader):
    schema = parse_table_schema(
        {
            "fields": [
                {"name": "d", "type": "date", "constraints": {"minimum": "2020-01-01", "maximum": "2020-12-31"}},
                {"name": "t", "type": "datetime", "constraints": {"minimum": "2020-01-01", "maximum": "2020-12-31"}},
            ]
        }
    )
    fine = "d,t\n2020-01-01,2020-01-01T00:00:00\n2020-12-31,2020-12-31T00:00:00\n"
    assert reader.read(reader.write(fine), schema)[0]["notices"] == []
    outside = f"{fine}2019-12-31,2020-12-31T00:00:00.000001\n"
    notices = reader.read(reader.write(outside), schema)[0]["notices"]
    assert [notice for notice in notices if "clamped" in notice] == [
        f"Column '{name}': 1 cell is outside the declared range and will be clamped." for name in "dt"
    ]


def test_other_arrow_types(reader):
    schema = parse_table_schema(
        {
            "fields": [
                *(
                    {"name": n, "type": "number", "constraints": {"minimum": 0, "maximum": 9}}
                    for n in ("f4", "f2", "dec")
                ),
                *({"name": n, "type": "integer", "constraints": {"minimum": 0, "maximum": 9}} for n in ("u8", "i8")),
                {"name": "cat", "type": "string", "constraints": {"enum": ["a", "b"]}},
                {"name": "big", "type": "string", "constraints": {"enum": ["a", "b"]}},
                {"name": "zone", "type": "datetime", "constraints": {"minimum": "2000-01-01", "maximum": "2030-01-01"}},
                {"name": "d64", "type": "date", "constraints": {"minimum": "2000-01-01", "maximum": "2030-01-01"}},
                {"name": "none", "type": "string", "constraints": {"enum": ["a"]}},
            ]
        }
    )
    moment = dt.datetime(2024, 2, 29, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))
    table = pa.table(
        {
            "f4": pa.array([0.1, 2.0], pa.float32()),
            "f2": pa.array([0.5, 2.0], pa.float16()),
            "dec": pa.array([Decimal("0.10"), Decimal("2.00")]),
            "u8": pa.array([1, 2], pa.uint64()),
            "i8": pa.array([1, 2], pa.int8()),
            "cat": pa.array(["a", "b"]).dictionary_encode(),
            "big": pa.array(["a", "b"], pa.large_string()),
            "zone": pa.array([moment, None], pa.timestamp("ns", "Europe/Berlin")),
            "d64": pa.array([dt.date(2024, 2, 29), None], pa.date64()),
            "none": pa.nulls(2),
        }
    )
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    from_parquet, canonical = reader.read(reader.write(buffer.getvalue()), schema)
    assert canonical.row(0) == (0.1, 0.5, 0.1, 1, 1, "a", "a", dt.datetime(2024, 2, 29, 10), dt.date(2024, 2, 29), None)  # noqa: DTZ001 - naive UTC
    text = (
        "f4,f2,dec,u8,i8,cat,big,zone,d64,none\n"
        "0.1,0.5,0.1,1,1,a,a,2024-02-29T12:00:00+02:00,2024-02-29,\n2,2,2,2,2,b,b,,,\n"
    )
    assert reader.read(reader.write(text), schema)[0] == from_parquet


def test_rows_of_a_unit_lie_side_by_side(reader):
    schema = _one("integer", minimum=0, maximum=9)
    text = "who,x\nzoe,1\n7,2\nzoe,3\n 7.0,4\nada,5\nzoe,6\n"
    answer, canonical = reader.read(
        reader.write(text), schema, privacy_unit=PrivacyUnit(column="who", max_rows_per_unit=2)
    )
    assert answer["units"] == 3
    assert answer["rows"] == 6
    assert canonical.columns == ["x", "__unit__"]
    assert canonical["__unit__"].dtype == pl.Int64()
    assert canonical["__unit__"].is_sorted()
    grouped = canonical.group_by("__unit__", maintain_order=True).agg("x")
    assert sorted(grouped["x"].to_list()) == [[1, 3, 6], [2, 4], [5]]
    assert grouped["__unit__"].to_list() == [0, 1, 2]
    assert answer["notices"] == ["Column 'who': 1 unit has more than 2 rows; only 2 of them are used."]


@pytest.mark.parametrize("parquet", [True, False])
def test_by_declaration_rows_without_a_unit_id_are_units_of_their_own(reader, parquet):
    schema = _one("integer", minimum=0, maximum=9)
    frame = pl.DataFrame({"x": [1, 2, 3, 4, 5, 6], "who": ["ada", "NA", None, "ada", "NA", "?"]})
    unit = PrivacyUnit(column="who", max_rows_per_unit=2, missing="own_unit")
    answer, canonical = reader.read(reader.write(frame, parquet=parquet), schema, privacy_unit=unit)
    assert (answer["rows"], answer["units"]) == (6, 5)
    grouped = canonical.group_by("__unit__").agg("x")["x"].to_list()
    assert sorted(grouped) == [[1, 4], [2], [3], [5], [6]]
    assert answer["notices"] == ["Column 'who': 4 rows have no unit id; each is a unit of its own."]


def test_ten_thousand_long_ids_are_ten_thousand_units(reader):
    """As floats they would be a handful."""
    schema, unit = _one("integer", minimum=0, maximum=9), PrivacyUnit(column="who", max_rows_per_unit=2)
    rows = "".join(f"{i % 10},{12345678901234567890000 + i // 2}\n" for i in range(20_000))
    answer, canonical = reader.read(reader.write(f"x,who\n{rows}"), schema, privacy_unit=unit)
    assert (answer["units"], answer["notices"]) == (10_000, [])
    assert canonical["__unit__"].n_unique() == 10_000


def test_units_through_many_buckets(reader, monkeypatch):
    """The same table as through one bucket, only the numbering differs."""
    frame = pl.DataFrame({"x": [i % 10 for i in range(5_000)], "who": [(i * 7919) % 613 for i in range(5_000)]})
    schema, unit = _one("integer", minimum=0, maximum=9), PrivacyUnit(column="who", max_rows_per_unit=10)
    path = reader.write(frame)
    one, together = reader.read(path, schema, privacy_unit=unit)
    monkeypatch.setattr("service.intake.table.canonical_file._BUCKET_BYTES", 1_000)
    many, apart = reader.read(path, schema, privacy_unit=unit)
    assert one == many
    assert one["units"] == 613
    assert apart["__unit__"].is_sorted()
    assert apart["__unit__"].unique().to_list() == list(range(613))

    def groups(canonical: pl.DataFrame) -> list[list[int]]:
        return sorted(canonical.group_by("__unit__", maintain_order=True).agg("x")["x"].to_list())

    assert groups(together) == groups(apart)


def test_many_chunks_are_one_table(reader):
    frame = pl.DataFrame({"x": list(range(20_000))})
    schema = _one("integer", minimum=0, maximum=20_000)
    whole, canonical = reader.read(reader.write(frame), schema)
    path = reader.write(frame)
    chunked, canonical_chunked = reader.read(path, schema, limits=IngestLimits(line_bytes=4_096))
    assert whole == chunked
    assert canonical.equals(canonical_chunked)
    assert canonical.equals(frame)
