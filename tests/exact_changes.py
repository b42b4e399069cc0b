"""How far two private sums lie apart, in exact fractions: what contracts on neighbours compare."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from workers.mechanism import PrivateSum


def squared_change(first: PrivateSum, second: PrivateSum) -> list[Fraction]:
    """Per group, the squared L2 distance of two sums, exactly."""
    assert (first.groups, first.sensitivities) == (second.groups, second.sensitivities)

    def distance(a: Tensor, b: Tensor) -> Fraction:
        pairs = zip(a.flatten().tolist(), b.flatten().tolist(), strict=True)
        return sum(((Fraction(x) - Fraction(y)) ** 2 for x, y in pairs if x != y), Fraction(0))

    return [sum((distance(first.values[t], second.values[t]) for t in group), Fraction(0)) for group in first.groups]


def assert_bounded(first: PrivateSum, second: PrivateSum) -> float:
    """Every group moved by at most its sensitivity; the largest move, as a part of it."""
    largest = 0.0
    for change, sensitivity in zip(squared_change(first, second), first.sensitivities, strict=True):
        assert change <= Fraction(sensitivity) ** 2
        largest = max(largest, math.sqrt(change) / sensitivity)
    return largest
