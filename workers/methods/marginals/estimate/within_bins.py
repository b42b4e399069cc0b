"""How values lie within their bins, from noisy counts of single values. Post-processing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from service.domain.value_grids import ValueGrid
from workers.encoding.table import ColumnDomain, TableDomain
from workers.methods.marginals.estimate.denoising import Floats
from workers.methods.marginals.measure.shared_values import HeavyHitters, digits_in_use, shares_of_cells


def with_heavy_hitters(
    domain: TableDomain, found: Mapping[int, HeavyHitters], one_way: Mapping[int, Floats]
) -> TableDomain:
    """The columns as synthetic rows have them: with the values that many rows share, and digits where none were declared.

    one_way: (slices, cells) counts of each column, as estimated.
    """
    columns = list(domain.columns)
    for place, grid in domain.value_grids.items():
        columns[place] = _column(columns[place], found[place], grid, one_way[place].sum(axis=0))
    return replace(domain, columns=tuple(columns))


def _column(column: ColumnDomain, found: HeavyHitters, grid: ValueGrid, counts: Floats) -> ColumnDomain:
    edges = np.asarray(column.edges, dtype=np.float64)
    in_cells = counts[: len(edges) - 1]
    if column.type == "number" and column.decimals is None:
        column = replace(column, decimals=digits_in_use(found, grid, rows=float(in_cells.sum())))
    drawn_from = grid if column.decimals is None else grid.with_decimals(column.decimals)
    shared = shares_of_cells(found, grid, drawn_from=drawn_from, edges=edges, rows=in_cells)
    return replace(column, shared_values=shared)
