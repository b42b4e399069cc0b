"""Conditions as people write them (docs/conditions.md), in the words of an order. From the declaration alone."""

from __future__ import annotations

import datetime as dt
import functools
import math
from typing import TYPE_CHECKING, Any

from service.base.errors import InvalidOrder
from service.base.messages import Message, fault_of
from service.domain.grids import grid_edges
from service.domain.spelling_config import written_as

if TYPE_CHECKING:
    from service.domain.field_schema import FieldSchema, FieldType
    from service.domain.table_schema import TableSchema
    from service.samples.table.conditions import Conditions
    from service.samples.table.selections import RangeSelection

MOST_CONDITIONS = 50
MOST_CHARACTERS = 4_000
MOST_OF_A_REQUEST = 5_000
"""Conditions, of all questions together: as many as an order may hold."""


class OrderConditions:
    """Reads the conditions of an order; what it needs of the declaration is made once, however many questions there are."""

    def __init__(self, schema: TableSchema) -> None:
        self._schema = schema
        self._left = MOST_OF_A_REQUEST

    def of(self, where: Any, place: str) -> list[dict[str, Any]]:
        """A text, several of them, a mapping, or what an order says already: as a list of what single columns must be."""
        if _is_of_order(where):
            return list(where)
        texts = [where] if isinstance(where, str) else where
        if isinstance(texts, list) and any(isinstance(each, str) and len(each) > MOST_CHARACTERS for each in texts):
            raise InvalidOrder(
                Message(
                    "%(place)s.where: at most %(most_characters)s characters",
                    place=place,
                    most_characters=MOST_CHARACTERS,
                ),
                where=place,
            )
        if isinstance(where, list) and (
            len(where) > MOST_CONDITIONS or not all(isinstance(each, str) for each in where)
        ):
            raise InvalidOrder(
                Message(
                    "%(place)s.where: a list of up to %(most_conditions)s texts is meant",
                    place=place,
                    most_conditions=MOST_CONDITIONS,
                ),
                where=place,
            )
        if not isinstance(where, str | list | dict):
            raise InvalidOrder(
                Message('%(place)s.where: write "age>=65&sex=f", or {"age": {"minimum": 65}}', place=place), where=place
            )
        self._left -= _count(where)
        if self._left < 0:
            raise InvalidOrder(
                Message(
                    "%(place)s.where: more than %(most)s conditions in all questions; ask for fewer at once",
                    place=place,
                    most=MOST_OF_A_REQUEST,
                ),
                where=place,
            )
        return self._selected(where, place)

    @functools.cached_property
    def _conditions(self) -> Conditions:
        from service.samples.table.conditions import Conditions  # noqa: PLC0415 - large libraries: see samples.cache.expect_samples
        from service.samples.table.written import modelled_columns  # noqa: PLC0415 - as above

        missing_value = next(iter(self._schema.missing_values), "")
        columns = [_config(each) for each in self._schema.fields]
        return Conditions(modelled_columns({"missing_value": missing_value, "columns": columns}))

    def _selected(self, where: str | list[str] | dict[str, Any], place: str) -> list[dict[str, Any]]:
        from service.samples.table.base import SamplingError  # noqa: PLC0415 - large libraries: see samples.cache.expect_samples
        from service.samples.table.selections import CategorySelection  # noqa: PLC0415 - as above

        found = []
        try:
            selections = self._conditions.selections(where)
        except SamplingError as error:
            raise InvalidOrder(
                Message("%(place)s.where: %(fault)s", place=place, fault=fault_of(error)), where=place
            ) from None
        except (TypeError, ValueError, OverflowError):
            raise InvalidOrder(
                Message("%(place)s.where: this is not a condition; write one like age>=65&sex=f", place=place),
                where=place,
            ) from None
        for at, selection in sorted(selections.items()):
            field = self._schema.fields[at]
            if isinstance(selection, CategorySelection):
                declared = (*(field.categories or ()), None)
                found.append(
                    {
                        "column": field.name,
                        "values": [value for value, met in zip(declared, selection.allowed, strict=False) if met],
                    }
                )
            else:
                found.append({"column": field.name, **_of_range(selection, field, place)})
        return found


def conditions_of_order(where: Any, schema: TableSchema, place: str) -> list[dict[str, Any]]:
    """Of one question, as `OrderConditions` reads them."""
    return OrderConditions(schema).of(where, place)


def _count(where: str | list[str] | dict[str, Any]) -> int:
    """How many conditions it may say."""
    if isinstance(where, dict):
        return sum(len(each) if isinstance(each, dict) else 1 for each in where.values())
    return sum(text.count("&") + 1 for text in ([where] if isinstance(where, str) else where))


def _is_of_order(where: Any) -> bool:
    return isinstance(where, list) and all(isinstance(each, dict) and "column" in each for each in where)


def _config(field: FieldSchema) -> dict[str, Any]:
    """As the config.json of a generator describes a column; a range is one bin."""
    missing = not field.constraints.required
    head: dict[str, Any] = {"name": field.name, "type": field.type, **written_as(field)}
    if field.categories is not None:
        values = [*field.categories, *([None] if missing else [])]
        return {**head, "size": len(values), "values": values}
    edges = grid_edges(field, 1)
    decimals = field.decimals_of_values
    digits = {} if decimals is None else {"decimals": decimals}
    digits |= {} if field.step == 1 else {"step": field.step}
    return {**head, "size": len(edges) - 1 + missing, "edges": list(edges), "missing": missing, **digits}


def _of_range(selection: RangeSelection, field: FieldSchema, place: str) -> dict[str, Any]:
    if not len(selection.intervals) and selection.missing:
        return {"values": [None]}
    if len(selection.intervals) != 1 or selection.missing:
        raise InvalidOrder(
            Message(
                "%(place)s.where: %(name)s can be in one range here, as age>=20&age<30; ask once for each range",
                place=place,
                name=field.name,
            ),
            where=place,
        )
    (low,), (high,) = selection.intervals.lows.tolist(), selection.intervals.highs.tolist()
    first, last = field.bounds
    said: dict[str, Any] = {}
    if low > first or high >= last:
        said["minimum"] = _written(max(low, first), field.type, math.ceil)
    if high < last:
        said["maximum"] = _written(min(high, last), field.type, math.floor)
    return said


def _written(number: float, kind: FieldType, whole: Any) -> int | float | str:
    """A bound as a declaration writes it."""
    if kind == "number":
        return float(number)
    if kind == "integer":
        return int(whole(number))
    if kind == "date":
        return (dt.date(1970, 1, 1) + dt.timedelta(days=whole(number))).isoformat()
    return dt.datetime.fromtimestamp(whole(number), dt.UTC).isoformat()
