"""How many components the mixture of a stratum has: one rule, for the worker that fits it and for the estimate of that work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.methods.marginals.order import COMPONENTS

if TYPE_CHECKING:
    from service.methods.marginals.order import MarginalsOrder

MOST_LOGITS = 32_000_000
"""Logits of all components together (128 MB as float32). More strata or bins mean fewer components each."""

UNITS_OF_A_COMPONENT, FEWEST_COMPONENTS = 2, 512
"""In each stratum a mixture has at most one component for so many units, and always so many components if the order does.

More take longer, and are no more accurate: less where noise is small (docs/log.md).
"""


def components_of(order: MarginalsOrder, *, strata: int, width: float, units: int) -> int:
    """The order's number, halved until all logits together fit in memory, and where a stratum has few units.

    width: logits of one component, which are the cells of its columns.
    """
    components = order.components or COMPONENTS
    while components > 2 and components * strata * width > MOST_LOGITS:
        components //= 2
    while components > max(FEWEST_COMPONENTS, units / strata / UNITS_OF_A_COMPONENT):
        components //= 2
    return components
