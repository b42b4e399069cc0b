"""The single values that an open range may hold: the leaves of its tree of counts. From the declaration alone.

Prices of 4.99, ages in whole years, amounts in round hundreds: many rows share a value, whatever cells a range is cut into.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from service.base.lazy import lazy
from service.domain.field_schema import FieldSchema, FieldType

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

MOST_VALUES = 2**31
"""Of one column: a place fits in 32 bits. Of a longer range, only multiples of a larger step are told apart."""

MOST_UNDECLARED = 2**23
"""The same where the schema does not say how many digits numbers have: each level of a tree costs the others precision."""

FAN_OUT = 16
"""About so many parts has a node of the tree of a range: of hierarchies of noisy counts the most accurate (Qardaji, Yang, Li 2013)."""

MOST_DECIMALS = 15
"""No step needs more digits than a float has."""

_POWERS_OF_TEN = tuple(10**power for power in range(16))
_STEPS: dict[FieldType, tuple[int, ...]] = {"date": (1,), "datetime": (1, 60, 3_600, 86_400)}
"""Days; seconds, whole minutes, hours and days."""
_EXACT = 2.0**53
"""Whole numbers up to it are exact as floats."""


@dataclass(frozen=True)
class ValueGrid:
    """Equally spaced values, place 0 to size - 1: (first + place)·step / 10^decimals. Dates are days, datetimes seconds since 1970-01-01."""

    first: int
    size: int
    step: int
    decimals: int
    multiples: tuple[int, ...]
    """Of the step, which people round to: increasing from 1, each divides the next."""

    def values(self, places: NDArray[np.int64]) -> NDArray[np.float64]:
        """The values at these places, as the floats next to their decimals: both terms of the quotient are exact, so it is rounded once."""
        values: NDArray[np.float64] = ((self.first + places) * self.step).astype(np.float64) / 10.0**self.decimals
        return values

    def with_decimals(self, decimals: int) -> ValueGrid:
        """The grid of those of these values that have at most so many digits after the point; all of them where no fewer are asked for."""
        fewer = self.decimals - decimals
        if fewer <= 0:
            return self
        first, last = -(-self.first // 10**fewer), (self.first + self.size - 1) // 10**fewer
        multiples = self.multiples[:-fewer] or (1,)
        return replace(self, first=first, size=last - first + 1, decimals=decimals, multiples=multiples)

    def places(self, values: NDArray[np.float64]) -> NDArray[np.uint32]:
        """The place of each value, or of the next one below it; beyond the ends that of the end. `size` for NaN."""
        with np.errstate(invalid="ignore", over="ignore"):
            scaled = values * (10.0**self.decimals / self.step)
            nearest = np.clip(np.rint(scaled) - self.first, 0, self.size - 1)
            below = np.clip(np.floor(scaled) - self.first, 0, self.size - 1)
        is_known = ~np.isnan(values)
        nearest = np.where(is_known, nearest, 0.0).astype(np.int64)  # products round: 4.35 · 100 is 434.99…
        places = np.where(self.values(nearest) == values, nearest, np.where(is_known, below, self.size))
        return places.astype(np.uint32)

    def below(self, edges: NDArray[np.float64]) -> NDArray[np.int64]:
        """How many of these values lie below each edge."""
        one = 10.0**self.decimals / self.step
        guess: NDArray[np.int64] = np.clip(np.ceil(edges * one) - self.first, 0, self.size).astype(np.int64)
        guess -= (guess > 0) & (self.values(guess - 1) >= edges)  # products round
        guess += (guess < self.size) & (self.values(guess) < edges)
        return guess

    def tree(self, cells: int) -> tuple[int, int]:
        """(levels, parts of a node) of the tree whose first level is so many equal cells and whose last is single values."""
        widest = -(-self.size // cells)
        levels = max(1, round(math.log(widest, FAN_OUT)))
        parts = math.ceil(widest ** (1.0 / levels))
        return 1 + levels, parts + (parts**levels < widest)  # roots round

    def roundness(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which of `multiples` is the largest that each value is one of."""
        divides = [(self.first + places) % multiple == 0 for multiple in self.multiples]
        last: NDArray[np.int64] = np.sum(divides, axis=0) - 1
        return last


def value_grid(field: FieldSchema, cells: int) -> ValueGrid | None:
    """The finest such grid of so few; None where the declaration says what to tell apart, or there are as many cells as values."""
    if field.is_categorical or field.edges is not None or field.bins is not None:
        return None
    low, high = field.bounds
    most = MOST_UNDECLARED if field.type == "number" and field.decimals is None else MOST_VALUES
    steps = tuple(step for step in _STEPS.get(field.type, _POWERS_OF_TEN) if step >= field.step)
    for step, decimals in (*((1, d) for d in range(_decimals(field), 0, -1)), *((step, 0) for step in steps)):
        if max(abs(low), abs(high)) * 10.0**decimals > _EXACT:
            continue
        first, last = _inside(low, high, step, decimals)
        size = last - first + 1
        if size <= cells:
            return None
        if size <= most:
            multiples = (larger // step for larger in steps if larger % step == 0)
            return ValueGrid(first, size, step, decimals, tuple(m for m in multiples if m < size))
    return None


def _decimals(field: FieldSchema) -> int:
    """Digits after the point that values have at most."""
    if field.type != "number":
        return 0
    return MOST_DECIMALS if field.decimals is None else field.decimals


def _inside(low: float, high: float, step: int, decimals: int) -> tuple[int, int]:
    """First and last multiple of the step within [low, high], by the same quotients as `values`."""
    one = 10.0**decimals
    first, last = math.ceil(low * one / step), math.floor(high * one / step)
    # Products round: a bound such as 0.07 is a multiple of its own step.
    first -= (first - 1) * step / one >= low
    last += (last + 1) * step / one <= high
    return first, last
