"""CSV for Excel, read back as a spreadsheet reads it: by its first bytes, with its separator and its decimal sign."""

import codecs
import csv
import datetime as dt
import io
from decimal import Decimal

import pytest

from service.samples.request import Wanted
from service.samples.streams import stream, stream_rows
from tests.tiny_generators import tiny_sampler

DAYS = {"minimum": "2023-01-01", "maximum": "2023-12-31"}
TEXTS = ["Köln; Süd", 'a "b"', "two\nlines", "a,b", "=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1", "0311"]
CITY = {"name": "Straße; =A1", "type": "string", "constraints": {"enum": TEXTS, "required": True}}
PLAIN = [
    CITY,
    {"name": "cost", "type": "number", "decimals": 2, "constraints": {"minimum": -100, "maximum": 100}},
    {"name": "rate", "type": "number", "constraints": {"enum": [0.5, -0.25, 3], "required": True}},
    {"name": "net", "type": "number", "decimals": 2, "trailingZeros": True, "constraints": {"enum": [0.5, 12]}},
    {"name": "years", "type": "integer", "decimals": 1, "trailingZeros": True, "constraints": {"enum": [7, 12]}},
    {
        "name": "own",
        "type": "number",
        "decimals": 1,
        "missingValues": ["=n/a"],
        "constraints": {"minimum": 0, "maximum": 5},
    },
    {"name": "day", "type": "date", "constraints": DAYS},
    {"name": "seen", "type": "datetime", "constraints": DAYS},
    {"name": "weight", "type": "number", "decimals": 1, "suffix": " p.c.", "constraints": {"enum": [0.5, 2]}},
]
GERMAN = [
    *PLAIN,
    {
        "name": "betrag",
        "type": "number",
        "decimals": 2,
        "decimalChar": ",",
        "groupChar": ".",
        "suffix": " €",
        "constraints": {"minimum": -5000, "maximum": 5000, "required": True},
    },
]


def opened(fields, *, separator, **options):
    """Columns of the cells that a spreadsheet of this separator shows, and those of the plain CSV of the same rows."""
    sampler = tiny_sampler({"fields": fields})
    written = b"".join(stream(sampler, Wanted(2_000, seed=4, **options), "excel"))
    assert written.startswith(codecs.BOM_UTF8)
    plain = b"".join(stream_rows(sampler, rows=2_000, seed=4, format="csv"))
    found = csv.reader(io.StringIO(written.decode("utf-8-sig"), newline=""), delimiter=separator)
    kept = csv.reader(io.StringIO(plain.decode(), newline=""))
    (names, *rows), (plain_names, *plain_rows) = found, kept
    assert len(rows) == 2_000
    assert names == plain_names
    return dict(zip(names, zip(*rows, strict=True), strict=True)), dict(
        zip(names, zip(*plain_rows, strict=True), strict=True)
    )


def number(text, decimal):
    """As a spreadsheet of this decimal sign reads it; a text with the other sign is no number there."""
    if not text or text.startswith("'"):
        return None
    assert {",": ".", ".": ","}[decimal] not in text, text
    return Decimal(text.replace(decimal, "."))


@pytest.mark.parametrize(
    ("fields", "options", "separator", "decimal"),
    [
        (PLAIN, {}, ",", "."),
        (PLAIN, {"decimal_comma": True}, ";", ","),
        (GERMAN, {}, ";", ","),
    ],
    ids=["point", "comma of the page", "comma of a column"],
)
def test_numbers_are_numbers_and_texts_are_texts(fields, options, separator, decimal):
    shown, kept = opened(fields, separator=separator, **options)
    for name in ("cost", "rate", "net", "years"):
        assert any("." in cell for cell in kept[name])
        assert [number(cell, decimal) for cell in shown[name]] == [number(cell, ".") for cell in kept[name]]
    assert {number(cell, decimal) for cell in shown["own"]} == {
        number(cell.replace("=n/a", ""), ".") for cell in kept["own"]
    }
    dangerous = {"=1+1", "+1+1", "-1+1", "@SUM(A1)", "\t=1"}
    assert set(shown[CITY["name"]]) == {f"'{text}" if text in dangerous else text for text in TEXTS}
    assert shown["day"] == kept["day"]
    moments = [dt.datetime.strptime(cell, "%Y-%m-%d %H:%M:%S") for cell in shown["seen"] if cell]  # noqa: DTZ007 - of no zone
    assert moments == [dt.datetime.fromisoformat(cell) for cell in kept["seen"] if cell]
    assert set(shown["weight"]) == set(kept["weight"])  # a unit that is declared stays as it is


def test_amounts_that_are_declared_stay_as_they_are_spelled():
    shown, kept = opened(GERMAN, separator=";")
    assert shown["betrag"] == kept["betrag"]
    assert any(cell.startswith("-") for cell in shown["betrag"])
    assert any("." in cell and "," in cell for cell in shown["betrag"])


def test_a_marker_of_the_table_that_holds_the_separator_is_one_cell():
    fields = [{"name": "a", "type": "boolean"}, {"name": "b", "type": "number", "constraints": {"enum": [1.5]}}]
    sampler = tiny_sampler({"fields": fields, "missingValues": ["n;a"]})
    text = b"".join(stream(sampler, Wanted(200, seed=1, decimal_comma=True), "excel")).decode("utf-8-sig")
    rows = list(csv.reader(io.StringIO(text), delimiter=";"))
    assert {len(row) for row in rows} == {2}
    assert {row[1] for row in rows[1:]} == {"1,5", "n;a"}
