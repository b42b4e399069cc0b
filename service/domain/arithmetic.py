"""Arithmetic on declared expressions, by operators alone: of NumPy arrays where rows are drawn, of Polars where they are read.

An expression is nested lists, as JSON holds them: `["+", ["column", "net", 2], ["number", 1, 4]]`. The third part of a
column says how many digits after the point its values have; they are whole numbers of such units, so that sums are exact.
None stands for values as they are. Every value is a fraction (numerator, denominator) with a positive denominator.
A missing value makes the result missing, as both libraries do of themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Tree = list[Any]
Fractional = tuple[Any, Any]
"""Numerator and denominator; the latter a plain int wherever nothing is divided by a column."""
Leaf = Callable[[str, int | None], Any]
"""A column's name and digits after the point -> its values as whole numbers of the last digit."""


def value_of(tree: Tree, leaf: Leaf) -> Fractional:
    """What an expression comes to, row by row."""
    head, *rest = tree
    if head == "column":
        name, digits = rest
        return leaf(name, digits), 1 if digits is None else 10**digits
    if head in {"number", "moment"}:
        return rest[0], rest[1]
    return _OPERATIONS[head](*(value_of(part, leaf) for part in rest))


def rounded(value: Fractional, digits: int) -> Any:
    """A fraction as a whole number of units of the last of so many decimal digits; halves go up."""
    numerator, denominator = value
    unit = 10**digits
    if isinstance(denominator, int) and unit % denominator == 0:
        return numerator * (unit // denominator)
    return (numerator * (2 * unit) + denominator) // (denominator * 2)


def comparison(tree: Tree, leaf: Leaf) -> Any:
    """Which rows meet an inequality; missing where one of its columns is."""
    operator, left, right = tree
    (p, q), (r, s) = value_of(left, leaf), value_of(right, leaf)
    if isinstance(q, int) and isinstance(s, int):
        common = math.lcm(q, s)
        one, other = p * (common // q), r * (common // s)
    else:
        one, other = p * s, r * q
    return _COMPARED[operator](one, other)


def columns_of(tree: Tree) -> list[str]:
    """The columns of an expression, each once, in order."""
    if tree[0] == "column":
        return [tree[1]]
    if tree[0] in {"number", "moment"}:
        return []
    return list(dict.fromkeys(name for part in tree[1:] for name in columns_of(part)))


def size_of(tree: Tree) -> int:
    """The number of parts of an expression."""
    return 1 + sum(size_of(part) for part in tree[1:] if isinstance(part, list))


def _sum(a: Fractional, b: Fractional) -> Fractional:
    (p, q), (r, s) = a, b
    if isinstance(q, int) and isinstance(s, int):
        common = math.lcm(q, s)
        return p * (common // q) + r * (common // s), common
    return p * s + r * q, q * s


def _negative(a: Fractional) -> Fractional:
    return a[0] * -1, a[1]


def _quotient(a: Fractional, b: Fractional) -> Fractional:
    """The divisor is positive: the declaration says so."""
    return a[0] * b[1], a[1] * b[0]


def _absolute(a: Fractional) -> Fractional:
    return abs(a[0]), a[1]


def _larger(a: Fractional, b: Fractional) -> Fractional:
    numerator, denominator = _sum(_sum(a, b), _absolute(_sum(a, _negative(b))))
    return numerator, denominator * 2


def _smaller(a: Fractional, b: Fractional) -> Fractional:
    return _negative(_larger(_negative(a), _negative(b)))


def _year_and_month(days: Any) -> tuple[Any, Any]:
    """Of days since 1970-01-01, by the calendar's cycle of 400 years (years begin in March)."""
    shifted = days + 719_468
    era = shifted // 146_097
    day_of_era = shifted - era * 146_097
    year_of_era = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (year_of_era * 365 + year_of_era // 4 - year_of_era // 100)
    month = (day_of_year * 5 + 2) // 153  # 0 is March
    is_next_year = month // 10
    return year_of_era + era * 400 + is_next_year, month + 3 - is_next_year * 12


_COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "!=": lambda a, b: a != b,
}
_OPERATIONS: dict[str, Callable[..., Fractional]] = {
    "+": _sum,
    "-": lambda a, b: _sum(a, _negative(b)),
    "*": lambda a, b: (a[0] * b[0], a[1] * b[1]),
    "/": _quotient,
    "negative": _negative,
    "abs": _absolute,
    "max": _larger,
    "min": _smaller,
    "year": lambda a: (_year_and_month(a[0] // a[1])[0], 1),
    "month": lambda a: (_year_and_month(a[0] // a[1])[1], 1),
}
