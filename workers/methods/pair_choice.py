"""Which pairs of columns are worth measuring, from their noised scores. Post-processing.

A pair left out is modelled as independent within each slice, which costs its distance from independence; a pair measured
costs noise, more of it the more others are measured. The number of pairs is the one with the least sum of both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from workers.mechanism.marginals import Columns, Counts, TableLayout
from workers.methods.denoising import Floats

NOISE_LEFT_BY_THE_FIT = 0.4
"""Part of a table's noise, in L1, that counts: one mixture has to agree with all tables, and single columns have what pairs leave.

At 0.1, as it was, nearly all pairs were chosen on each of eleven tables (docs/decisions/0022).
"""


def expected_counts(
    layout: TableLayout,
    one_way: Mapping[Columns, Counts | Floats],
    totals: NDArray[np.float64],
    pairs: Sequence[Columns],
) -> dict[Columns, Counts]:
    """Whole counts of every pair as if its columns were independent within each slice, from noised one-way tables."""
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
    layout: TableLayout,
    pairs: Sequence[Columns],
    *,
    scores: NDArray[np.int64],
    expected: Mapping[Columns, Counts],
    noise_stds: Callable[[list[Columns]], tuple[float, ...]],
) -> list[Columns]:
    """The pairs with the highest scores, as many as make noise and neglect together least.

    noise_stds: pairs -> the noise of each if just these are measured together.
    """
    # Even independent columns are this far from their expected counts, by chance (mean of |Poisson - mean|).
    by_chance = np.array([np.sqrt(2.0 * expected[pair] / math.pi).sum() for pair in pairs])
    gains = np.maximum(scores - by_chance, 0.0)
    ranking = np.argsort(-gains, kind="stable")
    ranked = [pairs[place] for place in ranking]
    neglected = gains.sum() - np.concatenate(([0.0], np.cumsum(gains[ranking])))
    best, least = 0, math.inf
    for count in _numbers_to_try(len(ranked)):
        chosen = ranked[:count]
        noise = sum(layout.size(p) * std for p, std in zip(chosen, noise_stds(chosen), strict=True))
        cost = neglected[count] + NOISE_LEFT_BY_THE_FIT * math.sqrt(2.0 / math.pi) * noise
        if cost < least:
            best, least = count, cost
    return sorted(ranked[:best])


def _numbers_to_try(most: int) -> list[int]:
    """Every number up to 100, then steps of a twentieth."""
    numbers, at = [], 0
    while at < most:
        numbers.append(at)
        at += max(1, at // 20 if at >= 100 else 1)
    return [*numbers, most]
