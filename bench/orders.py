"""Orders resolved as the service resolves them, for data that have no declaration."""

from __future__ import annotations

from typing import Any

from service.domain.shapes import ImageShape, TableShape
from service.methods.catalogue import method_of, with_method
from service.methods.facts import Facts
from service.methods.knobs import AnyOrder
from service.privacy.filters import Budget


def resolve_order(order: AnyOrder, *, units: int, shape: TableShape | ImageShape, budget: Budget) -> Any:
    """shape: the same for every number of bins."""
    facts = Facts(units, budget, lambda _numeric_bins: shape)
    chosen = with_method(order, facts)
    return method_of(chosen).resolve(chosen, facts)
