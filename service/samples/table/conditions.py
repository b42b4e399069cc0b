"""Conditions on columns, as text or as a mapping, and the values they mean.

    age>=65&sex=f    rate<2.5    day>=2024-03-01    sex in [f, m]    age missing    sex not missing    COLUMN:VALUE

A value stands as it is, or as a JSON text in quotes. A missing value meets no comparison: ask for it by `missing`.
"""

from __future__ import annotations

import csv
import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from service.base.messages import Figure, Message
from service.samples.table.base import SamplingError
from service.samples.table.columns import CategoryColumn, nearest, no_such_column, refused
from service.samples.table.identifiers import IdentifierColumn
from service.samples.table.intervals import Intervals, intervals_of
from service.samples.table.ranges import GridColumn
from service.samples.table.selections import (
    CategorySelection,
    RangeSelection,
    Selection,
    Selections,
    joined_selections,
)
from service.samples.table.typed_numbers import certain, meanings, number_in, real
from service.samples.table.written import RowColumn

Where = str | Sequence[str] | Mapping[str, Any]
"""One text, several that must all be met, or {"sex": "f", "age": {"minimum": 65}, "rank": [1, 2]}."""

MOST_CONDITIONS = 256
WORDS = {
    "minimum": ">=",
    "maximum": "<=",
    "exclusiveMinimum": ">",
    "exclusiveMaximum": "<",
    "not": "!=",
    "in": "in",
    "enum": "in",
    "missing": "missing",
    **{sign: sign for sign in ("=", "!=", "<", "<=", ">", ">=")},
}
"""What the mapping of one column may say; the first four are Table Schema's."""
COMPARED = re.compile(r"\s*(>=|<=|!=|=|<|>)(.*)|:(.*)", re.DOTALL)
MISSING = re.compile(r"\s+(?:is\s+)?(not\s+)?missing\s*", re.IGNORECASE)
LISTED = re.compile(r"\s+(not\s+)?in\s*(?:\[(.*)\]|\((.*)\))\s*", re.DOTALL | re.IGNORECASE)
HOW = Message(
    "write COLUMN=VALUE, COLUMN>=NUMBER (also !=, <, <=, >), COLUMN in [A, B], COLUMN missing or COLUMN not missing"
)


@dataclass(frozen=True)
class Condition:
    """What one column shall be."""

    place: int
    operator: str
    values: tuple[Any, ...] = ()


