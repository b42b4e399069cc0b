"""Noisy tables made better by what is known without the rows. Post-processing.

One-way tables: all estimates of the same count are averaged by their precision, smoothed (smoothing.py), and projected onto
counts that are not negative and have the stratum's total. Two-way tables, one of: what is left after independence is a matrix of
few strong directions under white noise of known size, its singular values are shrunk; the same for what strata have in common,
and then for what each says beyond it; or its cells' ratios to independence come from one distribution, which all cells together
tell, and each becomes its mean given its noisy count. The first keeps weak relations that many tables share, the second those
that many strata share, the third finds empty cells and independent columns.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct, idct

SHRUNK_NOISE = 0.6
"""Singular values are shrunk as if the noise were this part of what it is.

1 is optimal for one matrix alone (Gavish and Donoho 2017), but weak relations help a classifier more than they cost;
chosen on a validation split of Adult's training rows at ε = 1 (docs/results/adult.md).
"""

_POINTS = np.geomspace(0.02, 3_000.0, 80)
RATIOS = np.concatenate([[0.0], _POINTS, _POINTS])
"""Of a cell's count to that of independent columns: where their distribution may have mass, in a point or in a normal one about it."""

RATIO_VARIANCES = np.concatenate([np.zeros(1 + len(_POINTS)), (0.5 * np.gradient(_POINTS)) ** 2])
"""Points alone round what is known better than their distances, normal ones alone keep noise where columns are independent."""

FEWEST_EXPECTED_ROWS = 0.5
"""Cells expected to have fewer are looked at as if they had as many; under noise of tens of rows it makes no difference."""

LARGEST_RATIO = 2.0
"""Of a cell's expected share of a stratum to its average share: what strata share is believed of cells that are this much fuller, no further."""

_EM_STEPS, _RAKING_STEPS, _TINY = 50, 10, 1e-300

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


KeptWaves = tuple[Floats | None, Floats | None]
"""(cells in order,) of the first and of the second column of a table."""


def by_singular_values(
    counts: Floats, first: Floats, second: Floats, noise_std: float, kept: KeptWaves = (None, None)
) -> Floats:
    """One stratum's two-way table (a, b), given its one-way counts (a,) and (b,): independence plus what stands out.

    kept: for each axis, where neighbours are alike, the part of each of its waves to keep beforehand (pair_smoothing.py).
    """
    independent, rest = beyond_independence(counts, first, second)
    return independent + _strong_directions(rest, noise_std, kept)


def by_shared_relations(
    counts: Floats, first: Floats, second: Floats, noise_std: float, kept: KeptWaves = (None, None)
) -> Floats:
    """Two-way tables of all strata (slices, a, b), given their one-way counts (slices, a) and (slices, b), together.

    What columns say of each other, averaged over strata by their rows, is better known than in any of them; then what each says
    beyond it. Both by their strong directions. What is shared is a ratio to independence, at most LARGEST_RATIO of what the average has.

    kept: as above, (slices, cells in order) each.
    """
    totals = first.sum(axis=1)
    weight = float(totals @ totals)
    parts = [beyond_independence(*one) for one in zip(counts, first, second, strict=True)]
    independent, rest = np.stack([part[0] for part in parts]), np.stack([part[1] for part in parts])
    shared = np.tensordot(totals, rest, axes=1) / weight  # per row
    best_kept = tuple(None if waves is None else waves.max(axis=0) for waves in kept)
    found = _strong_directions(shared, noise_std / math.sqrt(weight), (best_kept[0], best_kept[1]))
    average = np.maximum(np.tensordot(totals, independent, axes=1) / weight, _TINY)
    tables = []
    for place, rows in enumerate(totals):
        scale = rows * np.clip(independent[place] / max(rows, _TINY) / average, 0.0, LARGEST_RATIO)
        beyond = _without_margins(rest[place] - scale * shared)
        noise_left = noise_std * math.sqrt(max(0.0, 1.0 - rows**2 / weight))
        own_kept = tuple(None if waves is None else waves[place] for waves in kept)
        own = _strong_directions(beyond, noise_left, (own_kept[0], own_kept[1]))
        tables.append(independent[place] + _without_margins(scale * found) + own)
    return np.stack(tables)


