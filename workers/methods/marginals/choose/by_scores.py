"""Which pairs are measured, by the noisy distance of each from independence."""

from __future__ import annotations

from dataclasses import replace

from workers.mechanism.marginals import Columns, Counts
from workers.methods.marginals.choose.pair_choice import choose_pairs, expected_counts, few_pairs, stand_out
from workers.methods.marginals.estimate.denoising import Floats
from workers.methods.marginals.estimate.totals import totals_of
from workers.methods.marginals.measure.first_look import with_groups
from workers.methods.marginals.measure.layouts import layout_of, looks_of
from workers.methods.marginals.measure.measurements import Measurements
from workers.methods.marginals.measure.releases import Releases


def choose(releases: Releases, looked: Measurements) -> Measurements:
    """The pairs that are worth their noise; or, with `few_or_all`, few pairs that explain the others if there are such."""
    by_stratum = looks_of(releases.order, looked.layout)[-1]
    one_way = {m.columns: m.counts for m in looked.tables if len(m.counts) == by_stratum.slices}
    totals = totals_of(looked.tables, by_stratum, releases.units)
    expected = expected_counts(by_stratum, one_way, totals, looked.pairs)
    scores, noise_std = releases.scores(looked.layout, expected)
    if releases.order.pairs == "chosen":
        return _with_chosen_pairs(releases, looked, expected, scores, noise_std)
    return _with_few_or_all_pairs(releases, looked, expected, scores, noise_std)


# -- post-processing


def _with_chosen_pairs(
    releases: Releases, looked: Measurements, expected: dict[Columns, Counts], scores: Floats, noise_std: float
) -> Measurements:
    """The pairs whose noisy distance from independence is worth the noise of measuring them.

    Pairs of all rows are chosen where noise is so large that it may be the strongest scores: then none are.
    """
    layout = looked.layout
    if not layout.pairs_are_sliced and not stand_out(expected, scores, score_noise_std=noise_std):
        return replace(looked, pairs=())
    return replace(looked, pairs=tuple(choose_pairs(layout, expected, scores, releases.forecast)))


def _with_few_or_all_pairs(
    releases: Releases, looked: Measurements, expected: dict[Columns, Counts], scores: Floats, noise_std: float
) -> Measurements:
    """Few pairs that explain nearly all others, or all.

    Few pairs are measured in all rows together, unless the order says otherwise, and in more groups than all would be.
    """
    order = releases.order
    few = few_pairs(looked.layout, expected, scores, releases.forecast, score_noise_std=noise_std)
    if few is None:
        return looked
    with_few = replace(looked, pairs=tuple(few))
    ungrouped = replace(layout_of(order, looked.domain), cells=looked.layout.cells)
    layout = ungrouped.with_pairs_of_all_rows() if order.pairs_within is None else ungrouped
    return replace(with_few, layout=with_groups(order, with_few, layout, releases.units, releases.forecast))
