"""Whether a stored order is one that its dataset takes, and its price says the truth; asked before it is charged, since who writes to the database need not have asked."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

from service.domain.open_columns import open_fields
from service.methods.catalogue import method_of
from service.privacy.accounting import renyi_divergence
from service.privacy.calibration import TOLERANCE
from service.privacy.filters import NANO

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.datasets.models import Dataset
    from service.methods.knobs import Order
    from service.privacy.events import Events
    from service.privacy.filters import Budget, Shares

ROUNDING = 1e-9
"""Relative: far above that of the few operations between a price and its shares, far below what anyone reads."""


def misfit(order: Order, dataset: Dataset) -> str | None:
    """Why nothing of this order may be read, as a code; None where it fits.

    What the schema leaves open is bought first, and once. An order for another unit than the budget's has too little noise for
    what it reserved, which its list of events cannot show.
    """
    schema, method = dataset.declared_schema, method_of(order)
    is_open = bool(open_fields(schema))
    if is_open != method.buys_declaration:
        return "declaration_needed" if is_open else "already_declared"
    return None if method.has_declared_unit(order, schema) else "underpaid"


def says_what_it_costs(price: Mapping[str, Any], events: Events, reserved: Shares, budget: Budget) -> bool:
    """Whether a stored price states no less than its list, which is paid by these shares, costs; certificates repeat it.

    The promise is the share of the budget that pays, rounded up to a nano-share. Every list is calibrated to nearly all of it.
    """
    share = (reserved.simple - 1) / NANO * (1.0 - ROUNDING)
    divergence = renyi_divergence(events, budget.renyi_order) * (1.0 - ROUNDING)
    epsilon = stated(price, "epsilon")
    return (
        epsilon >= share * budget.epsilon
        and stated(price, "delta") >= share * budget.delta / 2.0
        and stated(price, "pld_epsilon") >= epsilon * (1.0 - TOLERANCE) * (1.0 - ROUNDING)
        and stated(price, "renyi_divergence") >= divergence
    )


def stated(price: Mapping[str, Any], figure: str) -> float:
    """A figure of a stored price; NaN, at least which nothing is, where there is none: words, lists and infinities count for nothing.

    A text that spells a number would be one to `float`, and a bool to comparisons.
    """
    value: Any = price.get(figure) if isinstance(price, dict) else None
    is_number = type(value) is float or (type(value) is int and abs(value) <= sys.float_info.max)
    return float(value) if is_number and math.isfinite(value) else math.nan
