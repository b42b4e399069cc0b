"""Conditions on rows: whether the service will take them, found out from the declared schema before an order is paid.

What is refused here is what the service would refuse after the charge, in its own grammar (docs/conditions.md).
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import Any

from imprimatur.errors import InvalidInput
from imprimatur.formats import invalid
from imprimatur.where_values import (
    COMPARISONS,
    Condition,
    check_comparison,
    check_range,
    is_declared,
    is_required,
    known_values,
    some,
    text_of,
)

_COMPARED = re.compile(r"\s*(>=|<=|!=|=|<|>)(.*)|:(.*)", re.DOTALL)
_MISSING = re.compile(r"\s+(?:is\s+)?(not\s+)?missing\s*", re.IGNORECASE)
_LISTED = re.compile(r"\s+(not\s+)?in\s*(?:\[(.*)\]|\((.*)\))\s*", re.DOTALL | re.IGNORECASE)
_HOW = "COLUMN=VALUE, COLUMN>=NUMBER (also !=, <, <=, >), COLUMN in [A, B], COLUMN missing or COLUMN not missing"
_OPERATORS = {"minimum": ">=", "maximum": "<=", "exclusiveMinimum": ">", "exclusiveMaximum": "<", "not": "!="}
_OPERATORS |= {"enum": "in", **{sign: sign for sign in ("in", "missing", "=", "!=", "<", "<=", ">", ">=")}}

Where = str | Sequence[str] | Mapping[str, Any]
Fields = Mapping[str, Mapping[str, Any]]


def check_where(where: Where | None, schema: Mapping[str, Any]) -> None:
    """Whether each condition is on a declared column and can be met by a declared value."""
    checks = _Checks(schema)
    if isinstance(where, Mapping):
        checks.mapping(where)
        return
    for text in [where] if isinstance(where, str) else where or ():
        checks.text(text)


def where_texts(where: Where | None) -> list[str]:
    """Conditions as the API takes them: one plain condition as COLUMN:VALUE, what a mapping says beyond that as one JSON text."""
    if not isinstance(where, Mapping):
        return [where] if isinstance(where, str) else list(where or ())
    plain = [f"{column}:{text_of(value)}" for column, value in where.items() if _is_plain(value)]
    if len(plain) == len(where) == 1 or not where:
        return plain
    return [json_of(where)]


def json_of(document: Mapping[str, Any]) -> str:
    """JSON, also of dates, of sets, and of the numbers of numpy."""
    return json.dumps(dict(document), ensure_ascii=False, default=_as_json)


def _is_plain(value: Any) -> bool:
    return value is not None and not isinstance(value, Mapping | list | tuple | set | frozenset)


def _as_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    number = getattr(value, "item", None)
    return number() if callable(number) else text_of(value)


class _Checks:
    """By one schema."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._is_image = schema.get("type") == "image"
        fields = [field for field in schema.get("fields", []) if isinstance(field, dict)]
        self._fields: Fields = {str(field.get("name")): field for field in fields}
        if self._is_image:
            self._fields = {"label": {"name": "label", "constraints": {"enum": _classes(schema), "required": True}}}

    def mapping(self, where: Mapping[str, Any]) -> None:
        for column, wanted in where.items():
            if column not in self._fields:
                raise self._no_column(str(column))
            for condition in _conditions_of(str(column), wanted):
                self._check(condition)

    def text(self, text: str) -> None:
        """One condition, whatever its value holds, or several that are joined by &."""
        if text.lstrip().startswith("{"):
            with suppress(ValueError):
                document = json.loads(text)
                if isinstance(document, dict):
                    return self.mapping(document)
        with suppress(InvalidInput):
            return self._one(text)
        pieces = _pieces(text)
        while pieces:
            self._first_of(pieces)
        return None

    def _first_of(self, pieces: list[str]) -> None:
        """The first piece, and those after it that belong to its value, which may hold an &; takes them away."""
        first = pieces.pop(0)
        whole, following = first, 0
        while following < len(pieces) and not self._readings(pieces[following]):
            whole = f"{whole}&{pieces[following]}"
            following += 1
            with suppress(InvalidInput):
                self._one(whole)
                del pieces[:following]
                return
        self._one(first)
        if following:
            self._one(pieces[0])

    def _one(self, text: str) -> None:
        """Of a name that can be read in two ways, the first that makes sense."""
        readings = self._readings(text)
        if not readings:
            column = re.split(r"\s*(?::|[<>=!]| in\b| not\b| is\b| missing\b)", text.strip(), maxsplit=1)[0].strip('"')
            if column in self._fields:
                raise invalid("where", f"{text!r} is not a condition on {column!r}: write {_HOW}")
            raise self._no_column(column)
        refusals = []
        for reading in readings:
            try:
                return self._check(reading)
            except InvalidInput as refusal:
                refusals.append(refusal)
        raise refusals[0]

    def _readings(self, text: str) -> list[Condition]:
        """All columns that a condition may be on: a name may itself hold signs. COLUMN:VALUE: the shortest name first."""
        by_colon: list[Condition] = []
        others: list[Condition] = []
        start = text.lstrip()
        for name in sorted(self._fields, key=len, reverse=True):
            for own in (name, json.dumps(name, ensure_ascii=False)):
                if not start.startswith(own):
                    continue
                rest = start[len(own) :]
                if match := _MISSING.fullmatch(rest):
                    others.append(Condition(name, "not missing" if match[1] else "missing"))
                elif match := _LISTED.fullmatch(rest):
                    values = _listed(match[2] if match[2] is not None else match[3])
                    others.append(Condition(name, "not in" if match[1] else "in", values))
                elif match := _COMPARED.fullmatch(rest):
                    if match[1] is None:
                        by_colon.insert(0, Condition(name, "=", (match[3],)))
                    else:
                        others.append(Condition(name, match[1], (match[2],)))
        return by_colon + others

    def _check(self, condition: Condition) -> None:
        field = self._fields[condition.column]
        _check_role(field)
        if condition.operator in {"missing", "not missing"}:
            if condition.operator == "missing" and is_required(field):
                raise invalid("where", f"{condition.column} is required: none of its values is missing")
            return
        if not condition.values:
            raise invalid("where", f"{condition.column} {condition.operator} []: name a value")
        known = known_values(field, self._schema)
        if known is None:
            check_range(condition, field, self._markers(field))
        elif condition.operator in COMPARISONS:
            check_comparison(condition, field, known)
        else:
            for value in condition.values:
                self._check_declared(value, field, known)

    def _check_declared(self, value: Any, field: Mapping[str, Any], known: Sequence[Any]) -> None:
        column = field["name"]
        if is_declared(value, field, known):
            return
        markers = self._markers(field)
        if value is None or text_of(value).strip() in markers:
            if is_required(field):
                raise invalid("where", f"{column} is required: none of its values is missing")
            if value is None or text_of(value).strip() == self._marker(field):
                return
            raise invalid(
                "where", f"{column} has no value {text_of(value)!r}, which means missing: write {column} missing"
            )
        if self._is_image:
            raise invalid("where", f"there is no class {text_of(value)!r}; the classes are {some(known)}")
        text = text_of(value)
        near = get_close_matches(text, sorted(map(text_of, known)), 1, 0.6)
        hint = f"did you mean {near[0]!r}?" if near else f"its values are {some([text_of(one) for one in known])}"
        raise invalid("where", f"{column} has no value {text!r}; {hint}")

    def _markers(self, field: Mapping[str, Any]) -> list[str]:
        """How a missing value is written."""
        own = field.get("missingValues")
        listed = self._schema.get("missingValues", [""]) if own is None else own
        return [str(each.get("value")) if isinstance(each, dict) else str(each) for each in listed]

    def _marker(self, field: Mapping[str, Any]) -> str:
        """The one that synthetic rows have, which a condition may name."""
        return next(iter(self._markers(field)), "")

    def _no_column(self, name: str) -> InvalidInput:
        if self._is_image:
            return invalid("where", f"there is no column {name!r}; of images a condition is on 'label'")
        known = list(self._fields)
        near = get_close_matches(name, known, 3, 0.6) or [each for each in known if each.lower() == name.lower()]
        hint = f"did you mean {' or '.join(repr(each) for each in near)}?" if near else f"the columns are {some(known)}"
        return invalid("where", f"there is no column {name!r}; {hint}")


