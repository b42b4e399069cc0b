"""What an order of marginals will give, in numbers and in words: from the resolved order, its events, the declaration and n alone."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from service.base.lazy import lazy
from service.base.messages import Message
from service.methods.experience import experience_of, in_words
from service.methods.forecast import SURE, TOLD_APART, Counts, Expected, Forecast, Spread
from service.methods.marginals import forecast_words as words
from service.methods.marginals.noisy_counts import NoisyCounts

if TYPE_CHECKING:
    import numpy as np

    from service.methods.facts import Facts
    from service.methods.forecast import Pairs
    from service.methods.marginals.noisy_counts import Floats
    from service.methods.marginals.order import MarginalsOrder
    from service.privacy.events import Events
else:
    np = lazy("numpy")

MOVED = math.sqrt(1.0 / (2.0 * math.pi))
"""E|N|/2 of noise with standard deviation 1: what one noisy cell adds to the total variation, before anything is known of cells."""

LEFT_IN_ONE_WAY = {"categories": 0.53, "values": 0.5, "cells": 0.365}, 0.88
"""By the sort of column, factor·raw^exponent of the noise is left: no count is below zero, all add up to n, and counts are smoothed
(docs/forecast.md)."""

LEFT_WITH_CONDITION = {"categories": 0.75, "values": 0.67, "cells": 0.41}, 0.69, 0.19
"""factor·raw^a·within^b in those of a column and the condition, by the raw noise of one-way ones in all rows and within its values."""

LEFT_IN_TWO_WAY = 0.42, 0.83
"""factor·raw^exponent in those of two other columns, which are denoised."""

SPREADS = {"one_way": (0.67, 1.25), "with_condition": (0.74, 1.28), "two_way": (0.62, 1.8)}
"""Between these times the forecast lay four fifths of what was measured (docs/forecast.md). Into how many groups cells fall and which pairs are
chosen depends on the rows, so pairs are known worst."""


def forecast(order: MarginalsOrder, events: Events, facts: Facts) -> Forecast:
    """All of it; the work grows with the number of kinds of columns, not of pairs."""
    shape = facts.table(order.numeric_bins)
    if not shape.cells:
        return Forecast((Message("There is no column to measure."),))
    noisy = NoisyCounts.of(order, events, shape, facts.units)
    said = Forecast(
        (),
        one_way=_one_way(noisy),
        with_condition=_with_condition(noisy),
        two_way=_two_way(noisy),
        pairs=cast("Pairs", order.pairs),
    )
    found = None if order.condition_on is None else experience_of("marginals", "table", facts, order)
    sentences = [
        words.pairs(order, noisy),
        words.groups(order, said, facts.units),
        words.smallest(order, said),
        words.distances(order, said),
        *([] if noisy.in_trees is None else [words.trees(noisy.in_trees, shape.columns_of_values)]),
        *([] if found is None else [in_words(found, "table")]),
    ]
    warnings = words.warnings(order, noisy, shape, said)
    return replace(said, sentences=tuple(sentences), warnings=tuple(warnings), experience=found)


def _one_way(noisy: NoisyCounts) -> Counts:
    raw, (factors, exponent) = _raw(noisy, noisy.one_way), LEFT_IN_ONE_WAY
    left = noisy.by_sort(factors) * raw**exponent
    return _counts(noisy.one_way, noisy.kinds, _mean(np.minimum(raw, left), noisy.kinds), SPREADS["one_way"])


def _with_condition(noisy: NoisyCounts) -> Counts | None:
    """Of each column and the condition, whose pair is counted in any case."""
    if noisy.strata == 1:
        return None
    raw, within = _raw(noisy, noisy.one_way), noisy.strata * _raw(noisy, noisy.within_strata)
    factors, exponent, of_within = LEFT_WITH_CONDITION
    left = noisy.by_sort(factors) * raw**exponent * within**of_within
    return _counts(
        noisy.within_strata, noisy.kinds, _mean(np.minimum(within, left), noisy.kinds), SPREADS["with_condition"]
    )


def _two_way(noisy: NoisyCounts) -> Counts | None:
    if not noisy.measured_pairs:
        return None
    sizes, numbers, stds = noisy.two_way
    raw, (factor, exponent) = MOVED * sizes * stds / noisy.units, LEFT_IN_TWO_WAY
    left = np.minimum(raw, factor * raw**exponent)
    return _counts(stds, numbers, _mean(left, numbers), SPREADS["two_way"])


def _raw(noisy: NoisyCounts, stds: Floats) -> Floats:
    """(kinds,) total variation by noise alone, were every noisy count taken as it is."""
    return np.asarray(MOVED * noisy.cells * stds / noisy.units, np.float64)


def _mean(values: Floats, numbers: Floats) -> float:
    return float((values * numbers).sum() / numbers.sum())


def _counts(stds: Floats, numbers: Floats, expected: float, spread: tuple[float, float]) -> Counts:
    places = np.argsort(stds)
    reached = np.cumsum(numbers[places])
    median = float(stds[places[np.searchsorted(reached, reached[-1] / 2.0)]])
    low, high = (min(1.0, expected * times) for times in spread)
    return Counts(
        marginals=round(float(numbers.sum())),
        count_std=Spread(float(stds.min()), median, float(stds.max())),
        off_by=SURE * median,
        smallest_group=math.ceil(TOLD_APART * median),
        total_variation=Expected(min(1.0, expected), low, high),
    )
