"""The charged report reads rows by its event alone, and nothing leaves it without that event's noise."""

import json
from functools import partial

import numpy as np
import pytest
import torch

from service.domain.grids import shape_of
from service.domain.table_schema import parse_table_schema
from service.methods.catalogue import parse_order
from service.methods.report_noise import NUMERIC_BINS, noise_alone
from service.privacy.events import GaussianEvent
from service.releases.report_pages import charged_page, decided_by_noise
from tests.tiny_mixtures import mixture_files
from tests.workers.reports.test_owner_figures import ROWS, SCHEMA, as_file, real_frame
from workers.encoding.table import encode_table
from workers.mechanism.secure_random import SecureRandom
from workers.plan import Plan, StepNotOnPlan
from workers.reports import charged
from workers.reports.charged import charged_report, layout_of, tables_of
from workers.reports.files import _line
from workers.reports.rows import domain_of, draw_frame
from workers.sources import GivenTable

PARSED = parse_table_schema(SCHEMA)
DOMAIN = domain_of(PARSED)


@pytest.fixture(scope="module")
def files():
    """Of a generator that knows single columns and nothing else."""
    frame = real_frame()
    counts = [np.bincount(c.encode(frame[c.name]), minlength=c.size) + 0.01 for c in DOMAIN.columns]
    logits = torch.from_numpy(np.log(np.concatenate(counts))).float()
    config, network = mixture_files(SCHEMA, logits[None, None].repeat(1, 2, 1), numeric_bins=32)
    return {"config.json": json.dumps(config).encode(), "generator.onnx": network}


@pytest.fixture(autouse=True)
def fewer_rows_and_the_same_ones(monkeypatch):
    monkeypatch.setattr(charged, "SYNTHETIC_ROWS", 20_000)
    monkeypatch.setattr(charged, "draw_frame", partial(draw_frame, seed=1))


def reported(files, noise_multiplier, *, accept=None, frame=None, seed=1):
    rows = encode_table(as_file(real_frame() if frame is None else frame), DOMAIN, units=ROWS)
    order = parse_order({"method": "marginals", "epsilon": 1.0, "report": {}, "accept": accept})
    plan = Plan((GaussianEvent("report", noise_multiplier),))
    found = charged_report(order, plan, GivenTable(rows, DOMAIN), SecureRandom.from_test_seed(seed), files, PARSED)
    assert plan.position == 1
    return found


class Untouchable:
    """A dataset that must not be read."""

    def table(self, **_how):
        raise AssertionError("rows were read before their event was taken")


def test_without_its_event_no_row_is_read(files):
    order = parse_order({"method": "marginals", "epsilon": 1.0, "report": {}})
    for events in ((), (GaussianEvent("marginals", 1.0),)):
        with pytest.raises(StepNotOnPlan):
            charged_report(order, Plan(events), Untouchable(), SecureRandom(), files, PARSED)


def test_errors_of_single_columns_and_of_pairs_are_told_apart(files):
    found = reported(files, 2.0)
    assert found["one_way"]["tv"] < 0.02
    assert 0.15 < found["two_way"]["tv"] < 0.3
    assert found["two_way"]["low"] < found["two_way"]["tv"] < found["two_way"]["high"]
    assert found["two_way"]["noise_hides_it"] is False
    estimate = f"{found['two_way']['tv']:.4g}"
    assert f'<td class="n">{estimate}</td>' in charged_page(found, "x")
    assert f"{found['two_way']['tv']:.3g} on average" in _line("pairs", found["two_way"])
    pairs = {tuple(one["columns"]): one["noisy_tv"] for one in found["pairs"]}
    assert pairs["age", "income"] > 2 * pairs["sex", "rich"]
    page = charged_page(found, "x")
    assert "age × income" in page
    assert "http" not in page
    assert "`" not in page, "a page is read by people, fields of JSON are not"


