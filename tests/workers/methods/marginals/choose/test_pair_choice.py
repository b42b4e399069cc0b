"""Which pairs are worth measuring: the best, none, or all."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from workers.mechanism.marginals import Columns, TableLayout
from workers.methods.marginals.choose.pair_choice import NoiseStds, choose_pairs, expected_counts

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
    """(pairs,) noisy distances from independence of a table of uniform columns."""
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


def of_noise(noise_std: float) -> NoiseStds:
    """As many tables of one size share a budget."""
    return lambda _layout, pairs: (noise_std * len(pairs) ** 0.5,) * len(pairs)


def chosen(codes: np.ndarray, noise_std: float, score_noise_std: float = SCORE_NOISE) -> list[Columns]:
    return choose_pairs(LAYOUT, EXPECTED, scores_of(codes), of_noise(noise_std), score_noise_std=score_noise_std)


@pytest.mark.parametrize("noise_std", [0.0, 10.0, 200.0, 1e6])
def test_chosen_pairs_are_the_best_and_fewer_under_more_noise(noise_std: float) -> None:
    codes = a_chain(np.random.default_rng(1))
    found, scores = chosen(codes, noise_std), scores_of(codes)
    by_score = dict(zip(PAIRS, scores.tolist(), strict=True))
    left = set(PAIRS) - set(found)
    assert found == sorted(found)
    assert not found or not left or min(map(by_score.__getitem__, found)) >= max(map(by_score.__getitem__, left))
    numbers = [len(chosen(codes, more)) for more in (0.0, noise_std, 2e6)]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[-1] == 0


def test_of_a_chain_the_links_are_taken() -> None:
    assert set(LINKS) <= set(chosen(a_chain(np.random.default_rng(1)), 60.0))


def test_pairs_are_chosen_where_they_are_more_than_what_noise_makes_of_scores() -> None:
    """Of 66 scores of nothing, hardly one lies two noise_std out; of a chain with strong links these do."""
    rng = np.random.default_rng(2)
    nothing, chain = rng.integers(WIDTH, size=(ROWS, COLUMNS)), a_chain(rng)
    assert len(chosen(nothing, 60.0)) <= 2
    assert len(chosen(chain, 60.0)) >= len(LINKS)
    assert chosen(chain, 60.0, score_noise_std=100 * SCORE_NOISE) == []
