"""Which bins an open range has, by its noisy one-way counts. Post-processing.

A range that declares no grid is cut into equal bins, and amounts do not fill it equally: nine rows of ten may be in the first.
Such a bin is cut further, into parts that hold many rows each. Where rows are spread, equal bins stay as they are.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from workers.methods.marginals.estimate.denoising import Floats

SHARES_OF_A_PART = 0.03, 0.12
"""A part of an equal bin has at least a share of all rows between these. Smaller parts add more noise to pairs than they tell."""

SHARE_BY_NOISE = 0.5
"""That share is this many times what noise moves an average pair of equal bins by, in total variation (docs/decisions/0019)."""

STANDARD_DEVIATIONS = 3.0
"""The count of a part stands out from the noise by as many."""

Cells = NDArray[np.int64]


def share_of_a_part(noise: float) -> float:
    """The least share of a part, where noise alone moves an average two-way table by so much in total variation."""
    smallest, largest = SHARES_OF_A_PART
    return min(max(smallest, SHARE_BY_NOISE * noise), largest)


def cells_by_counts(counts: Floats, *, noise_std: float, fewest_rows: float, equal_cells: Cells) -> Cells:
    """(codes,) the cell of each code: neighbours of one equal cell, as few together as have rows enough for a part.

    counts: (codes,) noisy, of all strata together, each with noise_std. equal_cells: (codes in order,) the equal cell of each, increasing; no cell
    crosses their edges. A missing code, behind these, stays alone.
    """
    cells, count = np.empty(len(counts), np.int64), 0
    for place in np.unique(equal_cells):
        own = np.flatnonzero(equal_cells == place)
        parts = _parts(counts[own], noise_std=noise_std, fewest_rows=fewest_rows)
        cells[own] = count + parts
        count += int(parts[-1]) + 1
    cells[len(equal_cells) :] = count
    return cells


def _parts(counts: Floats, *, noise_std: float, fewest_rows: float) -> Cells:
    """One code after another; what is left over joins the part before it."""
    parts, part, held, codes = np.empty(len(counts), np.int64), 0, 0.0, 0
    for place, found in enumerate(counts.tolist()):
        parts[place] = part
        held, codes = held + found, codes + 1
        if held >= max(fewest_rows, STANDARD_DEVIATIONS * noise_std * math.sqrt(codes)):
            part, held, codes = part + 1, 0.0, 0
    return np.minimum(parts, max(0, part - 1))
