"""Which pairs of columns are worth measuring, from their noisy scores. Post-processing.

A pair left out costs what is not known of it: its distance from independence, or what others do not explain of that. A pair
measured costs noise, more of it the more others are measured. The number of pairs is the one with the least sum of both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from workers.mechanism.marginals import Columns, Counts, TableLayout
from workers.methods.marginals.choose.column_trees import neighbours_in, strongest_tree, walk
from workers.methods.marginals.estimate.denoising import Floats

NOISE_LEFT_BY_THE_FIT = 0.4
"""Part of a table's noise, in L1, that counts: one mixture has to agree with all tables, and single columns have what pairs leave.

At 0.1, as it was, nearly all pairs were chosen on each of eleven tables (docs/decisions/0022).
"""

NOISE_LEFT_OF_ALL = 0.2
"""The same where all pairs can be measured, as seen on Adult and on a made-up chain (docs/decisions/0025)."""

CHANCE_MISSED = 0.1
"""Part of what chance alone makes of a pair's table that its measurement would tell."""

FEW_COST = 1.0 / 3.0
"""Few pairs are taken where they cost at most this part of what all do, and none: what they explain is only guessed (docs/decisions/0025)."""

LEAST_OUTSTANDING = 6.0
"""noise_std of a score: where noise is much, pairs are chosen if the strongest stand out by this on average (docs/decisions/0027)."""

NoiseStds = Callable[[TableLayout, Sequence[Columns]], tuple[float, ...]]
"""Layout, pairs -> noise_std of each if just these are measured together."""


def expected_counts(
    layout: TableLayout,
    one_way: Mapping[Columns, Counts | Floats],
    totals: NDArray[np.float64],
    pairs: Sequence[Columns],
) -> dict[Columns, Counts]:
    """Whole counts of every pair as if its columns were independent within each stratum, from noisy one-way tables."""
    shares = {}
    for (column,), counts in one_way.items():
        groups = layout.groups_of(column)
        summed = np.zeros((layout.slices, layout.pair_widths[column]))
        for cell, group in enumerate(groups):
            summed[:, group] += np.maximum(counts[:, cell], 1e-3)
        shares[column] = summed / summed.sum(axis=1, keepdims=True)
    return {
        (i, j): np.rint(totals[:, None, None] * shares[i][:, :, None] * shares[j][:, None, :]).astype(np.int64)
        for i, j in pairs
    }


def choose_pairs(
    layout: TableLayout, expected: Mapping[Columns, Counts], scores: NDArray[np.float64], noise_stds: NoiseStds
) -> list[Columns]:
    """The pairs of the highest scores, as many as make noise and neglect together least.

    scores: of the pairs of `expected`, in its order.
    """
    beyond_chance = _beyond_chance(expected, scores)
    ranked = sorted(beyond_chance, key=beyond_chance.__getitem__, reverse=True)
    costs = _costs(ranked, beyond_chance, 0, _noise(layout, noise_stds, NOISE_LEFT_BY_THE_FIT))
    return sorted(ranked[: min(costs, key=costs.__getitem__)])


def stand_out(expected: Mapping[Columns, Counts], scores: NDArray[np.float64], *, score_noise_std: float) -> bool:
    """Whether the strongest pairs, as many as there are columns in pairs, are far beyond what noise makes of a score."""
    strongest = sorted(_beyond_chance(expected, scores).values(), reverse=True)[: len({c for p in expected for c in p})]
    return float(np.mean(strongest)) >= LEAST_OUTSTANDING * score_noise_std


