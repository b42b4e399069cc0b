"""Which pairs of columns are measured where the order does not say: from the declared schema, n and the budget, never from a row."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from service.domain.shapes import TableShape
from service.methods.marginals.order import MarginalsOrder
from service.methods.whole_noise import whole_noise
from service.privacy.filters import Budget

MAX_PAIR_WIDTH = 2_048
"""Bins of all columns side by side, as two-way tables see them: bounds memory and the time of a fitting step."""

MOST_NOISE_PER_PAIR = 0.8
"""Pairs are measured while noise alone moves a two-way table by at most this much in total variation."""

FEWEST_CHOSEN_PAIRS = 5
"""For each column: a choice among all pairs is worth its price where at least so many can be measured (docs/decisions/0022)."""

GROUPS_OF_A_COLUMN = 8
"""Where bins are grouped by counts, rules assume so many groups in each column; the real number is not known before."""

MOST_NOISE_PER_GROUPED_PAIR = 0.2
"""All pairs are measured in groups up to this much noise (docs/decisions/0018)."""

MOST_NOISE_TO_CHOOSE_IN_GROUPS = 0.4
"""Chosen pairs are measured in groups up to this much. Beyond it single columns alone are more accurate (docs/decisions/0022)."""

LEAST_NOISE_TO_GROUP = 0.07
"""Up to this much for a pair of declared bins, groups have nothing to gain."""

FEW_STRATA = 2
"""With just so many, pairs are never moved from strata to all rows (docs/decisions/0021, 0031)."""

ONE_WAY_WEIGHT_IN_MUCH_NOISE = 20.0
"""Where all pairs can be measured within strata in groups only, single columns are as precise as beside chosen pairs."""

MOST_NOISE_OF_SCORES_TO_CHOOSE = 0.1
"""Pairs of all rows may be chosen if noise moves a pair's score by at most this (docs/decisions/0027)."""

ONE_WAY_WEIGHT_BESIDE_CHOSEN_OF_ALL_ROWS = 5.0
"""Single columns, which alone have strata then, leave more of the precision to pairs."""

ONE_WAY_WEIGHT_BESIDE_PAIRS_OF_FEW_COLUMNS = 1.0
"""The same where columns are few: still more for pairs."""

FEW_PAIRS_BY_COLUMN = 3
"""Up to so many pairs for each column, columns are few: seven or less."""

LEAST_NOISE_TO_ASK_FOR_FEW = 0.1
"""Whether few pairs explain the others is asked where noise moves a pair of declared bins by more than this in total variation."""

MOST_NOISE_OF_SCORES = 0.02
"""It is asked where noise moves a pair's score by at most this (docs/decisions/0025)."""

Settled = dict[str, Any]
"""Knobs of the order, as a rule sets them."""


def pair_widths(cells: Sequence[int], *, pair_cells: int) -> tuple[int, ...]:
    """Bins of every column in two-way tables: at most so many, and fewer where all together are too many."""
    while pair_cells > 2 and sum(min(width, pair_cells) for width in cells) > MAX_PAIR_WIDTH:
        pair_cells -= 1
    return tuple(min(width, pair_cells) for width in cells)


def pairs_worth_measuring(
    widths: tuple[int, ...],
    *,
    slices: int,
    noise_std: float,
    units: int,
    exponent: float,
    most_noise: float,
) -> int:
    """How many pairs of average size can share a measurement, so that noise moves each by at most so much in total variation.

    noise_std is that of the whole measurement with one table; K tables of `cells` cells have noise_std·√K each, which
    moves one by 0.4·cells·noise_std·√K/units in total variation.
    """
    pairs = math.comb(len(widths), 2)
    if not pairs:
        return 0
    total = slices**exponent * _over_pairs([width**exponent for width in widths])
    root = 1.0 - exponent / 2.0
    noise = noise_std * math.sqrt(total) * slices**root * _over_pairs([width**root for width in widths]) / pairs
    moved = math.sqrt(1.0 / (2.0 * math.pi)) * noise / max(1, units)
    affordable = math.floor(pairs * (most_noise / moved) ** 2) if moved > 0.0 else pairs
    return min(pairs, affordable)


