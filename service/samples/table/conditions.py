"""Conditions on columns, as text or as a mapping, and the values they mean.

    age>=65&sex=f    rate<2.5    day>=2024-03-01    sex in [f, m]    age missing    sex not missing    COLUMN:VALUE

A value stands as it is, or as a JSON text in quotes. A missing value meets no comparison: ask for it by `missing`.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from service.base.messages import Figure, Message
from service.samples.table.base import SamplingError
from service.samples.table.columns import CategoryColumn, refused, text_of
from service.samples.table.condition_texts import ColumnNames, Condition, conditions_of, json_of, pieces_of
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
from service.samples.table.typed_numbers import certain, meanings, number_in
from service.samples.table.written import RowColumn

Where = str | Sequence[str] | Mapping[str, Any]
"""One text, several that must all be met, or {"sex": "f", "age": {"minimum": 65}, "rank": [1, 2]}."""

MOST_CONDITIONS = 256
"""In one text,"""
MOST_TOGETHER = 1_024
"""and in all that are asked at once."""
MOST_LISTED = 10_000
"""Values in one list, as in an order of questions."""
HOW = Message(
    "write COLUMN=VALUE, COLUMN>=NUMBER (also !=, <, <=, >), COLUMN in [A, B], COLUMN missing or COLUMN not missing"
)


class Conditions:
    """Reads conditions on these columns."""

    def __init__(
        self, columns: Sequence[RowColumn], *, has_comma: bool | None = None, names: ColumnNames | None = None
    ) -> None:
        """has_comma: of what is typed into a page, whether its language has a decimal comma (`typed_numbers.py`)."""
        self._columns, self._has_comma = columns, has_comma
        self._names = names or ColumnNames([column.name for column in columns])

    def selections(self, where: Where | None) -> Selections:
        """The values that are meant, by column; `SamplingError` where there are none, or the text means nothing."""
        if where is None:
            return {}
        found: Selections = {}
        texts = [where] if isinstance(where, str) else where
        if not isinstance(texts, Mapping):
            refuse_many(texts)
        parts = [self._of_mapping(texts)] if isinstance(texts, Mapping) else map(self._of_any_text, texts)
        for part in parts:
            found = joined_selections(found, part)
        for place, selection in found.items():
            if not selection.can_be():
                raise refused(self._columns[place], Message("no value meets all conditions on it"))
        return found

    def place_of(self, name: object) -> int:
        """Of a column by its name."""
        return self._names.place_of(name)

    def _of_mapping(self, where: Mapping[str, Any]) -> Selections:
        found: Selections = {}
        for name, wanted in where.items():
            place = self.place_of(name)
            for condition in conditions_of(name, place, wanted):
                found = joined_selections(found, {place: self._selection(condition)})
        return found

    def _of_any_text(self, text: str) -> Selections:
        has_comma: bool | None = getattr(text, "has_comma", None)  # of a `service.base.text.TypedText`
        if has_comma is None:
            return self._of_text(text)
        return Conditions(self._columns, has_comma=has_comma, names=self._names).selections(str(text))

    def _of_text(self, text: str) -> Selections:
        if text.lstrip().startswith("{"):
            mapping = json_of(text)
            if isinstance(mapping, dict):
                return self._of_mapping(mapping)
        whole = self._tried(text)  # COLUMN:VALUE, whatever the value holds
        if whole is not None:
            return whole
        found: Selections = {}
        pieces = pieces_of(text)
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
        while following < len(pieces) and not self._names.readings(pieces[following]):
            following += 1
            whole = "&".join([first, *pieces[:following]])
            tried = self._tried(whole)
            if tried is not None:
                del pieces[:following]
                return tried
        meant = self._of_one(first)
        if following:  # what follows is no part of the value, and no condition either
            self._of_one(pieces[0])
        return meant

    def _tried(self, text: str) -> Selections | None:
        """As `_of_one`; None where it means nothing, without the words on why, which take long to find."""
        for reading in self._names.readings(text):
            column = self._columns[reading.place]
            if isinstance(column, CategoryColumn) and reading.operator in {"=", "in", "!=", "not in"}:
                with suppress(SamplingError):
                    values = [certain(column, value, has_comma=self._has_comma) for value in reading.values]
                    if not all(any(map(column.knows, meanings(value))) for value in values):
                        continue
            with suppress(SamplingError):
                return {reading.place: self._selection(reading)}
        return None

    def _of_one(self, text: str) -> Selections:
        """Of one condition; where a name can be read in two ways, the first that makes sense."""
        readings = self._names.readings(text)
        if not readings:
            name = re.split(r"[<>=!:]| +(?:is|not|in|missing)\b", text.strip(), maxsplit=1)[0].strip()
            if name and name != text.strip() and name not in self._names.names:
                self.place_of(name)
            raise SamplingError(
                Message(
                    "%(text)s is not a condition on one of the columns %(names)s: %(how)s, or COLUMN:VALUE",
                    text=repr(text),
                    names=", ".join(self._names.names),
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
        if len(condition.values) > MOST_LISTED:
            raise SamplingError(
                Message(
                    "%(column)s: %(found)s values in one list; %(most)s are the most",
                    column=column.name,
                    found=len(condition.values),
                    most=MOST_LISTED,
                )
            )
        meant_values = tuple(certain(column, value, has_comma=self._has_comma) for value in condition.values)
        condition = replace(condition, values=meant_values)
        if isinstance(column, CategoryColumn):
            return CategorySelection(column, _allowed(column, condition))
        meant = RangeSelection(column, _intervals(column, condition), missing=_means_missing(column, condition))
        if not meant.can_be():
            raise SamplingError(
                Message(
                    "%(condition)s: outside its declared range, or between two of its values; %(described)s",
                    condition=f"{column.name} {operator} {', '.join(map(str, condition.values))}",
                    described=column.described,
                )
            )
        return meant


def refuse_many(texts: Sequence[str]) -> None:
    """Refuse more conditions than may be asked at once, whatever they say."""
    found = sum(text.count("&") + 1 for text in texts)
    if found > MOST_TOGETHER:
        raise SamplingError(
            Message("%(found)s conditions at once; %(most)s are the most", found=found, most=MOST_TOGETHER)
        )


def _codes(column: CategoryColumn, value: Any) -> list[int]:
    *others, last = meanings(value)
    for other in others:
        if column.knows(other):
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
        values = {
            (value is None, text_of(value)): value for value in condition.values
        }.values()  # a list may repeat one
        named = np.isin(np.arange(len(present)), [code for value in values for code in _codes(column, value)])
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