def test_no_share_of_the_page_is_above_one_and_what_is_noise_is_said_to_be(files):
    found = reported(files, 2_000.0)
    noisy = found["two_way"]["noisy_tv"]
    assert noisy > 1.0
    assert found["two_way"]["high"] == 1.0
    page = charged_page(found | {"two_way": found["two_way"] | {"tv": 1.2, "low": 0.0, "high": 3.4}}, "x")
    assert found["two_way"]["noise_hides_it"] is True
    assert "noise hides it" in _line("pairs", found["two_way"])
    assert f'<td class="n">0</td><td class="n">1</td><td>noise hides it</td><td class="n">{noisy:.4g}</td>' in page
    assert "nothing but noise" in page
    assert "nothing but noise" not in charged_page(reported(files, 2.0), "x")


def test_every_figure_has_the_noise_of_the_event(files):
    """The same rows and the same generator twice: figures differ by about what they say of their noise."""
    one, other = (reported(files, 60.0, seed=seed) for seed in range(2))
    for kind, name in (("columns", "column"), ("pairs", "columns")):
        for a, b in zip(one[kind], other[kind], strict=True):
            assert a[name] == b[name]
            assert a["noisy_tv"] != b["noisy_tv"]
            assert abs(a["noisy_tv"] - b["noisy_tv"]) < 8 * a["noise_std"]
    alone = np.mean([pair["of_noise_alone"] for pair in one["pairs"]])
    foretold = noise_alone(
        shape_of(PARSED, numeric_bins=NUMERIC_BINS), 60.0, ROWS
    )  # before it is ordered, from public figures
    assert foretold.two_way == pytest.approx(alone, rel=0.02)
    assert foretold.one_way == pytest.approx(np.mean([each["of_noise_alone"] for each in one["columns"]]), rel=0.02)
    assert one["two_way"]["noisy_tv"] > 0.8 * alone
    # One Gaussian over all tables: Σ (1 / std)² = 1 / σ², of at least as much noise in each.
    assert all(60.0 * np.sqrt(2 / (2 * np.pi)) / ROWS < each["of_noise_alone"] for each in one["columns"])


def test_what_is_accepted_is_decided_on_the_noisy_figure(files):
    assert reported(files, 2.0, accept={"two_way_tv": 0.5})["accepted"] is True
    refused = reported(files, 2.0, accept={"one_way_tv": 0.5, "two_way_tv": 0.01})
    assert refused["accepted"] is False
    assert refused["accept"] == {"one_way_tv": 0.5, "two_way_tv": 0.01, "by": "estimate"}
    assert "not accepted" in charged_page(refused, "x")
    assert reported(files, 2.0)["accepted"] is None
    assert "Noise hides the estimate" not in charged_page(refused, "x")
    by_chance = reported(files, 2_000.0, accept={"two_way_tv": 0.9})
    assert "Noise hides the estimate, so that this says little" in charged_page(by_chance, "x")
    for what in ("one_way", "two_way"):
        sure = {"one_way": None, "two_way": None, what: {"low": 0.0, "high": 0.2, "noise_hides_it": True}}
        accept = {f"{what}_tv": 0.5, "by": "estimate"}
        assert not decided_by_noise({**sure, "accept": accept}), "the bounds say the same"
        assert decided_by_noise({**sure, "accept": {**accept, f"{what}_tv": 0.1}})
        assert not decided_by_noise({**sure, "accept": {f"{what}_tv": 0.1, "by": "bound"}})
    assert reported(files, 2_000.0, accept={"two_way_tv": 0.1, "by": "bound"})["accepted"] is False  # nothing is known


def test_what_is_measured_follows_from_the_declaration():
    tables = tables_of(DOMAIN, "rich")
    assert tables == [(0,), (1,), (2,), (3,), (0, 3), (1, 3), (2, 3), (0, 1), (0, 2), (1, 2)]
    layout = layout_of(DOMAIN)
    assert layout.pair_widths == (2, 8, 8, 2)
    assert layout.groups_of(1)[-1] == 7  # missing stays alone
    assert (layout.groups_of(1)[:-1] < 7).all()
