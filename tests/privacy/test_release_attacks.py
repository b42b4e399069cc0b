"""Attacks on releases, small: the control without noise is broken, and nothing private is beyond its price. Seeds are fixed.

The whole bench is `python -m bench.audit --releases`; its figures are in docs/audits.md.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from bench.audit.releases import exposure, inversion, likelihood, poisoning, shadow, unlearning
from bench.audit.releases.game import Worlds
from bench.audit.releases.making import (
    ABSENT,
    DOMAIN,
    LABEL,
    SCHEMA,
    SLOTS,
    Attacked,
    Maker,
    admissible_rows,
    base_rows,
    idpgan,
    made_up_rows,
    marginals,
    outlier_row,
    with_copies,
)
from bench.audit.releases.verdicts import Guesses, Price, finding_of, finding_of_scores
from bench.audit.releases.zip_page import page_of_zip
from service.domain.table_schema import parse_table_schema
from workers.generators.archive import pack
from workers.reports.attacks import CHANCE, bits

RUNS = 30


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


class Game:
    """Releases without a row and with it."""

    def __init__(self, maker: Maker) -> None:
        self.maker, self.rows = maker, base_rows()
        self.outlier, self.poison = outlier_row(self.rows), poisoning.poison_row(self.rows)
        worlds = Worlds(maker, RUNS)
        self.without, self.later = worlds.of(self.rows), worlds.of(self.rows)
        self.with_outlier = worlds.of(with_copies(self.rows, self.outlier))
        self.with_poison = worlds.of(with_copies(self.rows, self.poison, 2))

    def findings(self) -> dict[str, list]:
        """By attack: what needs no more releases."""
        maker, outlier = self.maker, (self.without, self.with_outlier)
        half = RUNS // 2
        never = self.without[:half], self.later[:half]
        deleted = self.with_outlier[:half], self.later[half:]
        return {
            "shadow": [shadow.attack("outlier", maker.made_by, maker.paid(), outlier)],
            "likelihood": [likelihood.attack("outlier", self.outlier, maker.made_by, maker.paid(), outlier)],
            "poisoning": [
                poisoning.attack(self.poison, maker.made_by, maker.paid(copies=2), (self.without, self.with_poison))
            ],
            "inversion": [
                inversion.attack(("outlier", self.outlier), place, maker.made_by, maker.paid(), outlier)
                for place in (2, LABEL)
            ],
            "unlearning": [
                unlearning.attack("outlier", self.outlier, maker.made_by, maker.paid(releases=2), (never, deleted))
            ],
        }


@pytest.fixture(scope="module")
def control() -> Game:
    return Game(marginals(is_control=True))


@pytest.fixture(scope="module")
def private() -> Game:
    return Game(marginals(1.0))


@pytest.mark.parametrize("attack", ["shadow", "likelihood", "poisoning"])
def test_the_control_is_broken(control: Game, attack: str) -> None:
    (finding,) = control.findings()[attack]
    assert finding.is_beyond_its_price
    assert finding.epsilon_of_a_copy > control.maker.price


@pytest.mark.slow
def test_exposure_breaks_the_control_and_grows_with_copies(control: Game) -> None:
    bits = {k: exposure.exposures(control.maker, control.rows, k, 20) for k in (1, 4)}
    assert exposure.proven(bits[1], control.maker.made_by).is_beyond_its_price
    assert bits[1].mean > bits[1].most_mean
    assert bits[4].mean > bits[1].mean + 2.0


def test_two_releases_of_the_control_tell_who_was_deleted(control: Game) -> None:
    assert control.findings()["unlearning"][0].advantage_lower > 0.4


def test_nothing_private_is_beyond_its_price(private: Game) -> None:
    found = list(itertools.chain.from_iterable(private.findings().values()))
    assert len(found) == 6
    assert not [finding for finding in found if finding.is_beyond_its_price]
    bits = exposure.exposures(private.maker, private.rows, 1, 20)
    assert not exposure.proven(bits, private.maker.made_by).is_beyond_its_price
    assert bits.mean - bits.half_width < bits.most_mean


def test_what_a_class_has_in_common_is_read_off_with_noise_or_without(control: Game, private: Game) -> None:
    """Statistics of many rows are what releases are for."""
    exact, even = inversion.class_mean_distances(control.without, control.rows)
    noisy, _ = inversion.class_mean_distances(private.without, private.rows)
    assert exact < noisy < even


def test_networks_go_through_the_same_attacks() -> None:
    maker, row = idpgan(1.0, steps=3), outlier_row(base_rows())
    worlds = Worlds(maker, 6)
    releases = worlds.of(base_rows()), worlds.of(with_copies(base_rows(), row))
    finding = likelihood.attack("outlier", row, maker.made_by, maker.paid(), releases)
    assert not finding.is_beyond_its_price
    every = np.array(list(itertools.product(*map(range, DOMAIN.widths))))
    assert np.exp(releases[0][0].log_density(every)).sum() == pytest.approx(1.0)


def test_log_p_sums_to_one_over_all_rows_and_samples_follow_it(private: Game) -> None:
    release: Attacked = private.without[0]
    every = np.array(list(itertools.product(*map(range, DOMAIN.widths))))
    chances = np.exp(release.log_density(every))
    assert chances.sum() == pytest.approx(1.0)
    drawn = np.ravel_multi_index(tuple(release.sample(50_000, 1).T), DOMAIN.widths)
    assert np.abs(np.bincount(drawn, minlength=len(every)) / 50_000 - chances).sum() / 2 < 0.08


def test_exposure_of_what_was_not_planted_is_chance() -> None:
    rng = np.random.default_rng(0)
    canaries, reference = rng.integers(50, size=4_000).astype(float), rng.integers(50, size=9_999).astype(float)
    found = bits(canaries, reference, rng)
    assert found.mean() == pytest.approx(CHANCE, abs=0.1)  # ties are many, and do not matter
    assert (found >= 3.0).mean() == pytest.approx(1 / 8, abs=0.02)
    assert bits(np.array([99.0]), reference, rng) == pytest.approx([math.log2(10_000)])


def test_limits_of_the_price() -> None:
    assert Price(1.0, 0.0).most_advantage == pytest.approx(0.462, abs=1e-3)
    assert Price(1.0, 1e-5, copies=2).whole_delta == pytest.approx(1e-5 * (math.e + 1))
    assert Price(1.0, 1e-5, releases=2).whole_epsilon == 2.0
    assert Price(4.0, 1e-5, copies=8).whole_delta == 1.0
    assert Price(4.0, 1e-5, copies=8).most_advantage == 1.0
    assert poisoning.most_copies(4.0, 1e-5) == 2


def test_randomised_response_is_within_its_price_and_beyond_a_lower_one() -> None:
    """ε is known there: the verdict finds most of it and no more."""
    rng, runs = np.random.default_rng(1), 4_000
    truth = 1.0 / (1.0 + math.exp(-1.0))
    without, with_row = rng.random(runs) > truth, rng.random(runs) < truth
    guesses = Guesses(without, with_row)
    found, cheated = (
        finding_of(("a", "b"), ("c", False), Price(epsilon, 0.0), (guesses, guesses)) for epsilon in (1.0, 0.8)
    )
    assert not found.is_beyond_its_price
    assert 0.85 < found.epsilon_lower <= 1.0
    assert found.advantage == pytest.approx(found.price.most_advantage, abs=0.03)
    assert cheated.is_beyond_its_price


def test_scores_that_say_nothing_prove_nothing() -> None:
    rng = np.random.default_rng(0)
    found = finding_of_scores(("a", "b"), ("c", False), Price(0.1, 0.0), (rng.random(200), rng.random(200)))
    assert not found.is_beyond_its_price
    assert found.runs == 320


def test_the_poison_lies_where_clean_rows_hardly_vary() -> None:
    rows = base_rows()
    poison, clean = poisoning.poison_row(rows), rows[:-SLOTS]
    assert all(0 <= code < width for code, width in zip(poison, DOMAIN.widths, strict=True))
    assert not (clean == poison).all(axis=1).any()
    assert (clean[:, LABEL] == poison[LABEL]).mean() < 1 / DOMAIN.widths[LABEL]
    one = with_copies(rows, poison, 3)
    assert (one[-SLOTS : -SLOTS + 3] == poison).all()
    assert (one[-SLOTS + 3 :] == ABSENT).all()


def test_a_downloaded_zip_is_attacked_with_the_rows_it_was_made_from(tmp_path: Path) -> None:
    maker = marginals(is_control=True)
    used, others = made_up_rows(200, 0), made_up_rows(200, 5)
    made = maker.released(used, 1)
    files = made.files(schema=parse_table_schema(SCHEMA), certificate={}, order={"method": "marginals"})
    (tmp_path / "g.zip").write_bytes(pack(files, {}))
    (tmp_path / "s.json").write_text(json.dumps(SCHEMA))
    for name, rows in (("used", used), ("others", others), ("noise", admissible_rows(200, 3))):
        lines = [
            ",".join([str(10 * row[0] + 3), *(f"{n} {v}" for n, v in zip(DOMAIN.names[1:], row[1:], strict=True))])
            for row in rows
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join([",".join(DOMAIN.names), *lines]) + "\n")
    page = page_of_zip(
        tmp_path / "g.zip", tmp_path / "used.csv", tmp_path / "s.json", tmp_path / "noise.csv", reference_rows=2_000
    )
    assert page.startswith("Not private")
    area = float(next(line for line in page.splitlines() if line.startswith("| log p |")).split("|")[2])
    assert area > 0.9, "rows of the table are far likelier than even ones"
    cells = [line.split("|") for line in page.splitlines() if line.startswith(("| rows |", "| held out |"))]
    assert float(cells[0][3]) > float(cells[1][3])
    alone = page_of_zip(tmp_path / "g.zip", tmp_path / "others.csv", tmp_path / "s.json", None, reference_rows=2_000)
    assert "--held-out" in alone
