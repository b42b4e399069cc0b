"""Which pairs are measured, by the noisy distance of each from independence."""

from __future__ import annotations

from dataclasses import replace

from workers.methods.marginals.choose.pair_choice import choose_pairs, expected_counts
from workers.methods.marginals.estimate.totals import totals_of
from workers.methods.marginals.measure.layouts import looks_of
from workers.methods.marginals.measure.measurements import Measurements
from workers.methods.marginals.measure.releases import Releases


def choose(releases: Releases, looked: Measurements) -> Measurements:
    """The pairs that are worth their noise."""
    by_stratum = looks_of(releases.order, looked.layout)[-1]
    one_way = {m.columns: m.counts for m in looked.tables if len(m.counts) == by_stratum.slices}
    totals = totals_of(looked.tables, by_stratum, releases.units)
    expected = expected_counts(by_stratum, one_way, totals, looked.pairs)
    scores, noise_std = releases.scores(looked.layout, expected)
    chosen = choose_pairs(looked.layout, expected, scores, releases.forecast, score_noise_std=noise_std)
    return replace(looked, pairs=tuple(chosen))
