"""The paper's tables again: its equation 19, its scores, what its settings cost, and runs that go on where they were broken off."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from scipy.stats import entropy

from bench import poker
from bench.image_scores import balanced_weights, divergence_from_half, inception_score_of, most_inception_score
from bench.paper import every, prices
from bench.paper.cards import AuxiliaryTable, Cards, begin
from bench.paper.claims import ACCURACY, INCEPTION, STRATEGIES
from bench.paper.every import Asked, wanted
from bench.paper.methods import ABLATION, DECAY, NONE, REAL, THRESHOLDS
from bench.paper.page import NOT_RUN, text_of
from bench.paper.runs import Sizes, train
from service.privacy.accounting import epsilon_of
from service.privacy.events import SampledStepEvent
from workers.encoding.table import TableDomain

ROWS = 300


def by_definition(share: float) -> float:
    """Half of both Kullback-Leibler divergences, as equation 19 is written."""
    given, half = (share, 1.0 - share), (0.5, 0.5)
    return 0.5 * float(entropy(given, half)) + 0.5 * float(entropy(half, given))


@pytest.mark.parametrize("share", [0.5, 0.6, 0.1, 0.999])
def test_equation_19_is_both_divergences_from_a_fair_coin(share: float) -> None:
    assert divergence_from_half(np.array([math.log(share / (1.0 - share))])) == pytest.approx(by_definition(share))


def test_equation_19_is_a_mean_over_records_and_no_js_divergence() -> None:
    shares = np.array([0.2, 0.7, 0.95])
    found = divergence_from_half(np.log(shares / (1.0 - shares)))
    assert found == pytest.approx(np.mean([by_definition(share) for share in shares]))
    sure = divergence_from_half(np.array([800.0, -800.0]))  # d is 1 and 0 in floats
    assert sure == pytest.approx(200.0)
    assert sure > math.log(2.0)  # more than any JS divergence


def test_every_row_of_table_4_is_an_ablation_and_is_run() -> None:
    assert set(STRATEGIES) <= set(ABLATION)
    assert ABLATION["decaying noise and thresholds"] == {**NONE, **DECAY, **THRESHOLDS}
    assert ABLATION["decaying noise and thresholds"]["clusters"] == {"kind": "none"}
    asked = wanted(every.LONG, 1, slow_steps=None)
    for data, epsilon in (("mnist", 4.0), ("poker", 15.0), ("fashion_mnist", 10.0)):
        ran = {one.method for one in asked if (one.data, one.epsilon) == (data, epsilon)}
        assert {name for name in STRATEGIES if name != "all three (IDPGAN)"} | {"IDPGAN"} <= ran


def test_every_cell_that_the_paper_reports_is_run_once_for_each_seed() -> None:
    asked = wanted(every.LONG, 2, slow_steps=None)
    assert len(set(asked)) == len(asked)
    cells = {(one.data, one.method, one.epsilon, one.seed) for one in asked}
    for claims in (INCEPTION, ACCURACY):
        for data, found in claims.items():
            assert {(data, *cell, seed) for cell in found for seed in (0, 1)} <= cells
    for method in ("IDPGAN", "DPGAN", "GANobfuscator", "DPACGAN"):
        assert {one.epsilon for one in asked if (one.data, one.method) == ("poker", method)} == {5.0, 10.0, 15.0, 20.0}
        assert {one.epsilon for one in asked if (one.data, one.method) == ("mnist", method)} == {1.0, 2.0, 4.0, 8.0}


def test_thresholds_of_scalar_weights_have_no_finite_use() -> None:
    assert prices.scalars() == 25 * 64 + 25 * 64 * 128 + 25 * 128 * 256 + 4096
    price = prices.per_scalar(100)
    assert price.at_least is not None
    assert 7e4 < price.at_least < price.epsilon < 1e5
    assert prices.per_scalar(1).epsilon > 1e4  # five steps are too many


def test_clusters_and_thresholds_are_charged_and_the_paper_counts_neither() -> None:
    steps, levels = 200, prices.noise_levels(200)
    assert [count for _, count in levels] == [500, 500]
    alone, both = prices.honest(steps), prices.honest(steps, clusters=4, histograms=10)
    assert alone == pytest.approx(
        epsilon_of(tuple(SampledStepEvent(prices.Q, s, None, n) for s, n in levels), delta=1e-5)
    )
    assert both > 3.0 * alone
    assert alone < prices.by_the_paper(steps)  # valid but loose, where nothing but the gradient is released


def test_the_papers_formula_ends_its_run_where_the_paper_says() -> None:
    """ε = 4 on MNIST, within what rounding orders up adds."""
    assert 3.5 < prices.by_the_paper(13_770) < 4.0


def test_balanced_inception_score_is_not_bound_by_the_true_shares() -> None:
    labels = np.repeat([0, 1, 2], [900, 90, 10])
    sure = np.eye(3)[labels]
    most = most_inception_score(labels)
    assert most == pytest.approx(math.exp(entropy([0.9, 0.09, 0.01])))
    assert inception_score_of(sure) == pytest.approx(most)
    assert inception_score_of(sure, balanced_weights(labels)) == pytest.approx(3.0)
    unsure = np.full((1000, 3), 1.0 / 3.0)
    assert inception_score_of(unsure, balanced_weights(labels)) == pytest.approx(1.0)


def test_no_inception_score_of_real_hands_reaches_the_papers() -> None:
    labels = pl.read_csv(poker.ROOT / "examples" / "poker_hand.csv")[poker.LABEL].cast(pl.Int64).to_numpy()
    assert most_inception_score(labels) == pytest.approx(2.68, abs=0.01)
    assert INCEPTION["poker"][REAL, None].value > most_inception_score(labels)


@pytest.fixture(scope="module")
def cards() -> Cards:
    schema = poker.TableSchema.model_validate_json((poker.ROOT / "examples" / "poker_hand.schema.json").read_bytes())
    domain = TableDomain.from_schema(schema, numeric_bins=32)
    rows = pl.read_csv(poker.ROOT / "examples" / "poker_hand.csv")
    train_rows, test = rows[:ROWS], rows[ROWS : 2 * ROWS]
    return Cards(poker.Split(poker.encode(train_rows, domain), poker.encode(test, domain).codes, domain))


@pytest.mark.parametrize("method", ["IDPGAN", "DPGAN", "GANobfuscator", "DPACGAN", "WGAN-GP"])
def test_every_method_trains_on_cards_by_its_price_list(cards: Cards, method: str) -> None:
    epsilon = None if method == "WGAN-GP" else 15.0
    trained = begin(method, epsilon, cards.split, Sizes(3, 0, 0, 0, 0), 0)
    trained.measure()
    looks = train(trained, 3)
    assert [look.step for look in looks] == [1, 2, 3]
    assert all(math.isfinite(look.distance) for look in looks)
    assert trained.plan.steps_done == trained.plan.steps == 3
    assert isinstance(trained, AuxiliaryTable) == (method == "DPACGAN")


def test_the_critic_of_dpacgan_sees_no_label_of_a_generated_hand(cards: Cards) -> None:
    trained = begin("DPACGAN", 15.0, cards.split, Sizes(3, 0, 0, 0, 0), 0)
    batch = trained._critic_batch(np.arange(8))
    classes = cards.split.domain.widths[-1]
    assert float(batch.fake[:, -classes:].abs().sum()) == 0.0
    assert torch.equal(batch.real[:, -classes:].sum(dim=1), torch.ones(8))


def test_scores_of_cards(cards: Cards) -> None:
    scores = cards.scores(cards.split.train.codes, 0)
    assert 1.0 <= scores["inception"] <= 10.0
    assert 1.0 <= scores["balanced inception"] <= 10.0
    assert 0.0 <= scores["accuracy"] <= 100.0
    assert 40.0 < scores["majority"] < 60.0


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(every, "STORE", tmp_path / "runs.json")
    monkeypatch.setattr(every, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(every, "run_file", lambda name: tmp_path / name)
    return tmp_path


def test_runs_go_on_where_they_were_broken_off(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Asked] = []

    def fake(_self: object, asked: Asked) -> dict[str, object]:
        if len(made) == 2 and asked not in made:
            raise KeyboardInterrupt
        made.append(asked)
        return {
            "scores": {"accuracy": 50.0 + asked.seed, "inception": 2.0, "majority": 50.1},
            "looks": [[1, 0.5, 0.25]],
        }

    monkeypatch.setattr(every.Inputs, "made", fake)
    options = {"steps": None, "seeds": 2, "short": False, "only": "poker, IDPGAN, ε = 5", "minutes": 1e9}
    every.run_all(store, **options)
    assert [one.seed for one in made] == [0, 1]
    every.run_all(store, **options)
    assert len(made) == 2  # nothing twice
    options["only"] = "poker, IDPGAN"
    with pytest.raises(KeyboardInterrupt):
        every.run_all(store, **options)
    stored = json.loads((store / "runs.json").read_text())
    assert [every.asked_of(row) for row in stored["runs"]] == made
    assert "50.50 (0.71) [3,000 × 2]" in (store / "page.md").read_text()


def test_words_that_name_runs_of_digits_do_not_name_those_of_clothes() -> None:
    chosen = [one for one in wanted(every.LONG, 1, slow_steps=None) if every.named_by("mnist, IDPGAN", one)]
    assert {(one.data, one.method) for one in chosen} == {("mnist", "IDPGAN")}
    assert every.named_by("", chosen[0])
    assert every.named_by("seed 0", chosen[0])


def test_no_run_begins_after_the_time_is_up(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(every.Inputs, "made", lambda _self, _asked: pytest.fail("a run began"))
    every.run_all(store, steps=None, seeds=1, short=True, only="poker", minutes=-1.0)
    assert NOT_RUN in (store / "page.md").read_text()


def test_the_page_has_claimed_beside_honest_and_says_what_was_not_run() -> None:
    row = {"data": "mnist", "method": "IDPGAN", "epsilon": 4.0, "seed": 0, "looks": [[500, 9.0, 1.25]]}
    short = {**row, "steps": 600, "scores": {"accuracy": 10.0, "inception": 1.0, "from_half": 3.0, "js": 0.9}}
    long = {**row, "steps": 5_000, "scores": {"accuracy": 88.8, "inception": 6.66, "from_half": 0.5, "js": 0.1}}
    page = text_of({"runs": [short, long], "prices": [["one step", "bins", "none finite"]]})
    assert "| IDPGAN | 4 | 8.93 ± 0.03 | 6.66 [5,000 × 1] |" in page
    assert "| IDPGAN | 4 | 96.10 | 88.80 [5,000 × 1] |" in page
    assert "| IDPGAN | 1 | 85.80 | not run |" in page
    assert "| real data | – | 4.43 ± 0.01 | not run | not run |" in page
    assert "| decaying noise and thresholds | 8.82 ± 0.03 | not run |" in page
    assert "| one step | bins | none finite |" in page
    assert "Poker Hand DPGAN ε = 15" in page.split("## What is not there yet")[1]


def test_the_committed_page_says_what_the_committed_runs_say() -> None:
    stored = json.loads((every.RESULTS / "paper-all.json").read_text(encoding="utf-8"))
    assert (every.RESULTS / "paper-all.md").read_text(encoding="utf-8") == text_of(stored), (
        "run python -m bench.paper --all --minutes 0 --only nothing"
    )
