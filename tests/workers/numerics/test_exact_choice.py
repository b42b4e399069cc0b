"""The exponential mechanism chooses with the probabilities of its formula (N6 of the specification)."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from workers.mechanism.secure_random import SecureRandom
from workers.numerics.exact_choice import PRECISION, below, pick, weights_of

LOSSES = [0, 1, 2, 5, 9]
DRAWS = 100_000


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(1, 7)])
def test_frequencies_at_five_scores(rate: Fraction) -> None:
    randomness = SecureRandom.from_test_seed(6)
    weights = weights_of(LOSSES, rate)
    seen = np.bincount([pick(weights, randomness.bits) for _ in range(DRAWS)], minlength=len(LOSSES))
    chances = np.exp(-float(rate) * np.array(LOSSES))
    assert stats.chisquare(seen, DRAWS * chances / chances.sum()).pvalue > 1e-4


def test_weights_are_those_of_the_formula_and_never_nothing() -> None:
    weights = weights_of([3, 4, 10**9], Fraction(1, 3))
    assert weights[0] == 2**PRECISION
    assert weights[1] / weights[0] == pytest.approx(math.exp(-1 / 3), rel=1e-14)
    assert weights[2] == 1


def test_a_uniform_number_is_below_its_bound() -> None:
    randomness = SecureRandom.from_test_seed(1)
    drawn = [below(3 * 2**62, randomness.bits) for _ in range(300)]
    assert max(drawn) < 3 * 2**62
    assert max(drawn) > 2**63
    assert {below(1, randomness.bits) for _ in range(3)} == {0}
