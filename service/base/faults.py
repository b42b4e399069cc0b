"""What pydantic says of a fault, as a message of this software: the same words in English, and each of them has a translation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.base.messages import Counted, Figure, Message, fault_of, plural

_INPUT = Message("Input")
_PREFIX = "Value error, "


def sentence_of(error: Mapping[str, Any], it: str = _INPUT) -> str:
    """What pydantic says of a fault, less the few messages that quote the input. `it`: what is wrong, where another word than pydantic's fits."""
    kind, context = str(error["type"]), error.get("ctx") or {}
    if kind == "value_error" and isinstance(raised := context.get("error"), ValueError):
        return fault_of(raised)  # with what it was made of, if it is a message
    if (ours := _of_our_own(kind, context, it)) is not None:
        return ours
    words = str(error["msg"]).removeprefix(_PREFIX)
    found = _of_number(kind, words, it) or _of_length(kind, context) or _of_choice(kind, context, it)
    found = found or _SENTENCES.get(kind) or _of_type(kind, context, it)
    is_pydantics = str(found) == words or it is not _INPUT
    return found if found is not None and is_pydantics else _OF_JSON.get(words, words)


def _of_our_own(kind: str, context: Mapping[str, Any], it: str) -> Message | None:
    """Where pydantic would quote the input, or use words of a program."""
    if kind.startswith("uuid"):
        return Message("%(it)s should be a UUID", it=it)
    if kind == "union_tag_invalid":
        return Message("choose one of %(choices)s", choices=context["expected_tags"])
    if kind == "union_tag_not_found":
        return Message("say which one is meant: %(name)s is missing", name=context["discriminator"])
    if kind.startswith(("datetime", "timezone")):
        return Message("give a moment with its time zone, like 2027-01-31T00:00:00Z")
    return None


_SENTENCES = {
    "missing": Message("Field required"),
    "extra_forbidden": Message("Extra inputs are not permitted"),
    "int_parsing_size": Message("Unable to parse input string as an integer, exceeded maximum size"),
}


def _of_type(kind: str, context: Mapping[str, Any], it: str) -> Message | None:
    return {
        "string_type": Message("%(it)s should be a valid string", it=it),
        "string_unicode": Message(
            "%(it)s should be a valid string, unable to parse raw data as a unicode string", it=it
        ),
        "bool_type": Message("%(it)s should be a valid boolean", it=it),
        "bool_parsing": Message("%(it)s should be a valid boolean, unable to interpret input", it=it),
        "int_type": Message("%(it)s should be a valid integer", it=it),
        "int_parsing": Message("%(it)s should be a valid integer, unable to parse string as an integer", it=it),
        "int_from_float": Message("%(it)s should be a valid integer, got a number with a fractional part", it=it),
        "float_type": Message("%(it)s should be a valid number", it=it),
        "float_parsing": Message("%(it)s should be a valid number, unable to parse string as a number", it=it),
        "finite_number": Message("%(it)s should be a finite number", it=it),
        "list_type": Message("%(it)s should be a valid list", it=it),
        "tuple_type": Message("%(it)s should be a valid tuple", it=it),
        "dict_type": Message("%(it)s should be a valid dictionary", it=it),
        "model_type": Message(
            "%(it)s should be a valid dictionary or instance of %(name)s", it=it, name=context.get("class_name")
        ),
    }.get(kind)


_OF_JSON = {
    str(each): each
    for each in (
        Message("Input should be a valid array"),
        Message("Input should be an object"),
        Message("Input should be null"),
    )
}
"""Of the same kinds, where JSON was read."""


def _of_number(kind: str, words: str, it: str) -> Message | None:
    bound = Figure(words.rpartition(" ")[2])  # as pydantic writes it: 0, where the bound of a fraction is 0.0
    return {
        "greater_than": Message("%(it)s should be greater than %(bound)s", it=it, bound=bound),
        "greater_than_equal": Message("%(it)s should be greater than or equal to %(bound)s", it=it, bound=bound),
        "less_than": Message("%(it)s should be less than %(bound)s", it=it, bound=bound),
        "less_than_equal": Message("%(it)s should be less than or equal to %(bound)s", it=it, bound=bound),
    }.get(kind)


def _of_choice(kind: str, context: Mapping[str, Any], it: str) -> Message | None:
    """Of one of some words, or of a text in a form."""
    if kind == "string_pattern_mismatch":
        return Message("String should match pattern '%(pattern)s'", pattern=context["pattern"])
    if kind not in {"literal_error", "enum"} or "expected" not in context:
        return None
    first, _, last = str(context["expected"]).rpartition(" or ")
    choices = Message("%(first)s or %(last)s", first=first, last=last) if first else last
    return Message("%(it)s should be %(choices)s", it=it, choices=choices)


def _of_length(kind: str, context: Mapping[str, Any]) -> Counted | None:
    count = context.get({"string_too_short": "min_length", "too_short": "min_length"}.get(kind, "max_length"))
    if count is None or not kind.endswith(("too_short", "too_long")):
        return None
    if kind == "string_too_short":
        return plural(
            "String should have at least %(n)s character",
            "String should have at least %(n)s characters",
            count,
            n=count,
        )
    if kind == "string_too_long":
        return plural(
            "String should have at most %(n)s character", "String should have at most %(n)s characters", count, n=count
        )
    said = {
        "n": count,
        "sort": _SORTS.get(context["field_type"], context["field_type"]),
        "has": context["actual_length"],
    }
    if kind == "too_short":
        return plural(
            "%(sort)s should have at least %(n)s item after validation, not %(has)s",
            "%(sort)s should have at least %(n)s items after validation, not %(has)s",
            count,
            **said,
        )
    return plural(
        "%(sort)s should have at most %(n)s item after validation, not %(has)s",
        "%(sort)s should have at most %(n)s items after validation, not %(has)s",
        count,
        **said,
    )


_SORTS = {"Tuple": Message("Tuple"), "List": Message("List"), "Dictionary": Message("Dictionary")}
