"""What a spreadsheet would carry out is disarmed in CSV; numbers and every other format stay as they are."""

import csv
import io
import json

import pytest

from service.samples.formats import FORMATS, formats_of
from service.samples.formulas import disarmed
from service.samples.streams import stream_rows
from tests.tiny_generators import tiny_sampler

DANGEROUS = (
    "=1+1",
    '=HYPERLINK("http://evil","x")',
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "\uff1d1",
)
HARMLESS = (
    *("-", "+", "-1", "+5.25", "-1e5", "1,000", "-12%", "a=1", "'=1", "", "Rome", "x-1"),
    *("-5,00 €", "-$5", "-1\u202f234,5", "-3 %"),
)


@pytest.mark.parametrize("text", DANGEROUS)
def test_what_a_spreadsheet_would_carry_out_gets_an_apostrophe(text):
    assert disarmed(text) == "'" + text


@pytest.mark.parametrize("text", HARMLESS)
def test_everything_else_stays(text):
    assert disarmed(text) == text


def sampler():
    enum = [*DANGEROUS, "-1", "plain"]
    fields = [
        {"name": "=A1", "type": "string", "constraints": {"enum": enum, "required": True}},
        {"name": "n", "type": "integer", "constraints": {"enum": [-2, -1], "required": True}},
    ]
    return tiny_sampler({"fields": fields}, bias=[0.0] * (len(enum) + 2))


def rows_of(**options):
    return b"".join(stream_rows(sampler(), rows=2_000, seed=3, **options)).decode()


def test_csv_is_disarmed_on_demand_and_otherwise_exact():
    kept = list(csv.reader(io.StringIO(rows_of(format="csv", formulas="keep"), newline="")))
    escaped = list(csv.reader(io.StringIO(rows_of(format="csv", formulas="escape"), newline="")))
    assert {row[0] for row in kept[1:]} == {*DANGEROUS, "-1", "plain"}
    assert escaped == [[disarmed(row[0]), row[1]] for row in kept]
    assert {row[1] for row in escaped[1:]} == {"-2", "-1"}
    assert escaped[0] == ["'=A1", "n"]


TEXTS = [name for name in formats_of("rows") if FORMATS[name].media_type.startswith("text/")]


@pytest.mark.parametrize("name", TEXTS)
def test_every_text_format_is_disarmed_on_demand(name):
    """A spreadsheet opens text files, whatever they are called: a declared category and a column's name at least."""
    assert "csv" in TEXTS
    written, kept = rows_of(format=name, formulas="escape"), rows_of(format="csv", formulas="keep")
    for dangerous in (*(text for text in DANGEROUS if '"' not in text), "=A1"):
        assert dangerous in kept
        assert f"'{dangerous}" not in kept
        assert dangerous in written, "this format writes such texts otherwise: look for them as it does"
        assert written.count(f"'{dangerous}") == written.count(dangerous) > 0


def test_no_other_format_is_touched():
    kept = [json.loads(line) for line in rows_of(format="jsonl", formulas="escape").splitlines()]
    assert {row["=A1"] for row in kept} == {*DANGEROUS, "-1", "plain"}


def test_csv_for_a_spreadsheet_is_always_disarmed():
    assert rows_of(format="excel", formulas="keep") == rows_of(format="excel", formulas="escape")


def test_a_missing_marker_of_one_column_is_disarmed_too():
    fields = [
        {"name": "n", "type": "integer", "missingValues": ["=1+1"], "constraints": {"minimum": 0, "maximum": 9}},
        {"name": "c", "type": "string", "missingValues": ["@A1"], "constraints": {"enum": ["a"]}},
    ]
    sampler = tiny_sampler({"fields": fields})
    written = b"".join(stream_rows(sampler, rows=500, seed=1, format="csv", formulas="escape")).decode()
    assert {"'=1+1", "'@A1"} < {cell for row in csv.reader(io.StringIO(written)) for cell in row}
    assert "\n=1+1" not in written
    assert ",@A1" not in written
