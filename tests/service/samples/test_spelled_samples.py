"""Declared values come back exactly: from a declaration to drawn rows, to each text format, to the table that is read again."""

import csv
import importlib.util
import io
import json
import re
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from service.base.errors import InvalidSchema
from service.domain.table_schema import TableSchema, parse_table_schema
from service.intake.child import Job, read_table
from service.intake.limits import IngestLimits
from service.intake.sealed import SealedFile
from service.samples.shipped import table_script
from service.samples.streams import stream_rows
from service.samples.table.base import SamplingError
from tests.tiny_generators import domain_of, tiny_files, tiny_sampler

FIELDS = [
    {
        "name": "visit",
        "type": "date",
        "format": "%d/%m/%Y",
        "constraints": {"minimum": "2020-01-01", "maximum": "2030-12-31"},
    },
    {
        "name": "long",
        "type": "date",
        "format": '%A, %-d "%B" %y',
        "constraints": {"minimum": "1950-01-01", "maximum": "2049-12-31"},
    },
    {
        "name": "loud",
        "type": "datetime",
        "format": "%^a %d-%^b-%y %I.%M.%S.%f %,p",
        "constraints": {"minimum": "2020-01-01", "maximum": "2020-12-31"},
    },
    {
        "name": "quiet",
        "type": "date",
        "format": "%d%,B%Y",
        "constraints": {"minimum": "2020-01-01", "maximum": "2030-12-31"},
    },
    {
        "name": "seen",
        "type": "datetime",
        "format": "%Y-%m-%d %H:%M:%S %Z",
        "constraints": {"minimum": "2025-01-01", "maximum": "2026-01-01"},
    },
    {
        "name": "here",
        "type": "datetime",
        "format": "%m/%d/%Y %I:%M %p %z",
        "timezone": "Europe/Berlin",
        "constraints": {"minimum": "2024-01-01", "maximum": "2026-01-01"},
    },
    {
        "name": "ahead",
        "type": "datetime",
        "format": "%Y-%m-%dT%H:%M:%S%:z",
        "timezone": "Asia/Kolkata",
        "constraints": {"minimum": "2024-01-01", "maximum": "2026-01-01"},
    },
    {
        "name": "iso",
        "type": "datetime",
        "timezone": "Asia/Kolkata",
        "constraints": {"minimum": "2024-01-01", "maximum": "2024-01-02"},
    },
    {
        "name": "price",
        "type": "number",
        "decimalChar": ",",
        "groupChar": ".",
        "suffix": " €",
        "decimals": 2,
        "constraints": {"minimum": -1e6, "maximum": 1e6},
    },
    {
        "name": "gain",
        "type": "number",
        "negative": "parentheses",
        "prefix": "$",
        "groupChar": ",",
        "constraints": {"minimum": -5000, "maximum": 5000},
    },
    {"name": "share", "type": "number", "suffix": " %", "constraints": {"minimum": 0, "maximum": 100}},
    {"name": "count", "type": "integer", "groupChar": "\u202f", "constraints": {"minimum": 0, "maximum": 10**9}},
    {"name": "level", "type": "number", "decimalChar": ",", "constraints": {"enum": [0.5, 1, -1234.25]}},
    {
        "name": "net",
        "type": "number",
        "decimals": 2,
        "trailingZeros": True,
        "constraints": {"minimum": -9, "maximum": 999},
    },
    {
        "name": "dose",
        "type": "number",
        "decimals": 2,
        "trailingZeros": False,
        "constraints": {"minimum": -9, "maximum": 9},
    },
    {"name": "step", "type": "number", "trailingZeros": False, "constraints": {"enum": [0.5, 80, 2e-7, 1e300]}},
    {
        "name": "paid",
        "type": "number",
        "decimals": 1,
        "decimalChar": ",",
        "trailingZeros": False,
        "constraints": {"minimum": 0, "maximum": 9},
    },
    {"name": "fee", "type": "number", "decimals": 3, "trailingZeros": True, "constraints": {"enum": [0.5, 2, -12.125]}},
    {
        "name": "age",
        "type": "integer",
        "decimals": 1,
        "trailingZeros": True,
        "constraints": {"minimum": 0, "maximum": 120},
    },
    {"name": "id", "type": "integer", "decimals": 1, "trailingZeros": True, "constraints": {"enum": [2**53 + 1, -7]}},
    {"name": "member", "type": "boolean", "trueValues": ["Yes"], "falseValues": ["No"], "missingValues": ["unknown"]},
    {
        "name": "land",
        "type": "string",
        "missingValues": ["", "n/a"],
        "constraints": {"enum": ["NA", "-50000.", "=5", "0311"]},
    },
]
SCHEMA = {"fields": FIELDS, "missingValues": ["NA", ""]}


