"""Which pairs of columns are measured where the order does not say: settled from the declared schema, n and the budget; never from a row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from service.domain.shapes import TableShape
from service.methods.marginals.order import MarginalsOrder
from service.methods.whole_noise import whole_noise
from service.privacy.filters import Budget

MAX_PAIR_WIDTH = 2_048
"""Cells of all columns side by side, as two-way tables see them: bounds memory and the time of a fitting step."""

MOST_NOISE_PER_PAIR = 0.8
"""Pairs are measured while the noise alone moves a two-way table by at most this much in total variation."""

FEWEST_CHOSEN_PAIRS = 5
"""For each column: a choice among all pairs is worth its price where at least so many can be measured (docs/decisions/0022)."""

GROUPS_OF_A_COLUMN = 8
"""Where cells are grouped by counts, all pairs are looked at as if they had so many; how many there will be is not known before."""

MOST_NOISE_PER_GROUPED_PAIR = 0.2
"""All pairs are measured in groups up to this much (docs/decisions/0018),"""

MOST_NOISE_TO_CHOOSE_IN_GROUPS = 0.4
"""and chosen ones up to this much; beyond it single columns alone are nearer, and train better classifiers (docs/decisions/0022)."""

LEAST_NOISE_TO_GROUP = 0.07
"""Up to this much for a pair of declared cells, groups have nothing to gain."""

FEW_SLICES = 2
"""Pairs that would have to be chosen, or counted in few groups, are measured in all rows together instead, unless the condition has just so many values (docs/decisions/0021, 0031)."""

ONE_WAY_WEIGHT_IN_MUCH_NOISE = 20.0
"""Where all pairs can be measured within the values in groups alone, single columns are as precise as beside chosen ones."""

MOST_NOISE_OF_SCORES_TO_CHOOSE = 0.1
"""Where nothing could be chosen within the values, pairs of all rows may be, if noise moves a pair's score by at most this (docs/decisions/0027);"""

ONE_WAY_WEIGHT_BESIDE_CHOSEN_OF_ALL_ROWS = 5.0
"""then single columns, which alone have slices, leave more of the precision to pairs;"""

ONE_WAY_WEIGHT_BESIDE_PAIRS_OF_FEW_COLUMNS = 1.0
"""and more still where columns are few."""

FEW_PAIRS_BY_COLUMN = 3
"""Up to so many pairs for each column, columns are few: seven or less. Of more it is asked whether few pairs, of which a tree has one for each, say nearly everything,"""

LEAST_NOISE_TO_ASK_FOR_FEW = 0.1
"""where noise moves a pair of declared cells by more than this in total variation: up to it all are known well;"""

MOST_NOISE_OF_SCORES = 0.02
"""and where that of a pair's score is at most this (docs/decisions/0025)."""


def pair_widths(cells: Sequence[int], *, pair_cells: int) -> tuple[int, ...]:
    """Cells of every column in two-way tables: at most so many, and fewer where all together are too many."""
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
    """Of each of these columns, as declared."""
    slices: int
    """In which pairs are measured, as the order has it."""
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


def settled_pairs(
    order: MarginalsOrder,
    *,
    units: int,
    shape: TableShape | None,
    budget: Budget | None,
    precision_share: float = 1.0,
) -> dict[str, Any]:
    """What `pairs: auto` becomes; and what pairs count and how precise single columns are beside them, if the order does not say.

    The first rule that holds. Without a shape and a budget all pairs count as measurable.
    """
    if shape is None or budget is None:
        return {"pairs": "all", "pair_groups": order.pair_groups or "counted"}
    values = 1 if order.condition_on is None else shape.cells.get(order.condition_on, 1)
    noise = _Noise(
        cells=tuple(cells for name, cells in shape.cells.items() if name != order.condition_on),
        slices=1 if order.pairs_within == "table" else values,
        noise_std=whole_noise(order, budget) / math.sqrt(precision_share) * shape.max_rows_per_unit,
        units=units,
        exponent=order.precision_exponent,
    )
    cells, few_cells = order.pair_cells, min(GROUPS_OF_A_COLUMN, order.pair_cells)
    open_ranges = shape.has_open_ranges and order.numeric_cells != "declared"
    numeric_cells = order.numeric_cells or ("counted" if open_ranges else "declared")
    needs_no_groups = noise.allows_all(LEAST_NOISE_TO_GROUP, cells) and not open_ranges
    groups = order.pair_groups or ("declared" if needs_no_groups else "counted")
    in_groups, columns = groups == "counted", len(noise.cells)

    has_few_pairs = noise.all_pairs <= FEW_PAIRS_BY_COLUMN * columns
    beside_pairs_of_all_rows = (
        ONE_WAY_WEIGHT_BESIDE_PAIRS_OF_FEW_COLUMNS if has_few_pairs else ONE_WAY_WEIGHT_BESIDE_CHOSEN_OF_ALL_ROWS
    )
    affords_many = noise.affordable(MOST_NOISE_PER_PAIR, cells) >= FEWEST_CHOSEN_PAIRS * columns
    may_be_of_all_rows = in_groups and order.pairs_within is None and values != FEW_SLICES
    might_find_few = (
        in_groups
        and not has_few_pairs
        and not noise.allows_all(LEAST_NOISE_TO_ASK_FOR_FEW, cells)
        and noise.of_scores(order.few_precision_share) <= MOST_NOISE_OF_SCORES
    )
    choices: tuple[tuple[bool, dict[str, Any]], ...] = (
        (
            affords_many or (in_groups and noise.allows_all(MOST_NOISE_TO_CHOOSE_IN_GROUPS, few_cells)),
            {"pairs": "chosen"},
        ),
        (
            in_groups
            and order.pairs_within is None
            and noise.of_scores(order.selection_precision_share) <= MOST_NOISE_OF_SCORES_TO_CHOOSE,
            {
                "pairs": "chosen",
                "pairs_within": "table",
                "numeric_cells": order.numeric_cells or "declared",
                "one_way_weight": order.one_way_weight or beside_pairs_of_all_rows,
            },
        ),
    )
    rules: tuple[tuple[bool, dict[str, Any]], ...] = (
        (noise.allows_all(MOST_NOISE_PER_PAIR, cells), {"pairs": "few_or_all" if might_find_few else "all"}),
        (
            may_be_of_all_rows
            and (affords_many or noise.allows_all(MOST_NOISE_PER_PAIR, few_cells))
            and noise.allows_all(MOST_NOISE_PER_GROUPED_PAIR, few_cells, slices=1),
            {"pairs": "all", "pairs_within": "table"},
        ),
        (
            in_groups and noise.allows_all(MOST_NOISE_PER_GROUPED_PAIR, few_cells),
            {"pairs": "all", "one_way_weight": order.one_way_weight or ONE_WAY_WEIGHT_IN_MUCH_NOISE},
        ),
        # Without slices nothing is lost by counting all rows, and pairs get more of the precision.
        *(reversed(choices) if values == 1 else choices),
        (True, {"pairs": "none", "numeric_cells": "declared"}),
    )
    settled = next(becomes for holds, becomes in rules if holds)
    return {"pair_groups": groups, "numeric_cells": numeric_cells, **settled}
