"""The median with Cauchy noise in proportion to its smooth sensitivity: little noise where many values lie near it."""

from __future__ import annotations

from typing import Protocol

import mpmath
import numpy as np
from numpy.typing import NDArray

UNIFORM_BITS = 256
_DIGITS = 120
"""Decimal, of the tangent: its error is far below what one of the uniform bits decides."""
_ROUND_UP = 1.0 + 1e-9
_LEAST_EXPONENT = -700.0
"""Its power is far below what counts beside 1, and no number of those that processors are slow with."""
_SMOOTHER = 1.0 - 1e-6
"""Of β: pays for the rounding of the sensitivity in float64."""


class Bits(Protocol):
    """A secure source of uniform integers below 2^count."""

    def bits(self, count: int) -> int: ...


def smooth_sensitivity(places: NDArray[np.int64], *, size: int, beta: float) -> float:
    """Smooth sensitivity of the median of places from 0 to size - 1, one for each unit; private, for `release_median` alone.

    max over k of e^(-kβ)·max over t of (x[med + t] - x[med + t - k - 1]), x sorted, its ends beyond the first and the last: for each
    value on the left of the median only the last unit that has it can matter, on the right the first, so that pairs of values are looked at:
    size² of them whatever the places are.

    Adjacency:   zero-out one unit: a null unit takes the middle of the range.
    Sensitivity: its logarithm moves by β.
    Shapes:      places (units,), sorted or not; returns a number of places, at least 1: the larger of a smooth bound and a constant is smooth.
    Source:      Nissim, Raskhodnikova, Smith 2007, 3.1.
    Edge cases:  no units -> the whole range.
    """
    if not len(places):
        return float(max(1, size - 1))
    counts = np.bincount(places, minlength=size)
    up_to = np.cumsum(counts)
    middle = (len(places) - 1) // 2
    values = np.arange(size)
    last = np.minimum(up_to - 1, middle)  # (size,) the last unit on the left of the median with at most this value
    first = np.maximum(up_to - counts, middle)  # (size,) the first on the right with at least this value
    best = 1.0
    # All pairs, wherever the median is: how long this takes must not say it. Between values on one side of it nothing is larger:
    # each of them is closer than the median's own, at no fewer steps.
    for value in range(size):
        steps = np.maximum(first - last[value] - 1, 0)
        best = max(best, float(((values - value) * np.exp(np.maximum(-beta * steps, _LEAST_EXPONENT))).max()))
    return best


def release_median(places: NDArray[np.int64], *, size: int, epsilon: float, randomness: Bits) -> int:
    """The median place plus 6S/ε times a Cauchy variable, rounded to a place and clamped; what comes back is public.

    Adjacency:   zero-out one unit: a null unit takes the middle of the range.
    Sensitivity: its (ε/6)-smooth sensitivity S. Cauchy noise, density ∝ 1/(1 + z²), then makes it ε-DP. How large the noise was is private.
    Shapes:      places (units,) from 0 to size - 1; returns one of them.
    Source:      Nissim, Raskhodnikova, Smith 2007, Lemma 2.6 with exponent 2; never with the formula of Gaussian noise.
    Edge cases:  what lies outside is clamped; no units -> noise around the middle of the range.
    """
    places = np.clip(places, 0, size - 1)
    ordered = np.sort(places)
    median = int(ordered[(len(ordered) - 1) // 2]) if len(ordered) else (size - 1) // 2
    scale = 6.0 * smooth_sensitivity(places, size=size, beta=epsilon / 6.0 * _SMOOTHER) / epsilon * _ROUND_UP
    with mpmath.workdps(_DIGITS):
        uniform = mpmath.mpf(2 * randomness.bits(UNIFORM_BITS) + 1) / mpmath.mpf(2) ** (UNIFORM_BITS + 1)
        moved = median + mpmath.mpf(scale) * mpmath.tan(mpmath.pi * (uniform - mpmath.mpf(1) / 2))
        return int(mpmath.nint(min(max(moved, 0), size - 1)))