def few_pairs(
    layout: TableLayout,
    expected: Mapping[Columns, Counts],
    scores: NDArray[np.float64],
    noise_stds: NoiseStds,
    *,
    score_noise_std: float,
) -> list[Columns] | None:
    """A tree of pairs that explains nearly all others, and those it does not; None where it takes too many of them.

    scores: as above. Weak ones are noise, whose sum is large: as much as is to be expected of it is taken from each.
    """
    beyond_chance = _beyond_chance(expected, scores - score_noise_std)
    tree = strongest_tree(beyond_chance)
    explained = _explained(tree, beyond_chance, expected)
    neglected = {
        pair: max(0.0, distance - explained.get(pair, 0.0)) + CHANCE_MISSED * _by_chance(expected[pair])
        for pair, distance in beyond_chance.items()
    }
    in_tree = set(tree)
    others = sorted((pair for pair in neglected if pair not in in_tree), key=neglected.__getitem__, reverse=True)
    ranked = [*tree, *others]
    costs = _costs(ranked, neglected, len(tree), _noise(layout, noise_stds, NOISE_LEFT_OF_ALL))
    best = min(costs, key=costs.__getitem__)
    without_any = sum(_beyond_chance(expected, scores).values())
    if costs[best] > FEW_COST * min(costs[len(ranked)], without_any):
        return None
    return sorted(ranked[:best])


def _by_chance(expected: Counts) -> float:
    """How far even independent columns are from their expected counts, in L1 (mean of |Poisson - mean|)."""
    return float(np.sqrt(2.0 * expected / math.pi).sum())


def _beyond_chance(expected: Mapping[Columns, Counts], scores: NDArray[np.float64]) -> dict[Columns, float]:
    return {
        pair: max(0.0, float(score) - _by_chance(counts))
        for (pair, counts), score in zip(expected.items(), scores, strict=True)
    }


def _explained(
    tree: Sequence[Columns], distances: Mapping[Columns, float], expected: Mapping[Columns, Counts]
) -> dict[Columns, float]:
    """The distance from independence that pairs have through the tree, as far as distances of its own pairs tell: (i, j), i < j.

    Parts of what is possible multiply along a path, of what is possible for its column of fewest values: true of columns that copy
    others now and then.
    """
    rows = {pair: float(counts.sum()) for pair, counts in expected.items()}
    possible: dict[int, float] = {}  # total variation between a column beside its copy and beside an independent one
    for pair, counts in expected.items():
        for column, axis in zip(pair, (2, 1), strict=True):
            shares = counts.sum(axis=(0, axis)) / max(1.0, rows[pair])
            possible[column] = max(1e-9, 1.0 - float(shares @ shares))
    neighbours = neighbours_in(tree)
    explained: dict[Columns, float] = {}
    for start, most in possible.items():
        reached = {start: (1.0, most)}
        for before, column in walk(neighbours, start):
            pair = (min(before, column), max(before, column))
            variation = distances[pair] / (2.0 * max(1.0, rows[pair]))
            part, least = reached[before]
            link = min(1.0, variation / min(possible[before], possible[column]))
            reached[column] = (part * link, min(least, possible[column]))
            if start < column:
                explained[start, column] = 2.0 * rows[start, column] * math.prod(reached[column])
    return explained


def _noise(layout: TableLayout, noise_stds: NoiseStds, part: float) -> Callable[[list[Columns]], float]:
    """This part of the noise of pairs, in L1, if just these are measured together."""

    def noise(pairs: list[Columns]) -> float:
        of_cells = sum(layout.size(pair) * std for pair, std in zip(pairs, noise_stds(layout, pairs), strict=True))
        return part * math.sqrt(2.0 / math.pi) * of_cells

    return noise


def _costs(
    ranked: list[Columns], neglected: Mapping[Columns, float], fewest: int, noise: Callable[[list[Columns]], float]
) -> dict[int, float]:
    """What neglect and noise cost together, in L1, if the first so many pairs are measured: from `fewest` to all of them."""
    left = [0.0, *accumulate(neglected[pair] for pair in reversed(ranked))][::-1]
    return {count: left[count] + noise(ranked[:count]) for count in _numbers_to_try(fewest, len(ranked))}


def _numbers_to_try(fewest: int, most: int) -> list[int]:
    """Every number up to 100, then steps of a twentieth."""
    numbers, at = [], fewest
    while at < most:
        numbers.append(at)
        at += max(1, at // 20 if at >= 100 else 1)
    return [*numbers, most]