def _strong_directions(rest: Floats, noise_std: float, kept: KeptWaves) -> Floats:
    """What stands out of a matrix (a, b) without margins under white noise.

    Source: the shrinker of Gavish and Donoho 2017 for Frobenius loss, at SHRUNK_NOISE of the noise.
    """
    if min(rest.shape) < 2 or noise_std <= 0.0:
        return rest
    freedom = [size - 1.0 for size in rest.shape]  # of the noise, along each axis
    for axis, waves in enumerate(kept):
        if waves is not None:
            rest = _smoothed(rest, waves, axis)
            freedom[axis] -= float((1.0 - waves**2).sum())
    small, large = sorted(freedom)
    left, values, right = np.linalg.svd(rest, full_matrices=False)
    unit = SHRUNK_NOISE * noise_std * math.sqrt(large)
    y, beta = values / unit, small / large
    root = np.sqrt(np.clip((y**2 - beta - 1.0) ** 2 - 4.0 * beta, 0.0, None))
    shrunk = np.where(y > 1.0 + math.sqrt(beta), root / np.maximum(y, 1e-12), 0.0)
    strong: Floats = (left * (shrunk * unit)) @ right
    return strong


def by_ratios(
    counts: Floats, first: Floats, second: Floats, noise_std: float, _kept: KeptWaves = (None, None)
) -> Floats:
    """The same from the distribution of all cells' ratios to independence, whatever their order, raked to the one-way counts.

    Source: nonparametric empirical Bayes (Robbins 1956), its prior by maximum likelihood (Kiefer and Wolfowitz 1956), by EM on a grid.
    """
    independent, rest = beyond_independence(counts, first, second)
    if min(counts.shape) < 2 or first.sum() <= 0.0:
        return independent
    base = np.maximum(independent, FEWEST_EXPECTED_ROWS).ravel()
    ratios = (independent + rest).ravel()[:, None] / base[:, None]
    variances = (noise_std / base[:, None]) ** 2 + RATIO_VARIANCES  # (cells, ratios)
    logs = -0.5 * ((ratios - RATIOS) ** 2 / variances + np.log(variances))
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    chances = likelihood * mixing_weights(likelihood, steps=_EM_STEPS)
    within = RATIOS + RATIO_VARIANCES / variances * (ratios - RATIOS)
    means = (chances * within).sum(axis=1) / np.maximum(chances.sum(axis=1), _TINY)
    return rake(np.maximum((means * base).reshape(counts.shape), 1e-6), first, second)


def rake(counts: Floats, first: Floats, second: Floats) -> Floats:
    """Counts (a, b), not negative, scaled by rows and columns in turn until these add up to (a,) and nearly, or exactly, (b,).

    Source: iterative proportional fitting (Deming and Stephan 1940).
    """
    raked = counts.copy()
    for _ in range(_RAKING_STEPS):
        raked *= (first / np.maximum(raked.sum(axis=1), 1e-9))[:, None]
        raked *= second / np.maximum(raked.sum(axis=0), 1e-9)
    return raked


def mixing_weights(likelihoods: Floats, *, steps: int) -> Floats:
    """Weights (components,) of a mixture, given likelihoods (observations, components), by EM from equal ones.

    Source: nonparametric maximum likelihood (Kiefer and Wolfowitz 1956).
    """
    observations, components = likelihoods.shape
    weights = np.full(components, 1.0 / components)
    for _ in range(steps):
        weights *= likelihoods.T @ (1.0 / np.maximum(likelihoods @ weights, _TINY)) / observations
    return weights


def _smoothed(rest: Floats, kept: Floats, axis: int) -> Floats:
    """(a, b) with these parts of its waves along the axis, of cells in order; a missing cell behind them stays as it is."""
    in_order, missing = np.split(rest, [len(kept)], axis=axis)
    parts = kept.reshape(-1, 1) if axis == 0 else kept
    smooth = idct(parts * dct(in_order, norm="ortho", axis=axis), norm="ortho", axis=axis)
    return np.concatenate([smooth, missing], axis=axis)


def beyond_independence(counts: Floats, first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Independent counts, and what is left without its margins, which are better known from `first` and `second`."""
    rows = first.sum()
    independent = np.outer(first, second) / rows if rows > 0.0 else np.zeros_like(counts)
    return independent, _without_margins(counts - independent)


def _without_margins(rest: Floats) -> Floats:
    left: Floats = rest - rest.mean(axis=1, keepdims=True) - rest.mean(axis=0, keepdims=True) + rest.mean()
    return left
