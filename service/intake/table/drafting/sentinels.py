"""Values that stand for something else: 9999-12-31 for "still valid", -1 or 999 for "not known"."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

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

_CODES = frozenset({7, 8, 9, 77, 88, 99, 96, 97, 98, 997, 998, 999, 9_997, 9_998, 9_999})
"""What forms print beside "refused", "don't know" and "no answer"."""

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

_STEPS = 2
"""A sentinel lies more steps than these from all other values, a step being what lies between two of them: 9 is next to 8, and -1 to 0."""

_FAR = 0.5
"""It also lies at least this much of the others' spread away from them,"""

_HEAP = 50
_CLEAR = 0.1
"""or is at least one cell in so many, and this much of the spread away."""

_FEW_OTHERS = 3
"""So many other values tell a spread."""

_MOST_CODES = 3
_SCALE = 2
"""So many whole numbers one after the other are the answers of a form."""


def codes_apart(values: Sequence[int]) -> list[int]:
    """The last of a few increasing whole numbers, where they may be codes and a number is left out before them."""
    rest = list(values)
    codes: list[int] = []
    while rest and rest[-1] in _CODES and len(codes) < _MOST_CODES:
        codes.insert(0, rest.pop())
        is_scale = len(rest) >= _SCALE and rest[-1] - rest[0] == len(rest) - 1
        if is_scale and codes[0] > rest[-1] + 1:
            return codes
    return []


def recognised(counts: dict[_T, int], low: _T | None, high: _T | None, cells: int, others: int) -> list[_T]:
    """Which candidates stand for something else. `low` and `high` are of the other cells, `others` their different values."""
    found: list[_T] = []
    if low is None or high is None or others < _FEW_OTHERS:
        return found
    has_negative = low < 0
    for value in sorted(counts, key=lambda one: low - one if one < low else one - high):
        gap = low - value if value < low else value - high
        spread = float(max(high - low, type(high)(1)))
        is_apart = gap > _STEPS * spread / max(1, others - 1)
        is_far = gap >= _FAR * spread
        is_heap = _HEAP * counts[value] >= cells and gap >= _CLEAR * spread
        is_only_negative = value in {-1, -2, -9, -99, -999} and not has_negative and isinstance(value, Decimal)
        if is_apart and (is_far or is_only_negative or is_heap):
            found.append(value)
        elif gap > 0:  # a value as the others are, which the next may be a neighbour of
            low, high, others = min(low, value), max(high, value), others + 1
    return sorted(found)
