"""Which values of a range many rows share, by noised counts of all that it may hold. Post-processing.

Within a cell values are drawn evenly, but for those that stand out here: 4.99, 40 hours, the first of a month.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.datasets.value_grids import ValueGrid
from workers.methods.denoising import Floats

EXPECTED_FALSE = 0.2
"""Values of each column, on average, that stand out by noise alone; the rounder, the fewer there are to be mistaken about."""

ROUNDS = 5
"""What is left to all others of a cell becomes less with every value found, until nothing more is."""


@dataclass(frozen=True)
class StandingOut:
    """Noised counts of the values of one column that noise alone would not give."""

    places: NDArray[np.int64]
    counts: NDArray[np.int64]
    excess: Floats
    """Rows by which each must exceed what it would have if the rows of its cell were spread evenly."""

    def to_json(self) -> list[list[float]]:
        return [self.places.tolist(), self.counts.tolist(), self.excess.tolist()]

    @classmethod
    def from_json(cls, kept: list[Any]) -> StandingOut:
        places, counts, excess = kept
        return cls(np.array(places, np.int64), np.array(counts, np.int64), np.array(excess, np.float64))


def standing_out(counts: NDArray[np.int64], grid: ValueGrid, *, noise_std: float) -> StandingOut:
    """counts: (grid.size,) noised, each with noise_std."""
    excess_by_roundness = noise_std * _standard_deviations(grid)
    candidates = np.flatnonzero(counts > excess_by_roundness.min())
    excess = excess_by_roundness[grid.roundness(candidates)]
    beyond = counts[candidates] > excess
    return StandingOut(candidates[beyond], counts[candidates[beyond]], excess[beyond])


def shares_of_cells(
    found: StandingOut, grid: ValueGrid, *, edges: Floats, rows: Floats
) -> tuple[tuple[float, float], ...]:
    """(value, part of its cell's rows) of the values that have more rows than an even spread within their cell would give them.

    edges: (cells + 1,) of the column's cells; rows: (cells,) in each, as estimated.
    """
    inner, cells = edges[1:-1], len(rows)
    values = grid.values(found.places)
    cell = np.searchsorted(inner, values, side="right")
    # Those of a cell are the places up to its upper edge; the grid's values increase.
    all_values = np.diff(_places_below(grid, inner), prepend=0, append=grid.size)
    counts, shared = found.counts.astype(np.float64), np.zeros(len(values), dtype=np.bool_)
    for _ in range(ROUNDS):
        taken = np.bincount(cell, weights=counts * shared, minlength=cells)
        others = all_values - np.bincount(cell, weights=shared, minlength=cells)
        even = np.maximum(rows - taken, 0.0) / np.maximum(others, 1.0)
        shared = counts > found.excess + even[cell]
    taken = np.bincount(cell, weights=counts * shared, minlength=cells)
    shares = counts / np.maximum(np.maximum(taken, rows), 1.0)[cell]
    return tuple(zip(values[shared].tolist(), shares[shared].tolist(), strict=True))


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
