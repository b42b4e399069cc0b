"""Which of several counts is the largest. `exponential.choose` releases its place, and no count."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from workers.mechanism import PrivateLosses, RowsOfUnits


def largest_count(cells: NDArray[np.int64], *, size: int, rows: RowsOfUnits) -> PrivateLosses:
    """Of each cell, by how many rows it is behind none: minus its count.

    Adjacency:   zero-out one unit.
    Sensitivity: of a loss rows.most; monotone: a unit that is zeroed out lowers counts only.
    Shapes:      cells (rows,) from 0 to size - 1, anything else for rows that do not count; returns (size,).
    Source:      Dwork and Roth 2014, 3.3: report noisy max, here with Gumbel noise, which is the exponential mechanism.
    Edge cases:  rows beyond the most of their unit are left out; no rows -> all cells are equally likely.
    """
    counted = rows.used((cells >= 0) & (cells < size))
    counts = np.bincount(cells[counted], minlength=size).astype(np.int64)
    return PrivateLosses(-counts, rows.most, is_monotone=True)
