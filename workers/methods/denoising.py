"""Noised tables made better by what is known without the rows. Post-processing.

One-way tables: all estimates of the same count are averaged by their precision, and projected onto counts that are not
negative and have the slice's total. Two-way tables: what is left after independence is a matrix of few strong directions
under white noise of known size; its singular values are shrunk.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

SHRUNK_NOISE = 0.6
"""Singular values are shrunk as if the noise were this part of what it is.

1 is optimal for one matrix alone (Gavish and Donoho 2017), but weak relations help a classifier more than they cost;
chosen on a validation split of Adult's training rows at ε = 1 (docs/results.md).
"""

Floats = NDArray[np.float64]


def onto_simplex(values: Floats, total: float) -> Floats:
    """The nearest non-negative vector with this sum (Held, Wolfe, Crowder 1974)."""
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(values) + 1)
    shift = float(excess[np.flatnonzero(ordered > excess)[-1]])
    return np.maximum(values - shift, 0.0)


def combine(fine: Floats, variance: float, groups: NDArray[np.int64], margins: list[tuple[Floats, float]]) -> Floats:
    """A column's one-way counts (slices, cells), corrected by margins of its two-way tables, by groups of cells.

    margins: (counts (slices, groups), variance of each count) of every two-way table of the column.
    """
    sizes = np.bincount(groups).astype(np.float64)
    summed = np.stack([np.bincount(groups, weights=row, minlength=len(sizes)) for row in fine])
    precision = 1.0 / (variance * sizes)
    best, total = summed * precision, precision.copy()
    for counts, margin_variance in margins:
        best += counts / margin_variance
        total += 1.0 / margin_variance
    return fine + ((best / total - summed) / sizes)[:, groups]


def shrink(counts: Floats, first: Floats, second: Floats, noise_std: float) -> Floats:
    """One slice's two-way table (a, b), given its one-way counts (a,) and (b,): independence plus what stands out.

    Source: the shrinker of Gavish and Donoho 2017 for Frobenius loss, at SHRUNK_NOISE of the noise.
    """
    rows = first.sum()
    independent = np.outer(first, second) / rows if rows > 0.0 else np.zeros_like(counts)
    rest = counts - independent
    # The margins are better known from `first` and `second`.
    rest = rest - rest.mean(axis=1, keepdims=True) - rest.mean(axis=0, keepdims=True) + rest.mean()
    small, large = sorted(size - 1 for size in counts.shape)
    if small < 1:
        return independent
    left, values, right = np.linalg.svd(rest, full_matrices=False)
    unit = SHRUNK_NOISE * noise_std * math.sqrt(large)
    y, beta = values / unit, small / large
    root = np.sqrt(np.clip((y**2 - beta - 1.0) ** 2 - 4.0 * beta, 0.0, None))
    kept = np.where(y > 1.0 + math.sqrt(beta), root / np.maximum(y, 1e-12), 0.0)
    shrunk: Floats = independent + (left * (kept * unit)) @ right
    return shrunk
