"""A schema that leaves bounds and categories open, published by the client and by the command: they are bought first."""

from __future__ import annotations

import csv
import json

import pandas as pd
import polars as pl
import pytest
from typer.testing import CliRunner

import imprimatur
from imprimatur.cli.application import app
from imprimatur.errors import DeclarationNeeded, InvalidInput

pytestmark = pytest.mark.slow

ROWS = 400
OPEN = {
    "fields": [
        {"name": "age", "type": "integer", "constraints": {"required": True}, "infer": {"epsilon": 3.0}},
        {
            "name": "city",
            "type": "string",
            "constraints": {"required": True},
            "infer": {"epsilon": 3.0, "other": "elsewhere"},
        },
        {"name": "smoker", "type": "boolean", "constraints": {"required": True}},
    ]
}
ORDER = {"method": "marginals", "epsilon": 4.0, "steps": 20}


def people(first_age):
    ages = [first_age + i % 50 for i in range(ROWS)]
    return {"age": ages, "city": ["Rome", "Oslo"] * (ROWS // 2), "smoker": [True, False, False, True] * (ROWS // 4)}


def test_a_frame_is_published_with_bounds_that_were_bought(client):
    frame = pl.DataFrame(people(20))
    with pytest.warns(UserWarning, match=r"ε = 6 of the budget buys bounds and categories .*: age 3, city 3"):
        drawn = imprimatur.publish(frame, OPEN, ORDER, rows=60, client=client, timeout=300)
    assert (drawn.height, drawn.schema) == (60, frame.schema)
    assert set(drawn["city"]) <= {"Rome", "Oslo", "elsewhere"}
    (dataset,) = client.datasets()
    assert dataset.epsilon == 10.0
    bounds = dataset.schema["fields"][0]["constraints"]
    assert drawn["age"].is_between(bounds["minimum"], bounds["maximum"]).all()
    purchase, _ = sorted(client.releases(dataset), key=lambda each: each.order["method"])
    assert {one["release"] for one in dataset.bought} == {purchase.id}
    assert {one["release"] for one in dataset.quote({"epsilon": 1.0}).bought} == {purchase.id}
    with pytest.raises(InvalidInput, match="bought already"):
        dataset.order({"method": "declaration"})


def test_one_request_does_not_do_for_two_orders(client, tmp_path):
    file = tmp_path / "people.csv"
    pl.DataFrame(people(30)).write_csv(file)
    with pytest.raises(DeclarationNeeded, match="bounds or categories are to be bought first"):
        client.publish(file, OPEN, ORDER, epsilon=12.0, path=tmp_path / "out.csv")
    assert client.datasets() == []


def test_categories_of_a_frame_s_own_are_not_bought(client):
    frame = pd.DataFrame(people(40)).astype({"city": "category"})
    with pytest.raises(InvalidInput, match="'city' has categories of its own"):
        imprimatur.publish(frame, OPEN, ORDER, client=client)
    assert client.datasets() == []


def test_the_command_buys_says_so_and_pays_once(stack, api_key, tmp_path, monkeypatch):
    monkeypatch.setenv("IMPRIMATUR_CONFIG", str(tmp_path / "config"))
    table, schema, output = (tmp_path / name for name in ("people.csv", "schema.json", "out.csv"))
    pl.DataFrame(people(25)).write_csv(table)
    schema.write_text(json.dumps(OPEN), encoding="utf-8")
    target = ["--url", stack.url, "--key", api_key]
    command = ["publish", str(table), "-s", str(schema), "--order", json.dumps(ORDER), "--rows", "30", *target]
    small = CliRunner().invoke(app, [*command, "-o", str(output), "--budget-epsilon", "9"])
    assert small.exit_code != 0
    assert "ε = 6 of what the schema leaves to be bought" in " ".join(small.output.replace("│", " ").split())
    done = CliRunner().invoke(app, [*command, "-o", str(output), "--budget-epsilon", "15", "--json"])
    assert done.exit_code == 0, done.output
    assert "ε = 6 of the budget buys bounds and categories" in done.stderr
    again = CliRunner().invoke(app, [*command, "-o", str(tmp_path / "more.csv"), "--json"])
    assert again.exit_code == 0, again.output
    assert "ε = 6 of the budget" not in again.stderr
    with output.open(encoding="utf-8") as file:
        assert {row["city"] for row in csv.DictReader(file)} <= {"Rome", "Oslo", "elsewhere"}
    with imprimatur.Client(stack.url, api_key) as client:
        (dataset,) = client.datasets()
        methods = sorted(release.order["method"] for release in client.releases(dataset))
    assert methods == ["declaration", "marginals", "marginals"]


def test_a_schema_is_checked_with_what_it_costs(tmp_path):
    table, schema = tmp_path / "people.csv", tmp_path / "schema.json"
    pl.DataFrame(people(20)).write_csv(table)
    schema.write_text(json.dumps(OPEN), encoding="utf-8")
    checked = CliRunner().invoke(app, ["schema", "check", str(schema), str(table)])
    assert checked.exit_code == 0, checked.output
    assert "? … ?, bought for ε = 3" in checked.output
    assert "ε = 6 of the budget buys bounds and categories" in " ".join(checked.output.split())
    found = json.loads(CliRunner().invoke(app, ["schema", "check", str(schema), "--json"]).output)
    assert found["to_buy"] == {"age": 3.0, "city": 3.0}