class Conditions:
    """Reads conditions on these columns."""

    def __init__(self, columns: Sequence[RowColumn], *, has_comma: bool | None = None) -> None:
        """has_comma: of what is typed into a page, whether its language has a decimal comma (`typed_numbers.py`)."""
        self._columns, self._has_comma = columns, has_comma
        self._names = [column.name for column in columns]

    def selections(self, where: Where | None) -> Selections:
        """The values that are meant, by column; `SamplingError` where there are none, or the text means nothing."""
        if where is None:
            return {}
        found: Selections = {}
        texts = [where] if isinstance(where, str) else where
        parts = [self._of_mapping(texts)] if isinstance(texts, Mapping) else map(self._of_any_text, texts)
        for part in parts:
            found = joined_selections(found, part)
        for place, selection in found.items():
            if not selection.chances.any():
                raise refused(self._columns[place], Message("no value meets all conditions on it"))
        return found

    def place_of(self, name: object) -> int:
        """Of a column by its name."""
        if name not in self._names:
            raise no_such_column(name, self._names)
        return self._names.index(str(name))

    def _of_mapping(self, where: Mapping[str, Any]) -> Selections:
        found: Selections = {}
        for name, wanted in where.items():
            place = self.place_of(name)
            for condition in _conditions_of(name, place, wanted):
                found = joined_selections(found, {place: self._selection(condition)})
        return found

    def _of_any_text(self, text: str) -> Selections:
        has_comma: bool | None = getattr(text, "has_comma", None)  # of a `service.base.text.TypedText`
        if has_comma is None:
            return self._of_text(text)
        return Conditions(self._columns, has_comma=has_comma).selections(str(text))

    def _of_text(self, text: str) -> Selections:
        if text.lstrip().startswith("{"):
            mapping = _json(text)
            if isinstance(mapping, dict):
                return self._of_mapping(mapping)
        with suppress(SamplingError):  # COLUMN:VALUE, whatever the value holds
            return self._of_one(text)
        found: Selections = {}
        pieces = _pieces(text)
        if len(pieces) > MOST_CONDITIONS:
            raise SamplingError(
                Message("%(found)s conditions at once; %(most)s are the most", found=len(pieces), most=MOST_CONDITIONS)
            )
        while pieces:
            found = joined_selections(found, self._of_first(pieces))
        return found

    def _of_first(self, pieces: list[str]) -> Selections:
        """Of the first piece, and of those after it that belong to its value, which may hold an &; takes them away."""
        first = pieces.pop(0)
        whole, following = first, 0
        while following < len(pieces) and not self._readings(pieces[following]):
            following += 1
            whole = "&".join([first, *pieces[:following]])
            with suppress(SamplingError):
                meant = self._of_one(whole)
                del pieces[:following]
                return meant
        meant = self._of_one(first)
        if following:  # what follows is no part of the value, and no condition either
            self._of_one(pieces[0])
        return meant

    def _of_one(self, text: str) -> Selections:
        """Of one condition; where a name can be read in two ways, the first that makes sense."""
        readings = self._readings(text)
        if not readings:
            name = re.split(r"[<>=!:]| +(?:is|not|in|missing)\b", text.strip(), maxsplit=1)[0].strip()
            if name and name != text.strip() and name not in self._names:
                self.place_of(name)
            raise SamplingError(
                Message(
                    "%(text)s is not a condition on one of the columns %(names)s: %(how)s, or COLUMN:VALUE",
                    text=repr(text),
                    names=", ".join(self._names),
                    how=HOW,
                )
            )
        errors = []
        for reading in readings:
            try:
                return {reading.place: self._selection(reading)}
            except SamplingError as error:
                errors.append(error)
        raise errors[0]

    def _readings(self, text: str) -> list[Condition]:
        """All ways to read one condition: a name may itself hold signs. COLUMN:VALUE: the shortest name first."""
        by_colon: list[Condition] = []
        others: list[Condition] = []
        start = text.lstrip()
        for place, name in sorted(enumerate(self._names), key=lambda each: -len(each[1])):
            for own in (name, json.dumps(name, ensure_ascii=False)):
                if not start.startswith(own):
                    continue
                rest = start[len(own) :]
                if match := MISSING.fullmatch(rest):
                    others.append(Condition(place, "not missing" if match[1] else "missing"))
                elif match := LISTED.fullmatch(rest):
                    listed = _listed(match[2] if match[2] is not None else match[3])
                    others.append(Condition(place, "not in" if match[1] else "in", listed))
                elif match := COMPARED.fullmatch(rest):
                    if match[1] is None:
                        by_colon.insert(0, Condition(place, "=", (match[3],)))
                    else:
                        others.append(Condition(place, match[1], (match[2],)))
        return by_colon + others

    def _selection(self, condition: Condition) -> Selection:
        column, operator = self._columns[condition.place], condition.operator
        if isinstance(column, IdentifierColumn):
            raise SamplingError(
                Message(
                    "%(column)s: identifiers are made anew for each sample, so no condition is on them",
                    column=column.name,
                )
            )
        if operator == "missing" and not column.missing:
            raise SamplingError(Message("%(column)s is required: none of its values is missing", column=column.name))
        meant_values = tuple(certain(column, value, has_comma=self._has_comma) for value in condition.values)
        condition = replace(condition, values=meant_values)
        if isinstance(column, CategoryColumn):
            return CategorySelection(column, _allowed(column, condition))
        meant = RangeSelection(column, _intervals(column, condition), missing=_means_missing(column, condition))
        if not meant.chances.any():
            raise SamplingError(
                Message(
                    "%(condition)s: outside its declared range, or between two of its values; %(described)s",
                    condition=f"{column.name} {operator} {', '.join(map(str, condition.values))}",
                    described=column.described,
                )
            )
        return meant


def _conditions_of(name: str, place: int, wanted: Any) -> list[Condition]:
    """Of one entry of a mapping."""
    if isinstance(wanted, Mapping):
        conditions = []
        for word, value in wanted.items():
            if word not in WORDS:
                raise SamplingError(
                    Message(
                        "%(column)s: %(word)s is not a condition%(nearest)s; use %(words)s",
                        column=name,
                        word=repr(word),
                        nearest=nearest(str(word), WORDS),
                        words=", ".join(WORDS),
                    )
                )
            operator = WORDS[word]
            if operator == "missing":
                conditions.append(Condition(place, "missing" if value else "not missing"))
            elif operator == "!=" and value is None:
                conditions.append(Condition(place, "not missing"))
            else:
                if operator == "in" and not isinstance(value, list | tuple | set | frozenset):
                    raise SamplingError(
                        Message('%(column)s: in takes a list of values, like {"in": [1, 2]}', column=name)
                    )
                values = tuple(value) if operator == "in" else (value,)
                conditions.append(Condition(place, operator, tuple(map(_plain, values))))
        return conditions
    if isinstance(wanted, list | tuple | set | frozenset):
        return [Condition(place, "in", tuple(map(_plain, wanted)))]
    return [Condition(place, "=", (_plain(wanted),))]


def _plain(value: Any) -> Any:
    """A numpy scalar as Python's own."""
    return value.item() if isinstance(value, np.generic) else value


