"""What a draft says of cells that no type reads, and how it keeps moments and amounts as they are written."""

from __future__ import annotations

import datetime as dt
import json
import re

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest

from service.base.errors import InvalidFile
from service.domain.table_schema import parse_table_schema
from service.intake.table.draft import draft_table
from service.intake.table.drafting.shapes import SHAPES, shape_of
from service.samples.streams import stream_rows
from tests.tiny_generators import tiny_sampler

ROWS = 400
MINUS = "\u2212"


def drafted(reader, make):
    """Of a column by row beside one of categories; the draft reads its own file."""
    frame = pl.DataFrame({"x": [make(row) for row in range(ROWS)], "sex": ["F", "M"] * (ROWS // 2)})
    path = reader.write(frame)
    draft = draft_table(path)
    reader.read(path, parse_table_schema(json.loads(json.dumps(draft.schema))))
    said = " ".join(one.for_the_owner() for one in draft.findings if one.column == "x")
    return draft.schema["fields"][0], said


UNREAD = {
    "times of day": (lambda row: f"{row % 24:02}:{row % 60:02}", "times of day"),
    "durations": (lambda row: f"{row}:{row % 60:02}:{row * 7 % 60:02}", "times of day or durations"),
    "months in German": (
        lambda row: f"{1 + row % 28}. {['Mai', 'Dezember', 'März'][row % 3]} {1900 + row % 99}",
        "not English",
    ),
    "months in Spanish": (
        lambda row: f"{1 + row % 28} de {['enero', 'abril'][row % 2]} de {1900 + row % 99}",
        "English",
    ),
    "two spellings of dates": (
        lambda row: f"20{row % 60 + 10}-01-{row % 28 + 1:02}" if row % 2 else f"17.{row % 11 + 1}.20{row % 60 + 10}",
        "more than one way",
    ),
    "a minus behind": (lambda row: f"{row}.5{'-' if row % 3 else ''}", "minus is behind"),
    "a minus of print": (lambda row: f"{MINUS if row % 3 else ''}{row}.5", "another sign than -"),
    "sides": (lambda row: f"{row}.50 {['CR', 'DR'][row % 2]}", "CR and DR"),
    "groups of two": (lambda row: f"{1 + row % 9},{row % 90 + 10},{row % 900 + 100}", "groups of two digits"),
    "both decimal marks": (lambda row: f"{row}{'.,'[row % 2]}25", "a comma before the decimals in some"),
    "several currencies": (lambda row: f"{'$€£'[row % 3]}{row}.25", "units that are not all the same"),
    "several units": (lambda row: f"{row} {['mg', 'µg', 'ml'][row % 3]}", "units that are not all the same"),
    "weeks": (lambda row: f"{1900 + row // 50}-W{1 + row % 50:02}", "months, quarters or weeks"),
    "places": (lambda row: f"48.{row:03}, 16.{row:03}", "places"),
    "lists": (lambda row: f"A{row % 70};B{row % 30}", "several answers"),
    "objects": (lambda row: f'{{"a": {row}}}', "lists or objects"),
    "beyond exact numbers": (lambda row: f"{row + 1}.25E+20", "beyond 2^53"),
    "hours and minutes": (lambda row: f"{row}h{row % 60:02}m", "times of day or durations"),
    "durations of ISO 8601": (lambda row: f"PT{row}H{row % 60}M", "times of day or durations"),
    "the hour 24": (lambda row: f"2024-01-{row % 28 + 1:02} {1 + row % 24:02}:00", "hour 24"),
    "limits of detection": (lambda row: f"0.{row:03}" if row % 3 else "<0.005", "with < or > before them"),
    "flags": (lambda row: f"{row}.5{['', ' b', ' p'][row % 3]}", "a letter behind them"),
    "thousands and millions": (lambda row: f"{row}.5{'KMB'[row % 3]}", "units that are not all the same"),
    "short dates in three ways": (
        lambda row: [f"0{1 + row % 9}/08/2022", f"2021-02-{row % 28 + 1:02}", f"{row % 28 + 1:02}.03.{row % 90 + 10}"][
            row % 3
        ],
        "more than one way",
    ),
    "infinite": (lambda row: f"{row % 300}.{row:04}" if row % 7 else "-inf", "no finite numbers"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", UNREAD)
def test_what_no_type_reads_is_named_with_what_to_do(reader, name):
    make, what = UNREAD[name]
    field, said = drafted(reader, make)
    assert field["role"] == "ignore"
    assert what in said
    assert "names, identifiers or free text" not in said
    assert not any(str(make(row)) in json.dumps(field, ensure_ascii=False) for row in range(ROWS))


@pytest.mark.parametrize(
    "texts",
    [
        ["Anna Huber", "Max Gruber"],
        ["12345A", "22B"],
        ["P-17", "P-18"],
        ["2-room flat", "3-room flat"],
        ["a, b", "c, d"],
    ],
)
def test_other_texts_have_no_form(texts):
    assert shape_of(texts) == ("", "")


@pytest.mark.parametrize(
    "text", ["a ; " * 5_000 + "x" * 50, "1" * 50_000 + "?", "1,11" * 9_000 + "?", "$ " * 5_000, "1-1-1 " * 5_000]
)
def test_a_long_cell_is_looked_at_in_steps_of_its_length(text):
    """The cells are chosen by who uploads: a form that tries all ways to cut them never ends."""
    assert not any(shape.form.fullmatch(text) for shape in SHAPES)


SPELLED = {
    "narrow spaces": (lambda row: f"{1 + row}\u202f{row % 900 + 100},50\u00a0€", {"groupChar": "\u202f", "suffix": "\u00a0€", "decimalChar": ","}),
    "no-break spaces": (lambda row: f"{1 + row}\u00a0{row % 900 + 100},50", {"groupChar": "\u00a0", "decimalChar": ","}),
    "Z": (lambda row: f"2024-01-17T{row % 24:02}:{row % 60:02}:17Z", {"format": "%Y-%m-%dT%H:%M:%SZ"}),
    "one offset": (lambda row: f"2024-01-17T{row % 24:02}:{row % 60:02}:17+00:00", {"format": "%Y-%m-%dT%H:%M:%S%:z"}),
    "local dates, offsets": (lambda row: f"17.01.2024 {row % 24:02}:{row % 60:02} +0100", {"format": "%d.%m.%Y %H:%M %z"}),
    "a space": (lambda row: f"2024-01-17 {row % 24:02}:{row % 60:02}", {"format": "%Y-%m-%d %H:%M"}),
    "capitals": (lambda row: f"{1 + row % 28:02}-JAN-24", {"type": "date", "format": "%d-%^b-%y"}),
    "no capitals": (lambda row: f"{1 + row % 28:02}jan2024", {"type": "date", "format": "%d%,b%Y"}),
    "small pm": (lambda row: f"01/{1 + row % 28:02}/2024 {1 + row % 12:02}:30 pm", {"format": "%m/%d/%Y %I:%M %,p"}),
    "capital PM": (lambda row: f"01/{13 + row % 9}/2024 {1 + row % 12:02}:30 PM", {"format": "%m/%d/%Y %I:%M %p"}),
    "of Oracle": (
        lambda row: f"{1 + row % 28:02}-JAN-24 {1 + row % 12:02}.30.00.000000 PM",
        {"type": "datetime", "format": "%d-%^b-%y %I.%M.%S.%f %p"},
    ),
    "signs of Japan": (lambda row: f"2024年01月{1 + row % 28:02}日", {"type": "date", "format": "%Y年%m月%d日"}),
    "a dash before the year": (lambda row: f"{1 + row % 28:02}-01-2024", {"type": "date", "format": "%d-%m-%Y"}),
}  # fmt: skip


@pytest.mark.parametrize("name", SPELLED)
def test_how_cells_are_written_is_in_the_draft(reader, name):
    make, words = SPELLED[name]
    field, _ = drafted(reader, make)
    assert field.items() >= words.items()


def test_the_usual_way_of_moments_needs_no_word(reader):
    field, said = drafted(reader, lambda row: f"2024-01-17T{row % 24:02}:{row % 60:02}:17")
    assert (field["type"], "format" in field, said) == ("datetime", False, "")


@pytest.mark.parametrize(
    "make",
    [
        lambda row: "2024-01-17T03:15" if row % 2 else "2024-01-17 04:15:17",
        lambda row: "2024-01-17" if row % 2 else "2024-01-17 04:15",
    ],
)
def test_moments_of_several_forms_are_read_without_a_format(reader, make):
    field, _ = drafted(reader, make)
    assert (field["type"], "format" in field) == ("datetime", False)


@pytest.mark.parametrize("zone", ["Z", " Z", " GMT", " UTC", "+00:00", "+0000", "+01:00", "-0500"])
@pytest.mark.parametrize("clock", ["2024-{:02}-{:02}T{:02}:00:00", "{1:02}.{0:02}.2024 {2:02}:30"])
def test_one_zone_of_all_cells_is_written_as_it_stands_there(reader, clock, zone):
    """Also at the ends of a year, which is another one in UTC."""
    days = [(1, 1), (6, 17), (12, 31)]
    field, _ = drafted(reader, lambda row: clock.format(*days[row % 3], row % 24) + zone)
    schema = {"fields": [field, {"name": "sex", "type": "string", "constraints": {"enum": ["F", "M"]}}]}
    text = b"".join(stream_rows(tiny_sampler(schema), rows=50, format="csv", seed=3))
    cells = pl.read_csv(text, infer_schema=False)["x"].to_list()
    shape = re.sub("[0-9]", "[0-9]", re.escape(clock.format(1, 1, 0))) + re.escape(zone)
    assert all(re.fullmatch(shape, cell) for cell in cells), cells
    if "T" in clock and not zone.startswith(" "):
        bounds = {"minimum": "2024-01-01T00:00:00", "maximum": "2024-12-31T23:59:59"}
        assert field["constraints"].items() >= bounds.items()
    assert reader.read(reader.write(text), parse_table_schema(schema))[0]["notices"] == []


ZONES = ("Z", "+00:00", " UTC", " CET", "-0500")


def test_zones_that_are_named_in_several_ways_are_read_and_said(reader):
    field, said = drafted(reader, lambda row: f"2024-01-17 {row % 24:02}:{row % 60:02}:17{ZONES[row % 5]}")
    assert field["format"] == "%Y-%m-%d %H:%M:%S %Z"
    assert "in more than one way" in said
    assert "are all written in UTC" in said
    assert "CET" in said
    assert "CET" not in json.dumps(field), "which zones there are was read from the rows"


ASKED = {
    "a sum below": (
        lambda row: "21831" if row == 399 else str(18 + row % 70),
        "largest number is of one row",
        "'21831'",
    ),
    "a slip": (lambda row: "-5000" if row == 7 else f"{row}.25", "smallest number is of one row", "'-5000'"),
    "versions": (lambda row: ["1.1", "1.10", "1.2"][row % 3], "1.1 and 1.10 are one value", "'1.10'"),
    "a no-break space": (
        lambda row: ["at home", "at\u00a0home", "away"][row % 3],
        "look like another one",
        "'at home'",
    ),
    "letters of two characters": (lambda row: ["Zoë", "Zoe\u0308"][row % 2], "look like another one", "'Zoë'"),
}


@pytest.mark.parametrize("name", ASKED)
def test_what_only_the_owner_can_tell_is_asked_with_the_cells(reader, name):
    make, asked, cell = ASKED[name]
    field, said = drafted(reader, make)
    assert asked in said
    assert cell in said
    assert cell.strip("'") not in field["description"].replace("1.10", "") or name == "versions"


@pytest.mark.parametrize(
    "make",
    [
        lambda row: str(18 + row % 70),
        lambda row: f"{row * row}.5",
        lambda row: ["1.10", "1.25", "1.30"][row % 3],
        lambda row: ["1.0", "1.5", "1.25"][row % 3],
        lambda row: ["home", "Home", "away"][row % 3],
    ],
)
def test_usual_columns_are_not_asked_about(reader, make):
    _, said = drafted(reader, make)
    assert said == ""


def test_no_category_is_a_negative_zero(reader):
    field, _ = drafted(reader, lambda row: ["-0.0", "0.0", "1.5"][row % 3])
    assert [str(value) for value in field["constraints"]["enum"]] == ["0.0", "1.5"]


def test_names_without_rows_are_said_to_be_so(reader):
    with pytest.raises(InvalidFile, match="no rows below"):
        draft_table(reader.write("age,sex\n"))


def test_all_columns_of_types_that_cannot_be_read_are_named_at_once(tmp_path):
    table = pa.table(
        {
            "visits": pa.array([[1, 2]]),
            "at": pa.array([dt.time(8, 30)]),
            "stay": pa.array([dt.timedelta(hours=3)]),
            "scan": pa.array([b"x"]),
            "age": pa.array([41]),
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    with pytest.raises(InvalidFile) as refused:
        draft_table(tmp_path / "t.parquet")
    for said in (
        "'visits' (list)",
        "'at' (time of day)",
        "'stay' (duration)",
        "'scan' (binary)",
        "whole numbers of seconds",
    ):
        assert said in refused.value.detail
    assert "'age'" not in refused.value.detail


def test_value_labels_that_several_codes_share_are_said(tmp_path):
    frame = pd.DataFrame({"level": [1.0, 2.0, 3.0] * 40, "ward": [1.0, 2.0] * 60})
    labels = {"level": {1: "low", 2: "low", 3: "high"}, "ward": {1: "A", 2: "B"}}
    pyreadstat.write_sav(frame, tmp_path / "t.sav", variable_value_labels=labels)
    notices = draft_table(tmp_path / "t.sav").notices
    assert [notice for notice in notices if "for several codes" in notice] == [
        "Column 'level': 1 value label stands for several codes, which become one value. Where they differ, give each code a label of its own."
    ]
