"""Columns of all rows come closer to the ones without noise than by shrinking them evenly, whatever they look like."""

from __future__ import annotations

import numpy as np
import pytest

from workers.methods.marginals.estimate.denoising import Floats, onto_simplex
from workers.methods.marginals.estimate.pooled_columns import pooled_counts
from workers.methods.marginals.estimate.smoothing import NoisyColumn

ROWS, CELLS, NOISE_STD = 4_000.0, 32, 40.0

PLACES = np.arange(CELLS)
HUMP = np.exp(-0.5 * ((PLACES - 11) / 5.0) ** 2)
PEAKS = HUMP + 3.0 * np.isin(PLACES, (7, 16, 24))
FEW_VALUES = np.bincount([0, 5, 30], weights=[9.0, 4.0, 6.0], minlength=CELLS)


def noisy(exact: Floats, seed: int) -> NoisyColumn:
    noise = NOISE_STD * np.random.default_rng(seed).standard_normal(exact.shape)
    return NoisyColumn((exact + noise)[None], NOISE_STD**2, is_ordered=True, has_missing=False)


def shrunk_evenly(counts: Floats) -> Floats:
    """By the positive part of James and Stein 1961, towards a uniform column."""
    beyond = counts - counts.mean()
    kept = max(0.0, 1.0 - (CELLS - 3) * NOISE_STD**2 / (beyond @ beyond))
    return onto_simplex(ROWS / CELLS + kept * beyond, ROWS)


@pytest.mark.parametrize(
    ("shape", "most"), [(HUMP, 0.9), (PEAKS, 1.0), (FEW_VALUES, 0.9)], ids=["hump", "peaks", "few values"]
)
def test_columns_are_closer_than_by_even_shrinking(shape: Floats, most: float) -> None:
    exact = ROWS * shape / shape.sum()
    columns = [noisy(exact, seed) for seed in range(12)]
    pooled = pooled_counts(columns, ROWS)
    shrunk = [shrunk_evenly(one.counts[0]) for one in columns]

    def error(found: list[Floats]) -> float:
        return float(np.mean([np.abs(counts - exact).sum() for counts in found]))

    assert error(pooled) < most * error(shrunk)


@pytest.mark.parametrize("noise_std", [1e-3, 40.0, 1e5])
@pytest.mark.parametrize("rows", [1.0, 4_000.0])
def test_counts_are_possible_under_any_noise(noise_std: float, rows: float) -> None:
    counts = noise_std * np.random.default_rng(3).standard_normal((1, 7))
    columns = [
        NoisyColumn(counts, noise_std**2, is_ordered=True, has_missing=True),
        NoisyColumn(counts[:, :1], noise_std**2, is_ordered=False, has_missing=False),
        NoisyColumn(counts + rows, noise_std**2, is_ordered=False, has_missing=False),
    ]
    for column, found in zip(columns, pooled_counts(columns, rows), strict=True):
        assert found.shape == column.counts[0].shape
        assert (found >= 0.0).all()
        assert found.sum() == pytest.approx(rows)


def test_counts_without_noise_to_speak_of_stay() -> None:
    exact = ROWS * PEAKS / PEAKS.sum()
    (found,) = pooled_counts([NoisyColumn(exact[None], 1e-6, is_ordered=True, has_missing=False)], ROWS)
    assert found == pytest.approx(exact, abs=0.1)
