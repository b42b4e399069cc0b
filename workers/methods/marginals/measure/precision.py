"""How the precision of one release is shared out among its tables."""

from __future__ import annotations

from collections.abc import Sequence

from service.methods.marginals.order import MarginalsOrder
from workers.mechanism.marginals import Columns, TableLayout
from workers.mechanism.noise import count_noise_stds

ONE_WAY_WEIGHT_BESIDE_CHOSEN = 20.0
"""Pairs are chosen where noise is large, and there classifiers and most pairs depend on single columns (docs/log.md)."""

ONE_WAY_WEIGHT_BESIDE_GROUPED = 5.0
"""One-way tables are all that is known of bins in one group (docs/log.md)."""


def noise_stds_of(
    order: MarginalsOrder,
    layout: TableLayout,
    tables: Sequence[Columns],
    sensitivities: Sequence[float],
    noise_multiplier: float,
) -> tuple[float, ...]:
    """The noise_std of each table. Larger tables get more precision; one-way tables count as larger by a weight."""
    exponent, weight = order.precision_exponent, _one_way_weight(order)
    weights = [layout.size(columns) ** exponent * (weight if len(columns) == 1 else 1.0) for columns in tables]
    return count_noise_stds(sensitivities, weights, noise_multiplier=noise_multiplier, exponent=1.0)


def _one_way_weight(order: MarginalsOrder) -> float:
    if order.one_way_weight is not None:
        return order.one_way_weight
    if order.pairs == "chosen":
        return ONE_WAY_WEIGHT_BESIDE_CHOSEN
    return ONE_WAY_WEIGHT_BESIDE_GROUPED if order.pair_groups == "counted" else 1.0
