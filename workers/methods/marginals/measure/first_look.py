"""Single columns before all others: which bins two-way tables count together."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from service.methods.marginals.order import MarginalsOrder
from workers.mechanism.marginals import TableLayout
from workers.methods.marginals.choose.pair_choice import NoiseStds
from workers.methods.marginals.estimate.table_estimates import estimates_of
from workers.methods.marginals.estimate.totals import Units
from workers.methods.marginals.measure.layouts import looks_of
from workers.methods.marginals.measure.measurements import Measurements
from workers.methods.marginals.measure.pair_groups import group_by_counts
from workers.methods.marginals.measure.releases import Releases


def look_at_single_columns(releases: Releases, known: Measurements) -> Measurements:
    """Noisy one-way tables, and the groups of bins that they show to be worth counting."""
    order, units = releases.order, releases.units
    looks = looks_of(order, known.layout)
    looked = replace(known, tables=releases.one_way_tables(looks))
    return replace(looked, layout=with_groups(order, looked, units, releases.forecast))


# -- post-processing


def with_groups(order: MarginalsOrder, looked: Measurements, units: Units, noise_stds: NoiseStds) -> TableLayout:
    """The layout, with the bins that noisy one-way tables call rare counted together in pairs, if the order says so."""
    layout, pairs = looked.layout, looked.pairs
    if order.pair_groups != "counted" or not pairs:
        return layout
    estimates = estimates_of(looked.tables, looks_of(order, layout)[-1], looked.domain, units)
    rows = float(estimates.totals.sum())

    def noise(layout: TableLayout) -> float:
        cells = [math.sqrt(max(layout.pair_widths[i], layout.pair_widths[j])) for i, j in pairs]
        return float(np.mean(np.multiply(noise_stds(layout, pairs), cells)))

    return group_by_counts(
        layout,
        {column: counts.sum(axis=0) / rows for column, counts in estimates.one_way().items()},
        rows=rows / layout.pair_slices,
        in_order={column: column in estimates.ordered for column in layout.free},
        noise=noise,
    )
