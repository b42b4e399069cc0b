"""One-way tables of all rows together, rid of noise in three ways whose mean is taken. Post-processing of noisy counts.

Each way is right for another kind of column: smooth ones are what waves of few cells are made of (smoothing.py); of a smooth column
with a few peaks the peaks are taken as counted; of one with few values that rows have, these are taken as counted, and all others are
equally rare. The mean is near the best of the three for each, and was more accurate than James and Stein's shrinking on eleven of twelve tables
(docs/decisions/0026).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from workers.methods.marginals.estimate.denoising import Floats, onto_simplex
from workers.methods.marginals.estimate.smoothing import NoisyColumn, smooth_columns

STANDS_OUT = 2.0
"""A count is taken as it is where it is this many noise_std from what it would be otherwise."""


def pooled_counts(columns: Mapping[int, NoisyColumn], rows: float) -> dict[int, Floats]:
    """(cells,) of each column, whose counts have one stratum: not negative, `rows` in all."""
    smoothed = smooth_columns(list(columns.values()), np.array([rows]))
    found = {}
    for (place, column), waves in zip(columns.items(), smoothed, strict=True):
        (counts,), least = column.counts, STANDS_OUT * np.sqrt(column.variance)
        counts = counts + (rows - counts.sum()) / len(counts)
        smooth, even = onto_simplex(waves[0], rows), np.full(len(counts), rows / len(counts))
        with_peaks = _but_for(np.abs(counts - smooth) > least, counts, smooth, rows)
        few_values = _but_for(counts >= least, counts, even, rows)
        found[place] = (smooth + with_peaks + few_values) / 3.0
    return found


def _but_for(stands_out: NDArray[np.bool_], counts: Floats, otherwise: Floats, rows: float) -> Floats:
    """These counts where they stand out; elsewhere what there would be otherwise, scaled to the rows that are left."""
    if stands_out.all():
        return onto_simplex(counts, rows)
    others = np.where(stands_out, 0.0, np.maximum(otherwise, 1e-9))
    left = max(0.0, rows - counts[stands_out].sum())
    return onto_simplex(np.where(stands_out, counts, others * (left / others.sum())), rows)
