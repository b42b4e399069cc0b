"""The public datasets that an order begins from: it names its own, and so may each order that it chooses among."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from imprimatur.naming import whole_id

if TYPE_CHECKING:
    from imprimatur.replies import Json

KNOB = "public_dataset"
"""The knob of orders that names another dataset."""
CANDIDATES = "candidates"
CHOICE = "choose"
"""The method of orders that have candidates."""
STARTS_PUBLIC = "idpgan"
"""What `auto` is where an order begins from public rows: it chooses among methods that do not."""
IN_CANDIDATES = (
    "a choice among orders begins from no public rows itself: name the dataset in each candidate that does, "
    '{"method": "idpgan", "public_dataset": "NAME"}'
)


def begun_by(method: str | None) -> str:
    """The method of an order that begins from public rows."""
    return STARTS_PUBLIC if method in {None, "auto"} else str(method)


def public_datasets(order: Mapping[str, Any]) -> dict[str, list[int]]:
    """Each dataset that an order begins from, by what it is called there; with the places of the candidates that do."""
    found: dict[str, list[int]] = {}
    if order.get(KNOB) is not None:
        found[_called(order[KNOB])] = []
    for place, candidate in enumerate(_candidates(order)):
        if isinstance(candidate, Mapping) and candidate.get(KNOB) is not None:
            found.setdefault(_called(candidate[KNOB]), []).append(place)
    return found


def with_ids(order: Json, ids: Mapping[str, str]) -> Json:
    """The order as the service takes it: with an id for each of `public_datasets`."""
    order = _with_id(order, ids)
    candidates = [_with_id(each, ids) for each in _candidates(order)]
    return {**order, CANDIDATES: candidates} if candidates else order


def _candidates(order: Mapping[str, Any]) -> list[Any]:
    """What anybody may have written, so that the service refuses what is none."""
    candidates = order.get(CANDIDATES)
    return list(candidates) if isinstance(candidates, list | tuple) else []


def _with_id(order: Any, ids: Mapping[str, str]) -> Any:
    is_named = isinstance(order, Mapping) and order.get(KNOB) is not None
    return {**order, KNOB: ids[_called(order[KNOB])]} if is_named else order


def _called(named: Any) -> str:
    return whole_id(named) or str(named)
