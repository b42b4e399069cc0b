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

LEFT_IN_ONE_WAY = 2.0, 0.5
"""raw / (1 + a·raw^b) of the noise is left in one-way marginals: no count is below zero and all add up to n (docs/forecast.md)."""

LEFT_WITH_CONDITION = 0.46, 0.5, 0.35
"""a·raw^b·within^c in those of a column and the condition, by the raw noise of one-way ones in all rows and within its values."""

LEFT_IN_TWO_WAY = 0.23, 0.7
"""a·raw^b in those of two other columns, which are denoised."""

SPREADS = {"one_way": (0.68, 1.17), "with_condition": (0.68, 1.26), "two_way": (0.57, 1.6)}
"""Between these times the forecast lay four fifths of what was measured (bench/results/forecast.md)."""


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
    raw, (factor, exponent) = _raw(noisy, noisy.one_way), LEFT_IN_ONE_WAY
    return _counts(noisy.one_way, noisy.kinds, raw / (1.0 + factor * raw**exponent), SPREADS["one_way"])


def _with_condition(noisy: NoisyCounts) -> Counts | None:
    """Of each column and the condition, whose pair is counted in any case."""
    if noisy.strata == 1:
        return None
    raw, within = _raw(noisy, noisy.one_way), noisy.strata * _raw(noisy, noisy.within_strata)
    factor, exponent, of_within = LEFT_WITH_CONDITION
    return _counts(
        noisy.within_strata, noisy.kinds, factor * raw**exponent * within**of_within, SPREADS["with_condition"]
    )


def _two_way(noisy: NoisyCounts) -> Counts | None:
    if not noisy.measured_pairs:
        return None
    sizes, numbers, stds = noisy.two_way
    raw = float((MOVED * sizes * stds * numbers).sum() / numbers.sum()) / noisy.units
    factor, exponent = LEFT_IN_TWO_WAY
    return _counts(stds, numbers, factor * raw**exponent, SPREADS["two_way"])


def _raw(noisy: NoisyCounts, stds: Floats) -> float:
    """Total variation by noise alone, were every noisy count taken as it is; on average over columns."""
    return float((MOVED * noisy.cells * stds * noisy.kinds).sum() / noisy.kinds.sum()) / noisy.units


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
