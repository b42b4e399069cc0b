"""How the precision of one release is shared out among its tables: the weights, which the worker and the forecast both go by."""

from __future__ import annotations

from service.methods.marginals.order import MarginalsOrder

ONE_WAY_WEIGHT_BESIDE_GROUPED = 5.0
"""One-way tables are all that is known of bins in one group (docs/log.md)."""

ROUNDING_VARIANCE = 1.2
"""What whole numbers add to the variance of a count, as `workers.mechanism.noise` has it."""


def one_way_weight(order: MarginalsOrder) -> float:
    """The factor by which one-way tables count as larger than they are."""
    if order.one_way_weight is not None:
        return order.one_way_weight
    return ONE_WAY_WEIGHT_BESIDE_GROUPED if order.looks_at_single_columns_first else 1.0