def _over_pairs(values: Sequence[float]) -> float:
    """The sum of products of all pairs, without going through them: a table may have a thousand columns."""
    return (sum(values) ** 2 - sum(value * value for value in values)) / 2.0


@dataclass(frozen=True)
class _Noise:
    """What noise would do to the pairs of columns besides the condition."""

    cells: tuple[int, ...]
    """Bins of each of these columns, as declared."""
    slices: int
    """Strata in which pairs are measured, as the order has it."""
    noise_std: float
    units: int
    exponent: float

    @property
    def all_pairs(self) -> int:
        return math.comb(len(self.cells), 2)

    def affordable(self, most_noise: float, pair_cells: int, *, slices: int | None = None) -> int:
        """How many pairs can be measured, so that noise moves each by at most so much in total variation."""
        return pairs_worth_measuring(
            pair_widths(self.cells, pair_cells=pair_cells),
            slices=slices or self.slices,
            noise_std=self.noise_std,
            units=self.units,
            exponent=self.exponent,
            most_noise=most_noise,
        )

    def allows_all(self, most_noise: float, pair_cells: int, *, slices: int | None = None) -> bool:
        return self.affordable(most_noise, pair_cells, slices=slices) == self.all_pairs

    def of_scores(self, precision_share: float) -> float:
        """What noise is to the distance of a pair from independence, in total variation, where all are scored for so much."""
        scored = self.noise_std * math.sqrt(self.all_pairs / precision_share)
        return scored / (2.0 * max(1, self.units))


@dataclass(frozen=True)
class _Case:
    """An order, and what the rules look at."""

    order: MarginalsOrder
    noise: _Noise
    strata: int
    """Values of the condition."""
    has_open_ranges: bool
    """Whether bins may be found by counts."""

    @classmethod
    def of(cls, order: MarginalsOrder, units: int, shape: TableShape, budget: Budget, precision_share: float) -> _Case:
        strata = 1 if order.condition_on is None else shape.cells.get(order.condition_on, 1)
        noise = _Noise(
            cells=tuple(cells for name, cells in shape.cells.items() if name != order.condition_on),
            slices=1 if order.pairs_within == "table" else strata,
            noise_std=whole_noise(order, budget) / math.sqrt(precision_share) * shape.max_rows_per_unit,
            units=units,
            exponent=order.precision_exponent,
        )
        return cls(order, noise, strata, shape.has_open_ranges and order.numeric_cells != "declared")

    @property
    def few_cells(self) -> int:
        """Bins of a column in two-way tables, if these are grouped by counts."""
        return min(GROUPS_OF_A_COLUMN, self.order.pair_cells)

    @property
    def numeric_cells(self) -> str:
        return self.order.numeric_cells or ("counted" if self.has_open_ranges else "declared")

    @cached_property
    def pair_groups(self) -> str:
        needs_none = not self.has_open_ranges and self.allows_all_declared(LEAST_NOISE_TO_GROUP)
        return self.order.pair_groups or ("declared" if needs_none else "counted")

    @property
    def in_groups(self) -> bool:
        return self.pair_groups == "counted"

    @property
    def has_few_pairs(self) -> bool:
        return self.noise.all_pairs <= FEW_PAIRS_BY_COLUMN * len(self.noise.cells)

    @cached_property
    def affords_many(self) -> bool:
        """Whether enough pairs can be measured to choose among all."""
        affordable = self.noise.affordable(MOST_NOISE_PER_PAIR, self.order.pair_cells)
        return affordable >= FEWEST_CHOSEN_PAIRS * len(self.noise.cells)

    def allows_all_declared(self, most_noise: float) -> bool:
        """Whether all pairs of declared bins can be measured with at most so much noise."""
        return self.noise.allows_all(most_noise, self.order.pair_cells)

    def allows_all_grouped(self, most_noise: float, *, strata: int | None = None) -> bool:
        """Whether all pairs can be measured in groups with at most so much noise."""
        return self.noise.allows_all(most_noise, self.few_cells, slices=strata)


