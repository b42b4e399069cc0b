"""What pydantic says of a wrong value, as messages: the same English, and another language on the page.

What it says otherwise, or will say in another version, stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.base.messages import Figure, Message, plural

_PLAIN = {
    str(each): each
    for each in (
        Message("Extra inputs are not permitted"),
        Message("Field required"),
        Message("Input should be a finite number"),
        Message("Input should be a valid array"),
        Message("Input should be a valid boolean"),
        Message("Input should be a valid boolean, unable to interpret input"),
        Message("Input should be a valid integer"),
        Message("Input should be a valid integer, got a number with a fractional part"),
        Message("Input should be a valid integer, unable to parse string as an integer"),
        Message("Input should be a valid number"),
        Message("Input should be a valid number, unable to parse string as a number"),
        Message("Input should be a valid string"),
        Message("Input should be an object"),
        Message("Input should be null"),
        Message("Unable to parse input string as an integer, exceeded maximum size"),
    )
}
"""Sentences without a place, by themselves."""


_LISTS = {"Tuple": Message("Tuple"), "List": Message("List")}


def sentence_of_pydantic(error: Mapping[str, Any]) -> str:
    """One of its faults, as `ValidationError.errors()` lists them."""
    said = str(error["msg"])
    context = error.get("ctx", {})
    places = {name: value for name, value in context.items() if isinstance(value, int | float | str)}
    kind = str(error["type"])
    found = _PLAIN.get(said) or _of_number(kind, said) or _with_places(kind, places)
    return found if found is not None and found == said else said.removeprefix("Value error, ")


def _with_places(kind: str, places: dict[str, Any]) -> str | None:
    try:
        return _of_length(kind, places) or _of_choice(kind, places)
    except KeyError:  # a kind of list that none of ours is, or another version's names
        return None


def _of_number(kind: str, said: str) -> str | None:
    bound = Figure(said.rpartition(" ")[2])  # as pydantic writes it: 0, where the bound of a fraction is 0.0
    return {
        "greater_than": Message("Input should be greater than %(bound)s", bound=bound),
        "greater_than_equal": Message("Input should be greater than or equal to %(bound)s", bound=bound),
        "less_than": Message("Input should be less than %(bound)s", bound=bound),
        "less_than_equal": Message("Input should be less than or equal to %(bound)s", bound=bound),
    }.get(kind)


def _of_length(kind: str, places: dict[str, Any]) -> str | None:
    if kind == "string_too_short":
        least = places["min_length"]
        return plural(
            "String should have at least %(least)s character",
            "String should have at least %(least)s characters",
            least,
            least=least,
        )
    if kind == "string_too_long":
        most = places["max_length"]
        return plural(
            "String should have at most %(most)s character",
            "String should have at most %(most)s characters",
            most,
            most=most,
        )
    if kind not in {"too_short", "too_long"}:
        return None
    what, found = _LISTS[places["field_type"]], places["actual_length"]
    if kind == "too_short":
        least = places["min_length"]
        return plural(
            "%(kind)s should have at least %(least)s item after validation, not %(found)s",
            "%(kind)s should have at least %(least)s items after validation, not %(found)s",
            least,
            kind=what,
            least=least,
            found=found,
        )
    most = places["max_length"]
    return plural(
        "%(kind)s should have at most %(most)s item after validation, not %(found)s",
        "%(kind)s should have at most %(most)s items after validation, not %(found)s",
        most,
        kind=what,
        most=most,
        found=found,
    )


def _of_choice(kind: str, places: dict[str, Any]) -> str | None:
    if kind not in {"literal_error", "enum"}:
        return None
    others, _, last = str(places["expected"]).rpartition(" or ")
    expected = Message("%(others)s or %(last)s", others=others, last=last) if others else last
    return Message("Input should be %(expected)s", expected=expected)
