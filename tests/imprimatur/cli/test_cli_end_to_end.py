"""The command as a person uses it: a real process, against the real stack."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow

Run = "Callable[..., subprocess.CompletedProcess[str]]"


@pytest.fixture
def imprimatur(stack, published, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command with the published tenant's key; keyword arguments are environment variables."""

    def run(*arguments: Any, **environment: str) -> subprocess.CompletedProcess[str]:
        names = {"IMPRIMATUR_URL": stack.url, "IMPRIMATUR_API_KEY": published.api_key, "NO_COLOR": "1"} | environment
        return subprocess.run(
            [sys.executable, "-m", "imprimatur.cli", *map(str, arguments)],
            env={**os.environ, **names},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    return run


def document(done: subprocess.CompletedProcess[str], exit_code: int = 0) -> Any:
    assert done.returncode == exit_code, done.stderr
    return json.loads(done.stdout)


def test_upload_quote_release_sample_in_a_pipe(imprimatur, new_tenant, small_csv, small_schema, tmp_path):
    (tmp_path / "schema.json").write_text(json.dumps(small_schema | {"target": "colour"}))
    key = {"IMPRIMATUR_API_KEY": new_tenant()}
    uploaded = imprimatur("upload", small_csv, "--schema", "schema.json", "--budget-epsilon", 5, "--json", **key)
    dataset = document(uploaded)
    assert (dataset["units"], dataset["name"]) == (200, "small")
    assert uploaded.stderr == ""

    knobs = (
        "--method",
        "idpgan",
        "--steps",
        3,
        "--set",
        "networks.generator_hidden=[8]",
        "--set",
        "networks.critic_hidden=[8]",
        "--set",
        "warm_start.kind=none",
    )
    quote = document(imprimatur("quote", "small", "--epsilon", 2, *knobs, "--json", **key))
    assert quote["fits"]
    assert quote["order"]["networks"]["critic_hidden"] == [8]
    assert imprimatur("quote", "small", "--epsilon", 5.5, *knobs, **key).returncode == 3
    for purpose, condition in (("classifiers", "colour"), ("tables", None)):
        quote = document(imprimatur("quote", "small", "--epsilon", 2, "--purpose", purpose, "--json", **key))
        assert (quote["order"]["purpose"], quote["order"]["condition_on"]) == (purpose, condition)

    done = imprimatur("release", "small", "--epsilon", 2, "--priority", 1, *knobs, "--json", **key)
    assert json.loads(done.stdout)["priority"] == 1
    release = document(done)
    assert release["state"] == "published"
    assert done.stderr == ""  # no bar, no remark where no one watches

    sampled = imprimatur("sample", release["id"], "--rows", 7, "--seed", 1, **key)
    rows = list(csv.DictReader(io.StringIO(sampled.stdout)))
    assert len(rows) == 7
    assert list(rows[0]) == ["colour", "size", "weight"]
    assert sampled.stderr == ""

    refused = imprimatur("release", "small", "--epsilon", 4.9, *knobs, "--json", **key)
    assert refused.returncode == 3
    problem = json.loads(refused.stderr)
    assert problem["code"] == "budget_exhausted"
    assert problem["requested"]["simple_share"] > problem["remaining"]["simple_share"]
    largest = document(imprimatur("budget", "small", "--json", **key))["largest_next_epsilon"]
    assert problem["largest_next_epsilon"] == largest
    shown = re.search(
        r"; at most ε = ([0-9.]+) would fit", imprimatur("release", "small", "--epsilon", 4.9, **key).stderr
    )
    assert imprimatur("quote", "small", "--epsilon", shown.group(1), **key).returncode == 0
    assert 0.99 * largest < float(shown.group(1)) <= largest


def test_the_knobs_of_a_method_are_listed_as_they_are_set(imprimatur):
    shown = imprimatur("methods", "idpgan")
    assert shown.returncode == 0, shown.stderr
    (heading,) = [line for line in shown.stdout.splitlines() if line.split()[:1] == ["knob"]]
    assert heading.split() == ["knob", "default", "allowed", "meaning"]
    for name in ("networks.noise_dimension", "thresholds.kind", "optimizer.beta2", "warm_start.precision_share"):
        assert f" {name} " in shown.stdout
    assert "{" not in shown.stdout


def test_budget_and_ledger(imprimatur, published):
    budget = document(imprimatur("budget", published.dataset_id, "--json"))
    assert budget["epsilon"] == 5.0
    assert budget["accounts"]["simple"]["posted_epsilon"] > 0
    shown = imprimatur("budget", "small").stdout
    assert "largest next" in shown
    for text in (shown, imprimatur("quote", "small", "--epsilon", 1).stdout):
        assert "fits if one of the two accounts has room" in text
    ledger = document(imprimatur("ledger", "small", "--json"))
    assert [entry["kind"] for entry in ledger["items"]] == ["reserve", "post"]
    assert "consistent, by the service's own check" in imprimatur("ledger", "small").stdout


def test_status_lists_and_shows(imprimatur, published):
    assert published.release_id in imprimatur("status").stdout
    shown = document(imprimatur("status", published.release_id, "--wait", "--json"))
    assert shown["progress"]["step"] == shown["progress"]["steps"] == 4
    assert document(imprimatur("status", "--dataset", "small", "--json"))["items"][0]["id"] == published.release_id


def test_sample_formats_conditions_and_seeds(imprimatur, published, tmp_path):
    def draw(name: str, *more: Any) -> Path:
        done = imprimatur("sample", published.release_id, "--rows", 20, "-o", name, *more)
        assert done.returncode == 0, done.stderr
        return tmp_path / name

    assert pl.read_parquet(draw("rows.parquet")).columns == ["colour", "size", "weight"]
    assert pl.read_ndjson(draw("rows.jsonl")).height == 20
    assert set(pl.read_csv(draw("red.csv", "--where", "colour:red"))["colour"]) == {"red"}
    both = pl.read_csv(draw("both.csv", "--where", "colour=red&size>=1", "--where", "weight not missing"))
    assert set(both["colour"]) == {"red"}
    assert draw("even.csv", "--weights", '{"colour": "uniform"}').exists()
    (tmp_path / "mine.csv").write_text("size,colour\n1,red\n1,\n")
    assert imprimatur("complete", published.release_id, "mine.csv", "-o", "whole.csv").returncode == 0
    assert pl.read_csv(tmp_path / "whole.csv")["size"].to_list() == [1, 1]
    assert imprimatur("complete", published.release_id, "mine.csv", "-o", "whole.parquet").returncode == 2
    assert draw("a.csv", "--seed", 3).read_bytes() == draw("b.csv", "--seed", 3).read_bytes()


def test_download_and_verify(imprimatur, published, tmp_path):
    facts = document(
        imprimatur("download", published.release_id, "-o", "g.zip", "--certificate", "certificate.json", "--json")
    )
    assert facts["bytes"] == (tmp_path / "g.zip").stat().st_size
    assert "generator.onnx" in zipfile.ZipFile(tmp_path / "g.zip").namelist()
    first = document(imprimatur("verify", "g.zip", "--json"), exit_code=8)
    assert (first["verified"], first["result"], first["reason"]) == (False, "consistent", "nothing_outside")
    assert any("the ZIP holds the 5 files that the certificate signs" in each["check"] for each in first["checks"])
    assert {each["result"] for each in first["checks"]} == {"consistent"}
    assert document(imprimatur("verify", "g.zip", "--json"))["verified"], "the key is pinned now"
    assert document(imprimatur("verify", "certificate.json", "--json"))["verified"]


def test_a_dataset_is_verified_against_what_was_seen_before(imprimatur, published, tmp_path):
    first = document(imprimatur("verify", "small", "--json"), exit_code=8)
    assert (first["verified"], first["result"]) == (False, "consistent")
    assert any("2 of 2 entries are in it" in each["check"] for each in first["checks"])
    second = document(imprimatur("verify", "small", "--json"))
    assert (second["verified"], second["reason"]) == (True, None)
    assert second["statement"].startswith("verified: against the 2 entries remembered since")

    fresh = {"IMPRIMATUR_CONFIG": str(tmp_path / "elsewhere")}
    shown = imprimatur("verify", published.dataset_id, **fresh)
    assert shown.returncode == 8
    assert "\nconsistent; not verified: nothing to compare with outside the service" in shown.stdout
    assert "keep this head" in shown.stdout
    (tmp_path / "head.json").write_text(json.dumps(first["head"]))
    anchored = imprimatur("verify", "small", "--head", "head.json", IMPRIMATUR_CONFIG=str(tmp_path / "third"))
    assert anchored.returncode == 0, anchored.stderr
    assert "that you named" in anchored.stdout.splitlines()[-1]
    assert imprimatur("verify", "small", "--head", "{}", **fresh).returncode == 5

    (remembered,) = (tmp_path / "elsewhere" / "known").iterdir()
    remembered.write_text("{")
    damaged = imprimatur("verify", "small", "--json", **fresh)
    assert damaged.returncode == 1
    assert json.loads(damaged.stderr)["code"] == "memory_unreadable"


def test_certificates_are_verified_without_a_service_by_a_key_one_knows(imprimatur, published, tmp_path):
    alone = {"IMPRIMATUR_URL": "", "IMPRIMATUR_API_KEY": ""}
    imprimatur("download", published.release_id, "-o", "g.zip", "--certificate", "c.json")
    key = json.loads((tmp_path / "c.json").read_text())["public_key"]
    (tmp_path / "service.pub").write_text(key + "\n")
    for known in (key, "service.pub"):
        pair = ("verify", "--certificate", "c.json", "--certificate", "g.zip", "--public-key", known, "--json")
        checks = document(imprimatur(*pair, **alone))
        assert checks["verified"]
        assert sum("only grew" in each["check"] for each in checks["checks"]) == 2
    unknown = document(imprimatur("verify", "c.json", "--json", **alone), exit_code=7)
    assert (unknown["verified"], unknown["reason"], unknown["faults"]) == (False, "self_signed", [])
    assert imprimatur("verify", "c.json", **alone).stdout.splitlines()[-1].startswith("self-signed, not verified")
    assert imprimatur("verify", "c.json", "--public-key", "c.json", **alone).returncode == 5
    assert (
        imprimatur("verify", **alone).returncode
        == imprimatur("verify", "small", "--certificate", "c.json").returncode
        == 2
    )


def test_verify_notices_a_changed_certificate(imprimatur, published, tmp_path):
    imprimatur("download", published.release_id, "-o", "g.zip", "--certificate", "certificate.json")
    certificate = json.loads((tmp_path / "certificate.json").read_text())
    (tmp_path / "forged.json").write_text(json.dumps(certificate | {"epsilon": 0.1}))
    checks = document(imprimatur("verify", "forged.json", "--json"), exit_code=1)
    assert not checks["verified"]
    assert any("changed" in fault for fault in checks["faults"])


def test_keys_and_their_scopes(imprimatur, published):
    made = document(imprimatur("key", "create", "press", "--scope", "reader", "--json"))
    reader = {"IMPRIMATUR_API_KEY": made["key"]}
    assert imprimatur("sample", published.release_id, "-n", 1, **reader).returncode == 0
    assert imprimatur("release", "small", "--epsilon", 1, **reader).returncode == 4
    assert made["key"] not in imprimatur("key", "list").stdout
    new = document(imprimatur("key", "replace", made["id"], "--overlap-hours", 0.5, "--json"))
    assert imprimatur("key", "replace", made["id"]).returncode == 5
    assert imprimatur("datasets", IMPRIMATUR_API_KEY=new["key"]).returncode == 0
    assert imprimatur("key", "revoke", made["id"]).returncode == 0
    log = document(imprimatur("audit-log", "-n", 4, "--json"))["items"]
    assert [(line["action"], line["outcome"]) for line in log] == [
        ("revoke_key", "done"),
        ("replace_key", "not_replaceable"),
        ("replace_key", "done"),
        ("replace_key", "done"),
    ]
    assert made["id"] in imprimatur("audit-log").stdout
    checked = document(imprimatur("audit-log", "--check", "--json"))
    assert (checked["faults"], checked["seq"] + checked["without_place"]) == ([], checked["lines"])
    assert checked["lines"] > 4
    assert imprimatur("sample", published.release_id, "-n", 1, **reader).returncode == 4


def test_a_second_tenant_is_made_with_the_data_directory_only(imprimatur, stack, published):
    made = imprimatur("key", "create", "boss", "--tenant", f"office {published.dataset_id}", "--data", stack.data)
    assert made.returncode == 0, made.stderr
    other = {"IMPRIMATUR_API_KEY": made.stdout.strip()}
    assert document(imprimatur("datasets", "--json", **other)) == {"items": []}
    assert imprimatur("budget", published.dataset_id, **other).returncode == 4


def test_erase_leaves_the_ledger(imprimatur, new_tenant, small_csv, small_schema):
    key = {"IMPRIMATUR_API_KEY": new_tenant()}
    imprimatur("upload", small_csv, "--schema", json.dumps(small_schema), "--budget-epsilon", 1, **key)
    dated = document(imprimatur("expire", "small", "2099-01-01T00:00:00Z", "--json", **key))
    assert dated["rows_expire_at"] == "2099-01-01T00:00:00Z"
    assert imprimatur("erase", "small", "--yes", **key).returncode == 0
    assert document(imprimatur("datasets", "--json", **key))["items"][0]["state"] == "erased"
    assert imprimatur("verify", "small", **key).returncode == 8  # nothing was seen before
    assert imprimatur("release", "small", "--epsilon", 1, **key).returncode == 4


def test_failures_have_their_exit_codes(imprimatur, published, small_csv, tmp_path):
    assert imprimatur("budget").returncode == 2
    assert imprimatur("release", "small").returncode == 2
    assert imprimatur("budget", "no-such-dataset").returncode == 4
    assert imprimatur("budget", published.dataset_id, IMPRIMATUR_API_KEY="imp_wrong").returncode == 4
    assert imprimatur("release", "small", "--epsilon", 1, "--method", "magic").returncode == 5
    assert imprimatur("release", "small", "--epsilon", -1).returncode == 2
    assert imprimatur("upload", small_csv, "--schema", "{}", "--budget-epsilon", 1).returncode == 5
    assert imprimatur("upload", small_csv, "--schema", "missing.json", "--budget-epsilon", 1).returncode == 5
    no_fields = imprimatur("upload", small_csv, "--schema", '{"fields": null}', "--budget-epsilon", 1, "--json")
    assert (no_fields.returncode, json.loads(no_fields.stderr)["code"]) == (5, "invalid_schema")
    alone = imprimatur("datasets", "--json", IMPRIMATUR_URL="", IMPRIMATUR_DATA=str(tmp_path / "nothing"))
    assert alone.returncode == 6
    assert json.loads(alone.stderr)["code"] == "unreachable"


def test_options_that_say_nothing_or_two_things_are_refused(imprimatur, published, small_csv, small_schema):
    upload = ("upload", small_csv, "--schema", json.dumps(small_schema), "--budget-epsilon", 1)
    assert imprimatur("quote", "small", "--epsilon", "nan").returncode == 2
    assert imprimatur("release", "small", "--share", "nan").returncode == 2
    assert imprimatur(*upload, "--max-rows-per-unit", 5).returncode == 2
    sample = ("sample", published.release_id, "-n", 5)
    assert imprimatur(*sample, "--where", "colour:red", "--where", "colour:blue").returncode == 5
    assert imprimatur(*sample, "--weights", "uniform").returncode == 2
    assert imprimatur(*sample, "-o", "rows.xlsx").returncode == 5
    alone = imprimatur(*upload, "--delta", 0.5, "--json")
    assert alone.returncode == 5
    assert "delta must be at most 1/(10 units)" in json.loads(alone.stderr)["detail"]


def test_a_large_promise_is_warned_of_by_every_command_that_makes_it(imprimatur, new_tenant, small_csv, small_schema):
    key = {"IMPRIMATUR_API_KEY": new_tenant()}
    budget = ("--budget-epsilon", 15, "--delta", 0.0004)
    done = imprimatur("upload", small_csv, "--schema", json.dumps(small_schema), *budget, **key)
    quoted = imprimatur("quote", small_csv.stem, "--epsilon", 11, "--method", "marginals", **key)
    publish = ("publish", small_csv, "--schema", json.dumps(small_schema), "--epsilon", 14, *budget)
    spent = imprimatur("release", small_csv.stem, "--epsilon", 14, "--method", "marginals", "--set", "steps=3", **key)
    assert spent.returncode == 0, spent.stderr
    found_again = imprimatur(*publish, **key)  # and then refused, for the budget
    assert (done.returncode, quoted.returncode, found_again.returncode) == (0, 0, 3), found_again.stderr
    for said in (done.stderr, quoted.stderr, found_again.stderr):
        assert "warning: ε = 15 for everything that is released from this dataset is above 10." in said
        assert "22,026 : 1" in said
        assert "warning: δ = 0.0004 is above the default for 200 units" in said
    assert "warning: ε = 11 for this release alone" in quoted.stderr
    too_much = imprimatur(*publish[:-4], "--budget-epsilon", 21, "--json", **key)
    assert too_much.returncode == 5
    assert "IMPRIMATUR_MAX_EPSILON" in json.loads(too_much.stderr.splitlines()[-1])["detail"]


def test_what_cannot_be_taken_back_is_said_in_a_script_too(imprimatur, new_tenant, small_csv, small_schema):
    """An upload that moved values, a draft; and rows that are known under another declaration are not ordered from."""
    key = {"IMPRIMATUR_API_KEY": new_tenant()}
    small_schema["fields"][1]["constraints"] |= {"maximum": 5}
    small_schema["fields"][1]["description"] = "DRAFT: these bounds were read from the data."
    accept = ("--accept-draft", "--accept-undeclared", small_schema["fields"][1]["name"])
    publish = ("publish", small_csv, *accept, "--epsilon", 1, "--budget-epsilon", 2, "--method", "marginals", "--json")
    sent = ("upload", small_csv, "--schema", json.dumps(small_schema), "--budget-epsilon", 2)
    refused = imprimatur(*sent, **key)
    assert refused.returncode == 5
    assert "--accept-draft" in refused.stderr
    assert "these bounds were read from the data" in refused.stderr
    done = imprimatur(*sent, *accept, **key)
    assert done.returncode == 0, done.stderr
    assert "warning: this draft" in done.stderr
    assert "note: " in done.stderr
    for changed in (
        ("--schema", json.dumps(small_schema | {"target": "colour"})),
        ("--schema", json.dumps(small_schema), "--privacy-unit", "name"),
    ):
        refused = imprimatur(*publish, *changed, **key)
        assert refused.returncode == 5
    known = json.loads(
        imprimatur(*publish, "--schema", json.dumps(small_schema | {"target": "colour"}), **key).stderr.splitlines()[-1]
    )
    assert known["code"] == "declared_otherwise"
    assert document(imprimatur("budget", known["dataset_id"], "--json", **key))["epsilon_spent"] == 0
    assert "imprimatur redeclare" in known["detail"]
    corrected = ("--schema", json.dumps(small_schema | {"target": "colour"}), "--name", "corrected", "--json")
    corrected += accept
    changed = document(imprimatur("redeclare", known["dataset_id"], *corrected, **key))
    assert (changed["schema"]["target"], changed["name"]) == ("colour", "corrected")
    assert (
        document(imprimatur("redeclare", "corrected", small_csv, "--rows-are-units", *accept, "--json", **key))["units"]
        == 200
    )
    for wrong in ((), ("--rows-are-units", "--privacy-unit", "colour"), ("--max-rows-per-unit", 3)):
        assert imprimatur("redeclare", "corrected", *wrong, **key).returncode == 2


def test_rows_that_look_the_same_are_not_ordered_from_and_may_be_told_apart(
    imprimatur, new_tenant, small_csv, small_schema
):
    """`publish` finds the very same rows again, and never takes a table with most columns the same for them."""
    key = {"IMPRIMATUR_API_KEY": new_tenant()}
    budget = ("--schema", json.dumps(small_schema), "--json")
    first = imprimatur("upload", small_csv, "--budget-epsilon", 2, "--name", "first", *budget, **key)
    assert first.returncode == 0, first.stderr
    head, *rows = small_csv.read_text().splitlines()
    weights = ",".join([*rows[0].split(",")[:2], "7.5"])
    small_csv.write_text("\n".join([head, weights, *rows[1:]]) + "\n")
    publish = ("publish", small_csv, "--epsilon", 1, "--budget-epsilon", 2, "--method", "marginals", *budget)
    refused = json.loads(imprimatur(*publish, **key).stderr.splitlines()[-1])
    assert (refused["code"], refused["dataset_id"]) == ("duplicate_rows", json.loads(first.stdout)["id"])
    assert "distinct_from" in refused["detail"]
    told_apart = imprimatur("upload", small_csv, "--budget-epsilon", 2, "--distinct-from", "first", *budget, **key)
    assert told_apart.returncode == 0, told_apart.stderr
    assert json.loads(told_apart.stdout)["id"] != json.loads(first.stdout)["id"]


def test_publish_starts_a_service_of_its_own_and_leaves_nothing_running(imprimatur, small_csv, small_schema, tmp_path):
    alone = {"IMPRIMATUR_URL": "", "IMPRIMATUR_API_KEY": "", "IMPRIMATUR_DATA": str(tmp_path / "own data")}
    (tmp_path / "s.json").write_text(json.dumps(small_schema))
    order = (
        "--method",
        "idpgan",
        "--epsilon",
        3,
        "--steps",
        3,
        "--set",
        "networks.critic_hidden=[8]",
        "--set",
        "warm_start.kind=none",
        "--budget-epsilon",
        4,
    )
    facts = document(
        imprimatur("publish", small_csv, "--schema", "s.json", *order, "-n", 12, "-o", "out.csv", "--json", **alone)
    )
    assert facts["epsilon"] <= 3.0
    assert pl.read_csv(tmp_path / "out.csv").shape == (12, 3)
    left_running = subprocess.run(["pgrep", "-f", str(tmp_path / "own data")], capture_output=True, check=False)
    assert left_running.stdout == b""


def test_demo_shows_everything_and_leaves_three_files(imprimatur, small_csv, small_schema, tmp_path):
    small_csv.with_suffix(".schema.json").write_text(json.dumps(small_schema))
    done = imprimatur("demo", "--table", small_csv, "--steps", 3, "-o", "left", HOME=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "left").iterdir()} == {
        "synthetic.csv",
        "generator.zip",
        "certificate.json",
    }
    assert pl.read_csv(tmp_path / "left" / "synthetic.csv").height == 200
    for shown in (
        "before: spent ε = 0 of 5",
        "after: spent ε = 4 of 5",
        "colour",
        "signed (Ed25519)",
        "409 budget_exhausted",
    ):
        assert shown in done.stdout
