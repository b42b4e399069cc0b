"""Open ranges before all others: trees of noisy counts, and the bins that these say are worth counting."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from workers.methods.marginals.measure.layouts import layout_of
from workers.methods.marginals.measure.measurements import Measurements
from workers.methods.marginals.measure.releases import Releases
from workers.methods.marginals.measure.trees import RangeTree


def grow_trees(releases: Releases, known: Measurements) -> Measurements:
    """The tree of every open range."""
    columns = known.domain.columns
    return with_trees(releases, known, releases.trees({place: columns[place] for place in known.domain.value_grids}))


def with_trees(releases: Releases, known: Measurements, trees: Mapping[int, RangeTree]) -> Measurements:
    """Columns and rows by the bins of these trees, cut at as many quantiles as there are equal cells. Post-processing."""
    if releases.keeps_bins or not trees:
        return replace(known, trees=trees)
    columns = known.domain.columns
    starts = {place: tree.bins(len(columns[place].edges or ()) - 1) for place, tree in trees.items()}
    domain = known.domain.with_bins(starts)
    releases.encode_anew(domain, starts)
    return replace(known, domain=domain, layout=layout_of(releases.order, domain), trees=trees)
