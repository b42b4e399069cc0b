"""Which pairs are worth measuring: the best, few that explain the others, or all."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from workers.mechanism.marginals import Columns, TableLayout
from workers.methods.marginals.choose.pair_choice import (
    NoiseStds,
    choose_pairs,
    expected_counts,
    few_pairs,
    stand_out,
)

COLUMNS, WIDTH, ROWS = 12, 4, 20_000
LAYOUT = TableLayout((WIDTH,) * COLUMNS, (WIDTH,) * COLUMNS, (False,) * COLUMNS, label=None)
PAIRS: list[Columns] = list(combinations(range(COLUMNS), 2))
EXPECTED = expected_counts(
    LAYOUT,
    {(c,): np.full((1, WIDTH), ROWS / WIDTH) for c in range(COLUMNS)},
    np.array([float(ROWS)]),
    PAIRS,
)
LINKS = [(c, c + 1) for c in range(COLUMNS - 1)]
SCORE_NOISE = 200.0


def scores_of(codes: np.ndarray) -> np.ndarray:
    """(pairs,) noised distances from independence of a table of uniform columns."""
    found = []
    for i, j in PAIRS:
        counts = np.zeros((WIDTH, WIDTH))
        np.add.at(counts, (codes[:, i], codes[:, j]), 1)
        found.append(np.abs(counts - EXPECTED[i, j][0]).sum())
    return np.array(found) + np.random.default_rng(9).normal(0.0, SCORE_NOISE, len(PAIRS)).round()


def a_chain(rng: np.random.Generator) -> np.ndarray:
    """Each column copies the one before it in 80 % of the rows."""
    columns = [rng.integers(WIDTH, size=ROWS)]
    for _ in range(COLUMNS - 1):
        fresh = rng.integers(WIDTH, size=ROWS)
        columns.append(np.where(rng.random(ROWS) < 0.8, columns[-1], fresh))
    return np.stack(columns, axis=1)


def a_circle(rng: np.random.Generator) -> np.ndarray:
    """Every column depends on every other through two numbers that are not a column: no tree says it all."""
    causes = rng.normal(size=(ROWS, 3))
    sums = causes @ rng.normal(size=(3, COLUMNS)) + 0.3 * rng.normal(size=(ROWS, COLUMNS))
    ranks = sums.argsort(axis=0).argsort(axis=0)
    found: np.ndarray = ranks * WIDTH // ROWS
    return found


def of_noise(noise_std: float) -> NoiseStds:
    """As many tables of one size share a budget."""
    return lambda _layout, pairs: (noise_std * len(pairs) ** 0.5,) * len(pairs)


def few(codes: np.ndarray, noise_std: float) -> list[Columns] | None:
    return few_pairs(LAYOUT, EXPECTED, scores_of(codes), of_noise(noise_std), score_noise_std=SCORE_NOISE)


def test_of_a_chain_the_links_are_taken_and_hardly_more() -> None:
    found = few(a_chain(np.random.default_rng(1)), 60.0)
    assert found is not None
    assert set(LINKS) <= set(found)
    assert len(found) < 2 * len(LINKS)
    assert found == sorted(found)


def test_all_are_taken_where_no_tree_says_nearly_all_where_none_says_anything_and_where_noise_is_small() -> None:
    assert few(a_circle(np.random.default_rng(2)), 60.0) is None
    assert few(np.random.default_rng(3).integers(WIDTH, size=(ROWS, COLUMNS)), 60.0) is None
    assert few(a_chain(np.random.default_rng(1)), 2.0) is None


@pytest.mark.parametrize("noise_std", [0.0, 10.0, 200.0, 1e6])
def test_chosen_pairs_are_the_best_and_fewer_under_more_noise(noise_std: float) -> None:
    scores = scores_of(a_chain(np.random.default_rng(1)))
    chosen = choose_pairs(LAYOUT, EXPECTED, scores, of_noise(noise_std))
    by_score = dict(zip(PAIRS, scores.tolist(), strict=True))
    left = set(PAIRS) - set(chosen)
    assert not chosen or not left or min(map(by_score.__getitem__, chosen)) >= max(map(by_score.__getitem__, left))
    numbers = [len(choose_pairs(LAYOUT, EXPECTED, scores, of_noise(more))) for more in (0.0, noise_std, 2e6)]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[-1] == 0


def test_the_strongest_pairs_stand_out_where_they_are_more_than_what_noise_makes_of_scores() -> None:
    """Of 66 scores of nothing, the dozen highest lie some 1.4 noise_std out; of a chain with strong links they are these."""
    rng = np.random.default_rng(2)
    nothing, chain = rng.integers(WIDTH, size=(ROWS, COLUMNS)), a_chain(rng)
    for codes, stands_out in ((nothing, False), (chain, True)):
        assert stand_out(EXPECTED, scores_of(codes), score_noise_std=SCORE_NOISE) == stands_out
    assert not stand_out(EXPECTED, scores_of(chain), score_noise_std=50 * SCORE_NOISE)
