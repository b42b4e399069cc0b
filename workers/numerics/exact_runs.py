"""A number of runs K ≥ 1 with P(k) ∝ (1-gamma)^k · Π_{0<l<k} (l+η)/(l+1), by exact coins: η from 0 (logarithmic) to 1 (geometric)."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from workers.numerics.exact_choice import below

RandomBits = Callable[[int], int]


def number_of_runs(gamma: float, shape: float, bits: RandomBits) -> int:
    """Geometric proposals, each kept with probability Π (l+η)/(l+1). gamma and η are taken as the doubles that they are."""
    going_on, more = 1 - Fraction(gamma), Fraction(shape)
    while True:
        runs = 1
        while _happens(going_on, bits):
            runs += 1
        if all(_happens((place + more) / (place + 1), bits) for place in range(1, runs)):
            return runs


def _happens(probability: Fraction, bits: RandomBits) -> bool:
    return below(probability.denominator, bits) < probability.numerator
