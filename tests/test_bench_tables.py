"""The bench's own pieces: reading, metrics that know the answer, and ours by the way of a real order."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

from bench.tables import beside, metrics, records
from bench.tables.__main__ import release_delta
from bench.tables.aim_accounting import GaussianDp, ZeroConcentrated
from bench.tables.methods import METHODS, Ask
from bench.tables.peers import decode
from bench.tables.report import markdown, picture
from bench.tables.runs import Settings, in_a_process
from bench.tables.sources import source
from bench.tables.subgroups import section, subgroup_scores
from bench.tables.tables import codes_of, read_table
from service.domain.table_schema import parse_table_schema
from service.privacy.statements import default_delta
from workers.encoding.table import TableDomain

SCHEMA = {
    "fields": [
        {"name": "a", "type": "integer", "constraints": {"minimum": 0, "maximum": 9, "required": True}},
        {"name": "b", "type": "string", "constraints": {"enum": ["x", "y"], "required": True}},
        {"name": "c", "type": "number", "bins": 4, "constraints": {"minimum": 0, "maximum": 1}},
    ]
}


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    a = rng.integers(10, size=1_000)
    frame = pl.DataFrame({"a": a, "b": np.where(a > 4, "y", "x"), "c": rng.random(1_000).round(3)})
    frame.write_csv(tmp_path / "t.csv")
    (tmp_path / "t.json").write_text(json.dumps(SCHEMA))
    return read_table(tmp_path / "t.csv", tmp_path / "t.json", "b", None, None)


def test_a_table_is_split_once_and_its_metrics_know_the_answer(table):
    assert (len(table.train), len(table.test), table.target) == (800, 200, "b")
    codes, widths = table.train_codes, table.domain.widths
    assert metrics.total_variation(codes, codes, widths, 2) == 0.0
    other = codes.copy()
    other[:, 1] = 1 - other[:, 1]
    assert metrics.total_variation(codes, other, widths, 2) == pytest.approx(
        1 / 3, abs=0.05
    )  # a and b turn around; c is free of both
    scores = metrics.classifier_scores(codes, table)
    assert scores["GB AUROC"] == pytest.approx(1.0)
    assert scores["GB recall of y"] == 1.0
    assert metrics.classifier_scores(other, table)["GB AUROC"] == pytest.approx(0.0)
    assert metrics.nearest_neighbour_ratio(codes, replace(table, test=table.test.with_columns(c=None))) == 0.0
    broken = table.train.with_columns(pl.when(pl.col("a") == 3).then(99).otherwise(pl.col("a")).alias("a"))
    assert metrics.breaking_share(table.train, table.schema) == 0.0
    assert metrics.breaking_share(broken, table.schema) == pytest.approx((table.train["a"] == 3).mean())
    assert (codes_of(decode(codes, table.domain.columns), table.domain) == codes).all()


def test_ours_goes_the_way_of_an_order_and_is_reported(table):
    ask = Ask(table, 8.0, 1e-5, 500, 1, {"steps": 60, "components": 64})
    frame, seconds = METHODS["marginals"](ask)
    assert frame.height == 500
    assert frame.columns == ["a", "b", "c"]
    assert metrics.breaking_share(frame, table.schema) == 0.0
    found = metrics.classifier_scores(codes_of(frame, table.domain), table)
    assert found["LR AUROC"] > 0.9
    run = {"method": "marginals", "epsilon": 8.0, "seed": 1, "metrics": found, "seconds": seconds, "megabytes": 1.0}
    facts: dict[str, Any] = {"name": "t", "date": "2026-01-01", "delta": 1e-5, "times": 1, "limit": 9.0, "test": "x"}
    facts["hardware"] = "2 cores (x86_64)"
    failed = {**run, "method": "other", "metrics": {}, "why": "failed: no such thing"}
    facts["runs"] = [run, failed]
    assert markdown(facts).startswith("2 cores (x86_64); δ = 1e-05 of one release; 1 synthetic row(s)")
    assert "| marginals | 8 | 1 |" in markdown(facts)
    assert "- other, ε = 8, seed 1: failed: no such thing" in markdown(facts)
    assert picture(facts).count("<polyline") == 1


@pytest.mark.slow
def test_a_shipped_table_runs_in_a_process_of_its_own_and_a_limit_ends_it(tmp_path: Path) -> None:
    files = source("wine", tmp_path, tmp_path)
    assert files is not None
    assert source("adult", tmp_path, tmp_path) is None
    settings = Settings(files.data, files.schema, files.test, None, None, 2, 1e-5)
    run = in_a_process(settings, "independent", None, 1, {}, 120.0)
    assert (run.why, run.metrics["rows breaking the schema"]) == ("", 0.0)
    assert run.metrics["TV1"] == 0.0
    ended = in_a_process(settings, "independent", None, 1, {}, 0.01)
    assert (ended.metrics, ended.why) == ({}, "ended at the limit of 0 s")


def test_the_bench_takes_the_delta_that_the_service_would_give(tmp_path: Path) -> None:
    files = source("wine", tmp_path, tmp_path)
    assert files is not None
    for rows, delta in ((None, 1e-6), (50, 1e-6)):
        asked = argparse.Namespace(target=None, rows=rows)
        table = read_table(files.data, files.schema, None, files.test, rows)
        assert release_delta(asked, files) == default_delta(len(table.train)) / 2 == delta / 2


def test_made_up_tables_have_the_structure_they_are_made_for(tmp_path: Path) -> None:
    tables = {}
    for name in ("chain", "survey"):
        files = source(name, tmp_path, tmp_path)
        assert files is not None
        tables[name] = read_table(files.data, files.schema, None, None, None)
        assert metrics.breaking_share(tables[name].train, tables[name].schema) == 0.0
    codes, widths = tables["chain"].train_codes, tables["chain"].domain.widths
    follows = [(codes[:, c + 1] == codes[:, c] * 7 % widths[c + 1]).mean() for c in range(19)]
    assert follows == pytest.approx([0.8 + 0.2 / width for width in widths[1:]], abs=0.02)
    survey = tables["survey"].train
    assert survey.select(pl.struct("town", "county", "region").n_unique()).item() == 120
    assert (survey["arrears"] == "yes").mean() == pytest.approx(0.08, abs=0.01)


def test_the_newest_run_of_each_method_counts_and_a_peer_is_ahead_by_what_is_shown(tmp_path, monkeypatch) -> None:
    def take(date: str, **gb: float) -> None:
        cost = {"seconds": 3.0, "cpu_seconds": 2.0, "megabytes": 100.0}
        runs = [
            {"method": method, "epsilon": 1.0, "seed": seed, "metrics": scores(value), **cost}
            for method, value in gb.items()
            for seed in (1, 2)
        ]
        failed = {"method": "AIM", "epsilon": 1.0, "seed": 1, "metrics": {}, "why": "took too long", **cost}
        records.take("adult", {"date": date, "hardware": "2 cores (x86_64)", "runs": [*runs, failed]})

    def scores(gb: float) -> dict[str, float]:
        return {measure.name: gb if measure.name == "GB AUROC" else 0.5 for measure in beside.MEASURES}

    monkeypatch.setattr(records, "RECORDS", tmp_path / "peers.csv")
    beside.newest.cache_clear()
    take("2026-01-02", marginals=0.7, AIM=0.8)
    take("2026-01-03", marginals=0.7997)
    on_record = [(run["method"], run["epsilon"], run["seed"], run["date"]) for run in records.runs_of("adult")]
    assert on_record == [
        *(("AIM", 1.0, seed, "2026-01-02") for seed in (1, 2)),
        *(("marginals", 1.0, seed, "2026-01-03") for seed in (1, 2)),
    ]
    try:
        (table, (one,)) = next(iter(beside.beside("first")))
    finally:
        beside.newest.cache_clear()
    assert (table.name, one.epsilon) == ("adult", 1.0)
    gb = next(place for place, measure in enumerate(beside.MEASURES) if measure.name == "GB AUROC")
    assert (one.ours.values[gb], one.peers["AIM"].values[gb]) == (0.8, 0.8)
    assert not one.is_ahead("AIM", gb)


def test_the_page_has_means_over_tables_where_a_peer_is_ahead_and_a_picture(tmp_path, monkeypatch) -> None:
    def run(method: str, tv2: float) -> dict[str, Any]:
        names = {measure.name: 0.5 for measure in beside.MEASURES}
        cost = {"seconds": 3.0, "cpu_seconds": 2.0 if method == "marginals" else 40.0, "megabytes": 100.0}
        return {"method": method, "epsilon": 1.0, "seed": 1, "metrics": names | {"TV2": tv2}, **cost}

    monkeypatch.setattr(records, "RECORDS", tmp_path / "peers.csv")
    beside.newest.cache_clear()
    for table, ours, theirs in (("adult", 0.01, 0.04), ("wine", 0.2, 0.2), ("star", 0.09, 0.01), ("parity", 0.1, 0.9)):
        runs = [run("marginals", ours), run("AIM", theirs)]
        records.take(table, {"date": "2026-01-02", "hardware": "2 cores (x86_64)", "runs": runs})
    markers = [
        f"{beside.BEGIN.format(name)}\n\nold\n\n{beside.END.format(name)}"
        for name in ("measured", "means", "purposes", "behind", "interactions")
    ]
    try:
        page, shown = beside.render("\n".join(markers)), beside.dots().svg()
    finally:
        beside.newest.cache_clear()
    assert "old" not in page
    assert "- AIM, ε = 1, 3 tables: Adult, star, wine" in page
    factor = (0.25 * 1.0 * 9.0) ** (1 / 3)  # the made-up parity is not in the mean
    assert f"| 1 | TV2 | × {factor:.2f} ± " in page
    assert "| 1 | CPU seconds | × .050 ± .000 (3) |" in page
    assert "| TV2 | 1 | 1 of 3 | star .0900 (AIM .0100) |" in page
    assert "| parity of five columns | AIM | 1 | .500 | .500 | .5000 | .9000 | .5000 | 40 |" in page
    assert shown.count("<circle") == 3 + 6  # three methods are named, two of them ran on three tables
    assert ">Adult<" in shown


def test_no_table_of_five_columns_says_anything_of_a_parity(tmp_path: Path) -> None:
    files = source("parity", tmp_path, tmp_path)
    assert files is not None
    codes = read_table(files.data, files.schema, None, None, None).train_codes
    label, bits = codes[:, -1], codes[:, :5]
    assert (label == bits.sum(axis=1) % 2).all() or (label != bits.sum(axis=1) % 2).all()
    for left_out in range(5):
        kept = np.delete(bits, left_out, axis=1) @ (1 << np.arange(4))
        shares = [label[kept == cell].mean() for cell in range(16)]
        assert shares == pytest.approx([0.5] * 16, abs=0.08)  # about five standard deviations of a thousand rows


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_what_aim_spends_is_what_its_budget_is(epsilon: float) -> None:
    concentrated, gaussian = ZeroConcentrated(epsilon, 1e-5), GaussianDp(epsilon, 1e-5)
    for accountant in (concentrated, gaussian):
        assert accountant.measuring(accountant.deviation(0.01)) == pytest.approx(0.01)
        assert accountant.selecting(accountant.strength(0.01)) == pytest.approx(0.01)
    # A Gaussian mechanism of that ρ has at most the δ that was asked for, by the exact curve; and Gaussian DP wastes nothing of it.
    assert GaussianDp.delta(np.sqrt(2.0 * concentrated.total), epsilon) <= 1e-5
    assert GaussianDp.delta(np.sqrt(gaussian.total), epsilon) == pytest.approx(1e-5, rel=1e-6)
    assert 2.0 * concentrated.total < gaussian.total
    # Of two outcomes whose log ratios are t and t - ε, none is told apart better than by the Gaussian mechanism of its price.
    ratio = np.linspace(1e-3, 1.0 - 1e-3, 999) * epsilon
    chance = (1.0 - np.exp(ratio - epsilon)) / (np.exp(ratio) - np.exp(ratio - epsilon))
    apart = norm.ppf(chance * np.exp(ratio)) - norm.ppf(chance)
    assert apart.max() == pytest.approx(np.sqrt(gaussian.selecting(epsilon)), rel=1e-9)


def test_subgroups_are_scored_beside_the_real_trained(table):
    """Labels of synthetic rows are turned around for one value of the protected field alone."""
    rng = np.random.default_rng(1)
    schema = {
        "fields": [*SCHEMA["fields"], {"name": "g", "type": "boolean", "constraints": {"required": True}}],
        "target": "b",
        "protected": ["g"],
    }
    frames = [frame.with_columns(pl.Series("g", rng.random(len(frame)) < 0.5)) for frame in (table.train, table.test)]
    parsed = parse_table_schema(schema)
    own = replace(
        table,
        schema=parsed,
        train=frames[0],
        test=frames[1],
        domain=TableDomain.from_schema(parsed, numeric_bins=16),
    )
    turned = own.train.with_columns(
        pl.when("g")
        .then(pl.when(pl.col("b") == "x").then(pl.lit("y")).otherwise(pl.lit("x")))
        .otherwise("b")
        .alias("b")
    )
    real, other = (subgroup_scores(codes_of(frame, own.domain), own) for frame in (own.train, turned))
    assert real["GB accuracy of g=True"] > 0.95
    assert real["GB demographic parity difference of g"] < 0.3
    assert other["GB accuracy of g=True"] < 0.05
    assert other["GB accuracy of g=False"] > 0.95
    assert other["GB lowest accuracy of g"] == other["GB accuracy of g=True"]
    page = section([("real", "–", [{"metrics": real}]), ("made", "1", [{"metrics": other}])])
    (line,) = (line for line in page if line.startswith("| made | 1 | GB | g=True |"))
    assert f"({other['GB accuracy of g=True'] - real['GB accuracy of g=True']:+.3f})" in line
    assert subgroup_scores(codes_of(table.train, table.domain), table) == {}
