"""How precise the trees of open ranges are, where the order does not say: from schema, n and budget alone."""

from __future__ import annotations

import math

from service.domain.shapes import TableShape
from service.methods.marginals.order import MarginalsOrder
from service.methods.whole_noise import whole_noise
from service.privacy.filters import Budget

WANTED_NOISE = 0.0007
"""Of a count in a tree, in parts of all rows (docs/decisions/0051),"""

PRECISION_SHARES = 0.01, 0.2
"""but at least and at most this part of the precision is spent on it,"""

MOST_NOISE = 0.05
"""and none where a count would have more noise anyway: a tree would not tell where rows are."""


def settled_tree_share(
    order: MarginalsOrder, *, units: int, shape: TableShape, budget: Budget, precision_share: float = 1.0
) -> float:
    """`tree_precision_share` of an order that leaves it open."""
    noise_std = whole_noise(order, budget) / math.sqrt(precision_share) * shape.max_rows_per_unit
    with_all = noise_std * math.sqrt(shape.tree_levels) / max(1, units)
    smallest, largest = PRECISION_SHARES
    if with_all / math.sqrt(largest) > MOST_NOISE:
        return 0.0
    return min(max(smallest, (with_all / WANTED_NOISE) ** 2), largest)
