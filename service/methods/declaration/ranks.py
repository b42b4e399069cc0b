"""Which quantiles become bounds, and how rare a value may be to be told. From the declaration, n and the charged epsilon alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

WHOLE = 10_000
"""Parts of rows are multiples of 1/WHOLE."""
LEAST_PART, LARGEST_PART = 50, 2_500
"""Of the rows, that are meant to lie beyond one end: half a percent where the epsilon allows, a quarter at most."""
MISSED = 0.05
"""Chance that an end lies further off than is said."""


def rows_off(*, candidates: int, epsilon: float, most_per_unit: int) -> int:
    """How many rows, at most, an end is off the quantile that it is meant to be, 19 times in 20."""
    return math.ceil(2.0 * most_per_unit * math.log(max(2, candidates) / MISSED) / epsilon)


def part_beyond(*, candidates: int, epsilon: float, most_per_unit: int, units: int) -> int:
    """The part of the rows, in ten-thousandths, that is meant to lie beyond one end.

    As small as the noise allows: where fewer rows than `rows_off` were to lie there, any value below all rows would do as well.
    """
    wanted = WHOLE * rows_off(candidates=candidates, epsilon=epsilon, most_per_unit=most_per_unit) / max(1, units)
    return min(LARGEST_PART, max(LEAST_PART, math.ceil(wanted)))


def is_too_little(*, candidates: int, epsilon: float, most_per_unit: int, units: int) -> bool:
    """Whether so few units cannot say, for this epsilon, where an end is: any value of the grid may come out."""
    off = rows_off(candidates=candidates, epsilon=epsilon, most_per_unit=most_per_unit)
    return WHOLE * off > LARGEST_PART * units


def rows_to_be_told(event: Mapping[str, Any], *, most_per_unit: int) -> int:
    """About so many rows a value needs to become a category (`workers.mechanism.key_threshold`).

    event: parameters of the threshold.
    """
    rarely, epsilon = math.log(1.0 / (2.0 * event["failure_probability"])), float(event["epsilon"])
    return math.ceil(most_per_unit + most_per_unit * rarely / epsilon)
