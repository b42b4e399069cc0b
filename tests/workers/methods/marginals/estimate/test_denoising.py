"""Noisy tables come closer to the ones without noise, and what stands out from the noise stays."""

from __future__ import annotations

import numpy as np
import pytest

from workers.methods.marginals.estimate.denoising import Floats, by_singular_values

NOISE_STD = 20.0


def noisy(counts: Floats) -> Floats:
    return counts + NOISE_STD * np.random.default_rng(1).standard_normal(counts.shape)


@pytest.mark.parametrize("cells", [(13, 13), (4, 13)])
def test_columns_that_say_nothing_of_each_other_lose_most_of_the_noise(cells: tuple[int, int]) -> None:
    first, second = (np.full(size, 10_000.0 / size) for size in cells)
    independent = np.outer(first, second) / 10_000.0
    after = by_singular_values(noisy(independent), first, second, NOISE_STD)
    assert np.abs(after - independent).mean() < 0.7 * np.abs(noisy(independent) - independent).mean()
    assert after.sum(axis=1) == pytest.approx(first, rel=1e-3)
    assert after.sum(axis=0) == pytest.approx(second, rel=1e-3)


def test_relations_that_are_known_well_stay() -> None:
    counts = np.random.default_rng(3).uniform(40_000.0, 160_000.0, (6, 7))
    first, second = counts.sum(axis=1), counts.sum(axis=0)
    after = by_singular_values(noisy(counts), first, second, NOISE_STD)
    assert np.abs(after - counts).mean() < 2.0 * NOISE_STD


def test_a_table_of_one_cell_along_an_axis_is_independent() -> None:
    one = by_singular_values(np.array([[30.0, -5.0]]), np.array([25.0]), np.array([24.0, 1.0]), NOISE_STD)
    assert one == pytest.approx(np.array([[24.0, 1.0]]))
