"""Geometric noise on the integers, exactly: P(z) ∝ exp(-|z|·s/t) for whole numbers s and t, many values at once and no float in what decides.

Source: Canonne, Kamath, Steinke 2020, Algorithms 1 and 2, over arrays. A round draws again for those that were refused; how many rounds there
are depends on random words alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Words = Callable[[int], Integers]
"""How many -> independent uniform integers below 2^63."""

LARGEST_TERM = 2**46
"""Of s and t."""
_MOST_ROUNDS = 2**14
"""Of a series whose k-th term has probability 1/k!: none comes so far."""
_AT_ONCE = 2**18


@dataclass(frozen=True)
class Decay:
    """The rate s/t at which probabilities fall."""

    s: int
    t: int

    @classmethod
    def of(cls, epsilon: float, sensitivity: int) -> Decay:
        """At most epsilon/sensitivity, and no less than 2^-40 of it below; refused where that is too small to be drawn."""
        scale = Fraction(sensitivity) / Fraction(epsilon)
        shift = 0
        while max(scale * 2 ** (shift + 1), 2 ** (shift + 1)) <= LARGEST_TERM:
            shift += 1
        found = Fraction(2**shift, math.ceil(scale * 2**shift))
        if found.denominator > LARGEST_TERM:
            raise ValueError("the noise of these whole numbers is larger than can be drawn")
        return cls(found.numerator, found.denominator)

    @property
    def ratio(self) -> float:
        """Of the probability of a value to that of the one before."""
        return math.exp(-self.s / self.t)

    def tail(self, least: int) -> float:
        """P(z ≥ least), for least ≥ 1."""
        return math.exp(-self.s / self.t * least) / (1.0 + self.ratio)

    def half_width(self, outside: float) -> int:
        """The least k with P(|z| > k) ≤ outside."""
        needed = math.log(2.0 / (outside * (1.0 + self.ratio))) * self.t / self.s
        return max(0, math.ceil(needed - 1e-9) - 1)


def discrete_laplace(count: int, decay: Decay, words: Words) -> Integers:
    """So many independent values."""
    values = np.empty(count, dtype=np.int64)
    for start in range(0, count, _AT_ONCE):
        _fill(values[start : start + _AT_ONCE], decay, words)
    return values


def _fill(values: Integers, decay: Decay, words: Words) -> None:
    left = np.arange(len(values))
    while len(left):
        remainders = _below(np.full(len(left), decay.t, dtype=np.int64), words)
        kept = _exponential_coins(remainders, decay.t, words)
        places, remainders = left[kept], remainders[kept]
        sizes = (remainders + decay.t * _unit_geometric(len(places), words)) // decay.s
        negative = (words(len(places)) & 1).astype(bool)
        again = negative & (sizes == 0)
        values[places] = np.where(negative, -sizes, sizes)
        left = np.concatenate([left[~kept], places[again]])


def _unit_geometric(count: int, words: Words) -> Integers:
    """How many coins of probability 1/e in a row show heads."""
    heads = np.zeros(count, dtype=np.int64)
    going = np.arange(count)
    while len(going):
        going = going[_exponential_coins(np.ones(len(going), dtype=np.int64), 1, words)]
        heads[going] += 1
    return heads


def _exponential_coins(numerators: Integers, denominator: int, words: Words) -> NDArray[np.bool_]:
    """True with probability exp(-numerator/denominator) each, numerators at most the denominator."""
    odd = np.zeros(len(numerators), dtype=bool)
    going = np.arange(len(numerators))
    for term in range(1, _MOST_ROUNDS):
        if not len(going):
            break
        bound = np.full(len(going), denominator * term, dtype=np.int64)
        passed = _below(bound, words) < numerators[going]
        odd[going[~passed]] = term % 2 == 1
        going = going[passed]
    return odd


def _below(bounds: Integers, words: Words) -> Integers:
    """Uniform on 0 … bound - 1 each: words beyond the last whole multiple of the bound are drawn again."""
    drawn = words(len(bounds))
    whole = np.iinfo(np.int64).max // bounds * bounds
    refused = np.flatnonzero(drawn >= whole)
    while len(refused):
        drawn[refused] = words(len(refused))
        refused = refused[drawn[refused] >= whole[refused]]
    return drawn % bounds
