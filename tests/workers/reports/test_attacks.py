"""Attacks in the owner's report: a generator that copies its rows is broken by them, an honest one is not."""

import html
import io
import json
import uuid

import numpy as np
import polars as pl
import pytest
import torch
from tiny_generators import tiny_files

from bench.audit.releases.making import DOMAIN, SCHEMA, admissible_rows, marginals
from bench.audit.releases.zip_page import page_of_zip
from service.domain.table_schema import parse_table_schema
from service.methods.catalogue import parse_order
from service.pages.rendering import templates
from service.pages.words import AMONG, ATTACKED, SCORES
from service.releases.report_pages import owner_page
from tests.service.pages.spoken import english_in
from tests.tiny_mixtures import mixture_files
from workers.generators.archive import pack
from workers.held_out import Split
from workers.reports import attacks
from workers.reports.attacks import best_advantage, most_advantage
from workers.reports.owner import Made, owner_report
from workers.reports.rows import domain_of, one_of_each, unsigned_bundle

UNITS = 512
DECLARED = parse_table_schema(SCHEMA)
CHANCE_BITS = 1.0
"""The median of rows that are like those they are compared with."""


@pytest.fixture(scope="module")
def rows():
    """Evenly drawn, so that an honest generator has nothing to learn."""
    return admissible_rows(UNITS, 11)


@pytest.fixture(scope="module")
def split():
    order = parse_order({"method": "marginals", "epsilon": 1, "report": {"held_out": 0.5}})
    return Split.of(order, uuid.UUID(int=7))


def as_file(rows):
    columns = {"age": 10 * rows[:, 0].astype(np.int64) + 3}
    columns |= {
        name: [f"{name} {code}" for code in rows[:, place]] for place, name in enumerate(DOMAIN.names) if place > 0
    }
    file = io.BytesIO()
    pl.DataFrame(columns).write_parquet(file)
    file.seek(0)
    return file


def copier(rows):
    """Each of its components is one of the rows."""
    logits = np.full((1, len(rows), DOMAIN.total_width), -30.0, dtype=np.float32)
    firsts = np.cumsum([0, *DOMAIN.widths[:-1]])
    logits[0, np.arange(len(rows))[:, None], firsts + rows] = 0.0
    config, network = mixture_files(SCHEMA, torch.from_numpy(logits))
    return unsigned_bundle({"config.json": json.dumps(config).encode(), "generator.onnx": network})


def honest(rows):
    made = marginals(1.0).released(rows.astype(np.uint16), 1)
    return pack(made.files(schema=DECLARED, certificate={}, order={"method": "marginals"}), {})


def report_on(make, rows, split):
    """Of a generator that this makes of the rows that are not held out."""
    used = rows if split is None else rows[split.units(UNITS, held_out=False)]
    return owner_report(DECLARED, as_file(rows), make(used), Made(1.0, 1e-5, UNITS, split), seed=1)


@pytest.fixture(scope="module")
def reports(rows, split):
    return {make.__name__: report_on(make, rows, split) for make in (copier, honest)}


def figures(report, part):
    return {tuple(v for v in one.values() if isinstance(v, str)): one for one in report["attacks"][part]["found"]}


def test_likelihood_tells_the_rows_of_a_copier_and_not_those_of_an_honest_generator(reports):
    for name, is_broken in (("copier", True), ("honest", False)):
        found = reports[name]["attacks"]["likelihood"]
        assert found["most_advantage"] == pytest.approx(0.462, abs=1e-3)
        for one in found["scores"]:
            assert (one["auroc"]["low"] > 0.8) == is_broken, (name, one)
            assert (one["advantage"]["low"] > found["most_advantage"]) == is_broken, (name, one)
            assert is_broken or one["auroc"]["value"] == pytest.approx(0.5, abs=0.15)
    assert reports["copier"]["attacks"]["not_given"] is None


def test_copied_rows_are_exposed_and_rows_that_were_held_out_are_not(reports):
    copied, fair = (figures(reports[name], "exposure") for name in ("copier", "honest"))
    assert copied["real", "even"]["median"] > CHANCE_BITS + 2.0
    assert copied["real", "even"]["share_above_chance"] > 0.95
    assert copied["held_out", "even"]["median"] < CHANCE_BITS + 0.5
    assert copied["held_out", "synthetic"]["median"] < 0.1 < copied["synthetic", "synthetic"]["median"]
    chance = reports["honest"]["attacks"]["exposure"]["chance"]
    for rows in ("real", "held_out"):  # synthetic ones follow the noise, which even ones do not
        assert fair[rows, "even"]["median"] == pytest.approx(CHANCE_BITS, abs=0.6)
        assert fair[rows, "even"]["share_above_chance"] == pytest.approx(chance["share_above_chance"], abs=0.2)
        assert fair[rows, "synthetic"]["median"] < CHANCE_BITS + 0.5


def test_nearest_rows_of_a_copier_are_the_rows(reports):
    copied = figures(reports["copier"], "nearest")
    assert copied[("real",)]["same"] > 0.95
    assert copied[("held_out",)]["same"] < 0.3
    assert copied[("real",)]["mean"] < copied[("held_out",)]["mean"]


