"""Orders resolved as the service resolves them, for data that have no declaration."""

from __future__ import annotations

from typing import Any

from service.domain.shapes import ImageShape, TableShape
from service.methods.catalogue import method_of, with_method
from service.methods.facts import Facts
from service.methods.knobs import AnyOrder
from service.privacy.events import Events, events_from_json, events_to_json
from service.privacy.filters import Budget, open_budget


def resolve_order(order: AnyOrder, *, units: int, shape: TableShape | ImageShape, budget: Budget) -> Any:
    """shape: the same for every number of bins."""
    facts = Facts(units, budget, lambda _numeric_bins: shape)
    chosen = with_method(order, facts)
    return method_of(chosen).resolve(chosen, facts)


def budget_of_one_release(epsilon: float, delta: float) -> Budget:
    """The budget of which one release of share 1 is (epsilon, delta)-DP: each account owns half of the budget's δ."""
    return open_budget(epsilon, 2.0 * delta)


def scaled(events: Events, part: float) -> Events:
    """The list with this part of all noise; with almost none it is the non-private form of a method. No price holds for it."""
    return events_from_json(_scaled(events_to_json(events), part))


def _scaled(values: Any, part: float) -> Any:
    if isinstance(values, list):
        return [_scaled(value, part) for value in values]
    if not isinstance(values, dict):
        return values
    return {
        name: value * part if name.endswith("noise_multiplier") and value is not None else _scaled(value, part)
        for name, value in values.items()
    }
