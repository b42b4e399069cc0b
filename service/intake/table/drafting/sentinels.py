"""Values that stand for something else: 9999-12-31 for "still valid", -1 or 999 for "not known"."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TypeVar

_T = TypeVar("_T", Decimal, int)

_REPEATED = (
    "9",
    "99",
    "999",
    "9999",
    "99999",
    "999999",
    "9999999",
    "88",
    "888",
    "8888",
    "77",
    "777",
    "7777",
    "66",
    "666",
)
NUMBERS = tuple(
    map(
        Decimal,
        (
            *_REPEATED,
            *(f"-{one}" for one in _REPEATED),
            "-1",
            "-2",
            "99.9",
            "999.9",
            "9999.9",
            "99999.99",
            "-99.9",
            "-999.9",
        ),
    )
)
"""What forms and programs write where a number is missing."""

_EPOCH = dt.date(1970, 1, 1)
DAYS = tuple(
    (dt.date.fromisoformat(day) - _EPOCH).days
    for day in (
        *(
            "9999-12-31",
            "9999-12-30",
            "9999-01-01",
            "9999-09-09",
            "4712-12-31",
            "3000-01-01",
            "3000-12-31",
            "2999-12-31",
            "2999-01-01",
            "2100-12-31",
        ),
        *(
            "2100-01-01",
            "2099-12-31",
            "2099-01-01",
            "2262-04-11",
            "1970-01-01",
            "1960-01-01",
            "1904-01-01",
            "1900-01-01",
            "1900-01-02",
            "1901-01-01",
            "1899-12-30",
        ),
        *("1899-12-31", "1800-01-01", "1753-01-01", "1582-10-15", "1111-11-11", "1000-01-01", "0001-01-01"),
    )
)
"""What databases and programs write where a day is not known, is open, or was zero."""

_FAR = 0.5
"""A sentinel lies at least this much of the others' spread away from them,"""

_HEAP = 50
"""or is at least one cell in so many, beyond the others' end."""

_FEW_OTHERS = 3
"""So many other values tell a spread."""


def recognised(counts: dict[_T, int], low: _T | None, high: _T | None, cells: int, others: int) -> list[_T]:
    """Which candidates stand for something else. `low` and `high` are of the other cells, `others` their different values."""
    found: list[_T] = []
    if low is None or high is None or others < _FEW_OTHERS:
        return found
    spread = max(high - low, type(high)(1))
    for value, count in sorted(counts.items()):
        gap = low - value if value < low else value - high
        is_far = float(gap) >= _FAR * float(spread)
        is_only_negative = value in {-1, -2, -9, -99, -999} and low >= 0 and isinstance(value, Decimal)
        if gap > 0 and (is_far or is_only_negative or _HEAP * count >= cells):
            found.append(value)
    return found
