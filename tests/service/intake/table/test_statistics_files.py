"""Files of SAS, SPSS and Stata: those the programs wrote themselves, dates in every display format, and labels."""

from __future__ import annotations

import datetime as dt
import gzip
from pathlib import Path

import polars as pl
import pyreadstat
import pytest

from service.base.errors import InvalidFile
from service.domain.table_schema import parse_table_schema
from service.intake.table.draft import draft_table
from service.intake.table.statistics_dates import more_formats
from tests.service.intake.table import table_files as files

FOLDER = Path(__file__).parent / "statistics_files"
DAY = {"type": "date", "constraints": {"minimum": "1500-01-01", "maximum": "2100-12-31"}}
MOMENT = {"type": "datetime", "constraints": {"minimum": "1500-01-01T00:00:00", "maximum": "2100-12-31T23:59:59"}}

LEFT_OUT = {"type": "string", "role": "ignore"}


def moment(text):
    return dt.datetime.fromisoformat(text)


def fields(**of_name):
    return parse_table_schema({"fields": [{"name": name, **field} for name, field in of_name.items()]})


def enum(*values):
    return {"type": "string", "constraints": {"enum": list(values)}}


SAMPLE = {
    "mychar": enum(*"abcde"),
    "mynum": {"type": "number", "decimals": 1, "constraints": {"minimum": -2_000, "maximum": 2_000}},
    "mydate": DAY,
    "dtime": MOMENT,
    "mylabl": {"type": "integer", "constraints": {"enum": [1, 2]}},
    "myord": LEFT_OUT,
    "mytime": enum("10:10:10", "23:10:10", "00:00:00", "16:10:10"),
}
DAYS = [dt.date(2018, 5, 6), dt.date(1880, 5, 6), dt.date(1960, 1, 1), dt.date(1583, 1, 1), None]


def check_sample(table, labels):
    columns = [table[name].to_list() for name in table.columns]
    assert columns[:3] == [list("abcde"), [1.1, 1.2, -1000.3, -1.4, 1000.3], DAYS]
    assert columns[3][:2] == [moment("2018-05-06T10:10:10"), moment("1880-05-06T10:10:10")]
    assert columns[4] == labels
    assert columns[5] == ["10:10:10", "23:10:10", "00:00:00", "16:10:10", None]


@pytest.mark.slow
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_file_that_sas_wrote_is_read(is_packed, reader):
    content = (FOLDER / "sample.sas7bdat.gz").read_bytes()
    path = reader.write(content if is_packed else gzip.decompress(content))
    answer, table = reader.read(path, fields(**SAMPLE))
    check_sample(table, [1, 2, 1, 2, 1])
    assert any("no value labels of its own" in notice for notice in answer["notices"])
    drafted = {field["name"]: field["type"] for field in draft_table(path).schema["fields"]}
    assert (drafted["mydate"], drafted["dtime"], drafted["mynum"]) == ("date", "datetime", "number")


def test_a_portable_file_that_spss_wrote_is_read_with_its_labels(reader):
    declared = {name.upper(): field for name, field in SAMPLE.items()} | {"MYLABL": enum("Male", "Female")}
    _, table = reader.read(reader.write((FOLDER / "sample.por").read_bytes()), fields(**declared))
    check_sample(table, ["Male", "Female", "Male", "Female", "Male"])


@pytest.mark.slow
def test_dates_of_sas_are_dates_however_they_are_shown(reader):
    """dtc4 is shown as month and year, yr as a year; both hold days."""
    path = reader.write(gzip.decompress((FOLDER / "date_test.sas7bdat.gz").read_bytes()))
    others = dict.fromkeys(("patno", "dtc2", "dtc3", "tm1", "dt1"), LEFT_OUT)
    _, table = reader.read(path, fields(dtc1=DAY, dtc4=DAY, yr=DAY, dt2=MOMENT, **others))
    assert table.row(0) == (
        dt.date(2022, 1, 1),
        dt.date(2023, 7, 1),
        dt.date(2023, 1, 1),
        moment("2001-02-13T23:23:00"),
    )
    assert {field["name"]: field["type"] for field in draft_table(path).schema["fields"]}["yr"] == "date"