def read_back(text, schema):
    """The canonical table of a CSV, as an upload makes it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        path.write_bytes(text)
        with (
            SealedFile.in_the_clear(path) as upload,
            SealedFile.create(Path(folder)) as canonical,
            SealedFile.create(Path(folder)) as scratch,
        ):
            answer = read_table(
                Job(upload, canonical, scratch, parse_table_schema(schema), None, IngestLimits(), bytes(32))
            )
            return answer["notices"], pl.read_parquet(canonical.reader())


def drawn_rows(sampler, rows, seed):
    return [row for chunk in sampler.chunks(rows, seed=seed) for row in zip(*chunk.values(), strict=True)]


def plain(frame):
    """As a sampler says values."""
    moments = pl.col(pl.Datetime).dt.strftime("%Y-%m-%dT%H:%M:%S")
    return frame.with_columns(moments, pl.col(pl.Date).dt.to_string()).rows()


def test_every_spelled_value_is_read_back_exactly():
    sampler = tiny_sampler(SCHEMA)
    expected = drawn_rows(sampler, 3_000, 5)
    text = b"".join(stream_rows(sampler, rows=3_000, format="csv", seed=5))
    notices, frame = read_back(text, SCHEMA)
    assert plain(frame) == expected
    assert all("missingValues" in notice for notice in notices)
    assert {len(set(column)) > 1 for column in zip(*expected, strict=True)} == {True}


def test_texts_are_those_of_the_declaration():
    sampler = tiny_sampler(SCHEMA)
    rows = list(
        csv.DictReader(
            io.StringIO(b"".join(stream_rows(sampler, rows=4_000, format="csv", seed=1)).decode(), newline="")
        )
    )
    patterns = {
        "visit": r"^\d\d/\d\d/20\d\d$",
        "long": r'^[A-Z][a-z]+day, \d{1,2} "[A-Z][a-z]+" \d\d$',
        "loud": r"^[A-Z]{3} \d\d-[A-Z]{3}-20 \d\d\.\d\d\.\d\d\.000000 [ap]m$",
        "quiet": r"^\d\d[a-z]+20\d\d$",
        "seen": r"^2025-\d\d-\d\d \d\d:\d\d:\d\d UTC$",
        "here": r"^\d\d/\d\d/202\d \d\d:\d\d [AP]M \+0[12]00$",
        "ahead": r"^202[456]-\d\d-\d\dT\d\d:\d\d:\d\d\+05:30$",
        "iso": r"^2024-01-0[12]T\d\d:\d\d:\d\d$",
        "price": r"^-?\d{1,3}(\.\d{3})*,\d\d €$",
        "gain": r"^(\$[\d,]+(\.\d+)?|\(\$[\d,]+(\.\d+)?\))$",
        "share": r"^\d+(\.\d+)? %$",
        "count": r"^\d{1,3}(\u202f\d{3})*$",
        "level": r"^(0,5|1|-1234,25)$",
        "net": r"^-?\d+\.\d\d$",
        "dose": r"^-?(0|[1-9])(\.\d?[1-9])?$",
        "step": r"^(0\.5|80|0\.0000002|10{300})$",
        "paid": r"^\d(,[1-9])?$",
        "fee": r"^(0\.500|2\.000|-12\.125)$",
        "age": r"^\d+\.0$",
        "id": r"^(9007199254740993\.0|-7\.0)$",
        "member": r"^(Yes|No)$",
        "land": r"^(NA|-50000\.|=5|0311)$",
    }
    frame = pl.DataFrame(rows)
    for name, pattern in patterns.items():
        marker = {"member": "unknown", "land": ""}.get(name, "NA")
        texts = frame.filter(pl.col(name) != marker)[name]
        assert 100 < len(texts) < 4_000, name
        assert texts.str.contains(pattern).all(), (name, texts.filter(~texts.str.contains(pattern)).head(3))


def test_in_json_lines_dates_are_spelled_and_numbers_stay_numbers():
    sampler = tiny_sampler(SCHEMA)
    ours = b"".join(stream_rows(sampler, rows=500, format="jsonl", seed=2)).decode()
    assert [json.loads(line) for line in ours.splitlines()] == [
        json.loads(line) for line in "".join(sampler.jsonl(500, seed=2)).splitlines()
    ]
    rows = [row for row in map(json.loads, ours.splitlines()) if None not in row.values()]
    assert all(row["visit"][2] == "/" and row["seen"].endswith(" UTC") for row in rows)
    assert all(isinstance(row["price"], float) and isinstance(row["member"], bool) for row in rows)


def test_in_json_lines_numbers_have_the_declared_zeros_and_whole_ones_none():
    sampler = tiny_sampler(SCHEMA)
    patterns = {
        "net": r"-?\d+\.\d\d",
        "dose": r"-?\d(?:\.\d?[1-9])?",
        "step": r"0\.5|80|0\.0000002|10{300}",
        "fee": r"0\.500|2\.000|-12\.125",
        "age": r"\d+",
        "id": r"9007199254740993|-7",
    }
    ours = b"".join(stream_rows(sampler, rows=500, format="jsonl", seed=2)).decode()
    theirs = "".join(sampler.jsonl(500, seed=2))
    for name, pattern in patterns.items():
        texts = re.findall(rf'[{{,]"{name}":([^,}}]*)', ours)
        assert texts == re.findall(rf'[{{,]"{name}":([^,}}]*)', theirs)
        assert len(texts) == 500
        assert all(re.fullmatch(f"null|{pattern}", text) for text in texts), (name, texts[:9])
        assert not any(re.fullmatch(r"-[0.]+", text) for text in texts)


@pytest.mark.parametrize("format_name", ["csv", "jsonl"])
def test_the_script_of_a_bundle_writes_the_same(tmp_path, monkeypatch, format_name):
    config, onnx = tiny_files(SCHEMA)
    (tmp_path / "sample.py").write_bytes(table_script())
    specification = importlib.util.spec_from_file_location("shipped_spelled", tmp_path / "sample.py")
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "shipped_spelled", module)
    specification.loader.exec_module(module)
    shipped = module.TableSampler.from_files(json.loads(json.dumps(config)), onnx)
    theirs = "".join(getattr(shipped, format_name)(800, seed=3))
    ours = b"".join(stream_rows(tiny_sampler(SCHEMA), rows=800, format=format_name, seed=3)).decode()
    if format_name == "csv":
        assert list(csv.reader(io.StringIO(ours, newline=""))) == list(csv.reader(io.StringIO(theirs, newline="")))
    else:
        assert [json.loads(line) for line in ours.splitlines()] == [json.loads(line) for line in theirs.splitlines()]


def test_a_condition_may_be_spelled_too():
    sampler = tiny_sampler(SCHEMA)
    numbers = ({"fee": "2.000"}, {"fee": 2}, {"id": "-7.0"}, {"id": -7}, {"step": "80"}, {"step": "2e-7"})
    for where in ({"member": "Yes"}, {"member": True}, {"level": "-1234,25"}, {"level": -1234.25}, *numbers):
        (name, _), *_ = where.items()
        assert len(set(next(sampler.chunks(20, seed=1, where=where))[name])) == 1


texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), min_size=0, max_size=6)
whole = st.integers(-(2**63), 2**63 - 1)
small = st.floats(-1e-9, 1e-9).filter(lambda v: v == 0 or abs(v) > 1e-300)
number = st.floats(allow_nan=False, allow_infinity=False, width=64) | small
enums = {
    "string": st.lists(texts, min_size=1, max_size=6, unique=True),
    "integer": st.lists(whole, min_size=1, max_size=6, unique=True),
    "number": st.lists(number, min_size=1, max_size=6, unique=True),
}
spelled = st.fixed_dictionaries(
    {},
    optional={
        "groupChar": st.sampled_from([".", ",", " ", "'", "\u202f"]),
        "prefix": st.sampled_from(["$", "Fr. ", "EUR"]),
        "suffix": st.sampled_from([" €", "%", " kg"]),
        "negative": st.sampled_from(["sign", "parentheses"]),
    },
)


@st.composite
def fields_with_enum(draw):
    kind = draw(st.sampled_from(sorted(enums)))
    words = {} if kind == "string" else draw(spelled)
    if kind == "number":
        words |= draw(st.fixed_dictionaries({}, optional={"decimalChar": st.sampled_from([",", "·"])}))
    return {"name": "x", "type": kind, "missingValues": ["?!"], "constraints": {"enum": draw(enums[kind])}, **words}


@st.composite
def fields_with_range(draw):
    """Tiny scales and large offsets among them."""
    kind = draw(st.sampled_from(["integer", "number"]))
    if kind == "integer":
        low = draw(st.integers(-(2**53), 2**53 - 1))
        high = draw(st.integers(low + 1, 2**53))
    else:
        low, width = (
            draw(st.sampled_from([0.0, 1e-12, -1e-9, 1e6, 1e15, -273.15])),
            draw(st.sampled_from([1e-12, 1e-6, 1.0, 1e3])),
        )
        high = low + width
        assume(high > low)
    return {"name": "x", "type": kind, "constraints": {"minimum": low, "maximum": high}, **draw(spelled)}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(fields_with_enum() | fields_with_range())
def test_any_declared_value_comes_back_exactly(field):
    """Without noise in between: what a generator draws is written and read as the same value."""
    schema = {"fields": [field, {"name": "y", "type": "boolean", "constraints": {"required": True}}]}
    try:
        domain = domain_of(schema)
    except InvalidSchema:  # its words contradict each other, as the refusal says
        assume(condition=False)
    sampler = tiny_sampler(schema, bias=[0.0] * domain.total_width)
    expected = drawn_rows(sampler, 200, 1)
    text = b"".join(stream_rows(sampler, rows=200, format="csv", seed=1))
    notices, frame = read_back(text, schema)
    assert frame.rows() == expected
    assert not [notice for notice in notices if "clamped" in notice or "enum" in notice]
    if "enum" in field["constraints"]:
        declared = {float(v) if field["type"] == "number" else v for v in field["constraints"]["enum"]}
        assert set(frame["x"].drop_nulls()) <= declared


def test_dates_with_a_format_are_days():
    field = {"name": "visit", "type": "date", "format": "%d/%m/%Y"}
    field["constraints"] = {"minimum": "2020-01-01", "maximum": "2030-12-31", "required": True}
    text = "".join(tiny_sampler({"fields": [field]}, numeric_bins=32).csv(500, seed=1))
    assert len(set(text.splitlines()[1:])) > 300


@pytest.mark.parametrize(("largest", "decimals"), [(0.5, 1), (0.25, 2), (10, 0)])
def test_numbers_have_their_decimals_where_cells_are_narrower(largest, decimals):
    number = {
        "type": "number",
        "decimals": decimals,
        "constraints": {"minimum": 0, "maximum": largest, "required": True},
    }
    fields = [
        {"name": "net", **number},
        {"name": "tax", **number},
        {"name": "gross", "type": "number", "role": "derived"},
    ]
    sampler = tiny_sampler({"fields": fields, "relations": ["net + tax = gross", "net <= tax"]}, numeric_bins=32)
    rows = [[Decimal(cell) for cell in line.split(",")] for line in "".join(sampler.csv(500, seed=1)).splitlines()[1:]]
    assert len(rows) == 500
    for net, tax, gross in rows:
        assert net + tax == gross
        assert net <= tax
        assert round(net, decimals) == net
        assert 0 <= net <= Decimal(str(largest))


def test_a_format_that_writes_less_than_the_resolution_is_refused():
    field = {"name": "seen", "type": "datetime", "format": "%Y-%m-%d %H", "resolution": "minute"}
    field["constraints"] = {"minimum": "2020-01-01", "maximum": "2030-12-31"}
    with pytest.raises(InvalidSchema, match="does not write every minute"):
        parse_table_schema({"fields": [field]})
    zoned = {**field, "resolution": None, "timezone": "Asia/Kolkata"}
    with pytest.raises(InvalidSchema, match="no whole hours"):
        parse_table_schema({"fields": [zoned]})
    assert parse_table_schema({"fields": [{**zoned, "timezone": "Europe/Berlin"}]})


def test_a_stored_schema_of_large_numbers_still_loads():
    field = {"name": "code", "type": "number", "constraints": {"enum": [2**60, 1.5]}}
    assert TableSchema.model_validate({"fields": [field]})
    with pytest.raises(InvalidSchema, match="not exact as number"):
        parse_table_schema({"fields": [field]})


@pytest.mark.parametrize(
    ("words", "where", "why"),
    [
        ({"type": "number", "constraints": {"minimum": 0, "maximum": 9000}}, "x>=1.234,56", "like 1234.5;"),
        (
            {
                "type": "number",
                "decimals": 2,
                "decimalChar": ",",
                "groupChar": ".",
                "constraints": {"minimum": 0, "maximum": 9000},
            },
            "x>=1,234.56",
            r"like 1234.5 or, as the schema spells it, 9\.000,00;",
        ),
        (
            {
                "type": "date",
                "format": "%d.%m.%Y",
                "constraints": {"minimum": "2020-01-01", "maximum": "2023-12-31"},
            },
            "x>=17/04/2023",
            r"2024-03-01 or, as the schema spells it, 31\.12\.2023;",
        ),
    ],
)
def test_a_condition_that_is_not_spelled_so_is_refused_with_the_spelling(words, where, why):
    sampler = tiny_sampler({"fields": [{"name": "x", **words}]})
    with pytest.raises(SamplingError, match=why):
        next(sampler.chunks(5, where=where))


def test_whole_numbers_in_conditions_are_exact():
    values = [2, 2**53, 2**53 + 1]
    sampler = tiny_sampler({"fields": [{"name": "x", "type": "integer", "constraints": {"enum": values}}]})
    for where, expected in (
        ("x=2.0", {2}),
        ("x=02", {2}),
        (f"x={2**53 + 1}", {2**53 + 1}),
        (f"x>{2**53}", {2**53 + 1}),
    ):
        assert set(next(sampler.chunks(20, seed=1, where=where))["x"]) == expected
    with pytest.raises(SamplingError, match="no value"):
        next(sampler.chunks(5, where=f"x={2**53 + 3}"))
