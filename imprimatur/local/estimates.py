"""Counts of values from counts of bits: what reports say, without bias, and how far off it may be."""

from __future__ import annotations

import math
import string
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Literal

Fit = Literal["least_squares", "lasso"]

_MOST_ROUNDS = 10_000
_SETTLED = 1e-9
_SINGULAR = 1e-9
_SURE = 1.96
_HEXADECIMAL = frozenset(string.hexdigits)


class InvalidReport(ValueError):
    """A report that no device with these settings sends."""


@dataclass(frozen=True)
class Estimates:
    """How many of the reports are about each value."""

    reports: int
    counts: Mapping[str, float]
    """May be negative or not whole: rounding them would make them biased."""
    std: Mapping[str, float]
    """Standard deviation of each count that the randomised bits cause, if every report is of another device: several memoised ones of one
    device have the same noise, which does not average out. Not given where values were chosen by the same reports."""

    def __str__(self) -> str:
        lines = [f"of {self.reports} reports:"]
        for value, count in sorted(self.counts.items(), key=lambda each: -each[1]):
            within = f" ± {_SURE * self.std[value]:,.0f}" if value in self.std else ""
            lines.append(f"  {value}: {count:,.0f}{within}")
        return "\n".join(lines)


def bits_of(report: object, size: int) -> int:
    """A report's bits as a whole number, bit 0 the first; reports come from devices, so their form is checked."""
    digits = (size + 3) // 4
    if not isinstance(report, str):
        raise InvalidReport("a report is a text of hexadecimal digits")
    if len(report) != digits:
        raise InvalidReport(f"a report has {digits} hexadecimal digits here, not {len(report)}")
    # Not by int() alone, which takes 0x, signs and underscores too.
    bits = int(report, 16) if _HEXADECIMAL.issuperset(report) else -1
    if not 0 <= bits < 1 << size:
        raise InvalidReport(f"a report is a hexadecimal number of {size} bits")
    return bits


def text_of(bits: Iterable[bool]) -> str:
    """The other way."""
    said = list(bits)
    number = sum(1 << place for place, bit in enumerate(said) if bit)
    return f"{number:0{(len(said) + 3) // 4}x}"


def add_bits(counts: list[int], bits: int) -> None:
    """Add one report to the counts of its bits, in time proportional to their number: a report may have 100,000."""
    digits = f"{bits:b}"  # the last one is bit 0
    found = digits.find("1")
    while found >= 0:
        counts[len(digits) - 1 - found] += 1
        found = digits.find("1", found + 1)


Columns = Sequence[Mapping[int, float]]
"""Of each candidate: entry -> what one report about it adds there on average."""


def least_squares(columns: Columns, numbers: Sequence[float]) -> tuple[list[float], list[dict[int, float]]]:
    """Weights w of least Σ (numbers - Σ_j w_j·column_j)², and each weight as a sum of numbers: linear in them, so without bias.

    Solved by the normal equations. Raises `ValueError` where some candidates cannot be told from others.
    """
    inverse = _inverted(_gram(columns))
    holders: dict[int, list[tuple[int, float]]] = {}
    for place, column in enumerate(columns):
        for entry, value in column.items():
            holders.setdefault(entry, []).append((place, value))
    maps = [
        {entry: sum([row[place] * value for place, value in those]) for entry, those in holders.items()}
        for row in inverse
    ]
    return [math.fsum(value * numbers[entry] for entry, value in each.items()) for each in maps], maps


def non_negative_lasso(columns: Columns, numbers: Sequence[float], penalty: float) -> list[float]:
    """Weights w ≥ 0 of least ½Σ (numbers - Σ_j w_j·column_j)² + penalty·Σ w_j, by coordinate descent."""
    weights, rest = [0.0] * len(columns), list(numbers)
    squares = [_dot(column, column) for column in columns]
    for _ in range(_MOST_ROUNDS):
        moved = 0.0
        for j, column in enumerate(columns):
            along = sum(value * rest[entry] for entry, value in column.items())
            new = max(0.0, weights[j] + (along - penalty) / squares[j])
            step = new - weights[j]
            if step:
                for entry, value in column.items():
                    rest[entry] -= step * value
                weights[j] = new
                moved = max(moved, abs(step))
        if moved <= _SETTLED * (1.0 + max(weights, default=0.0)):
            break
    return weights


def _dot(left: Mapping[int, float], right: Mapping[int, float]) -> float:
    return math.fsum(value * right[entry] for entry, value in left.items() if entry in right)


def _gram(columns: Columns) -> list[list[float]]:
    """The lower half of the products of all columns: of row i, those with columns 0 to i."""
    holders: dict[int, list[tuple[int, float]]] = {}
    found: list[list[float]] = []
    for place, column in enumerate(columns):
        row = [0.0] * (place + 1)
        for entry, value in column.items():
            own = holders.setdefault(entry, [])
            own.append((place, value))
            for other, its in own:
                row[other] += value * its
        found.append(row)
    return found


def _inverted(lower: list[list[float]]) -> list[list[float]]:
    """The inverse of a symmetric positive matrix, of which the lower half is given: A = L·Lᵀ (Cholesky), A⁻¹ = MᵀM with M = L⁻¹.

    Cubic in the number of candidates, so the inner products are left to `map`, which runs in C.
    """
    factor: list[list[float]] = []
    for place, given in enumerate(lower):
        row: list[float] = []
        for other, above in enumerate(factor):
            row.append((given[other] - sum(map(mul, row, above))) / above[other])
        pivot = given[place] - sum(map(mul, row, row))
        if pivot <= _SINGULAR * given[place]:
            raise ValueError(
                "some candidates set the same bits and cannot be told apart; take more bits or cohorts, fewer candidates, or fit='lasso'"
            )
        factor.append([*row, math.sqrt(pivot)])
    size = len(factor)
    inverse_columns = [_below_diagonal(factor, place) for place in range(size)]
    inverse = [[0.0] * size for _ in range(size)]
    for i in range(size):
        for j in range(i + 1):
            # Both columns of M from row i on: above it, that of i is zero.
            inverse[i][j] = inverse[j][i] = sum(map(mul, inverse_columns[i], inverse_columns[j][i - j :]))
    return inverse


def _below_diagonal(factor: list[list[float]], place: int) -> list[float]:
    """The column of the inverse of a lower triangular matrix, from its diagonal on."""
    found = [1.0 / factor[place][place]]
    for row in factor[place + 1 :]:
        found.append(-sum(map(mul, row[place:], found)) / row[-1])
    return found
