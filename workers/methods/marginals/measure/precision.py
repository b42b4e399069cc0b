"""How the precision of one release is shared out among its tables."""

from __future__ import annotations

from collections.abc import Sequence

from service.methods.marginals.order import MarginalsOrder
from service.methods.marginals.precision import one_way_weight
from workers.mechanism.marginals import Columns, TableLayout
from workers.mechanism.noise import count_noise_stds


def noise_stds_of(
    order: MarginalsOrder,
    layout: TableLayout,
    tables: Sequence[Columns],
    sensitivities: Sequence[float],
    noise_multiplier: float,
) -> tuple[float, ...]:
    """The noise_std of each table. Larger tables get more precision; one-way tables count as larger by a weight."""
    exponent, weight = order.precision_exponent, one_way_weight(order)
    weights = [layout.size(columns) ** exponent * (weight if len(columns) == 1 else 1.0) for columns in tables]
    return count_noise_stds(sensitivities, weights, noise_multiplier=noise_multiplier, exponent=1.0)
