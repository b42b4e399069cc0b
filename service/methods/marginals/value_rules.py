"""Whether values that many rows share are looked for, and how precisely, where the order does not say: from schema, n and budget alone."""

from __future__ import annotations

import math

from service.domain.shapes import TableShape
from service.methods.marginals.order import MarginalsOrder
from service.methods.whole_noise import whole_noise
from service.privacy.filters import Budget

SHARE_TO_STAND_OUT = 0.01
"""The precision is such that a value of so many of all rows stands out (docs/decisions/0030),"""

PRECISION_SHARES = 0.005, 0.04
"""but at least and at most this part of all: less gains the tables nothing, more costs them."""

STANDARD_DEVIATIONS = 5.0
"""About what a count must have to stand out among a hundred thousand values that nobody has."""

LARGEST_SHARE_TO_STAND_OUT = 0.2
"""Where only values of more rows than this would, nothing is looked for."""


def settled_value_share(
    order: MarginalsOrder, *, units: int, shape: TableShape, budget: Budget, precision_share: float = 1.0
) -> float:
    """`values_precision_share` of an order that leaves it open; 0 where nothing is looked for."""
    noise_std = whole_noise(order, budget) / math.sqrt(precision_share) * shape.max_rows_per_unit
    with_all = STANDARD_DEVIATIONS * noise_std * math.sqrt(shape.columns_of_values) / max(1, units)
    smallest, largest = PRECISION_SHARES
    if with_all / math.sqrt(largest) > LARGEST_SHARE_TO_STAND_OUT:
        return 0.0
    return min(max(smallest, (with_all / SHARE_TO_STAND_OUT) ** 2), largest)