def _pieces(text: str) -> list[str]:
    """Parted at &, but for those in quotes."""
    if text.count('"') % 2:
        return text.split("&")
    quoted_parts = text.split('"')
    pieces = [""]
    for number, part in enumerate(quoted_parts):
        own = [part] if number % 2 else part.split("&")
        pieces[-1] += ('"' if number else "") + own[0]
        pieces += own[1:]
    return pieces


def _json(text: str, parse_float: Any = float) -> Any:
    """What the text says as JSON; None where it is none."""
    try:
        return json.loads(text, parse_float=parse_float)
    except (ValueError, RecursionError):
        return None


def _listed(inner: str) -> tuple[Any, ...]:
    found = _json(f"[{inner}]", real)
    if isinstance(found, list):
        return tuple(found)
    try:
        return tuple(next(csv.reader([inner.strip()], skipinitialspace=True), []))
    except csv.Error:
        raise SamplingError(
            Message("[%(inner)s] is not a list of values in one line, like [A, B]", inner=inner)
        ) from None


def _codes(column: CategoryColumn, value: Any) -> list[int]:
    *others, last = meanings(value)
    for other in others:
        with suppress(SamplingError):
            return column.codes_of(other)
    return column.codes_of(last)


def _allowed(column: CategoryColumn, condition: Condition) -> np.ndarray[Any, Any]:
    """(values,) which categories are meant."""
    present = np.ones(len(column.values), dtype=bool)
    if column.missing:
        present[-1] = False
    operator = condition.operator
    if operator in {"missing", "not missing"}:
        return present if operator == "not missing" else ~present
    if operator in {"=", "in", "!=", "not in"}:
        named = np.isin(np.arange(len(present)), [code for value in condition.values for code in _codes(column, value)])
        return named if operator in {"=", "in"} else present & ~named
    (said,) = condition.values
    if column.type in {"string", "boolean"}:
        fault = Message(
            "%(operator)s compares numbers and dates, and this column holds categories; take %(column)s in [A, B], or "
            "%(column)s=%(operator)s%(value)s if %(operator)s%(value)s is the value",
            operator=operator,
            column=column.name,
            value=said,
        )
        raise refused(column, fault)
    limit: Any = meanings(said)[-1]
    if column.type in {"integer", "number"}:
        try:
            limit = column.number_of(limit)
        except (TypeError, ValueError):
            raise refused(column, Message("%(value)s is not a number", value=repr(said))) from None
    else:
        limit = str(limit)
    met = [value is not None and _is_met(operator, value, limit) for value in column.values]
    if not any(met):
        raise refused(column, Message("no value is %(condition)s", condition=f"{operator} {said}"))
    return np.array(met)


def _is_met(operator: str, value: Any, limit: Any) -> bool:
    return bool({"<": value < limit, "<=": value <= limit, ">": value > limit, ">=": value >= limit}[operator])


def _means_missing(column: GridColumn, condition: Condition) -> bool:
    """A value of a range may be the text that stands for missing."""
    named = any(value is None or value == column.missing_value for value in condition.values)
    return condition.operator == "missing" or (condition.operator in {"=", "in"} and named)


def _intervals(column: GridColumn, condition: Condition) -> Intervals:
    """Which numbers of a range are meant."""
    operator = condition.operator
    if operator in {"missing", "not missing"}:
        return intervals_of([] if operator == "missing" else [(-np.inf, np.inf)])
    numbers = sorted(
        {
            number_in(column, value)
            for value in condition.values
            if not (column.missing and (value is None or value == column.missing_value))
        }
    )
    if operator in {"=", "in"}:
        points = intervals_of([(number, number) for number in numbers])
        if len(numbers) > 1:
            are_drawn = RangeSelection(column, points, missing=False).are_drawn
            if not are_drawn.all():
                number = numbers[int(are_drawn.argmin())]
                raise refused(column, Message("%(number)s is not one of its values", number=Figure(str(number))))
        return points
    if operator in {"!=", "not in"}:
        ends = [-np.inf, *numbers, np.inf]
        return intervals_of(
            [
                (math.nextafter(low, math.inf) if at else -math.inf, math.nextafter(high, -math.inf))
                for at, (low, high) in enumerate(itertools.pairwise(ends))
            ]
        )
    if not numbers:
        raise SamplingError(
            Message(
                "%(condition)s: not a value to compare with; %(described)s",
                condition=f"{column.name} {operator} {condition.values[0]!r}",
                described=column.described,
            )
        )
    (number,) = numbers
    meant = {
        "<": (-np.inf, float(np.nextafter(number, -np.inf))),
        "<=": (-np.inf, number),
        ">": (float(np.nextafter(number, np.inf)), np.inf),
        ">=": (number, np.inf),
    }
    return intervals_of([meant[operator]])
