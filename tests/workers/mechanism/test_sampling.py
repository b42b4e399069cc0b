"""Poisson inclusion: every unit with probability q, independently, at a cost of the draw."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from workers.mechanism.sampling import poisson_sample
from workers.mechanism.secure_random import SecureRandom


def draws(units: int, probability: float, times: int) -> np.ndarray:
    """(times, units) bool."""
    randomness = SecureRandom.from_test_seed(9)
    drawn = np.zeros((times, units), dtype=bool)
    for row in drawn:
        row[poisson_sample(units=units, sampling_probability=probability, randomness=randomness)] = True
    return drawn


@pytest.mark.parametrize("probability", [0.01, 0.3, 0.9])
def test_inclusion_is_poisson_sampling(probability: float) -> None:
    times, units = 4_000, 50
    drawn = draws(units, probability, times)
    # Every unit alike.
    expected = times * probability
    statistic = ((drawn.sum(axis=0) - expected) ** 2 / (expected * (1 - probability))).sum()
    assert 0.001 < stats.chi2.sf(statistic, units) < 0.999
    # The number drawn is binomial.
    sizes = np.bincount(drawn.sum(axis=1), minlength=units + 1)
    wanted = times * stats.binom.pmf(np.arange(units + 1), units, probability)
    kept = wanted > 5
    statistic = ((sizes - wanted) ** 2 / wanted)[kept].sum() + (sizes[~kept].sum() - wanted[~kept].sum()) ** 2 / max(
        wanted[~kept].sum(), 1e-9
    )
    assert stats.chi2.sf(statistic, kept.sum()) > 0.001


@pytest.mark.parametrize("probability", [0.3, 0.7])
def test_units_are_drawn_independently(probability: float) -> None:
    times, units = 4_000, 30
    centred = draws(units, probability, times) - probability
    correlation = centred.T @ centred / (times * probability * (1 - probability))
    pairs = correlation[np.triu_indices(units, 1)] * np.sqrt(times)
    assert stats.kstest(pairs, "norm").pvalue > 0.001


def test_steps_are_drawn_independently() -> None:
    drawn = draws(1_000, 0.1, 500)
    both = (drawn[:-1] & drawn[1:]).mean()
    assert both == pytest.approx(0.01, rel=0.05)


def test_edges() -> None:
    randomness = SecureRandom.from_test_seed(1)

    def size(units: int, probability: float) -> int:
        drawn = poisson_sample(units=units, sampling_probability=probability, randomness=randomness)
        assert (np.diff(drawn) > 0).all()
        assert ((drawn >= 0) & (drawn < units)).all()
        return len(drawn)

    assert size(10, 1.0) == 10
    assert size(0, 0.5) == 0
    assert size(10, 1e-12) == 0
    assert size(10, 1.0 - 1e-16) == 10
    assert size(10**9, 1e-6) == pytest.approx(1_000, rel=0.2)


class Counting:
    """A secure stream that counts what is taken from it."""

    def __init__(self) -> None:
        self.taken = 0
        self.stream = SecureRandom.from_test_seed(1)

    def uniforms(self, *shape: int) -> Tensor:
        self.taken += int(torch.Size(shape).numel())
        return self.stream.uniforms(*shape)


def test_cost_is_that_of_the_draw_not_of_the_table() -> None:
    counting = Counting()
    poisson_sample(units=10**8, sampling_probability=1e-5, randomness=counting)
    assert counting.taken < 1_500


@pytest.mark.parametrize(("units", "probability"), [(10**7, 1e-5), (10_000, 1e-2)])
def test_large_tables_are_drawn_like_small_ones(units: int, probability: float) -> None:
    """Number, places and gaps of the draw; one gap in fifty is longer than a window and is drawn in parts."""
    randomness = SecureRandom.from_test_seed(4)
    drawn = [poisson_sample(units=units, sampling_probability=probability, randomness=randomness) for _ in range(400)]
    sizes = np.array([len(indices) for indices in drawn])
    expected = units * probability
    assert abs(sizes.sum() - 400 * expected) < 4.0 * np.sqrt(400 * expected)
    assert 0.001 < stats.chi2.sf(((sizes - expected) ** 2 / (expected * (1.0 - probability))).sum(), 400) < 0.999
    places = np.concatenate(drawn)
    assert stats.kstest(places / units, "uniform").pvalue > 0.001
    gaps = np.concatenate([np.diff(indices) for indices in drawn])
    edges = np.arange(0.0, 9.0, 0.5) / probability
    seen = np.histogram(gaps, [*edges, np.inf])[0]
    shares = -np.diff([*stats.geom.sf(np.ceil(edges) - 1, probability), 0.0])
    # Only gaps that end within the table are seen, which shortens them a little: by less than the noise here.
    assert stats.chisquare(seen, shares * seen.sum()).pvalue > 0.001
