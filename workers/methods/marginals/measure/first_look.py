"""Single columns before all others: which bins have rows, and which of them two-way tables count together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from service.methods.marginals.order import MarginalsOrder
from workers.mechanism.marginals import Columns, TableLayout
from workers.methods.marginals.estimate.table_estimates import averaged, estimates_of
from workers.methods.marginals.estimate.totals import Units, totals_of
from workers.methods.marginals.measure.layouts import layout_of, looks_of
from workers.methods.marginals.measure.measured import Measured
from workers.methods.marginals.measure.measurements import Measurements
from workers.methods.marginals.measure.open_ranges import Cells, cells_by_counts, share_of_a_part
from workers.methods.marginals.measure.pair_groups import group_by_counts
from workers.methods.marginals.measure.releases import Releases

NoiseStds = Callable[[TableLayout, Sequence[Columns]], tuple[float, ...]]
"""Layout, pairs -> noise_std of each if just these are measured together."""


def look_at_single_columns(releases: Releases, known: Measurements) -> Measurements:
    """Noisy one-way tables, and the bins and groups of bins that they show to be worth counting."""
    order, units = releases.order, releases.units
    looks = looks_of(order, known.layout)
    looked = replace(known, tables=releases.one_way_tables(looks))
    binned = with_bins_by_counts(order, looked, totals_of(looked.tables, looks[-1], units).sum(), releases.forecast)
    return replace(binned, layout=with_groups(order, binned, binned.layout, units, releases.forecast))


# -- post-processing


def with_bins_by_counts(
    order: MarginalsOrder, looked: Measurements, rows: float, noise_stds: NoiseStds
) -> Measurements:
    """Open ranges with the bins in which noisy one-way tables say that rows are; these tables by such bins.

    rows: how many there are.
    """
    equal = {
        place: np.searchsorted(column.equal_edges, (column.edges or ())[:-1], side="right")
        for place, column in enumerate(looked.domain.columns)
        if column.equal_edges is not None
    }
    if not equal:
        return looked
    rows = float(rows)
    of_equal_bins = layout_of(order, looked.domain.merged(equal))
    fewest_rows = rows * share_of_a_part(_noise_of_pairs(of_equal_bins, rows, noise_stds))
    cells = {
        column: _bins_of(column, looked.tables, fewest_rows=fewest_rows, equal_cells=equal_cells)
        for column, equal_cells in equal.items()
    }
    domain = looked.domain.merged(cells)
    tables = (_by_bins(m, cells[m.columns[0]]) if m.columns[0] in cells else m for m in looked.tables)
    return replace(looked, domain=domain, layout=layout_of(order, domain, cells), tables=tuple(tables))


def _bins_of(column: int, tables: Sequence[Measured], *, fewest_rows: float, equal_cells: Cells) -> Cells:
    """(codes,) the bin of each code of a column."""
    looks = [(m.counts.sum(axis=0), m.variance * len(m.counts)) for m in tables if m.columns == (column,)]
    counts, variance = averaged(looks)
    return cells_by_counts(counts, noise_std=math.sqrt(variance), fewest_rows=fewest_rows, equal_cells=equal_cells)


def _by_bins(m: Measured, cells: Cells) -> Measured:
    """A one-way table by bins instead of codes. Bins of several codes have more noise; all get the average variance."""
    counts = np.stack([np.bincount(cells, weights=row) for row in m.counts]).round().astype(np.int64)
    return Measured(m.columns, counts, m.variance * len(cells) / counts.shape[1])


def _noise_of_pairs(layout: TableLayout, rows: float, noise_stds: NoiseStds) -> float:
    """How far noise alone moves an average two-way table if all are measured, in total variation."""
    pairs: list[Columns] = list(combinations(layout.free, 2))
    if not pairs:
        return 0.0
    cells = [layout.size(pair) for pair in pairs]
    return float(np.mean(np.multiply(noise_stds(layout, pairs), cells))) / (math.sqrt(2.0 * math.pi) * rows)


def with_groups(
    order: MarginalsOrder, looked: Measurements, layout: TableLayout, units: Units, noise_stds: NoiseStds
) -> TableLayout:
    """This layout, with the bins that noisy one-way tables call rare counted together in pairs, if the order says so."""
    pairs = looked.pairs
    if order.pair_groups != "counted" or not pairs:
        return layout
    estimates = estimates_of(looked.tables, looks_of(order, looked.layout)[-1], looked.domain, units)
    rows, (fine, _, _) = float(estimates.totals.sum()), estimates.one_way()

    def noise(layout: TableLayout) -> float:
        cells = [math.sqrt(max(layout.pair_widths[i], layout.pair_widths[j])) for i, j in pairs]
        return float(np.mean(np.multiply(noise_stds(layout, pairs), cells)))

    return group_by_counts(
        layout,
        {column: counts.sum(axis=0) / rows for column, counts in fine.items()},
        rows=rows / layout.pair_slices,
        in_order={column: column in estimates.ordered for column in layout.free},
        noise=noise,
    )
