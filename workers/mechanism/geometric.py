"""Whole numbers with geometric noise: exact integer arithmetic from secure bits to what is released."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from workers.mechanism import PrivateIntegers, RowsOfUnits
from workers.numerics.exact_geometric import Decay, discrete_laplace

MISSED = 0.05
"""Part of the answers that lie outside their interval, at most."""


class Words(Protocol):
    """A secure source of integers below 2^63."""

    def words(self, count: int) -> NDArray[np.int64]: ...


def cell_counts(cells: NDArray[np.int64], *, size: int, rows: RowsOfUnits) -> PrivateIntegers:
    """How many rows each cell has.

    Adjacency:   zero-out one unit.
    Sensitivity: L1 rows.most: each row of the unit is in one cell at most.
    Shapes:      cells (rows,) from 0 to size - 1, anything else for rows that do not count; returns (size,).
    Source:      docs/privacy.md, Answers to questions.
    Edge cases:  rows beyond the most of their unit are left out; no rows -> zeros.
    """
    counted = rows.used((cells >= 0) & (cells < size))
    return PrivateIntegers(np.bincount(cells[counted], minlength=size).astype(np.int64), rows.most)


def bounded_sum(
    places: NDArray[np.int64], counted: NDArray[np.bool_], *, lowest: int, highest: int, rows: RowsOfUnits
) -> PrivateIntegers:
    """The sum of whole numbers from lowest to highest.

    Adjacency:   zero-out one unit, whose rows then add nothing.
    Sensitivity: L1 rows.most times the larger of |lowest| and |highest|.
    Shapes:      places and counted (rows,); returns one number.
    Source:      docs/privacy.md, Answers to questions.
    Edge cases:  what lies outside is clamped here; rows beyond the most of their unit are left out; no rows -> 0.
    """
    used = np.clip(places, lowest, highest)[rows.used(counted)]
    return PrivateIntegers(np.array([used.sum(dtype=np.int64)]), rows.most * max(abs(lowest), abs(highest)))


def release_integers(private: PrivateIntegers, *, epsilon: float, randomness: Words) -> NDArray[np.int64]:
    """Whole numbers with noise P(z) ∝ exp(-ε|z|/Δ), exactly; what comes back is public.

    Adjacency:   zero-out one unit.
    Sensitivity: read from the numbers, L1; the whole is ε-DP.
    Shapes:      as the numbers.
    Source:      Ghosh, Roughgarden, Sundararajan 2012; Canonne, Kamath, Steinke 2020 (drawn exactly).
    Edge cases:  a sensitivity of 0 (a range that is one value, 0) gets the noise of 1.
    """
    decay = Decay.of(epsilon, max(1, private.sensitivity))
    return private.values + discrete_laplace(len(private.values), decay, randomness.words)


def half_width(sensitivity: int, epsilon: float, missed: float = MISSED) -> int:
    """Half of the interval around a released number that holds the true one, but for this part of the releases."""
    return Decay.of(epsilon, max(1, sensitivity)).half_width(missed)
