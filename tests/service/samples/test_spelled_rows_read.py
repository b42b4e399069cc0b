"""What a release writes, `complete` reads; and moments that name no zone are clock times of the declared one."""

import csv
import datetime as dt
import importlib.util
import io
import json
import sys

import pytest
from test_spelled_samples import SCHEMA

from service.domain.table_schema import parse_table_schema
from service.intake.sent_rows_child import _plain
from service.samples.shipped import table_script
from service.samples.table.base import SamplingError
from service.samples.table.completing import rows_of_csv, rows_of_jsonl
from tests.tiny_generators import tiny_files, tiny_sampler

EXTRA = [
    {
        "name": "us",
        "type": "date",
        "format": "%Y-%d-%m",
        "constraints": {"minimum": "2020-01-01", "maximum": "2020-12-31", "required": True},
    },
    {
        "name": "day_of_year",
        "type": "date",
        "format": "%y%j",
        "constraints": {"minimum": "1960-01-01", "maximum": "2030-12-31", "required": True},
    },
    {
        "name": "clock",
        "type": "datetime",
        "format": "%d %b %Y %H:%M:%S %Z",
        "timezone": "Europe/Berlin",
        "constraints": {"minimum": "2024-10-20", "maximum": "2024-11-01", "required": True},
    },
    {
        "name": "thousands",
        "type": "number",
        "decimalChar": ",",
        "groupChar": ".",
        "decimals": 0,
        "constraints": {"minimum": 0, "maximum": 9_999, "required": True},
    },
    {
        "name": "either",
        "type": "number",
        "decimalChar": ",",
        "groupChar": ".",
        "constraints": {"enum": [1.234, 1234], "required": True},
    },
]
ALL = {**SCHEMA, "fields": [*SCHEMA["fields"], *EXTRA]}
ZONED = {
    "missingValues": [""],
    "fields": [
        {"name": "p", "type": "string", "constraints": {"enum": ["a", "b"], "required": True}},
        {
            "name": "s",
            "type": "datetime",
            "timezone": "Asia/Kolkata",
            "constraints": {"minimum": "2024-01-01T00:00:00", "maximum": "2024-01-02T00:00:00", "required": True},
        },
    ],
}


@pytest.fixture(scope="module")
def sampler():
    return tiny_sampler(ALL)


@pytest.fixture(params=["ours", "shipped"])
def either(request, sampler, tmp_path, monkeypatch):
    """Our sampler, and that of a bundle's `sample.py`, each with what reads rows for it."""
    if request.param == "ours":
        return sampler, rows_of_csv, rows_of_jsonl
    config, onnx = tiny_files(ALL)
    (tmp_path / "sample.py").write_bytes(table_script())
    specification = importlib.util.spec_from_file_location("shipped_reading", tmp_path / "sample.py")
    module = importlib.util.module_from_spec(specification)
    monkeypatch.setitem(sys.modules, "shipped_reading", module)
    specification.loader.exec_module(module)
    shipped = module.TableSampler.from_files(json.loads(json.dumps(config)), onnx)
    return shipped, module.rows_of_csv, module.rows_of_jsonl


def without_missing(rows, markers):
    return [row for row in rows if all(row[name] not in {None, "NA", *own} for name, own in markers.items())]


def test_rows_of_a_release_come_back_as_they_are_written(either):
    sampler, read_csv, read_jsonl = either
    markers = {name: {"unknown"} if name == "member" else set() for name in sampler.names if name != "land"}
    text = "".join(sampler.csv(4_000, seed=1))
    header, *lines = text.split("\n")[:-1]
    parsed = list(csv.DictReader(io.StringIO(text, newline="")))
    kept = [line for line, row in zip(lines, parsed, strict=True) if without_missing([row], markers) and row["land"]]
    assert len(kept) > 50
    sent = "\n".join([header, *kept]) + "\n"
    assert "".join(sampler.csv_of(sampler.completed(read_csv(sent.encode()), seed=2, as_spelled=True))) == sent
    lines = [line + "\n" for line in "".join(sampler.jsonl(4_000, seed=1)).split("\n")[:-1]]
    sent = "".join(line for line in lines if None not in json.loads(line).values())
    assert len(sent) > 50
    assert "".join(sampler.jsonl_of(sampler.completed(read_jsonl(sent.encode()), seed=2, as_spelled=True))) == sent


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("visit", "17/04/2023", "2023-04-17"),
        ("visit", "2023-04-17", "2023-04-17"),
        ("long", 'monday, 3 "june" 24', "2024-06-03"),
        ("day_of_year", "59366", None),
        ("day_of_year", "60366", "1960-12-31"),
        ("clock", "27 Oct 2024 02:30:00 CEST", "2024-10-27T00:30:00"),
        ("clock", "27 Oct 2024 02:30:00 CET", "2024-10-27T01:30:00"),
        ("clock", "27 Oct 2024 02:30:00+01:00", "2024-10-27T01:30:00"),
        ("clock", "27 Oct 2024 02:30:00Z", "2024-10-27T02:30:00"),
        ("clock", "2024-10-27T02:30:00", "2024-10-27T00:30:00"),
        ("clock", "2024-10-27T02:30:00+01:00", "2024-10-27T01:30:00"),
        ("here", "06/01/2024 12:00 AM +0200", "2024-05-31T22:00:00"),
        ("here", "2024-03-31T02:30:00", None),  # clocks skip it
        ("price", "1.234,50 €", 1234.5),
        ("price", "-1.234,50", -1234.5),
        ("price", "1.234", 1234.0),
        ("price", "1234.5", 1234.5),
        ("price", 1.234, 1.234),
        ("price", "1.23,50 €", None),
        ("gain", "($5.00)", -5.0),
        ("gain", "$1,234", 1234.0),
        ("count", "1 234", 1234),
        ("thousands", "1.234", 1234.0),
        ("level", "-1234,25", -1234.25),
        ("level", "0,50", 0.5),
        ("either", "1.234", 1234.0),
        ("either", 1.234, 1.234),
        ("member", "Yes", True),
    ],
)
def test_texts_are_read_as_the_schema_spells_them(sampler, name, text, value):
    if value is None:
        with pytest.raises(SamplingError, match=name):
            next(sampler.completed([{name: text}], seed=1, as_spelled=True))
        return
    place = sampler.names.index(name)
    (drawn,) = sampler.completed([{name: text}], seed=1, as_spelled=True)
    assert sampler.columns[place].to_values(drawn[place]) == [value]


