"""`imprimatur schema` runs on this machine alone; its draft says that it was read from the data."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from service.domain.table_schema import parse_table_schema
from tests.in_this_process import run_here

pytestmark = pytest.mark.usefixtures("reads_at_once")

COLUMNS = {
    "colour": ["red", "green", "red", "", "green", "red"],
    "count": ["1", "200", "30", "4", "5", "6"],
    "weight": ["1.5", "2", "", "-3e2", "1", "2"],
    "member": ["true", "False", "true", "false", "true", "true"],
    "born": ["1990-02-03", "1980-01-01", "2001-12-31", "1990-02-03", "1990-02-03", "1991-02-03"],
    "seen": [
        "2024-01-01T10:00:00",
        "2024-01-02T00:00:00Z",
        "2024-01-02 11:30",
        "2024-01-01T10:00:00",
        "2024-01-01",
        "2024-01-03",
    ],
}


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.csv"
    rows = zip(*COLUMNS.values(), strict=True)
    path.write_text("\n".join([",".join(COLUMNS), *(",".join(row) for row in rows)]) + "\n")
    return path


def schema(*arguments):
    return run_here("schema", *arguments)


def schema_as_a_process(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "imprimatur.cli", "schema", *map(str, arguments)],
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_draft_recognises_types_and_says_what_it_is(table):
    done = schema("draft", table)
    draft = json.loads(done.stdout)
    assert "read from the rows" in draft["description"]
    assert {field["name"]: field["type"] for field in draft["fields"]} == {
        "colour": "string",
        "count": "integer",
        "weight": "number",
        "member": "boolean",
        "born": "date",
        "seen": "datetime",
    }
    assert draft["fields"][-1]["resolution"] == "minute"
    for said in (draft["description"], " ".join(done.stderr.split())):
        assert "`required` and" in said
        assert "`missingValues`" in said
        assert "accepted says that every row meet" in said


@pytest.mark.slow
def test_a_draft_is_a_schema_that_its_table_follows(table, tmp_path):
    assert schema_as_a_process("draft", table, "-o", tmp_path / "s.json").returncode == 0
    parse_table_schema(json.loads((tmp_path / "s.json").read_text()))
    done = schema_as_a_process("check", tmp_path / "s.json", table, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"fields": 6, "not_modelled": {}, "to_buy": {}, "rows": 6, "notices": []}


def test_check_names_the_fault(table):
    open_domain = json.dumps({"fields": [{"name": "colour", "type": "string"}]})
    done = schema("check", open_domain, "--json")
    assert done.returncode == 5
    assert json.loads(done.stderr)["code"] == "invalid_schema"
    other_column = json.dumps({"fields": [{"name": "colour", "type": "string", "constraints": {"enum": ["red"]}}]})
    done = schema("check", other_column, table, "--json")
    assert done.returncode == 5
    assert json.loads(done.stderr)["code"] == "invalid_file"
    assert schema("check", "not json").returncode == 5


def test_a_draft_says_which_columns_it_left_out_and_why(tmp_path):
    """A column without a name could not be declared; one bad cell keeps numbers from being any."""
    rows = [
        f"{row},{row % 7 + 0.5},{'x' if row == 3 else row},,{'a' if row == 3 else row % 9},{row + 5},{row * 7:05}"
        for row in range(300)
    ]
    (tmp_path / "t.csv").write_text("\n".join([",pay,wage,none,age,number,shelf", *rows]) + "\n")
    done = schema("draft", tmp_path / "t.csv", "-o", tmp_path / "s.json")
    assert done.returncode == 0
    for said in (
        "'column 1': Left out: it has no name",
        "'none': Left out: it is empty",
        "'wage': Left out: 299 of its 300 cells are finite numbers",
        "'number': Left out: it numbers",
        "'shelf': Left out: its numbers have leading",
        "'wage': 1 cell is no finite numbers. Correct them in the file, or list them in the `missingValues` of the column. Cells: 'x'.",
    ):
        assert said in done.stderr
    drafted = json.loads((tmp_path / "s.json").read_text())
    parse_table_schema(drafted)
    assert "'wage' (299 of its 300 cells" in drafted["description"]
    about = {field["name"]: field["description"] for field in drafted["fields"] if "role" not in field}
    assert list(about) == ["pay", "age"]
    assert "299 of its 300 cells are finite numbers" in about["age"]
    assert "of its" not in about["pay"]


def test_check_says_what_an_upload_with_a_privacy_unit_would_say(table):
    fields = [{"name": "count", "type": "integer", "constraints": {"minimum": 0, "maximum": 200}}]
    table.write_text("count,born\n" + "1,a\n" * 3 + "2,b\n")
    assert schema("check", json.dumps({"fields": fields}), table).returncode == 5
    unit = ("--privacy-unit", "born", "--max-rows-per-unit", 2)
    done = schema("check", json.dumps({"fields": fields}), table, *unit, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["notices"]
    assert schema("check", json.dumps({"fields": fields}), table, "--max-rows-per-unit", 2).returncode == 2
