"""Which pairs of columns are worth measuring, from their noisy scores. Post-processing.

A pair left out costs what is not known of it: its distance from independence. A pair measured costs noise, more of it the more
others are measured. The number of pairs, none and all among them, is the one with the least sum of both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

import numpy as np

from workers.mechanism.marginals import Columns, Counts, TableLayout
from workers.methods.marginals.estimate.denoising import STANDS_OUT, Floats, in_groups

NOISE_LEFT_BY_THE_FIT = 0.4
"""Part of a table's noise, in L1, that counts: one mixture has to agree with all tables, and single columns have what pairs leave."""

NoiseStds = Callable[[TableLayout, Sequence[Columns]], tuple[float, ...]]
"""Layout, pairs -> noise_std of each if just these are measured together."""


def expected_counts(
    layout: TableLayout, one_way: Mapping[Columns, Counts | Floats], totals: Floats, pairs: Sequence[Columns]
) -> dict[Columns, Counts]:
    """Whole counts of every pair as if its columns were independent within each stratum, from noisy one-way tables."""
    shares = {}
    for (column,), counts in one_way.items():
        summed = in_groups(np.maximum(counts, 1e-3), layout.groups_of(column))
        shares[column] = summed / summed.sum(axis=1, keepdims=True)
    return {
        (i, j): np.rint(totals[:, None, None] * shares[i][:, :, None] * shares[j][:, None, :]).astype(np.int64)
        for i, j in pairs
    }


def choose_pairs(
    layout: TableLayout,
    expected: Mapping[Columns, Counts],
    scores: Floats,
    noise_stds: NoiseStds,
    *,
    score_noise_std: float,
) -> list[Columns]:
    """The pairs of the highest scores, as many as make noise and neglect together least.

    scores: of the pairs of `expected`, in its order. What noise may have added to the highest of hundreds is taken from each.
    """
    neglected = {
        pair: max(0.0, float(score) - _by_chance(counts) - STANDS_OUT * score_noise_std)
        for (pair, counts), score in zip(expected.items(), scores, strict=True)
    }
    ranked = sorted(neglected, key=neglected.__getitem__, reverse=True)
    left = [0.0, *accumulate(neglected[pair] for pair in reversed(ranked))][::-1]

    def cost(count: int) -> float:
        """The expected error in L1 if the first so many pairs are measured."""
        pairs = ranked[:count]
        of_cells = sum(layout.size(pair) * std for pair, std in zip(pairs, noise_stds(layout, pairs), strict=True))
        return left[count] + NOISE_LEFT_BY_THE_FIT * math.sqrt(2.0 / math.pi) * of_cells

    numbers = {0, *np.geomspace(1, len(ranked), 200).round().astype(np.int64).tolist()} if ranked else {0}
    return sorted(ranked[: min(sorted(numbers), key=cost)])


def _by_chance(expected: Counts) -> float:
    """How far even independent columns are from their expected counts, in L1 (mean of |Poisson - mean|)."""
    return float(np.sqrt(2.0 * expected / math.pi).sum())
