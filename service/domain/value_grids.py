"""The single values of an open range that may be counted one by one. From the declaration alone.

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

MOST_VALUES = 2**23
"""Of one column: some 300 MB while they are counted and noised, one column after the other. Of a longer range, only multiples of a larger step are."""

MOST_DECIMALS = 15
"""More digits than a float has are nobody's step."""

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
        """As floats next to these decimals: both terms of the quotient are exact, so it is rounded but once."""
        values: NDArray[np.float64] = ((self.first + places) * self.step).astype(np.float64) / 10.0**self.decimals
        return values

    def with_decimals(self, decimals: int) -> ValueGrid:
        """Those of these values that have at most so many digits after the point; all of them where no fewer are asked for."""
        fewer = self.decimals - decimals
        if fewer <= 0:
            return self
        first, last = -(-self.first // 10**fewer), (self.first + self.size - 1) // 10**fewer
        multiples = self.multiples[:-fewer] or (1,)
        return replace(self, first=first, size=last - first + 1, decimals=decimals, multiples=multiples)

    def places(self, values: NDArray[np.float64]) -> NDArray[np.uint32]:
        """The place of each value; `size` for what is none of them, NaN among it."""
        with np.errstate(invalid="ignore", over="ignore"):
            whole = np.rint(values * (10.0**self.decimals / self.step)) - self.first
            inside = (whole >= 0.0) & (whole < self.size)  # NaN is not
            places = np.where(inside, whole, 0.0).astype(np.int64)
        return np.where(inside & (self.values(places) == values), places, self.size).astype(np.uint32)

    def roundness(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which of `multiples` is the largest that each value is one of."""
        divides = [(self.first + places) % multiple == 0 for multiple in self.multiples]
        last: NDArray[np.int64] = np.sum(divides, axis=0) - 1
        return last


def value_grid(field: FieldSchema, cells: int) -> ValueGrid | None:
    """The finest such grid of at most MOST_VALUES; None where the declaration says what to tell apart, or there are as many cells as values."""
    if field.is_categorical or field.edges is not None or field.bins is not None:
        return None
    low, high = field.bounds
    steps = tuple(step for step in _STEPS.get(field.type, _POWERS_OF_TEN) if step >= field.step)
    for step, decimals in (*((1, d) for d in range(_decimals(field), 0, -1)), *((step, 0) for step in steps)):
        if max(abs(low), abs(high)) * 10.0**decimals > _EXACT:
            continue
        first, last = _inside(low, high, step, decimals)
        size = last - first + 1
        if size <= cells:
            return None
        if size <= MOST_VALUES:
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
