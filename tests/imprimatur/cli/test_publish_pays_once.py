"""`publish` checks before it pays, and pays once: the command as a real process against the real stack."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

pytestmark = pytest.mark.slow

ORDER = ("--method", "marginals", "--epsilon", 1, "--budget-epsilon", 2.5)


@pytest.fixture
def imprimatur(stack, new_tenant, small_csv, small_schema, tmp_path):
    """Runs the command with a new tenant's key, beside a table `people.csv` and its schema."""
    small_csv.rename(tmp_path / "people.csv")
    (tmp_path / "s.json").write_text(json.dumps(small_schema))
    names = {"IMPRIMATUR_URL": stack.url, "IMPRIMATUR_API_KEY": new_tenant(), "NO_COLOR": "1", "COLUMNS": "200"}

    def run(*arguments, **environment):
        return subprocess.run(
            [sys.executable, "-m", "imprimatur.cli", *map(str, arguments)],
            env={**os.environ, **names, **environment},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    return run


def problem(done, exit_code):
    assert done.returncode == exit_code, done.stderr
    assert "Traceback" not in done.stderr
    return json.loads(done.stderr.splitlines()[-1])


def items(imprimatur, *command):
    return json.loads(imprimatur(*command, "--json").stdout)["items"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("-o", "s.json/x.csv"), "s.json"),
        (("-o", "people.csv"), "private file"),
        (("-o", "x.csv", "--generator", "x.csv"), "two outputs"),
        (("-o", "x.csv", "--where", "color:red"), "'colour'"),
        (("-o", "x.csv", "--where", "colour:rde"), "'red'"),
        (("-o", "x.xlsx"), ".parquet"),
        (("-o", "x.csv", "--format", "npz"), "jsonl"),
        (("-o", "mine.csv"), "--no-explanation"),
    ],
)
def test_what_can_be_known_is_refused_before_anything_is_paid(imprimatur, tmp_path, wrong, said):
    (tmp_path / "mine.html").write_text("<p>mine</p>")
    refused = problem(imprimatur("publish", "people.csv", "-s", "s.json", *ORDER, *wrong, "--json"), 5)
    assert said in refused["detail"]
    assert items(imprimatur, "datasets") == items(imprimatur, "status") == []


def test_a_command_that_fails_after_the_order_names_it_and_the_next_run_pays_nothing(imprimatur, tmp_path):
    publish = ("publish", "people.csv", "-s", "s.json", *ORDER, "--release-name", "Erste Probe")
    failed = problem(imprimatur(*publish, "-n", 10**11, "-o", "out.csv", "--json"), 5)
    (release,) = items(imprimatur, "status")
    assert (failed["release_id"], release["name"]) == (release["id"], "Erste Probe")
    assert f"imprimatur sample {release['id'][:8]}" in failed["detail"]
    spent = json.loads(imprimatur("budget", "people", "--json").stdout)["epsilon_spent"]

    done = imprimatur(*publish, "-n", 12, "-o", "out.csv", "--json")
    facts = json.loads(done.stdout)
    assert (facts["release_id"], facts["release"]) == (release["id"], "Erste Probe")
    assert pl.read_csv(tmp_path / "out.csv").height == 12
    assert json.loads(imprimatur("budget", "people", "--json").stdout)["epsilon_spent"] == spent
    page = (tmp_path / "out.html").read_text()
    assert "at most 73.2 in 100" in page
    assert release["id"] in page

    elsewhere = problem(imprimatur(*publish, "-o", "out.csv", "--json"), 5)  # delivered: a new order, of the same name
    assert elsewhere["code"] == "name_taken"
    assert len(items(imprimatur, "status")) == 1
    otherwise = problem(imprimatur(*publish[:-4], "--budget-epsilon", 9, "-o", "out.csv", "--json"), 5)
    assert "2.5" in otherwise["detail"]

    names = ("Erste Probe", "people/Erste Probe", release["id"][:4], release["id"][:13])
    for name in names:
        assert json.loads(imprimatur("status", name, "--json").stdout)["id"] == release["id"]
    assert json.loads(imprimatur("certificate", "Erste Probe").stdout)["release_id"] == release["id"]
    explained = imprimatur("explain", "Erste Probe")
    assert (explained.returncode, explained.stdout.splitlines()[0]) == (0, "Erste_Probe.html")
    assert "people" in (tmp_path / "Erste_Probe.html").read_text()
    listed = imprimatur("status").stdout
    for word in ("Erste Probe", "people", "marginals", "ago", "next: imprimatur sample"):
        assert word in listed
    excel = imprimatur("sample", "Erste Probe", "-n", 3, "--for-excel")
    assert len(excel.stdout.splitlines()) == 4
    shown = imprimatur("budget", "people").stdout
    assert "ε = 1.5" in shown
    assert "next: imprimatur release people --epsilon" in shown


def test_rows_come_from_a_database_and_go_into_one(imprimatur, tmp_path):
    import duckdb

    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute(f"CREATE TABLE visits AS SELECT * FROM read_csv('{tmp_path}/people.csv')")
    source = ("--from", "duckdb:///t.duckdb", "--query", "SELECT * FROM visits")
    uploaded = json.loads(imprimatur("upload", *source, "-s", "s.json", "--budget-epsilon", 2, "--json").stdout)
    assert (uploaded["units"], uploaded["name"]) == (200, "t")
    assert imprimatur("release", "t", "--epsilon", 1, "--name", "first").returncode == 0
    assert imprimatur("sample", "t/first", "-n", 30, "--to", "duckdb:///t.duckdb", "--table", "made").returncode == 0
    assert imprimatur("sample", "t/first", "-n", 40, "--to", f"file://{tmp_path}/made.parquet").returncode == 0
    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        assert connection.execute("SELECT count(*) FROM made").fetchone() == (30,)
    assert pl.read_parquet(tmp_path / "made.parquet").height == 40
    again = imprimatur("sample", "t/first", "--to", "duckdb:///t.duckdb", "--table", "made", "--json")
    assert again.returncode == 2  # no --json: the rows are the result
    assert not Path(tmp_path / "synthetic.csv").exists()
