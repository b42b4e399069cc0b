"""What is refused before an order is paid."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import pytest

from imprimatur.errors import InvalidInput, NameTaken
from imprimatur.preflight import check_before_paying, check_known_budget, check_name

SCHEMA = {
    "fields": [
        {"name": "sex", "type": "string", "constraints": {"enum": ["F", "M"]}},
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}},
        {"name": "size", "type": "number", "constraints": {"enum": [1, 2.5]}},
        {"name": "Admitted", "type": "boolean"},
        {"name": "day", "type": "date", "constraints": {"minimum": "2000-01-01", "maximum": "2020-12-31"}},
        {"name": "note", "type": "string", "role": "ignore"},
    ]
}
IMAGES = {"type": "image", "height": 2, "width": 2, "channels": 1, "classes": ["cat", "dog"]}


@pytest.fixture
def folder_without_writing(tmp_path):
    """Also a superuser cannot make a file in it."""
    return Path("/proc") if os.geteuid() == 0 else read_only(tmp_path / "closed")


def read_only(folder):
    folder.mkdir()
    folder.chmod(0o500)
    return folder


def test_where_no_file_can_be_made(folder_without_writing, tmp_path):
    (tmp_path / "file").write_text("")
    for path, why in (
        (folder_without_writing / "x.csv", "no file can be written"),
        (folder_without_writing / "new" / "x.csv", "no file can be written"),
        (tmp_path / "file" / "x.csv", "no file can be written"),
        (tmp_path / ("x" * 300 + ".csv"), "no file can be written"),
        (tmp_path, "folder"),
        (tmp_path / "x.doc", r"end it in \.csv, \.parquet, \.jsonl, \.arrow"),
        (tmp_path / "x.png", "the ending says no format"),
    ):
        with pytest.raises(InvalidInput, match=why):
            check_before_paying(SCHEMA, output=path)
        if path.suffix == ".csv":
            with pytest.raises(InvalidInput, match=why):
                check_before_paying(SCHEMA, other_outputs=[path])


def test_looking_leaves_nothing_and_changes_nothing(tmp_path):
    (tmp_path / "x.csv").write_text("before")
    assert check_before_paying(SCHEMA, output=tmp_path / "x.csv") == "csv"
    assert check_before_paying(SCHEMA, output=tmp_path / "new" / "folder" / "x.PQ") == "parquet"
    assert check_before_paying(IMAGES, output=str(tmp_path / "x.png"), where={"label": "dog"}) == "png"
    assert check_before_paying(SCHEMA, output="-", format="arrow") == "arrow"
    assert check_before_paying(SCHEMA) is None
    assert check_before_paying(SCHEMA, output=tmp_path / "x", rows=0) is None
    assert (tmp_path / "x.csv").read_text() == "before"
    assert [path.name for path in tmp_path.iterdir()] == ["x.csv"]


def test_two_files_of_one_name_and_the_private_file(tmp_path):
    (tmp_path / "t.csv").write_text("sex\nF\n")
    (tmp_path / "link.csv").symlink_to(tmp_path / "t.csv")
    for output in (tmp_path / "t.csv", tmp_path / "link.csv"):
        with pytest.raises(InvalidInput, match="the private file"):
            check_before_paying(SCHEMA, output=output, source=tmp_path / "t.csv")
    with pytest.raises(InvalidInput, match="two outputs"):
        check_before_paying(SCHEMA, output=tmp_path / "x.csv", other_outputs=[tmp_path / "." / "x.csv"])
    with pytest.raises(InvalidInput, match="rows"):
        check_before_paying(SCHEMA, rows=-1)


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ({"Sex": "F"}, "did you mean 'sex'"),
        ({"xyz": "F"}, "the columns are 'sex', 'age'"),
        ({"sex": "X"}, "has no value 'X'; its values are 'F', 'M'"),
        ({"age": 121}, "outside 0 to 120"),
        ({"age": 5, "sex": "f"}, "has no value 'f'"),
        ({"size": 2}, "no value '2'"),
        ({"Admitted": "yes"}, "its values are 'false', 'true'"),
        ({"note": "x"}, "stays out"),
    ],
)
def test_conditions_that_no_row_can_meet(where, why):
    with pytest.raises(InvalidInput, match=why) as refused:
        check_before_paying(SCHEMA, where=where)
    assert (refused.value.code, refused.value.values) == ("invalid_input", {"where": "where"})


def test_conditions_that_some_row_may_meet():
    for where in (
        {"Admitted": True, "sex": "F"},
        {"Admitted": "true"},
        {"size": "2.50"},
        {"age": {">=": 65}},
        {"age": {"minimum": 65}},
        {"sex": ["F", "M"]},
        {"day": dt.date(2010, 1, 1)},
        {"sex": None},
    ):
        check_before_paying(SCHEMA, where=where)
    check_before_paying({**IMAGES, "classes": 10}, where={"label": 3})
    for where in ({"label": 11}, {"age": 3}):
        with pytest.raises(InvalidInput):
            check_before_paying({**IMAGES, "classes": 10}, where=where)


def test_a_name_that_would_name_two_datasets():
    stored = {"id": "d", "name": "people", "schema": SCHEMA}
    described = {"fields": [field | {"title": "…"} for field in SCHEMA["fields"]], "description": "…"}
    check_name([stored], "people", described)
    check_name([stored], "others", {"fields": []})
    with pytest.raises(NameTaken, match="named 'people', too"):
        check_name([stored], "people", {"fields": SCHEMA["fields"][:1]})


def test_a_budget_that_would_be_ignored():
    known = {"id": "d", "epsilon": 3.0, "delta": 1e-6}
    check_known_budget(known, None)
    check_known_budget(known, 3, 1e-6)
    with pytest.raises(InvalidInput, match="budget of epsilon 3 for ever, as dataset d"):
        check_known_budget(known, 10.0)
    with pytest.raises(InvalidInput, match="delta"):
        check_known_budget(known, 3.0, 1e-5)


RICH = {
    "missingValues": ["", "NA"],
    "fields": [
        {"name": "id", "type": "string", "role": "identifier"},
        {"name": "note", "type": "string", "role": "free_text", "placeholder": "x"},
        {"name": "skip", "type": "integer", "role": "ignore"},
        {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m", "a&b"], "required": True}},
        {"name": "diag", "type": "string", "hierarchy": {"I": ["I10", "I20"], "J": {"J00": 3}}},
        {
            "name": "visit",
            "type": "date",
            "format": "%d/%m/%Y",
            "constraints": {"minimum": "2020-01-01", "maximum": "2030-12-31"},
        },
        {
            "name": "seen",
            "type": "datetime",
            "constraints": {"minimum": "2020-01-01T00:00:00", "maximum": "2020-12-31T23:59:59"},
        },
        {"name": "rate", "type": "number", "decimalChar": ",", "constraints": {"enum": [1, 2.5]}},
        {
            "name": "price",
            "type": "number",
            "decimalChar": ",",
            "groupChar": ".",
            "constraints": {"minimum": 0, "maximum": 9},
        },
        {"name": "count", "type": "integer", "constraints": {"minimum": 0, "maximum": 9}},
        {"name": "member", "type": "boolean", "trueValues": ["Yes"], "falseValues": ["No"]},
        {"name": "city", "type": "string", "role": "derived"},
        {"name": "sum", "type": "number", "role": "derived"},
        {"name": "a b>c", "type": "boolean"},
    ],
    "relations": [{"column": "city", "by": "diag", "table": {"I10": "Wien", "J00": "Graz"}}],
}


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ({"id": "P1"}, "made anew"),
        ({"note": "x"}, "made anew"),
        ("note missing", "made anew"),
        ('"id"=3', "made anew"),
        ("skip>1", "stays out"),
        ("count>1&skip>1", "stays out"),
        ({"diag": "XX"}, "no value 'XX'"),
        ({"diag": ["I", "XX"]}, "no value 'XX'"),
        ({"city": "Paris"}, "its values are 'Wien', 'Graz'"),
        ("city=Paris", "its values are"),
        ({"visit": "2050-01-01"}, "outside 2020-01-01 to 2030-12-31"),
        ({"visit": dt.date(2019, 12, 31)}, "outside"),
        ({"seen": dt.datetime(2022, 1, 1, 10)}, "outside"),  # noqa: DTZ001 - as the column
        ({"count": 2.5}, "whole numbers"),
        ({"count": "12"}, "outside 0 to 9"),
        ({"rate": 3}, "no value '3'"),
        ({"sex": None}, "is required"),
        ("sex missing", "is required"),
        ("sexx:f", "no column 'sexx'; did you mean 'sex'"),
        ("sex f", "no column 'sex f'"),
        ("sex=f&sexx=m", "no column 'sexx'"),
        ({"rate": "NA"}, "write rate missing"),
        ({"price": "NA"}, "write price missing"),
        ({"price": "1.234,5"}, "outside 0 to 9"),
        ({"count": ">=3"}, "write it like 1234"),
        ("sex==f", "no value '=f'"),
        ({"member": "ja"}, "no value 'ja'"),
    ],
)
def test_conditions_that_the_service_refuses_after_the_charge(where, why):
    with pytest.raises(InvalidInput, match=why):
        check_before_paying(RICH, where=where)


@pytest.mark.parametrize(
    "where",
    [
        {"rate": "2,5"},
        {"rate": 2.5},
        {"rate": ""},
        {"price": "1,5"},
        {"price": ""},
        {"visit": "17/04/2023"},
        {"visit": "2023-04-17"},
        {"seen": dt.datetime(2020, 12, 31, 23, 59)},  # noqa: DTZ001 - as the column
        {"diag": "I"},
        {"diag": ["I20", "J00"]},
        {"diag": None},
        {"member": "Yes"},
        {"member": True},
        {"city": "Wien"},
        {"sum": 3},
        {"count": {"minimum": 3}},
        "sex not missing",
        "diag is missing",
        'sex="f"',
        "sex = f & count>=3",
        "sex:a&b",
        "sex in [f, m]",
        "a b>c=true",
        '"a b>c":true',
    ],
)
def test_conditions_that_the_service_takes(where):
    check_before_paying(RICH, where=where)