def test_without_held_out_units_it_says_so_and_gives_the_rest(rows):
    report = report_on(copier, rows, None)
    found = report["attacks"]
    assert (found["likelihood"], found["not_given"]) == (None, attacks.NONE_HELD_OUT)
    assert set(found["rows"]) == {"real", "synthetic"}
    assert figures(report, "exposure")["real", "even"]["median"] > CHANCE_BITS + 2.0
    page = owner_page(report, "x")
    assert "Exposure" in page
    assert "were used to make this generator" in page


def test_a_network_has_distances_alone(rows, split):
    report = report_on(network, rows, split)
    found = report["attacks"]
    assert (found["likelihood"], found["exposure"], found["not_given"]) == (None, None, attacks.NO_DENSITY)
    assert {one["rows"] for one in found["nearest"]["found"]} == {"real", "held_out", "synthetic"}
    assert "is a network" in owner_page(report, "x")


def network(_rows):
    config, onnx = tiny_files(SCHEMA)
    return unsigned_bundle({"config.json": json.dumps(config).encode(), "generator.onnx": onnx})


def test_the_work_is_bounded_and_what_was_looked_at_is_said(reports, rows, monkeypatch):
    held_out = UNITS // 2
    assert reports["copier"]["attacks"]["rows"] == {
        "real": UNITS - held_out,
        "held_out": held_out,
        "synthetic": attacks.MOST_ROWS,
    }
    monkeypatch.setattr(attacks, "MOST_WORK", 1_500 * held_out * len(DOMAIN.columns))
    assert attacks.Attacked(copier(rows[:held_out]), DECLARED).most_rows == 1_500
    monkeypatch.setattr(attacks, "MOST_WORK", 1)
    assert attacks.Attacked(copier(rows[:held_out]), DECLARED).most_rows == attacks.LEAST_ROWS
    frame, owners = pl.read_parquet(as_file(rows)), np.arange(UNITS)
    random, domain = np.random.default_rng(0), domain_of(DECLARED)
    assert len(one_of_each(frame, owners, domain, owners, most=100, random=random)) == 100
    in_threes = one_of_each(frame, owners // 3, domain, np.array([5, 6, 7]), most=100, random=random)
    assert len(in_threes) == 3
    assert {tuple(row) for row in in_threes.codes} <= {tuple(row) for row in rows[15:24]}


def test_the_page_shows_the_attacks_and_what_they_cannot_show(reports):
    page = owner_page(reports["copier"], "x")
    for words in ("Attacks on this release", "One release proves no ε", "At ε = 1 the advantage is at most 0.462"):
        assert words in page
    for name in ("likelihood", "exposure", "nearest"):
        assert reports["copier"]["attacks"][name]["says"] in html.unescape(page)
    assert "Attacks" not in owner_page({**reports["copier"], "attacks": None}, "x")  # of an earlier version
    assert reports["copier"]["compared"].endswith("the generator was not made from them.")


@pytest.mark.parametrize("without_density", [False, True])
def test_the_web_page_says_all_of_it_in_german(reports, without_density):
    found = reports["copier"]["attacks"]
    if without_density:
        found = found | {"likelihood": None, "exposure": None, "not_given": attacks.NO_DENSITY}
    words = {"attacks": found, "attacked": ATTACKED, "among": AMONG, "scores": SCORES}
    page = templates("de").get_template("owner_report_attacks.html").render(**words)
    assert english_in(page) == []
    assert "beweist kein ε" in page
    assert ("höchstens 0,46" in page) != without_density
    assert ("ist ein Netz" in page) == without_density


def test_a_downloaded_zip_with_a_hierarchy_is_read_in_coarse_categories(tmp_path):
    schema = {
        "fields": [
            {"name": "town", "type": "string", "hierarchy": {"north": ["a", "b"], "south": ["c"]}},
            {"name": "n", "type": "integer", "constraints": {"minimum": 0, "maximum": 9}},
        ]
    }
    logits = torch.zeros(1, 2, domain_of(parse_table_schema(schema)).total_width)
    logits[:, :, 0] = 50.0  # all are in the north
    config, network = mixture_files(schema, logits, numeric_bins=32)
    bundle = unsigned_bundle({"config.json": json.dumps(config).encode(), "generator.onnx": network})
    (tmp_path / "g.zip").write_bytes(bundle)
    (tmp_path / "s.json").write_text(json.dumps(schema))
    for name, towns in (("used", "ab"), ("others", "cc")):
        (tmp_path / f"{name}.csv").write_text("town,n\n" + "".join(f"{town},3\n" for town in towns * 10))
    files = (tmp_path / name for name in ("g.zip", "used.csv", "s.json", "others.csv"))
    assert "| log p | 1.000 |" in page_of_zip(*files, reference_rows=200)


def test_an_advantage_is_counted_on_rows_that_did_not_choose_the_threshold():
    random = np.random.default_rng(0)
    wins = [best_advantage(random.random(20), random.random(20), random).advantage for _ in range(300)]
    assert np.mean(wins) == pytest.approx(0.0, abs=0.06)
    sure = best_advantage(np.ones(400), np.full(400, -np.inf), random)
    assert sure.advantage == sure.high == 1.0
    assert 0.9 < sure.low < 1.0


def test_what_a_price_allows_at_most():
    assert most_advantage(0.0, 0.25) == 0.25
    assert most_advantage(2_000.0, 1e-5) == 1.0
