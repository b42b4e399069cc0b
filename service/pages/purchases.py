"""Columns whose bounds or categories are to be bought, in the form of the second step (docs/schemas.md, `infer`).

What the draft read from the rows is then not declared: it is set aside, and comes back if the owner thinks otherwise.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from service.base.errors import InvalidInput
from service.base.messages import Figure, Message
from service.domain.field_schema import WORDS_OF_A_DOMAIN
from service.domain.inferred import Infer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from service.pages.column_form import ColumnForm

INFER = "infer"
DEFAULT_PRICE = "0.1"
_DOMAIN = (("minimum", "low"), ("maximum", "high"), ("enum", "categories"))
"""Words of the constraints, and the fields of the form that say them."""


def is_bought(field: Mapping[str, Any]) -> bool:
    """Whether its bounds or categories are to be bought."""
    return field.get(INFER) is not None


def own_words(field: Mapping[str, Any]) -> frozenset[str]:
    """What a field says of its values besides bounds, categories and that they are to be bought."""
    return (WORDS_OF_A_DOMAIN - {"constraints", INFER} | {"missingValues"}) & field.keys()


def says_nothing(field: Mapping[str, Any]) -> bool:
    """Whether a column that is to be bought says no more than its type."""
    return is_bought(field) and not field.get("constraints") and not own_words(field)


def price_of(field: Mapping[str, Any]) -> str:
    """The epsilon as it was typed, for the form; of a column that is not bought, what it could be."""
    infer = field.get(INFER)
    said = infer.get("epsilon", "") if isinstance(infer, dict) else DEFAULT_PRICE
    return said if isinstance(said, str) else f"{said:g}" if isinstance(said, int | float) else ""


def with_purchase(
    field: dict[str, Any],
    shown: ColumnForm,
    form: Mapping[str, str],
    use: str,
    set_aside: dict[str, dict[str, Any]],
) -> dict[str, Any]:
    """The field with or without `infer`, as the form says. What was typed for an end stays declared; the other is bought."""
    prefix = f"c{shown.place}."
    if not form.get(f"{prefix}buy") or use == "boolean":  # which has its two values
        return _restored(field, use, set_aside)
    if not is_bought(field):
        set_aside[shown.name] = field
        field = _without_what_was_read(field, shown, form, prefix)
    before = field.get(INFER)
    typed = form.get(f"{prefix}price", "").strip()
    return field | {INFER: (before if isinstance(before, dict) else {}) | {"epsilon": _number_or_text(typed)}}


def require_purchases(fields: Sequence[Mapping[str, Any]]) -> None:
    """Raise, in the words of the form, what is wrong with a column that is to be bought."""
    for field in fields:
        if not is_bought(field):
            continue
        name, infer, constraints = field.get("name"), field[INFER], field.get("constraints")
        constraints = constraints if isinstance(constraints, dict) else {}
        if isinstance(infer, dict) and not _is_price(infer.get("epsilon")):
            raise InvalidInput(
                Message(
                    "%(name)s: write for how much it is to be bought: a number from 0.001 to 100, for example %(price)s",
                    name=repr(name),
                    price=Figure(DEFAULT_PRICE),
                ),
                where="schema",
            )
        if "enum" in constraints:
            raise InvalidInput(
                Message(
                    "%(name)s: its categories are written, so there is nothing to buy: remove them, or buy nothing",
                    name=repr(name),
                ),
                where="schema",
            )
        if {"minimum", "maximum"} <= constraints.keys():
            raise InvalidInput(
                Message(
                    "%(name)s: both of its bounds are written, so there is nothing to buy: remove the one that is to "
                    "be bought, or both; or buy nothing",
                    name=repr(name),
                ),
                where="schema",
            )


def purchases_of(fields: Sequence[Mapping[str, Any]]) -> tuple[list[str], float]:
    """Names of columns that are to be bought, and their epsilon in all."""
    open_ = {str(field.get("name")): field[INFER] for field in fields if isinstance(field.get(INFER), dict)}
    prices = [infer.get("epsilon") for infer in open_.values()]
    return list(open_), math.fsum(price for price in prices if isinstance(price, int | float))


def _restored(field: dict[str, Any], use: str, set_aside: dict[str, dict[str, Any]]) -> dict[str, Any]:
    if not is_bought(field):
        return field
    bare = {word: said for word, said in field.items() if word != INFER}
    before = set_aside.pop(str(field.get("name", "")), None)
    if before is None or before.get("type") != use:
        return bare
    constraints = dict(before.get("constraints") or {}) | dict(field.get("constraints") or {})
    was = {"edges": before["edges"]} if "edges" in before else {}
    return bare | was | ({"constraints": constraints} if constraints else {})


def _without_what_was_read(
    field: dict[str, Any], shown: ColumnForm, form: Mapping[str, str], prefix: str
) -> dict[str, Any]:
    """Of a draft, without what stands as it was read: bounds, categories, and that no cell is missing unless that is ticked as public.

    What was typed stays.
    """
    if not shown.is_draft:
        return field
    constraints = dict(field.get("constraints") or {})
    for word, name in _DOMAIN:
        if form.get(prefix + name, "").replace("\r\n", "\n").strip() == getattr(shown, name).strip():
            constraints.pop(word, None)
    if shown.is_required and not form.get(f"{prefix}public"):
        constraints.pop("required", None)
    bare = {word: said for word, said in field.items() if word not in {"constraints", "edges"}}
    return bare | ({"constraints": constraints} if constraints else {})


def _is_price(said: Any) -> bool:
    try:
        Infer.model_validate({"epsilon": said})
    except ValidationError:
        return False
    return not isinstance(said, str)


def _number_or_text(typed: str) -> float | str:
    """What is no number stays as it was typed, to be mended."""
    try:
        found = float(typed.replace(",", "."))
    except ValueError:
        return typed
    return found if math.isfinite(found) else typed
