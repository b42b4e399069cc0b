"""Bounds and categories that an owner does not declare (`infer`): what they cost, and the order that buys them before any other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

PURCHASE = {"method": "declaration"}
HOLD_ANSWERS = ("queries", PURCHASE["method"])
"""Methods whose releases hold numbers, and no generator to draw rows from."""
COPIES_IMAGES = ("image_release",)
"""Methods whose releases hold each private image, with noise, and no new ones."""


def open_columns(schema: Mapping[str, Any]) -> dict[str, float]:
    """The columns of a schema that are to be bought, and for how much each."""
    fields = [field for field in schema.get("fields") or () if isinstance(field, dict)]
    found = {str(field.get("name")): field["infer"] for field in fields if isinstance(field.get("infer"), dict)}
    return {name: said["epsilon"] for name, said in found.items() if _is_number(said.get("epsilon"))}


def epsilon_to_buy(schema: Mapping[str, Any]) -> float:
    """The ε of all open columns together; 0 where everything is declared."""
    return math.fsum(open_columns(schema).values())


def says_what_it_buys(schema: Mapping[str, Any]) -> str:
    """What a declaration buys, for a person, before it is paid; empty where nothing is bought."""
    columns = open_columns(schema)
    if not columns:
        return ""
    each = ", ".join(f"{name} {epsilon:g}" for name, epsilon in columns.items())
    return f"ε = {epsilon_to_buy(schema):g} of the budget buys bounds and categories that the schema does not declare: {each}"


def is_open(dataset: Mapping[str, Any]) -> bool:
    """Whether a dataset's bounds or categories are still to be bought."""
    return any(one["release"] is None for one in dataset.get("bought") or ())


def constraints_declared(field: Mapping[str, Any]) -> dict[str, Any]:
    """What of a field's constraints is its owner's word."""
    bought = (field.get("bought") or {}).get("words") or ()
    return {word: value for word, value in (field.get("constraints") or {}).items() if word not in bought}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
