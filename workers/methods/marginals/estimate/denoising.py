"""Noisy tables made better by what is known without the rows. Post-processing.

One-way tables: all estimates of the same count are averaged by their precision, smoothed (smoothing.py), and projected onto
counts that are not negative and have the stratum's total. Two-way tables: what is left after independence is a matrix of few
strong directions under white noise of known size; its singular values are shrunk.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

SHRUNK_NOISE = 0.6
"""Singular values are shrunk as if the noise were this part of what it is.

1 is optimal for one matrix alone (Gavish and Donoho 2017), but weak relations help a classifier more than they cost;
chosen on a validation split of Adult's training rows at ε = 1 (docs/results/adult.md).
"""

STANDS_OUT = 2.0
"""Standard deviations of its noise by which a count is more than noise makes of none: 1 in 44 that is nothing is taken for something."""

_RAKING_STEPS = 10

Floats = NDArray[np.float64]
Estimate = tuple[Floats, Any]
"""Counts, and the variance of each: one number, or an array."""


def onto_simplex(values: Floats, total: float) -> Floats:
    """The nearest non-negative vector with this sum (Held, Wolfe, Crowder 1974)."""
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(values) + 1)
    shift = float(excess[np.flatnonzero(ordered > excess)[-1]])
    return np.maximum(values - shift, 0.0)


def averaged(estimates: Sequence[Estimate]) -> Estimate:
    """What all of them say of the same cells, by their precision."""
    precision = sum(1.0 / variance for _, variance in estimates)
    return sum(counts / variance for counts, variance in estimates) / precision, 1.0 / precision


def in_groups(counts: Floats | NDArray[np.int64], groups: NDArray[np.int64]) -> Floats:
    """(strata, groups) sums of (strata, cells), given the group of each cell."""
    return np.stack([np.bincount(groups, weights=row) for row in counts])


def corrected(counts: Floats, variance: float, groups: NDArray[np.int64], margins: Sequence[Estimate]) -> Floats:
    """A column's one-way counts (strata, cells), by what its two-way tables say of groups of cells (strata, groups), too."""
    summed, sizes = in_groups(counts, groups), np.bincount(groups)
    best, _ = averaged([(summed, variance * sizes), *margins])
    return counts + ((best - summed) / sizes)[:, groups]


def by_singular_values(counts: Floats, first: Floats, second: Floats, noise_std: float) -> Floats:
    """One stratum's two-way table (a, b), given its one-way counts (a,) and (b,): independence plus what stands out.

    Source: the shrinker of Gavish and Donoho 2017 for Frobenius loss, at SHRUNK_NOISE of the noise.
    """
    rows = first.sum()
    independent = np.outer(first, second) / rows if rows > 0.0 else np.zeros_like(counts)
    if min(counts.shape) < 2:
        return independent
    rest = counts - independent
    # Its margins are better known from the one-way counts.
    rest = rest - rest.mean(axis=1, keepdims=True) - rest.mean(axis=0, keepdims=True) + rest.mean()
    small, large = sorted(size - 1.0 for size in rest.shape)  # of the noise, along each axis
    left, values, right = np.linalg.svd(rest, full_matrices=False)
    unit = SHRUNK_NOISE * noise_std * math.sqrt(large)
    y, beta = values / unit, small / large
    root = np.sqrt(np.clip((y**2 - beta - 1.0) ** 2 - 4.0 * beta, 0.0, None))
    shrunk = np.where(y > 1.0 + math.sqrt(beta), root / np.maximum(y, 1e-12), 0.0)
    strong: Floats = (left * (shrunk * unit)) @ right
    return independent + strong


def rake(counts: Floats, first: Floats, second: Floats) -> Floats:
    """Counts (a, b) made not negative, and scaled by rows and columns in turn until these add up to (a,) and nearly, or exactly, (b,).

    Source: iterative proportional fitting (Deming and Stephan 1940).
    """
    raked = np.stack([onto_simplex(row, total) for row, total in zip(counts, first, strict=True)])
    for _ in range(_RAKING_STEPS):
        raked *= (first / np.maximum(raked.sum(axis=1), 1e-9))[:, None]
        raked *= second / np.maximum(raked.sum(axis=0), 1e-9)
    return raked
