"""What the service says of an order, asked before any row is sent: its method, the names of its knobs, its public rows.

Values of knobs are the service's to judge. Every refusal is an `InvalidInput` that says what to write instead.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from imprimatur.formats import invalid
from imprimatur.public_starts import CANDIDATES, KNOB, begun_by, public_datasets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from imprimatur.client import Client
    from imprimatur.replies import Json

AUTO = "auto"
OF_EVERY_ORDER = frozenset({"method", "epsilon", "share"})
"""Knobs for which the service need not be asked."""


def check_order(
    client: Client, order: Mapping[str, Any], schema: Mapping[str, Any], *, brings_public: bool = False
) -> None:
    """Refuse what this service cannot be ordered. `brings_public`: public rows are still to be uploaded for it."""
    named = public_datasets(order)
    begins = brings_public or order.get(KNOB) is not None
    method = begun_by(order.get("method")) if begins else str(order.get("method") or AUTO)
    if method == AUTO and not named and order.keys() <= OF_EVERY_ORDER:
        return
    offered = {str(each["name"]): each for each in client.methods()}
    holds = "image" if schema.get("type") == "image" else "table"
    if method != AUTO:
        _check_method(method, holds, offered)
    if begins:
        _check_takes_public("method", method, holds, offered)
    for place in (place for places in named.values() for place in places):
        _check_candidate(order, place, holds, offered)
    _check_knobs(order, method, offered)
    for each in named:
        _check_is_public(client, each)


def _check_method(method: str, holds: str, offered: Mapping[str, Json]) -> None:
    if method not in offered:
        raise invalid("method", f"there is no method {method!r}; choose one of {', '.join([AUTO, *offered])}")
    if holds not in offered[method]["takes"]:
        fitting = ", ".join(name for name, each in offered.items() if holds in each["takes"])
        raise invalid("method", f"{method} does not make {holds}s; choose one of {AUTO}, {fitting}")


def _check_candidate(order: Mapping[str, Any], place: int, holds: str, offered: Mapping[str, Json]) -> None:
    """One without a method is refused by the service, in its own words."""
    method = order[CANDIDATES][place].get("method")
    if method is not None:
        _check_takes_public(f"{CANDIDATES}.{place}.method", str(method), holds, offered)


def _check_takes_public(where: str, method: str, holds: str, offered: Mapping[str, Json]) -> None:
    fitting = [name for name, each in offered.items() if holds in each["takes"] and _takes_public(each)]
    if method not in fitting:
        raise invalid(
            where,
            f"{method} takes no public rows, and nothing was uploaded; of {holds}s these do: {', '.join(fitting)}; or leave the public rows out",
        )


def _takes_public(method: Json) -> bool:
    """An older service does not say; its orders do."""
    return bool(method.get("takes_public_rows", KNOB in method["order"]["properties"]))


def _check_knobs(order: Mapping[str, Any], method: str, offered: Mapping[str, Json]) -> None:
    """The names alone. `auto` has the knobs that all methods have."""
    lists = [set(each["order"]["properties"]) for name, each in offered.items() if method in {AUTO, name}]
    known = set.intersection(*lists) - {"chosen_because"}
    for knob in order:
        if knob in known:
            continue
        near = get_close_matches(str(knob), known, 1, 0.6)
        meant = f"; did you mean {near[0]}?" if near else f"; there are: {', '.join(sorted(known))}"
        raise invalid(str(knob), f"orders of {method} have no knob {knob!r}{meant}")


def _check_is_public(client: Client, named: str) -> None:
    """Not whether its rows are still there: an order that was placed before they were erased is found again."""
    if not client.dataset(named)["rows_are_public"]:
        raise invalid(
            KNOB,
            f"dataset {named} was not declared public, which is said at its upload and never later; name another one",
        )
