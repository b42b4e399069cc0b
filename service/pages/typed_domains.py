"""What is wrong with the bounds and categories of a declaration, in the words of its form.

The schema says the same in words of its JSON, which no one sees who fills in a form.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from service.base.errors import InvalidInput
from service.base.messages import Message
from service.pages.column_form import TYPES
from service.pages.purchases import is_bought
from service.pages.typed_moments import MOMENTS
from service.pages.typed_values import NUMBERS, text_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_EXAMPLES: dict[str, Any] = {
    "integer": 12,
    "number": 12.5,
    "date": "2023-04-17",
    "datetime": "2023-04-17T08:30:00",
}


def require_domains(fields: Sequence[Mapping[str, Any]]) -> None:
    """Raise what the first column lacks whose bounds or categories are none. What the form has no field for is left to the schema."""
    for field in fields:
        if field.get("role") or is_bought(field) or field.get("type") not in TYPES:
            continue
        fault = _fault_of(str(field["type"]), field)
        if fault is not None:
            raise InvalidInput(
                Message("%(column)s: %(what)s", column=repr(field.get("name")), what=fault), where="schema"
            )


def _fault_of(use: str, field: Mapping[str, Any]) -> Message | None:
    constraints = field.get("constraints")
    constraints = constraints if isinstance(constraints, dict) else {}
    enum = constraints.get("enum")
    if enum or use == "string":
        return _fault_of_categories(use, field, enum if isinstance(enum, list) else [])
    if use == "boolean":
        return None
    low, high = constraints.get("minimum"), constraints.get("maximum")
    if low is None or high is None:
        return Message("write its smallest and its largest value")
    wrong = next((end for end in (low, high) if not _is_one(use, end)), None)
    if wrong is not None:
        return _no_value(use, field, wrong)
    if _is_below(use, low, high):
        return None
    return Message("its smallest value must be less than its largest one")


def _is_below(use: str, low: Any, high: Any) -> bool:
    """Whether one end is; where only one of two times has a zone, the schema says it."""
    if use in MOMENTS:
        low, high = dt.datetime.fromisoformat(low), dt.datetime.fromisoformat(high)
        if (low.tzinfo is None) != (high.tzinfo is None):
            return True
    return bool(low < high)


def _fault_of_categories(use: str, field: Mapping[str, Any], values: list[Any]) -> Message | None:
    if not values:
        return Message("write its categories, one a line")
    wrong = next((value for value in values if use in NUMBERS and not _is_one(use, value)), None)
    if wrong is not None:
        return _no_value(use, field, wrong)
    texts = [text_of(value, use, field) for value in values]
    twice = next((text for place, text in enumerate(texts) if text in texts[:place]), None)
    return None if twice is None else Message("the category %(text)s stands there twice", text=repr(twice))


def _is_one(use: str, value: Any) -> bool:
    """Whether it is a number, or a day or time as schemas have it."""
    if use in NUMBERS:
        return (
            isinstance(value, int | float) and not isinstance(value, bool) and (use == "number" or value == int(value))
        )
    try:
        (dt.date if use == "date" else dt.datetime).fromisoformat(value)
    except (TypeError, ValueError):
        return False
    return True


def _no_value(use: str, field: Mapping[str, Any], value: Any) -> Message:
    text, example = repr(text_of(value, use, field)), text_of(_EXAMPLES[use], use, field)
    if use == "integer":
        return Message("%(text)s is no whole number; write one like %(example)s", text=text, example=example)
    if use == "number":
        return Message("%(text)s is no number; write one like %(example)s", text=text, example=example)
    if use == "date":
        return Message("%(text)s is no day; write one like %(example)s", text=text, example=example)
    return Message("%(text)s is no day with a time; write one like %(example)s", text=text, example=example)
