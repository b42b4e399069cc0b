"""`publish --from` and `--to`: a real object store and real databases, both ways, and where their credentials are afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid

import duckdb
import polars as pl
import psycopg
import pytest

from imprimatur import sources
from tests import object_stores

pytestmark = pytest.mark.slow

ORDER = ("--method", "marginals", "--epsilon", 1)
PASSWORD = "hunter2-of-the-database"


@pytest.fixture
def store(tmp_path, monkeypatch):
    with object_stores.s3(tmp_path) as running:
        for name, value in running.variables.items():
            monkeypatch.setenv(name, value)
        yield running


@pytest.fixture
def imprimatur(stack, new_tenant, small_schema, tmp_path):
    (tmp_path / "s.json").write_text(json.dumps(small_schema))
    names = {
        "IMPRIMATUR_URL": stack.url,
        "IMPRIMATUR_API_KEY": new_tenant(),
        "IMPRIMATUR_CONFIG": str(tmp_path / "config"),
        "NO_COLOR": "1",
        "COLUMNS": "200",
    }

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


def facts_of(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def problem(done, exit_code=5):
    assert done.returncode == exit_code, done.stderr
    assert "Traceback" not in done.stderr
    return json.loads(done.stderr.splitlines()[-1])


def files_with(words, *folders):
    return [
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and any(word.encode() in path.read_bytes() for word in words)
    ]


def test_from_a_store_and_back_and_no_credential_stays(imprimatur, store, stack, small_csv, tmp_path):
    with small_csv.open("rb") as file:
        sources.write(file, store.address("in/people.csv"))
    target = store.address("out/rows.parquet")
    publish = ("publish", "--from", store.address("in/people.csv"), "-s", "s.json", "--json", *ORDER)

    wrong = problem(imprimatur(*publish, "--budget-epsilon", 3, "--to", target, **store.wrong))
    absent = problem(imprimatur(*publish, "--from", store.address("in/peple.csv"), "--to", target))
    itself = problem(imprimatur(*publish, "--to", store.address("in/people.csv")))
    assert "refused these credentials" in wrong["detail"]
    assert "did you mean people.csv?" in absent["detail"]
    assert "the private table itself" in itself["detail"]
    assert json.loads(imprimatur("datasets", "--json").stdout)["items"] == []

    first = imprimatur(*publish, "--budget-epsilon", 3, "-n", 30, "--to", target, "--certificate", "c.json")
    facts = facts_of(first)
    assert facts["output"] == target
    with sources.opened(target) as rows:
        assert pl.read_parquet(rows.path.read_bytes()).height == 30
    assert json.loads(imprimatur("datasets", "--json").stdout)["items"][0]["name"] == "people"

    second = imprimatur(*publish, "-n", 5, "-o", "more.csv")
    assert facts_of(second)["dataset_id"] == facts["dataset_id"]
    assert "note: these rows have a budget: dataset people" in second.stderr
    assert "ε = 3; at most ε = " in second.stderr
    assert "whole budget" not in second.stderr
    assert pl.read_csv(tmp_path / "more.csv").height == 5

    said = "".join(done.stdout + done.stderr for done in (first, second)) + json.dumps([wrong, absent, itself])
    assert not [secret for secret in store.secrets if secret in said]
    assert files_with(["people"], tmp_path), "what is looked for would be found"
    assert files_with(store.secrets, stack.data, tmp_path) == []


def test_from_a_database_into_one_and_what_is_known_before(imprimatur, database, small_csv, stack, tmp_path):
    postgres = database.owner_url.replace("+psycopg", "")
    role = f"owner_{uuid.uuid4().hex}"
    with_password = f"postgresql://{role}:{PASSWORD}@{postgres.partition('@')[2]}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE TABLE visits (colour text, size bigint, weight double precision)")
        connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'; GRANT ALL ON SCHEMA public TO {role}")
        connection.execute(f"GRANT SELECT ON visits TO {role}")
        rows = pl.read_csv(small_csv).rows()
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO visits VALUES (%s, %s, %s)", rows)
    publish = ("publish", "--from", with_password, "--table", "visits", "-s", "s.json", "--json", "-n", 20, *ORDER)

    taken = problem(imprimatur(*publish, "--to", with_password, "--to-table", "visits"))
    assert "table visits is there already" in taken["detail"]
    (tmp_path / "folder.duckdb").mkdir()
    nowhere = problem(imprimatur(*publish, "--to", "duckdb:///folder.duckdb"))
    assert "folder.duckdb" in nowhere["detail"]
    assert json.loads(imprimatur("datasets", "--json").stdout)["items"] == []

    into_postgres = facts_of(imprimatur(*publish, "--budget-epsilon", 3, "--to", with_password))
    assert PASSWORD not in into_postgres["output"]
    into_duckdb = facts_of(imprimatur(*publish, "--to", "duckdb:///made.duckdb", "--to-table", "made"))
    assert into_duckdb["dataset_id"] == into_postgres["dataset_id"]
    with psycopg.connect(postgres, autocommit=True) as connection:
        assert connection.execute("SELECT count(*) FROM synthetic").fetchone() == (20,)
        connection.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
    with duckdb.connect(str(tmp_path / "made.duckdb")) as connection:
        assert connection.execute("SELECT count(*) FROM made").fetchone() == (20,)
    assert files_with([PASSWORD], stack.data, tmp_path) == []


def test_other_rows_that_are_declared_alike_get_a_budget_only_when_it_is_said(imprimatur, small_csv, tmp_path):
    lines = small_csv.read_text().splitlines(keepends=True)
    for name, part in (("old.csv", lines[:101]), ("new.csv", [lines[0], *lines[101:]])):
        (tmp_path / name).write_text("".join(part))
    whole = "this release's ε = 1 becomes the whole budget of these rows, for ever"
    first = imprimatur("publish", "old.csv", "-s", "s.json", *ORDER, "-o", "a.csv", "--json")
    again = imprimatur("publish", "old.csv", "-s", "s.json", *ORDER, "-o", "b.csv", "--json")
    other = imprimatur("publish", "new.csv", "-s", "s.json", *ORDER, "-o", "c.csv", "--json")
    assert whole in first.stderr
    assert whole not in again.stderr
    assert "note: these rows have a budget: dataset old" in again.stderr
    assert "nothing of it is left" in again.stderr or "at most ε" in again.stderr
    assert problem(again, 3)["code"] == "budget_exhausted"
    assert whole in other.stderr
    assert facts_of(other)["dataset_id"] != facts_of(first)["dataset_id"]
