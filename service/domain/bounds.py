"""Bounds and enums of a declaration as numbers that are exact and can be stored."""

from __future__ import annotations

import datetime as dt
import math
from typing import TypeVar

from service.base.messages import Message

Scalar = str | int | float | bool
_Moment = TypeVar("_Moment", dt.date, dt.datetime)


def as_number(kind: str, value: Scalar, zone: dt.tzinfo = dt.UTC) -> float:
    """A bound as a float: a date in days, a datetime in seconds since 1970-01-01 (UTC). Raises ValueError where it is none of this type."""
    if kind == "date":
        return float((_from_iso(dt.date, value) - dt.date(1970, 1, 1)).days)
    if kind == "datetime":
        moment = _from_iso(dt.datetime, value)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=zone)
        return moment.timestamp()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(Message("bounds of %(kind)s column must be numbers", kind=a_kind(kind)))  # noqa: TRY004 - pydantic wants ValueError
    if not abs(value) <= 2**53:  # before anything makes a float of it; NaN is not below either
        raise ValueError(
            Message(
                "bounds must be finite and within ±2^53 (9007199254740992): list larger whole numbers in an enum, or "
                "subtract the offset that they share"
            )
        )
    if kind == "integer" and value != int(value):
        raise ValueError(Message("bounds of an integer column must be whole numbers"))
    return float(value)


def _from_iso(kind: type[_Moment], value: Scalar) -> _Moment:
    if not isinstance(value, str):
        raise ValueError(Message("bounds of a date or datetime column are ISO 8601 strings"))  # noqa: TRY004 - pydantic turns ValueError into its own
    try:
        return kind.fromisoformat(value)
    except ValueError:
        raise ValueError(
            Message("bounds of %(kind)s column are ISO 8601, like 2024-02-29", kind=a_kind(kind.__name__))
        ) from None


_KINDS = {
    "string": Message("a string"),
    "integer": Message("an integer"),
    "number": Message("a number"),
    "boolean": Message("a boolean"),
    "date": Message("a date"),
    "datetime": Message("a datetime"),
}


def a_kind(kind: str) -> str:
    """A type with its article."""
    return _KINDS[kind]


def check_storable(values: tuple[Scalar, ...]) -> None:
    """Raise ValueError for a value of an enum that JSON or Postgres cannot hold exactly."""
    if any(isinstance(v, float) and not math.isfinite(v) for v in values):
        raise ValueError(Message("enum values must be finite"))
    if any(isinstance(v, int) and not -(2**63) <= v < 2**63 for v in values):
        raise ValueError(Message("whole numbers in an enum must fit in 64 bits"))
    if any(isinstance(v, str) and not is_unicode(v) for v in values):
        raise ValueError(Message("enum values must be Unicode text, without lone surrogates"))


def is_unicode(text: str) -> bool:
    """Whether it can be stored: no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
