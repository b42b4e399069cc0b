"""One-way tables of all rows together, rid of noise in three ways whose mean is taken. Post-processing of noisy counts.

Each way is right for another kind of column: smooth ones are what waves of few cells are made of (smoothing.py); of a smooth column
with a few peaks the peaks are taken as counted; of one with few values that rows have, these are taken as counted, and all others are
equally rare. The mean is near the best of the three for each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from workers.methods.marginals.estimate.denoising import STANDS_OUT, Floats, onto_simplex
from workers.methods.marginals.estimate.smoothing import NoisyColumn, smooth_columns


def pooled_counts(columns: Sequence[NoisyColumn], rows: float) -> list[Floats]:
    """(cells,) of each column, whose counts have one stratum: not negative, `rows` in all."""
    found = []
    for column, waves in zip(columns, smooth_columns(columns, np.array([rows])), strict=True):
        (counts,), least = column.counts, STANDS_OUT * np.sqrt(column.variance)
        counts = counts + (rows - counts.sum()) / len(counts)
        smooth, even = onto_simplex(waves[0], rows), np.full(len(counts), rows / len(counts))
        with_peaks = _but_for(np.abs(counts - smooth) > least, counts, smooth, rows)
        few_values = _but_for(counts >= least, counts, even, rows)
        found.append((smooth + with_peaks + few_values) / 3.0)
    return found


def _but_for(stands_out: NDArray[np.bool_], counts: Floats, otherwise: Floats, rows: float) -> Floats:
    """These counts where they stand out; elsewhere what there would be otherwise, scaled to the rows that are left."""
    others = np.where(stands_out, 0.0, np.maximum(otherwise, 1e-9))
    left = max(0.0, rows - counts[stands_out].sum())
    return onto_simplex(np.where(stands_out, counts, others * (left / max(1e-9, others.sum()))), rows)
