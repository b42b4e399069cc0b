"""What a Rényi divergence says of (ε, δ), and back.

Source: Canonne, Kamath, Steinke 2020, Prop. 12: δ = e^((α - 1)(ρ - ε))/(α - 1)·(1 - 1/α)^α.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

CONVERSION_ORDERS: tuple[int, ...] = (
    *range(2, 65),
    *(math.ceil(64.0 * 1.1**power) for power in range(1, 43)),
    4_096,
)
"""Orders of which the best one is taken where a list has no loss distribution. Each holds, so any number of them may be looked at.

That of a sampled Gaussian is a sum of as many terms as its order: larger ones would take longer than all of these.
"""

GUARD = 1e-12
"""Relative: above the rounding of the few operations of a conversion."""


def renyi_capacity(epsilon: float, delta: float, order: int) -> float:
    """Largest Rényi divergence of order α that implies (ε, δ)-DP."""
    return epsilon - math.log1p(-1.0 / order) + math.log(order * delta) / (order - 1.0)


def renyi_epsilon(divergence: float, delta: float, order: int) -> float:
    """ε implied at δ by a Rényi divergence of order α; the inverse of `renyi_capacity`."""
    return max(0.0, divergence + math.log1p(-1.0 / order) - math.log(order * delta) / (order - 1.0))


def renyi_delta(divergence: float, epsilon: float, order: int) -> float:
    """δ implied at ε."""
    exponent = (order - 1.0) * (divergence - epsilon) - math.log(order) + (order - 1.0) * math.log1p(-1.0 / order)
    return math.exp(exponent) if exponent < 0.0 else 1.0


@dataclass(frozen=True)
class RenyiLoss:
    """What is known of a list by its Rényi divergences alone, pairs of an order and the divergence; and that no loss is larger than `largest`."""

    divergences: tuple[tuple[int, float], ...]
    largest: float

    @classmethod
    def of(cls, orders: Iterable[int], divergences: Iterable[float], *, largest: float) -> RenyiLoss:
        return cls(tuple(zip(orders, divergences, strict=True)), largest)

    def epsilon(self, delta: float) -> float:
        known = (renyi_epsilon(divergence, delta, order) for order, divergence in self.divergences)
        # The terms are of the size of log(1/δ), so that is what their rounding is relative to.
        return min(self.largest, min(known) + GUARD * (1.0 - math.log(delta)))

    def delta(self, epsilon: float) -> float:
        if epsilon >= self.largest:
            return 0.0
        known = (renyi_delta(divergence, epsilon, order) for order, divergence in self.divergences)
        return min(1.0, min(known) * (1.0 + 1e-9))
