"""What the values of a condition mean in a declared column, and whether one of its values can meet them."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from imprimatur.formats import invalid
from imprimatur.spelled_values import expected, moment_in, number_in, step_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SHOWN = 10
_MAY_BE_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}", re.ASCII)
"""As the service reads numbers of conditions; whole numbers have no fraction."""
COMPARISONS = frozenset({"<", "<=", ">", ">="})


@dataclass(frozen=True, slots=True)
class Condition:
    """What one column shall be."""

    column: str
    operator: str
    values: tuple[Any, ...] = ()


def text_of(value: Any) -> str:
    """A value of a condition, as the service reads it: booleans in lower case, dates in ISO 8601."""
    if isinstance(value, bool) or type(value).__name__ in {"bool_", "bool"}:
        return str(value).lower()
    moment = getattr(value, "isoformat", None)
    return str(moment()) if callable(moment) else str(value)


def is_required(field: Mapping[str, Any]) -> bool:
    return bool((field.get("constraints") or {}).get("required")) and field.get("role") is None


def known_values(field: Mapping[str, Any], schema: Mapping[str, Any]) -> list[Any] | None:
    """All values that are declared: of a hierarchy the coarse and the fine ones, of a looked-up column those of its table."""
    hierarchy, kind = field.get("hierarchy"), field.get("type")
    enum = (field.get("constraints") or {}).get("enum")
    if hierarchy:
        return [*hierarchy, *(fine for values in hierarchy.values() for fine in values)]
    if kind == "boolean":  # synthetic rows have the first of each
        return [False, True, *(field.get("falseValues") or ())[:1], *(field.get("trueValues") or ())[:1]]
    if enum is not None or field.get("role") != "derived":
        return enum if enum is None else list(enum)
    return _looked_up(field, schema)


def _looked_up(field: Mapping[str, Any], schema: Mapping[str, Any]) -> list[Any] | None:
    for relation in schema.get("relations") or ():
        if isinstance(relation, dict) and relation.get("column") == field["name"]:
            table = relation.get("table") or {}
            return list(dict.fromkeys(table.values() if isinstance(table, dict) else (row[-1] for row in table)))
    return None


def _meant(value: Any) -> list[Any]:
    """What a value may mean: itself, without the spaces around it, or the text that it quotes."""
    if not isinstance(value, str):
        return [value]
    found: list[Any] = [value, value.strip()]
    with suppress(ValueError):
        found += [json.loads(value)] if value.strip()[:1] == '"' else []
    return found


def is_declared(value: Any, field: Mapping[str, Any], known: Sequence[Any]) -> bool:
    """Whether a value, in any spelling that the field reads, is among the known ones."""
    texts = set(map(text_of, known))
    numbers = {number_in(one, {}) for one in known} if field.get("type") in {"integer", "number"} else set()
    return any(
        text_of(one) in texts or (bool(numbers) and number_in(one, field) in numbers - {None}) for one in _meant(value)
    )


def check_comparison(condition: Condition, field: Mapping[str, Any], known: Sequence[Any]) -> None:
    """Refuse a comparison in a column of categories, unless they are numbers and one of them meets it."""
    (value,), column, operator = condition.values, condition.column, condition.operator
    if field.get("type") not in {"integer", "number"}:
        raise invalid(
            "where",
            f"{column}: {operator} compares numbers and dates, and this column holds categories; take {column} in [A, B], or"
            f" {column}={operator}{text_of(value)} if {operator}{text_of(value)} is the value; its values are {some(known)}",
        )
    limit = _read(value, field, number_in)
    if not any(_meets(one, operator, limit) for one in known):
        raise invalid("where", f"{column}: no value is {operator} {text_of(value)}; its values are {some(known)}")


def _meets(number: float, operator: str, limit: float) -> bool:
    return {"<": number < limit, "<=": number <= limit, ">": number > limit, ">=": number >= limit}[operator]


def check_range(condition: Condition, field: Mapping[str, Any], markers: Sequence[str]) -> None:
    """Against declared ends, as far as they are declared."""
    column, operator, kind = condition.column, condition.operator, field.get("type")
    constraints = field.get("constraints") or {}
    ends = [constraints.get(word) for word in ("minimum", "maximum")]
    is_moment = kind in {"date", "datetime"}
    read = moment_in if is_moment else number_in
    low, high = (
        None if end is None else read(end, {word: field[word] for word in ("type", "timezone") if word in field})
        for end in ends
    )
    for value in condition.values:
        if _means_missing(value, condition, field, markers):
            continue
        at = _read(value, field, read)
        if operator in {"!=", "not in"} or low is None or high is None:
            continue
        if _is_outside(at, operator, low, high):
            first, last = ends if is_moment else (f"{low:g}", f"{high:g}")
            raise invalid("where", f"{column}: {text_of(value)} is outside {first} to {last}, as declared")
        if operator in {"=", "in"}:
            _check_step(at, value, field)


def _means_missing(value: Any, condition: Condition, field: Mapping[str, Any], markers: Sequence[str]) -> bool:
    """Only the first marker does; another one is refused."""
    if value is None or text_of(value) == next(iter(markers), ""):
        _check_missing(condition, field)
        return True
    if text_of(value).strip() in markers:
        column = condition.column
        raise invalid("where", f"{column}: {text_of(value)!r} means missing: write {column} missing")
    return False


def _is_outside(at: float, operator: str, low: float, high: float) -> bool:
    """Whether no value of the range meets it."""
    too_high = at > high if operator in {"=", "in", ">="} else at >= high if operator == ">" else False
    too_low = at < low if operator in {"=", "in", "<="} else at <= low if operator == "<" else False
    return too_high or too_low


def _check_step(at: float, value: Any, field: Mapping[str, Any]) -> None:
    """A value between two that synthetic rows have does not occur in them. Of numbers without decimals, counts decide what these are."""
    column, kind, decimals = field["name"], field.get("type"), field.get("decimals")
    if kind == "integer" and at % 1:
        raise invalid("where", f"{column} holds whole numbers, and {at:g} is none")
    if kind == "number" and decimals is not None and round(at, int(decimals)) != at:
        raise invalid("where", f"{column} has {decimals} decimals, and {text_of(value)} has more")
    if kind == "datetime" and at % step_of(field):
        raise invalid("where", f"{column}: {text_of(value)} lies between two times that are written")


def _check_missing(condition: Condition, field: Mapping[str, Any]) -> None:
    if is_required(field):
        raise invalid("where", f"{condition.column} is required: none of its values is missing")
    if condition.operator in COMPARISONS:
        raise invalid(
            "where", f"{condition.column} {condition.operator} a missing value: write {condition.column} missing"
        )


def _read(value: Any, field: Mapping[str, Any], read: Any) -> float:
    text = value.strip() if isinstance(value, str) else ""
    if field.get("type") == "integer" and field.get("groupChar") != "." and _MAY_BE_THOUSANDS.fullmatch(text):
        one, other = text.replace(".", ""), text.partition(".")[0]
        raise invalid("where", f"{field['name']}: {text} could mean {one} or {other}: write one of these")
    for one in reversed(_meant(value)):
        if (at := read(one, field)) is not None:
            return at  # type: ignore[no-any-return]  # a number
    raise invalid(
        "where",
        f"{field['name']}: {text_of(value)!r} is not a value of a column of type {field.get('type')}; write it like {expected(field)}",
    )


def some(values: Sequence[Any]) -> str:
    """The first few values, and how many more there are."""
    shown = ", ".join(repr(value) for value in values[:_SHOWN])
    return shown if len(values) <= _SHOWN else f"{shown} and {len(values) - _SHOWN} more"