def _conditions_of(column: str, wanted: Any) -> list[Condition]:
    """Of one entry of a mapping."""
    if isinstance(wanted, list | tuple | set | frozenset):
        return [Condition(column, "in", tuple(wanted))]
    if not isinstance(wanted, Mapping):
        return [Condition(column, "=", (wanted,))]
    found = []
    for word, value in wanted.items():
        operator = _OPERATORS.get(word)
        if operator is None:
            raise invalid("where", f"{column}: {word!r} is not a condition; use {', '.join(_OPERATORS)}")
        if operator == "missing":
            found.append(Condition(column, "missing" if value else "not missing"))
        elif operator == "!=" and value is None:
            found.append(Condition(column, "not missing"))
        elif operator == "in" and not isinstance(value, list | tuple | set | frozenset):
            raise invalid("where", f'{column}: in takes a list of values, like {{"in": [1, 2]}}')
        else:
            found.append(Condition(column, operator, tuple(value) if operator == "in" else (value,)))
    return found


def _pieces(text: str) -> list[str]:
    """Parted at &, but for those in quotes."""
    if text.count('"') % 2:
        return text.split("&")
    pieces = [""]
    for number, part in enumerate(text.split('"')):
        own = [part] if number % 2 else part.split("&")
        pieces[-1] += ('"' if number else "") + own[0]
        pieces += own[1:]
    return pieces


def _listed(inner: str) -> tuple[Any, ...]:
    with suppress(ValueError, RecursionError):
        return tuple(json.loads(f"[{inner}]"))
    try:
        return tuple(next(csv.reader([inner.strip()], skipinitialspace=True), []))
    except csv.Error:
        raise invalid("where", f"[{inner}] is not a list of values in one line, like [A, B]") from None


def _classes(schema: Mapping[str, Any]) -> list[str]:
    classes = schema.get("classes")
    return [str(each) for each in (range(classes) if isinstance(classes, int) else classes or [])]


def _check_role(field: Mapping[str, Any]) -> None:
    """Rows are drawn from what a generator models, and from what follows from that."""
    role = field.get("role")
    if role == "ignore":
        raise invalid(
            "where", f"{field['name']!r} stays out of the synthetic rows (role: ignore): no condition can be on it"
        )
    if role not in {None, "derived"}:
        raise invalid("where", f"{field['name']!r} is made anew for each row (role: {role}): no condition can be on it")
