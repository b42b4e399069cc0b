"""Fields as relations use them, and as they become where they follow from others."""

from __future__ import annotations

import datetime as dt
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from service.base.messages import Message
from service.domain.expressions import Operand, Span, digits_of
from service.domain.relations import Value
from service.domain.roles import fine_shares, says_a_range

if TYPE_CHECKING:
    from service.domain.field_schema import FieldSchema

MOST_DIGITS = 9


def coarse(field: FieldSchema) -> FieldSchema:
    """The field with the coarse level of its hierarchy as categories, if it has one."""
    if field.hierarchy is None:
        return field
    enum = tuple(fine_shares(field.hierarchy))
    return field.model_copy(
        update={"hierarchy": None, "constraints": field.constraints.model_copy(update={"enum": enum})}
    )


def fine(field: FieldSchema) -> FieldSchema:
    """The field with the fine level of its hierarchy as categories, if it has one."""
    if field.hierarchy is None:
        return field
    enum = tuple(one for shares in fine_shares(field.hierarchy).values() for one in shares)
    return field.model_copy(
        update={"hierarchy": None, "constraints": field.constraints.model_copy(update={"enum": enum})}
    )


def operand(field: FieldSchema) -> Operand | None:
    """The field as an operand of expressions; None where nothing can be computed with it."""
    if field.type in {"string", "boolean"}:
        return None
    kind = "number" if field.type in {"integer", "number"} else field.type
    if field.categories is not None:
        exact = [Fraction(str(value)) for value in field.categories]
        digits: int | None = max(_digits_of(value) for value in exact)
        low, high = min(exact), max(exact)
        digits = digits if digits is not None and digits <= MOST_DIGITS else None
    else:
        digits = field.decimals if field.type == "number" else 0
        low, high = (Fraction(str(end)) for end in field.bounds)
    return Operand(kind, low, high, digits, field.zone)  # type: ignore[arg-type]


def _digits_of(value: Fraction) -> int:
    return next((digits for digits in range(MOST_DIGITS + 1) if 10**digits % value.denominator == 0), MOST_DIGITS + 1)


def digits_for(field: FieldSchema, span: Span, open_columns: list[str]) -> int:
    """How many digits after the point a computed column has; ValueError where that follows from no declaration."""
    if not span.is_exact:
        raise ValueError(
            Message(
                "declare decimals for %(open_columns)s: what follows from it is computed exactly",
                open_columns=", ".join(open_columns),
            )
        )
    if field.type != "number":
        return 0
    if field.decimals is not None:
        return field.decimals
    digits = digits_of(span)
    if digits is None or digits > MOST_DIGITS:
        raise ValueError(Message("declare decimals for %(name)s, to which it is rounded", name=field.name))
    return digits


def with_range(field: FieldSchema, span: Span, digits: int) -> FieldSchema:
    """The field with the range of the expression that it follows from, as the owner would write it."""
    unit = 10**digits
    low, high = math.floor(span.low * unit), max(math.ceil(span.high * unit), math.floor(span.low * unit) + 1)
    if field.type == "date":
        ends: tuple[Any, ...] = tuple((dt.date(1970, 1, 1) + dt.timedelta(days=day)).isoformat() for day in (low, high))
    elif field.type == "datetime":
        ends = tuple((dt.datetime(1970, 1, 1) + dt.timedelta(seconds=at)).isoformat() for at in (low, high))  # noqa: DTZ001
    else:
        ends = tuple(end if digits == 0 else end / unit for end in (low, high))
    constraints = field.constraints.model_copy(update={"minimum": ends[0], "maximum": ends[1]})
    return field.model_copy(update={"constraints": constraints})


def with_categories(field: FieldSchema, values: tuple[Value, ...]) -> FieldSchema:
    """The field with categories: its own, or where none are declared those of the table that it is looked up in."""
    if field.constraints.enum is not None or field.type == "boolean":
        return field
    if field.type in {"date", "datetime"} or says_a_range(field) or not values:
        raise ValueError(
            Message(
                "%(name)s is looked up, so it has categories: a string, boolean, integer or number without a range",
                name=repr(field.name),
            )
        )
    document = field.model_dump(by_alias=True, exclude={"role"})
    document["constraints"]["enum"] = values
    return type(field).model_validate(document)


def check_declared(field: FieldSchema, values: list[Value]) -> None:
    """Raise ValueError for a value that is none of the field's categories."""
    declared = {(isinstance(value, bool), value) for value in field.categories or ()}
    for value in values:
        if (isinstance(value, bool), value) not in declared:
            raise ValueError(
                Message("%(value)s is not a declared value of %(name)s", value=repr(value), name=field.name)
            )