def test_markers_of_a_column_stand_for_a_value_to_be_drawn(sampler):
    rows = sampler.complete([{"member": "unknown", "price": "NA", "land": ""}] * 50, seed=1)
    assert {row["member"] for row in rows} == {True, False}
    assert None not in {row["price"] for row in rows} | {row["land"] for row in rows}


def test_conditions_and_weights_may_be_spelled_and_plain_ones_mean_what_they_meant(sampler):
    def found(name, **asked):
        return next(sampler.chunks(200, seed=1, **asked))[name]

    assert all(value >= "2023-04-17" for value in found("visit", where="visit>=17/04/2023"))
    assert all(value >= "2023-04-17" for value in found("visit", where="visit>=2023-04-17"))
    assert len(set(found("visit"))) > 50  # a pattern without hours leaves days what they are
    assert all(value >= "2020-02-11" for value in found("us", where="us>=2020-02-11"))
    assert all(value < -1234.5 for value in found("price", where="price<-1.234,50 €"))
    assert max(found("thousands", where="thousands<90.000")) < 90  # plain
    assert set(found("level", where='level<"0,5"')) == {-1234.25}
    values = found("price", weights={"price": {"<0,00 €": 1, ">=1.000,00 €": 1}})
    assert sum(value < 0 for value in values) == 100
    assert all(value < 0 or value >= 1000 for value in values)


def test_times_without_a_zone_are_those_of_the_declared_one():
    sampler = tiny_sampler(ZONED)

    def first_and_last(sampler, **asked):
        times = [line.split(",")[1] for line in "".join(sampler.csv(3_000, seed=1, **asked)).split("\n")[1:-1]]
        return min(times), max(times)

    first, last = first_and_last(sampler, where="s>=2024-01-01T12:00:00")
    assert "2024-01-01T12:00:00" <= first < "2024-01-01T13:00:00"
    assert last > "2024-01-01T23:00:00"
    assert first_and_last(sampler, where="s>=2024-01-01T23:30:00")[0] >= "2024-01-01T23:30:00"
    assert first_and_last(sampler, where="s<2024-01-01T12:00:00Z")[1] < "2024-01-01T17:30:00"
    first, last = first_and_last(sampler, weights={"s": {"<2024-01-01T06:00:00": 1, ">=2024-01-01T18:00:00": 1}})
    assert first < "2024-01-01T01"
    assert last > "2024-01-01T23"
    with pytest.raises(SamplingError, match="from 2024-01-01T00:00:00 to 2024-01-02T00:00:00"):
        next(sampler.csv(5, where="s>=2024-01-03"))


def test_a_completed_row_keeps_its_clock_time():
    sampler = tiny_sampler(ZONED)
    sent = {"p": "a", "s": "2024-01-01T10:00:00"}
    assert sampler.complete([sent], seed=1) == [sent]
    assert "".join(sampler.csv_of(sampler.completed([sent], seed=1))) == "p,s\na,2024-01-01T10:00:00\n"
    utc = sent | {"s": "2024-01-01T10:00:00+00:00"}  # as rows in Parquet are sent
    assert sampler.complete([utc], seed=1) == [sent | {"s": "2024-01-01T15:30:00"}]


@pytest.mark.parametrize("relation", ["s >= '2024-01-01T12:00:00'", "s + 0 >= '2024-01-01T06:30:00+00:00'"])
def test_times_in_relations_are_those_of_the_declared_zone(relation):
    schema = ZONED | {"relations": [relation]}
    tree = parse_table_schema(schema).understood.inequalities[0].tree
    assert tree[2] == ["moment", 1_704_090_600, 1, "datetime"]
    times = [line.split(",")[1] for line in "".join(tiny_sampler(schema).csv(500, seed=1)).split("\n")[1:-1]]
    assert "2024-01-01T12:00:00" <= min(times) < "2024-01-01T13:00:00"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("count", "inf"),
        ("count", "9" * 5_000),
        ("price", "€"),
        ("long", 'sunday, 1 "\u017feptember" 24'),
        ("clock", "0000-00-00"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(sampler, name, text):
    with pytest.raises(SamplingError, match=f"row 1: {name}"):
        next(sampler.completed([{name: text}], as_spelled=True))


def test_times_of_parquet_are_utc_or_those_of_their_zone():
    moment = dt.datetime(2024, 1, 1, 10)  # noqa: DTZ001 - without a zone, as Parquet may hold it
    there = moment.replace(tzinfo=dt.timezone(dt.timedelta(hours=2)))
    sampler = tiny_sampler(ZONED)
    found = [row["s"] for row in sampler.complete([{"s": _plain(each)} for each in (moment, there)], seed=1)]
    assert found == ["2024-01-01T15:30:00", "2024-01-01T13:30:00"]
