"""How values lie within their bins, from trees of noisy counts. Post-processing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from service.domain.value_grids import ValueGrid
from workers.encoding.table import TableDomain
from workers.methods.marginals.estimate.denoising import Floats
from workers.methods.marginals.measure.trees import MOST_SHARED, STANDARD_DEVIATIONS, RangeTree

ROUNDS = 6
"""What is left to all others of a bin becomes less with every value found, until nothing more is."""


def with_shared_values(
    domain: TableDomain, trees: Mapping[int, RangeTree], one_way: Mapping[int, Floats]
) -> TableDomain:
    """The columns as synthetic rows have them: with the values that many rows share, and digits where none were declared.

    one_way: (strata, cells) counts of each column, as estimated.
    """
    columns = list(domain.columns)
    for place, grid in domain.value_grids.items():
        column, tree = columns[place], trees[place]
        decimals = column.decimals if tree.decimals is None else tree.decimals
        drawn_from = grid if decimals is None else grid.with_decimals(decimals)
        edges = np.asarray(column.edges, dtype=np.float64)
        rows = one_way[place].sum(axis=0)[: len(edges) - 1]
        shared = shares_of_bins(tree, grid, drawn_from=drawn_from, edges=edges, rows=rows)
        columns[place] = replace(column, decimals=decimals, shared_values=shared)
    return replace(domain, columns=tuple(columns))


def shares_of_bins(
    tree: RangeTree, grid: ValueGrid, *, drawn_from: ValueGrid, edges: Floats, rows: Floats
) -> tuple[tuple[float, float], ...]:
    """(value, part of its bin's rows) of the values that have more rows than an even spread within their bin would give them.

    What is left of a bin is drawn evenly from all of its values in `drawn_from`, so that each part lacks what its value has from there.
    edges: (bins + 1,) of the column's bins; rows: (bins,) in each, as estimated.
    """
    single = np.flatnonzero(tree.single)
    single = np.sort(single[np.argsort(tree.rows[single])[-MOST_SHARED:]])
    inner, bins = edges[1:-1], len(rows)
    values, counts = grid.values(tree.starts[single]), tree.rows[single]
    own = np.searchsorted(inner, values, side="right")
    all_values = np.diff(drawn_from.below(inner), prepend=0, append=drawn_from.size)
    shared = np.zeros(len(values), dtype=np.bool_)
    for _ in range(ROUNDS):
        taken, found = (np.bincount(own, weights=of * shared, minlength=bins) for of in (counts, 1.0))
        whole, others = np.maximum(np.maximum(taken, rows), 1.0), all_values - found
        even = np.where(others > 0, (whole - taken) / np.maximum(others, 1.0), 0.0)[own]
        parts = (counts - even) / whole[own]
        shared = (counts > STANDARD_DEVIATIONS * tree.noise_std + even) & (parts > 0.0)
    is_alone = all_values[own] == 1  # a sampler that knows no decimals would draw values next to it
    shared, parts = shared | is_alone, np.where(is_alone, 1.0, parts)
    return tuple(zip(values[shared].tolist(), parts[shared].tolist(), strict=True))
