"""Heavy hitters: what noisy counts of all values that a range may hold say of it. Post-processing.

Which values many rows share: within a cell values are drawn evenly, but for these: 4.99, 40 hours, the first of a month. And how
many digits numbers have, where the schema does not say.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.domain.value_grids import ValueGrid
from workers.methods.marginals.estimate.denoising import Floats

EXPECTED_FALSE = 0.2
"""Values of each column, on average, that stand out by noise alone; the rounder, the fewer there are to be mistaken about."""

ROUNDS = 6
"""What is left to all others of a cell becomes less with every value found, until nothing more is."""

MOST_FOUND = 4_096
"""Of a column; where noise is next to nothing, every value stands out, and a generator is no list of them."""

MOST_DOUBT, MOST_NOISE = 2.0, 0.05
"""Numbers have no further digits if the rows that seem to have some are so few standard deviations, and if one is at most such a part of all rows."""


@dataclass(frozen=True)
class HeavyHitters:
    """Noisy counts of the values of one column that noise alone would not give."""

    places: NDArray[np.int64]
    counts: NDArray[np.int64]
    excess: Floats
    """Rows by which each must exceed what it would have if the rows of its cell were spread evenly."""
    round_rows: Floats
    """Rows of all multiples of each of the grid's `multiples`, standing out or not, with"""
    round_noise_stds: Floats

    def to_json(self) -> list[list[float]]:
        arrays = (self.places, self.counts, self.excess, self.round_rows, self.round_noise_stds)
        return [array.tolist() for array in arrays]

    @classmethod
    def from_json(cls, kept: list[Any]) -> HeavyHitters:
        places, counts, *others = kept
        return cls(np.array(places, np.int64), np.array(counts, np.int64), *map(np.array, others))


def heavy_hitters(counts: NDArray[np.int64], grid: ValueGrid, *, noise_std: float) -> HeavyHitters:
    """counts: (grid.size,) noisy, each with noise_std."""
    excess_by_roundness = noise_std * _standard_deviations(grid)
    candidates = np.flatnonzero(counts > excess_by_roundness.min())
    excess = excess_by_roundness[grid.roundness(candidates)]
    beyond = np.flatnonzero(counts[candidates] > excess)
    if len(beyond) > MOST_FOUND:
        beyond = np.sort(beyond[np.argsort(counts[candidates[beyond]])[-MOST_FOUND:]])
    multiples = [counts[-grid.first % multiple :: multiple] for multiple in grid.multiples]
    return HeavyHitters(
        candidates[beyond],
        counts[candidates[beyond]],
        excess[beyond],
        round_rows=np.array([float(of_one.sum()) for of_one in multiples]),
        round_noise_stds=np.array([noise_std * math.sqrt(len(of_one)) for of_one in multiples]),
    )


def digits_in_use(found: HeavyHitters, grid: ValueGrid, *, rows: float) -> int | None:
    """How many digits after the point numbers have at most, where the grid tries more; None where noise does not tell.

    rows: with any value at all. The value that most of them share says nothing of the others; shared values keep their digits.
    """
    most_shared = float(found.counts.max(initial=0))
    for round_to in range(min(grid.decimals, len(grid.multiples) - 1), -1, -1):
        noise_std, further = found.round_noise_stds[round_to], rows - found.round_rows[round_to]
        if noise_std <= MOST_NOISE * (rows - most_shared) and further <= MOST_DOUBT * noise_std:
            return grid.decimals - round_to
    return None


def shares_of_cells(
    found: HeavyHitters, grid: ValueGrid, *, drawn_from: ValueGrid, edges: Floats, rows: Floats
) -> tuple[tuple[float, float], ...]:
    """(value, part of its cell's rows) of the values that have more rows than an even spread within their cell would give them.

    What is left of a cell is drawn evenly from all of its values in `drawn_from`, so that each part lacks what its value has from there.
    edges: (cells + 1,) of the column's cells; rows: (cells,) in each, as estimated.
    """
    inner, cells = edges[1:-1], len(rows)
    values, counts = grid.values(found.places), found.counts.astype(np.float64)
    cell = np.searchsorted(inner, values, side="right")
    # Those of a cell are the places up to its upper edge; the grid's values increase.
    all_values = np.diff(_places_below(drawn_from, inner), prepend=0, append=drawn_from.size)
    shared = np.zeros(len(values), dtype=np.bool_)
    for _ in range(ROUNDS):
        taken, found_values = (np.bincount(cell, weights=of * shared, minlength=cells) for of in (counts, 1.0))
        whole, others = np.maximum(np.maximum(taken, rows), 1.0), all_values - found_values
        even = np.where(others > 0, (whole - taken) / np.maximum(others, 1.0), 0.0)[cell]
        parts = (counts - even) / whole[cell]
        shared = (counts > found.excess + even) & (parts > 0.0)
    return tuple(zip(values[shared].tolist(), parts[shared].tolist(), strict=True))


def _standard_deviations(grid: ValueGrid) -> Floats:
    """By roundness: how many a count must have beyond nothing, so that as many of each stand out by chance."""
    each = EXPECTED_FALSE / len(grid.multiples)
    normal = NormalDist()
    return np.array([-normal.inv_cdf(min(0.5, each / max(1, grid.size // multiple))) for multiple in grid.multiples])


def _places_below(grid: ValueGrid, edges: Floats) -> NDArray[np.int64]:
    """How many of the grid's values lie below each of these edges."""
    one = 10.0**grid.decimals / grid.step
    guess: NDArray[np.int64] = np.clip(np.ceil(edges * one) - grid.first, 0, grid.size).astype(np.int64)
    guess -= (guess > 0) & (grid.values(guess - 1) >= edges)  # products round
    guess += (guess < grid.size) & (grid.values(guess) < edges)
    return guess