# Each rule gives the knobs it sets, or None where it does not hold.


def _all_pairs(case: _Case) -> Settled | None:
    """All pairs are known well enough; or few that explain them, where those may be known better."""
    if not case.allows_all_declared(MOST_NOISE_PER_PAIR):
        return None
    might_find_few = (
        case.in_groups
        and not case.has_few_pairs
        and not case.allows_all_declared(LEAST_NOISE_TO_ASK_FOR_FEW)
        and case.noise.of_scores(case.order.few_precision_share) <= MOST_NOISE_OF_SCORES
    )
    return {"pairs": "few_or_all" if might_find_few else "all"}


def _all_pairs_of_all_rows(case: _Case) -> Settled | None:
    """Instead of pairs within strata that would have to be chosen, or counted in few groups."""
    may_be_of_all_rows = case.in_groups and case.order.pairs_within is None and case.strata != FEW_STRATA
    holds = (
        may_be_of_all_rows
        and (case.affords_many or case.allows_all_grouped(MOST_NOISE_PER_PAIR))
        and case.allows_all_grouped(MOST_NOISE_PER_GROUPED_PAIR, strata=1)
    )
    return {"pairs": "all", "pairs_within": "table"} if holds else None


def _all_pairs_in_groups(case: _Case) -> Settled | None:
    """All pairs within strata, in groups alone."""
    if not (case.in_groups and case.allows_all_grouped(MOST_NOISE_PER_GROUPED_PAIR)):
        return None
    return {"pairs": "all", "one_way_weight": case.order.one_way_weight or ONE_WAY_WEIGHT_IN_MUCH_NOISE}


def _chosen_pairs(case: _Case) -> Settled | None:
    """Pairs chosen within strata, if the order says nothing else."""
    in_groups = case.in_groups and case.allows_all_grouped(MOST_NOISE_TO_CHOOSE_IN_GROUPS)
    return {"pairs": "chosen"} if case.affords_many or in_groups else None


def _chosen_pairs_of_all_rows(case: _Case) -> Settled | None:
    """Where noise is too large within strata, and scores are still known."""
    order = case.order
    scores_are_known = case.noise.of_scores(order.selection_precision_share) <= MOST_NOISE_OF_SCORES_TO_CHOOSE
    if not (case.in_groups and order.pairs_within is None and scores_are_known):
        return None
    few, many = ONE_WAY_WEIGHT_BESIDE_PAIRS_OF_FEW_COLUMNS, ONE_WAY_WEIGHT_BESIDE_CHOSEN_OF_ALL_ROWS
    return {
        "pairs": "chosen",
        "pairs_within": "table",
        "numeric_cells": order.numeric_cells or "declared",
        "one_way_weight": order.one_way_weight or (few if case.has_few_pairs else many),
    }


Rule = Callable[[_Case], Settled | None]
ALL_PAIRS: tuple[Rule, ...] = (_all_pairs, _all_pairs_of_all_rows, _all_pairs_in_groups)
CHOICES: tuple[Rule, ...] = (_chosen_pairs, _chosen_pairs_of_all_rows)


def settled_pairs(
    order: MarginalsOrder,
    *,
    units: int,
    shape: TableShape | None,
    budget: Budget | None,
    precision_share: float = 1.0,
) -> Settled:
    """The knobs that `pairs: auto` stands for: which pairs, what they count, and how precise single columns are beside them.

    By the first rule that holds; single columns alone where none does. Without a shape and a budget all pairs are measured.
    """
    if shape is None or budget is None:
        return {"pairs": "all", "pair_groups": order.pair_groups or "counted"}
    case = _Case.of(order, units, shape, budget, precision_share)
    # Without strata nothing is lost by counting all rows, and pairs get more of the precision: that choice comes first.
    rules = (*ALL_PAIRS, *(reversed(CHOICES) if case.strata == 1 else CHOICES))
    none: Settled = {"pairs": "none", "numeric_cells": "declared"}
    settled = next((found for rule in rules if (found := rule(case)) is not None), none)
    return {"pair_groups": case.pair_groups, "numeric_cells": case.numeric_cells, **settled}