@pytest.mark.parametrize("day", ["%td", "%tdDD/NN/CCYY", "%tdMon_DD,_CCYY", "%-td", "%d"])
@pytest.mark.parametrize("shown", ["%tc", "%tcCCYY-NN-DD_HH:MM", "%tCDD/NN/CCYY_HH:MM:SS"])
def test_dates_of_stata_are_dates_in_every_layout(day, shown, reader, tmp_path):
    frame = pl.DataFrame({"day": [22_000.0, 0.0], "moment": [1_000.0, 86_400_000.0]})
    content = files.statistics(
        pyreadstat.write_dta, tmp_path, frame, "dta", variable_format={"day": day, "moment": shown}
    )
    _, table = reader.read(reader.write(content), fields(day=DAY, moment=MOMENT))
    assert table["day"].to_list() == [dt.date(2020, 3, 26), dt.date(1960, 1, 1)]
    assert table["moment"].to_list() == [moment("1960-01-01T00:00:01"), moment("1960-01-02T00:00:00")]


@pytest.mark.parametrize("day", ["DATE9", "EDATE12", "QYR8", "MOYR10", "WKYR10", "JDATE9"])
@pytest.mark.parametrize(("ending", "compress"), [("sav", False), ("zsav", True)])
def test_dates_of_spss_are_dates_in_every_width(day, ending, compress, reader, tmp_path):
    """And stay missing where they are declared missing."""
    seconds = [13_800_000_000.0, 13_800_086_400.0, 12_219_379_200.0]
    frame = pl.DataFrame({"day": seconds, "moment": seconds})
    content = files.statistics(
        pyreadstat.write_sav,
        tmp_path,
        frame,
        ending,
        compress=compress,
        variable_format={"day": day, "moment": "DATETIME25.3"},
        missing_ranges={"day": [seconds[2]]},
    )
    answer, table = reader.read(reader.write(content), fields(day=DAY, moment=MOMENT))
    assert table["day"].to_list() == [dt.date(2020, 2, 2), dt.date(2020, 2, 3), None]
    assert table["moment"].to_list()[2] == moment("1970-01-01T00:00:00")
    assert any("'day': 1 cell holds" in notice for notice in answer["notices"])


def test_what_is_no_date_stays_a_number():
    plain = ["BEST12", "F8.2", "DOLLAR8.2", "COMMA9", "PERCENT8", "$CHAR8", "TIME8", "MMSS5", "12", "Z5", "DATED", None]
    assert more_formats("SAS", plain) == {}
    assert more_formats("SPSS", ["F8.2", "COMMA8", "TIME8", "DTIME12", "MONTH9", "A8", None]) == {}
    assert more_formats("Stata", ["%9.0g", "%tm", "%tq", "%tcHH:MM:SS", "%12s", None]) == {}


@pytest.mark.parametrize(("format_", "what"), [("%tm", "months"), ("%tqCCYY!Qq", "quarters"), ("%tw", "weeks")])
def test_periods_of_stata_stay_numbers_and_are_said(format_, what, reader, tmp_path):
    frame = pl.DataFrame({"period": [700.0, 701.0]})
    content = files.statistics(pyreadstat.write_dta, tmp_path, frame, "dta", variable_format={"period": format_})
    number = {"type": "integer", "constraints": {"minimum": 0, "maximum": 999}}
    answer, table = reader.read(reader.write(content), fields(period=number))
    assert table["period"].to_list() == [700, 701]
    assert any(f"'period' counts {what}" in notice for notice in answer["notices"])


def test_a_catalogue_of_formats_is_no_table(reader):
    content = bytes(12) + bytes.fromhex("c2ea8163b31411cfbd92080009c7318c181f1011") + bytes(500)
    with pytest.raises(InvalidFile, match=r"SAS catalogue.*Give the \.sas7bdat"):
        reader.read(reader.write(content), fields(**SAMPLE))
