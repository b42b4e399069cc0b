"""Which pairs of columns are measured where the order does not say: from the declared schema, n and the budget, never from a row."""

from __future__ import annotations

import bisect
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from service.domain.shapes import TableShape
from service.methods.marginals.order import MarginalsOrder
from service.methods.whole_noise import whole_noise
from service.privacy.filters import Budget

MAX_PAIR_WIDTH = 2_048
"""Bins of all columns side by side, as two-way tables see them: bounds memory and the time of a fitting step."""

GROUPS_OF_A_COLUMN = 8
"""Where bins are grouped by counts, rules assume so many groups in each column; the real number is not known before."""

MOST_NOISE_PER_PAIR = 0.2
"""All pairs are measured while noise alone moves a two-way table by at most this much in total variation."""

MOST_NOISE_OF_SCORES = 0.1
"""Else pairs are chosen by scores, if noise moves a score by at most this much in total variation."""

Settled = dict[str, Any]
"""Knobs of the order, as a rule sets them."""


def pair_widths(cells: Sequence[int], *, pair_cells: int) -> tuple[int, ...]:
    """Bins of every column in two-way tables: at most so many, and fewer where all together are too many."""
    alike = Counter(cells)  # a quote that seeks an ε asks this many times of a thousand columns

    def is_too_wide(most: int) -> bool:
        return sum(number * min(width, most) for width, number in alike.items()) > MAX_PAIR_WIDTH

    if pair_cells > 2 and is_too_wide(pair_cells):
        pair_cells = max(2, bisect.bisect_left(range(pair_cells), True, lo=2, key=is_too_wide) - 1)
    return tuple(min(width, pair_cells) for width in cells)


def noise_of_pairs(widths: Sequence[int], *, strata: int, noise_std: float, units: int, exponent: float) -> float:
    """How far noise alone moves a two-way table of average size if all are measured, in total variation.

    noise_std is that of the whole measurement with one table; K tables of `cells` cells have noise_std·√K each, which
    moves one by 0.4·cells·noise_std·√K/units in total variation.
    """
    pairs = math.comb(len(widths), 2)
    if not pairs:
        return 0.0
    root = 1.0 - exponent / 2.0
    total = strata**exponent * _over_pairs([width**exponent for width in widths])
    cells = strata**root * _over_pairs([width**root for width in widths]) / pairs
    moved: float = noise_std * math.sqrt(total) * cells / math.sqrt(2.0 * math.pi)
    return moved / max(1, units)


def noise_of_scores(columns: int, *, noise_std: float, units: int, precision_share: float) -> float:
    """What noise is to the distance of a pair from independence, in total variation, where all are scored for this share."""
    return noise_std * math.sqrt(math.comb(columns, 2) / precision_share) / (2.0 * max(1, units))


def settled_pairs(
    order: MarginalsOrder,
    *,
    units: int,
    shape: TableShape | None,
    budget: Budget | None,
    precision_share: float = 1.0,
    most_noise: float = MOST_NOISE_PER_PAIR,
) -> Settled:
    """The knobs that `pairs: auto` stands for: all pairs, those that noisy scores choose, or none; and what they count.

    All within each value of the condition, while noise allows; chosen ones of all rows together, where noise is less.
    Without a shape and a budget all pairs are measured.
    """
    grouped: Settled = {"pair_groups": order.pair_groups or "counted"}
    if shape is None or budget is None:
        return {"pairs": "all", **grouped}
    columns = [cells for name, cells in shape.cells.items() if name != order.condition_on]
    noise_std = whole_noise(order, budget) / math.sqrt(precision_share) * shape.max_rows_per_unit
    most = order.pair_cells if order.pair_groups == "declared" else min(GROUPS_OF_A_COLUMN, order.pair_cells)
    noise = noise_of_pairs(
        pair_widths(columns, pair_cells=most),
        strata=1 if order.pairs_within == "table" else shape.cells.get(order.condition_on or "", 1),
        noise_std=noise_std,
        units=units,
        exponent=order.precision_exponent,
    )
    if noise <= most_noise:
        return {"pairs": "all", **grouped}
    share = order.selection_precision_share
    scores = noise_of_scores(len(columns), noise_std=noise_std, units=units, precision_share=share)
    if scores <= MOST_NOISE_OF_SCORES and order.pairs_within != "condition":
        return {"pairs": "chosen", "pairs_within": "table", **grouped}
    return {"pairs": "none", **grouped}


def _over_pairs(values: Sequence[float]) -> float:
    """The sum of products of all pairs, without going through them: a table may have a thousand columns."""
    return (sum(values) ** 2 - sum(value * value for value in values)) / 2.0
