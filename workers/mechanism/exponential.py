"""The exponential mechanism over a public list of outputs, with probabilities in whole numbers of many digits."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from workers.mechanism import PrivateLosses, RowsOfUnits
from workers.numerics.exact_choice import pick, weights_of

WHOLE = 10_000
"""Probabilities of quantiles are multiples of 1/WHOLE."""


class Bits(Protocol):
    """A secure source of uniform integers below 2^count."""

    def bits(self, count: int) -> int: ...


def quantile_losses(
    first_above: NDArray[np.int64],
    counted: NDArray[np.bool_],
    *,
    size: int,
    ten_thousandths: int,
    rows: RowsOfUnits,
) -> PrivateLosses:
    """For each candidate t, |#{values below t} - p·n'|, times WHOLE, n' the number of rows that count.

    Adjacency:   zero-out one unit, which lowers n', too.
    Sensitivity: of a loss rows.most times the larger of p and 1 - p, times WHOLE.
    Shapes:      first_above (rows,): the first candidate that is greater than the row's value, `size` if none is; returns (size,).
    Source:      McSherry and Talwar 2007; Smith 2011; docs/privacy.md, Answers to questions.
    Edge cases:  rows beyond the most of their unit are left out; no rows -> all losses are 0, and any candidate may be chosen.
    """
    used = rows.used(counted)
    below = np.cumsum(np.bincount(np.clip(first_above[used], 0, size), minlength=size + 1)[:size])
    losses = np.abs(WHOLE * below - ten_thousandths * int(used.sum()))
    return PrivateLosses(losses.astype(np.int64), rows.most * max(ten_thousandths, WHOLE - ten_thousandths))


def bound_losses(
    reached: NDArray[np.int64],
    counted: NDArray[np.bool_],
    *,
    size: int,
    ten_thousandths: int,
    rows: RowsOfUnits,
) -> PrivateLosses:
    """For each candidate, going outward, max(0, beyond(t) - p·n', p·n' - beyond(the one before)), times WHOLE.

    beyond(t): rows that lie further out; n': rows that count. It is 0 where the part p is passed, and grows on both sides: of a
    quantile's loss |beyond(t) - p·n'| all values outside the rows have the same, however far away they are.

    Adjacency:   zero-out one unit, which lowers n', too.
    Sensitivity: of a loss rows.most times the larger of p and 1 - p, times WHOLE: each of both differences moves by so much at most, and
                 so does the largest of them.
    Shapes:      reached (rows,): the first candidate that the row does not lie beyond, `size` if it lies beyond all; returns (size,).
    Source:      docs/privacy.md, Bought declarations; McSherry and Talwar 2007; Smith 2011 (quantiles).
    Edge cases:  rows beyond the most of their unit are left out; no rows -> all losses are 0, and any candidate may be chosen.
    """
    used = rows.used(counted)
    within = np.bincount(np.clip(reached[used], 0, size), minlength=size + 1)[:size]
    beyond = int(used.sum()) - np.cumsum(within)
    before = beyond + within
    wanted = ten_thousandths * int(used.sum())
    losses = np.maximum(0, np.maximum(WHOLE * beyond - wanted, wanted - WHOLE * before))
    return PrivateLosses(losses.astype(np.int64), rows.most * max(ten_thousandths, WHOLE - ten_thousandths))


def choose(private: PrivateLosses, *, epsilon: float, randomness: Bits) -> int:
    """A place r with probability in proportion to exp(-ε·loss(r)/2Δ), or exp(-ε·loss(r)/Δ) if losses are monotone; what comes back is public.

    Adjacency:   zero-out one unit.
    Sensitivity: read from the losses, the largest change of one.
    Shapes:      losses (size,); returns a place from 0 to size - 1.
    Source:      McSherry and Talwar 2007; monotone: Dwork and Roth 2014, 3.4 (all log-probabilities but for a constant move the same way).
    Edge cases:  equal losses are equally likely; a sensitivity of 0 is taken as 1.
    """
    factor = 1 if private.is_monotone else 2
    rate = Fraction(epsilon) / (factor * max(1, private.sensitivity))
    return pick(weights_of(private.values.tolist(), rate), randomness.bits)
