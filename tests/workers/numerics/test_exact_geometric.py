"""Geometric noise has exactly the distribution that it is priced as (N5 of the specification), and is quick enough for large tables (N16)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from workers.mechanism.secure_random import SecureRandom
from workers.numerics.exact_geometric import LARGEST_TERM, Decay, discrete_laplace

DRAWS = 200_000


@pytest.mark.parametrize(
    ("epsilon", "sensitivity"), [(1.0, 1), (0.4985, 1), (0.3, 7), (3.0, 2), (1e-4, 2**30), (50.0, 1)]
)
def test_the_rate_is_never_above_what_is_paid_for_and_hardly_below(epsilon: float, sensitivity: int) -> None:
    decay = Decay.of(epsilon, sensitivity)
    paid = Fraction(epsilon) / sensitivity
    assert paid * (1 - Fraction(1, 2**24)) <= Fraction(decay.s, decay.t) <= paid
    assert max(decay.s, decay.t) <= LARGEST_TERM


def test_noise_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="larger than can be drawn"):
        Decay.of(1e-9, 2**30)


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1.0, 1), (0.4985, 1), (0.7, 3), (2.5, 1)])
def test_frequencies_of_whole_numbers_are_those_of_the_formula(epsilon: float, sensitivity: int) -> None:
    randomness = SecureRandom.from_test_seed(5)
    decay = Decay.of(epsilon, sensitivity)
    drawn = discrete_laplace(DRAWS, decay, randomness.words)
    p = math.exp(-epsilon / sensitivity)
    reach = math.ceil(math.log(DRAWS / 40.0) * sensitivity / epsilon)
    values = np.arange(-reach, reach + 1)
    inside = (1.0 - p) / (1.0 + p) * p ** np.abs(values)
    expected = DRAWS * np.append(inside, 1.0 - inside.sum())
    seen = np.array([(drawn == value).sum() for value in values])
    observed = np.append(seen, DRAWS - seen.sum())
    assert stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > 1e-4
    steps = np.abs(np.array([np.mean(drawn <= value) for value in values]) - np.cumsum(inside) - (1 - inside.sum()) / 2)
    assert steps.max() < 1.95 / math.sqrt(DRAWS)  # Kolmogorov and Smirnov, 1 in 1,000


def test_tails_and_half_widths_are_those_of_the_distribution() -> None:
    for epsilon, sensitivity in ((1.0, 1), (0.2, 3), (4.0, 1)):
        decay = Decay.of(epsilon, sensitivity)
        p = math.exp(-epsilon / sensitivity)
        masses = [(1.0 - p) / (1.0 + p) * p**k for k in range(2_000)]
        for least in (1, 2, 9):
            assert decay.tail(least) == pytest.approx(sum(masses[least:]), rel=1e-6)
        for outside in (0.05, 0.025, 1e-6):
            width = decay.half_width(outside)
            assert 2.0 * sum(masses[width + 1 :]) <= outside * (1 + 1e-6)
            assert width == 0 or 2.0 * sum(masses[width:]) > outside * (1 - 1e-6)


def test_ten_thousand_cells_are_all_near_in_nineteen_of_twenty_runs() -> None:
    """N16: 10,000 cells at ε = 1, worst error at most ln(10,000/0.05) = 12.2; geometric noise is whole, so at most 12."""
    randomness, runs, cells = SecureRandom.from_test_seed(16), 200, 10_000
    decay = Decay.of(1.0, 1)
    worst = [np.abs(discrete_laplace(cells, decay, randomness.words)).max() for _ in range(runs)]
    near = sum(error <= math.log(cells / 0.05) for error in worst)
    assert near >= 0.95 * runs - 2.0 * math.sqrt(runs * 0.95 * 0.05)
    assert decay.half_width(0.05 / cells) <= 13
