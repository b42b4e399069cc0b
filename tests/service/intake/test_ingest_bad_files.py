"""Every kind of file that is refused; in each a marker cell is planted that no message may quote."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.base.errors import ImprimaturError, InvalidFile, TooLarge
from service.domain.privacy_unit import PrivacyUnit
from service.domain.table_schema import parse_table_schema
from service.intake.limits import IngestLimits

MARKER = "Zanzibar-90210.75"
SCHEMA = parse_table_schema(
    {
        "fields": [
            {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120, "required": True}},
            {"name": "wage", "type": "number", "constraints": {"minimum": 0, "maximum": 1e6}},
            {"name": "town", "type": "string", "constraints": {"enum": ["Ulm", "Bern"], "required": True}},
        ]
    }
)
GOOD = "age,wage,town\n30,1.5,Ulm\n40,2.5,Bern\n"
LIMITS = IngestLimits(columns=50, field_bytes=1_000, line_bytes=16_384)


def _zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("../a.csv", GOOD)
    return buffer.getvalue()


def _parquet(table: pa.Table, **options: object) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


def _columns(**replaced: pa.Array) -> pa.Table:
    columns = {"age": pa.array([30, 40]), "wage": pa.array([1.5, 2.5]), "town": pa.array(["Ulm", "Bern"])}
    return pa.table(columns | replaced)


GOOD_PARQUET = _parquet(_columns(town=pa.array(["Ulm", MARKER])))

CSV_CASES: dict[str, tuple[str | bytes, dict[str, object]]] = {
    "empty": (b"", {}),
    "only a newline": ("\n", {}),
    "only spaces": ("   \n", {}),
    "no header": (f"30,1.5,{MARKER}\n40,2.5,Bern\n", {}),
    "missing column": (f"age,town\n30,{MARKER}\n40,Bern\n", {"column": "wage", "count": 1}),
    "undeclared column": (f"age,wage,town,iq\n30,1,Ulm,{MARKER}\n40,2,Bern,1\n", {"column": "iq", "count": 1}),
    "duplicate column": (f"age,wage,town,age\n30,1,{MARKER},3\n40,1,Ulm,3\n", {"column": "age", "count": 1}),
    "semicolons": (f"age;wage;town\n30;1;{MARKER}\n", {}),
    "tabs": (f"age\twage\ttown\n30\t1\t{MARKER}\n", {}),
    "too few cells in a row": (f"{GOOD}31,{MARKER}\n33\n", {"count": 2}),
    "too many cells in a row": (f"{GOOD}31,2,Ulm,{MARKER}\n", {"count": 1}),
    "text in an integer": (f"{GOOD}{MARKER},2,Ulm\nx,2,Ulm\n", {"column": "age", "count": 2}),
    "fraction in an integer": (f"{GOOD}90210.75,2,Ulm\n", {"column": "age", "count": 1}),
    "integer beyond 64 bits": (f"{GOOD}902109021090210902109021,2,Ulm\n", {"column": "age", "count": 1}),
    "text in a number": (f"{GOOD}31,{MARKER},Ulm\n", {"column": "wage", "count": 1}),
    "decimal comma": (f'{GOOD}31,"90210,75",Ulm\n', {"column": "wage", "count": 1}),
    "hexadecimal": (f"{GOOD}31,0x90210,Ulm\n", {"column": "wage", "count": 1}),
    "NaN": (f"{GOOD}31,NaN,Ulm\n32,nan,Ulm\n", {"column": "wage", "count": 2}),
    "infinity": (f"{GOOD}31,inf,Ulm\n32,-Infinity,Ulm\n", {"column": "wage", "count": 2}),
    "overflow to infinity": (f"{GOOD}31,90210e999,Ulm\n", {"column": "wage", "count": 1}),
    "NaN in an integer": (f"{GOOD}NaN,1,Ulm\n", {"column": "age", "count": 1}),
    "missing in a required column": (f"{GOOD},2,Ulm\n ,3,Bern\n", {"column": "age", "count": 2}),
    "undeclared category": (f"{GOOD}31,2,{MARKER}\n", {"column": "town", "count": 1}),
    "category in the wrong case": (f"{GOOD}31,2,ulm\n", {"column": "town", "count": 1}),
    "no rows": ("age,wage,town\n", {"count": 0}),
    "no rows and no line end": ("age,wage,town", {"count": 0}),
    "one row": ("age,wage,town\n30,1.5,Ulm\n", {"count": 1}),
    "Latin-1": (GOOD.encode() + b"31,2,Z\xfcrich\n", {}),
    "UTF-16": (GOOD.encode("utf-16"), {}),
    "cut-off UTF-8": (GOOD.encode() + "31,2,Zü".encode()[:-1], {}),
    "overlong UTF-8": (GOOD.encode() + b"31,2,\xc0\xaf\n", {}),
    "NUL": (f"{GOOD}31,2,U\x00lm\n", {}),
    "open quote": (f'{GOOD}31,2,"{MARKER}\n32,2,Ulm\n', {}),
    "open quote in the header": (f'"age,wage,town\n30,1,{MARKER}\n', {}),
    "giant cell": (GOOD + f"31,2,{MARKER}{'x' * 2_000}\n", {"column": "town", "count": 1}),
    "giant row": (GOOD + f"31,2,{MARKER}{'x' * 40_000}\n", {}),
    "giant quoted cell": (GOOD + f'31,2,"{MARKER}{"x," * 40_000}"\n', {}),
    "giant header": ("age," + "x" * 40_000, {}),
    "many columns": (",".join(f"c{i}" for i in range(5_000)) + "\n", {}),
    "binary junk": (bytes(range(256)) * 50, {}),
    "cut-off gzip": (gzip.compress(GOOD.encode())[:-12], {}),
    "ZIP whose member leads out of its folder": (_zip(), {}),
    "JSON": ('{"age": [30, 40]}\n', {}),
    "HTML": ("<!doctype html>\n<html><body>90210</body></html>\n", {}),
    "fifty rows as one line end": ("age,wage,town" + "\x0b30,1,Ulm" * 50, {}),
}

PARQUET_CASES: dict[str, tuple[bytes, dict[str, object]]] = {
    "only the magic": (b"PAR1", {}),
    "magic twice": (b"PAR1PAR1", {}),
    "cut off": (GOOD_PARQUET[: len(GOOD_PARQUET) // 2], {}),
    "footer length beyond the file": (GOOD_PARQUET[:-8] + b"\xff\xff\xff\x7fPAR1", {}),
    "footer of zeros": (b"PAR1" + b"\x00" * 100 + (100).to_bytes(4, "little") + b"PAR1", {}),
    "pages overwritten": (GOOD_PARQUET[:4] + b"\xa5" * 150 + GOOD_PARQUET[154:], {}),
    "list column": (_parquet(_columns(town=pa.array([[MARKER], []]))), {"column": "town"}),
    "struct column": (_parquet(_columns(town=pa.array([{"a": MARKER}, None]))), {}),
    "binary column": (_parquet(_columns(town=pa.array([MARKER.encode(), b"x"]))), {"column": "town"}),
    "duration column": (_parquet(_columns(age=pa.array([1, 2], pa.duration("s")))), {"column": "age"}),
    "time column": (_parquet(_columns(age=pa.array([1, 2], pa.time32("s")))), {"column": "age"}),
    "text not UTF-8": (
        _parquet(_columns(town=pa.array([b"Ulm", b"Z\xfcrich"]).view(pa.string()))),
        {},
    ),
    "NUL in text": (_parquet(_columns(town=pa.array(["Ulm", f"{MARKER}\x00"]))), {"column": "town", "count": 1}),
    "NaN": (_parquet(_columns(wage=pa.array([1.0, float("nan")]))), {"column": "wage", "count": 1}),
    "infinity": (_parquet(_columns(wage=pa.array([1.0, float("-inf")]))), {"column": "wage", "count": 1}),
    "null in a required column": (_parquet(_columns(age=pa.array([1, None]))), {"column": "age", "count": 1}),
    "wrong type": (_parquet(_columns(age=pa.array([MARKER, "3"]))), {"column": "age", "count": 1}),
    "booleans in an integer": (_parquet(_columns(age=pa.array([True, False]))), {"column": "age", "count": 2}),
    "undeclared category": (_parquet(_columns(town=pa.array(["Ulm", MARKER]))), {"column": "town", "count": 1}),
    "undeclared column": (_parquet(_columns(iq=pa.array([MARKER, "1"]))), {"column": "iq"}),
    "missing column": (_parquet(_columns().drop_columns(["wage"])), {"column": "wage"}),
    "duplicate column": (
        _parquet(pa.Table.from_arrays([pa.array([1, 2])] * 2, names=["age", "age"])),
        {"count": 1},
    ),
    "one row": (_parquet(_columns().slice(0, 1)), {"count": 1}),
    "no rows": (_parquet(_columns().slice(0, 0)), {"count": 0}),
    "no columns": (_parquet(pa.table({})), {}),
    "giant cell": (_parquet(_columns(town=pa.array(["Ulm", MARKER * 100]))), {"column": "town", "count": 1}),
    "many columns": (_parquet(pa.table({f"c{i}": [1] for i in range(60)})), {}),
}


@pytest.mark.parametrize("case", CSV_CASES)
def test_bad_csv_is_refused(case, reader, says_nothing):
    content, values = CSV_CASES[case]
    with pytest.raises(InvalidFile) as caught:
        reader.read(reader.write(content), SCHEMA, limits=LIMITS)
    says_nothing(caught.value)
    assert values.items() <= caught.value.values.items()


@pytest.mark.parametrize("case", PARQUET_CASES)
def test_bad_parquet_is_refused(case, reader, says_nothing):
    content, values = PARQUET_CASES[case]
    with pytest.raises(InvalidFile) as caught:
        reader.read(reader.write(content), SCHEMA, limits=LIMITS)
    says_nothing(caught.value)
    assert values.items() <= caught.value.values.items()


@pytest.mark.parametrize("kind", ["date", "datetime"])
@pytest.mark.parametrize(
    "moments",
    [
        pa.array([0, 2**31 - 1], pa.int32()).view(pa.date32()),
        pa.array([0, 2**63 // 1_000 + 5], pa.int64()).view(pa.timestamp("ms")),
        pa.array([0, 2**62], pa.int64()).view(pa.timestamp("us")),
    ],
    ids=["days", "milliseconds", "microseconds"],
)
def test_moments_beyond_the_calendar_are_refused(moments, kind, reader):
    """In microseconds some of them would be a day of this century."""
    constraints = {"minimum": "1970-01-01", "maximum": "2030-01-01"}
    schema = parse_table_schema({"fields": [{"name": "x", "type": kind, "constraints": constraints}]})
    with pytest.raises(InvalidFile, match=f"1 cell is not of type {kind}"):
        reader.read(reader.write(_parquet(pa.table({"x": moments}))), schema)


def test_the_good_file_of_these_cases_is_good(reader):
    assert reader.read(reader.write(GOOD), SCHEMA, limits=LIMITS)[0]["units"] == 2


def test_all_problems_are_listed(reader):
    with pytest.raises(InvalidFile) as caught:
        reader.read(reader.write(f"{GOOD},x,Paris\n"), SCHEMA)
    listed = [(p["column"], p["count"]) for p in caught.value.values["problems"]]
    assert listed == [("age", 1), ("wage", 1), ("town", 1)]


def test_parquet_that_says_it_unpacks_to_too_much(reader, says_nothing):
    """Constant columns: a few hundred bytes on disk, 8 MB in memory."""
    rows = 1_000_000
    bomb = _parquet(
        pa.table({"age": pa.repeat(90210, rows), "wage": pa.repeat(1.0, rows), "town": pa.repeat("Ulm", rows)})
    )
    limits = IngestLimits(unpacked_floor_bytes=1_000_000, unpacked_ratio=2)
    assert len(bomb) < 100_000
    with pytest.raises(TooLarge) as caught:
        reader.read(reader.write(bomb), SCHEMA, limits=limits)
    says_nothing(caught.value)
    assert caught.value.values["limit_bytes"] == 1_000_000


def test_parquet_whose_metadata_says_little_is_counted_as_it_unpacks(reader):
    """Dictionary pages: the metadata counts one long text, the rows repeat it."""
    rows = 50_000
    bomb = _parquet(pa.table({"age": [1] * rows, "wage": [1.0] * rows, "town": ["x" * 900] * rows}))
    limits = IngestLimits(unpacked_floor_bytes=10_000_000, unpacked_ratio=1)
    path = reader.write(bomb)
    metadata = pq.ParquetFile(path).metadata
    assert sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)) < 1_000_000
    with pytest.raises(TooLarge):
        reader.read(path, SCHEMA, limits=limits)


@pytest.mark.parametrize("parquet", [False, True])
def test_too_many_rows(reader, parquet):
    frame = pl.DataFrame({"age": [1] * 11, "wage": [1.0] * 11, "town": ["Ulm"] * 11})
    with pytest.raises(TooLarge) as caught:
        reader.read(reader.write(frame, parquet=parquet), SCHEMA, limits=IngestLimits(rows=10))
    assert caught.value.values == {"limit_rows": 10}


def test_rows_swallowed_by_two_open_quotes_are_noticed(reader, says_nothing):
    """Elsewhere the cell would be an undeclared category that becomes missing, and a row would be lost unseen."""
    document = SCHEMA.as_json()
    del document["fields"][2]["constraints"]["required"]
    path = reader.write(f'{GOOD}31,2,"Ulm\n32,2,{MARKER}\n33,2,"Bern\n')
    with pytest.raises(InvalidFile, match="quoted field may not be closed") as caught:
        reader.read(path, parse_table_schema(document))
    says_nothing(caught.value)
    units = reader.write('age,wage,town,who\n30,1,Ulm,a\n31,1,Ulm,"b\n32,1,Ulm,c\n33,1,Ulm,"d\n')
    with pytest.raises(InvalidFile, match="quoted field may not be closed"):
        reader.read(units, SCHEMA, privacy_unit=UNIT)


UNIT = PrivacyUnit(column="who", max_rows_per_unit=2)


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ("age,wage,town\n30,1,Ulm\n31,1,Ulm\n", {"column": "who"}),
        ("age,wage,town,who\n30,1,Ulm,a\n31,1,Ulm,\n31,1,Ulm, \n", {"column": "who", "count": 2}),
        ("age,wage,town,who\n30,1,Ulm,90210\n31,1,Ulm,90210\n", {"count": 1}),
    ],
    ids=["no unit column", "missing unit", "one unit"],
)
def test_bad_units_are_refused(content, values, reader, says_nothing):
    with pytest.raises(InvalidFile) as caught:
        reader.read(reader.write(content), SCHEMA, privacy_unit=UNIT)
    says_nothing(caught.value)
    assert values.items() <= caught.value.values.items()


def test_the_refusal_of_missing_units_says_how_many_and_what_to_do(reader, says_nothing):
    path = reader.write("age,wage,town,who\n30,1,Ulm,a\n31,1,Ulm,NA\n31,1,Ulm,null\n32,1,Ulm,?\n33,1,Ulm,b\n")
    with pytest.raises(InvalidFile, match=r"'who': 3 rows have no unit id.*\"missing\": \"own_unit\"") as caught:
        reader.read(path, SCHEMA, privacy_unit=UNIT)
    says_nothing(caught.value)
    assert caught.value.values["count"] == 3


@given(position=st.integers(0, len(GOOD_PARQUET) - 1), byte=st.integers(0, 255), cut=st.integers(0, 40))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_parquet_is_refused_or_read(position, byte, cut, reader, says_nothing):
    """Any changed byte ends in our own error or in a table, never in a library's exception."""
    content = bytearray(GOOD_PARQUET)
    content[position] = byte
    try:
        reader.read(reader.write(bytes(content[: len(content) - cut])), SCHEMA)
    except ImprimaturError as error:
        says_nothing(error)


@given(junk=st.binary(max_size=200), start=st.sampled_from([b"", b"age,wage,town\n", b"PAR1", GOOD.encode()]))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_junk_is_refused_or_read(junk, start, reader):
    try:
        reader.read(reader.write(start + junk), SCHEMA)
    except (InvalidFile, TooLarge):
        return


def test_nothing_is_left_in_the_work_folder(reader, tmp_path: Path):
    path = reader.write(f"{GOOD}x,1,Ulm\n")
    with pytest.raises(InvalidFile):
        reader.read(path, SCHEMA, privacy_unit=None)
    assert not [entry for entry in tmp_path.iterdir() if entry.is_dir()]
