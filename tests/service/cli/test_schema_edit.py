"""`imprimatur schema edit` walks through a draft; what its owner has decided is no draft any more."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from imprimatur.cli.application import app
from imprimatur.errors import InvalidInput
from service.base.errors import DraftSchema
from service.domain.drafts import refuse_draft
from service.domain.table_schema import parse_table_schema
from tests.in_this_process import run_here

ROWS = [f"{'FM'[row % 2]},{20 + row % 60},P{row % 40:03},{2**53 + 1 + 2 * (row % 2)},0{row % 3}" for row in range(200)]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["sex,age,patient_id,code,ward", *ROWS]) + "\n")
    return path


def edit(table, *answers):
    said = "\n".join(answers) + "\n"
    done = run_here("schema", "edit", table, "-o", table.with_suffix(".json"), said=said)
    return done, json.loads(table.with_suffix(".json").read_text()) if table.with_suffix(".json").exists() else None


def test_each_column_is_accepted_changed_or_skipped(table):
    sex = ("c", '["F", "M", "X"]', "m", "y", "a")
    age = ("b", "120", "0", "b", "0", "120", "a")
    done, schema = edit(table, *sex, *age, "s", "a", "t", "string", "00, 01, 02, 03", "a")
    assert done.returncode == 0, done.stderr
    parse_table_schema(schema)
    assert "description" not in schema
    fields = {field.pop("name"): field for field in schema["fields"]}
    assert list(fields) == ["sex", "age", "code", "ward"]
    assert fields["sex"] == {"type": "string", "constraints": {"enum": ["F", "M", "X"]}}
    assert fields["age"] == {"type": "integer", "constraints": {"minimum": 0, "maximum": 120, "required": True}}
    assert list(map(int, fields["code"]["constraints"]["enum"])) == [2**53 + 1, 2**53 + 3], (
        "no number went through a float"
    )
    assert fields["ward"]["constraints"]["enum"] == ["00", "01", "02", "03"]
    assert "minimum must be below" in done.stderr
    assert "do several rows belong to one person?" in done.stderr.lower()
    assert "'patient_id'" in done.stderr


def test_what_was_not_decided_is_still_a_draft(table):
    done, schema = edit(table, "a", "q")
    assert done.returncode == 0, done.stderr
    assert schema["description"].startswith("DRAFT")
    marked = {field["name"]: "DRAFT" in field.get("description", "") for field in schema["fields"]}
    assert (marked["sex"], marked["age"], marked["ward"]) == (False, True, True)
    assert "still marked as a draft" in done.stderr


def test_a_walk_that_is_broken_off_keeps_the_answers(table):
    done, schema = edit(table, "a", "b", "0", "120")
    assert done.returncode != 0
    assert "your answers are written" in done.stderr
    fields = {field["name"]: field for field in schema["fields"]}
    marked = {name: field.get("description", "").startswith("DRAFT") for name, field in fields.items()}
    assert marked.pop("sex") is False
    assert all(marked.values())
    assert fields["age"]["constraints"]["maximum"] == 120
    with pytest.raises(DraftSchema):
        refuse_draft(parse_table_schema(schema))


def test_enter_alone_declares_nothing(table):
    done, schema = edit(table, "", "yes", "", "", "")
    assert done.returncode == 0, done.stderr
    marked = {field["name"]: field.get("description", "").startswith("DRAFT") for field in schema["fields"]}
    assert marked.pop("age") is False
    assert all(marked.values())
    assert schema["description"].startswith("DRAFT")
    assert "still marked as a draft" in done.stderr


def test_how_the_file_is_written_stays_in_the_schema(table):
    table.write_text(table.read_text().replace(",", ";"))
    _, schema = edit(table, "q")
    assert schema["dialect"] == {"delimiter": ";"}


@pytest.mark.parametrize("command", ["draft", "edit", "convert"])
@pytest.mark.parametrize("output", ["itself", "link", "folder"])
def test_the_private_file_is_never_the_output(table, command, output):
    before = table.read_bytes()
    where = {"itself": table, "link": table.with_name("l.json"), "folder": table.parent}[output]
    if output == "link":
        where.hardlink_to(table)
    arguments = ["schema", command, str(table), "-o", str(where)]
    done = CliRunner().invoke(app, arguments, input="a\n" * 9)
    assert done.exit_code != 0
    assert isinstance(done.exception, InvalidInput)
    assert done.exception.values == {"where": "output"}
    assert table.read_bytes() == before
    assert "accept" not in done.output, "before anything is asked"
