"""What pairs of columns that were not measured are taken to be, from those that were. Post-processing.

A mixture that is held to a few pairs alone makes what it likes of the others. A tree of the strongest measured pairs says what they are
if two columns depend on each other through those between them alone: the distribution of most entropy that has the tree's pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np

from workers.mechanism.marginals import Columns
from workers.methods.marginals.choose.column_trees import neighbours_in, strongest_tree, walk
from workers.methods.marginals.estimate.denoising import Floats, rake

SMALLEST_COUNT = 1e-4
"""Of a cell: tables are divided by their margins."""


def implied_pairs(measured: Mapping[Columns, Floats], one_way: Mapping[int, Floats]) -> dict[Columns, Floats]:
    """Counts (slices, a, b) of every pair of columns that is not among the measured ones.

    measured: (slices, a, b) denoised counts of pairs (i, j), i < j. one_way: (slices, a) of every column. What is not in one tree is
    independent.
    """
    positive = {pair: np.maximum(counts, SMALLEST_COUNT) for pair, counts in measured.items()}
    tree = strongest_tree({pair: _mutual_information(counts) for pair, counts in positive.items()})
    neighbours = neighbours_in(tree)
    implied: dict[Columns, Floats] = {}
    for start in one_way:
        joint = {start: np.empty(0)}
        for before, column in walk(neighbours, start):
            pair = positive[before, column] if before < column else positive[column, before].transpose(0, 2, 1)
            joint[column] = pair if before == start else joint[before] @ (pair / pair.sum(axis=2, keepdims=True))
            if start < column and (start, column) not in measured:
                implied[start, column] = joint[column]
    missing = [pair for pair in combinations(sorted(one_way), 2) if pair not in measured]
    return {pair: _with_margins(implied.get(pair), *(one_way[column] for column in pair)) for pair in missing}


def _mutual_information(counts: Floats) -> float:
    """Of two columns within strata, times the rows. (slices, a, b), positive."""
    rows = counts.sum(axis=(1, 2), keepdims=True)
    independent = counts.sum(axis=2, keepdims=True) * counts.sum(axis=1, keepdims=True) / rows
    return float((counts * np.log(counts / independent)).sum())


def _with_margins(counts: Floats | None, first: Floats, second: Floats) -> Floats:
    """Raked to one-way counts (slices, a) and (slices, b), or independent."""
    if counts is None:
        rows = np.maximum(first.sum(axis=1), SMALLEST_COUNT)
        independent: Floats = first[:, :, None] * second[:, None, :] / rows[:, None, None]
        return independent
    return np.stack([rake(*one) for one in zip(counts, first, second, strict=True)])
