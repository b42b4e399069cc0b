"""What AIM's measurements and selections cost, in zero-concentrated DP as in its paper, or in Gaussian DP (see peer_aim.py)."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import norm


class Accountant(Protocol):
    """What adds up over measurements and selections."""

    total: float

    def measuring(self, deviation: float) -> float: ...

    def deviation(self, cost: float) -> float: ...

    def selecting(self, epsilon: float) -> float: ...

    def strength(self, cost: float) -> float:
        """The ε of a selection."""


class ZeroConcentrated:
    """Budget in ρ."""

    def __init__(self, epsilon: float, delta: float) -> None:
        self.total = brentq(lambda rho: self.delta(rho, epsilon) - delta, 1e-9, 1e4)

    @staticmethod
    def delta(rho: float, epsilon: float) -> float:
        """The smallest of the bounds of Canonne, Kamath and Steinke (2020, proposition 12)."""
        order = np.exp(np.linspace(np.log(1e-6), np.log(1e6), 200_000)) + 1.0
        logs = (order - 1) * (order * rho - epsilon) + order * np.log1p(-1 / order) - np.log(order - 1)
        return float(np.exp(min(logs.min(), 0.0)))

    def measuring(self, deviation: float) -> float:
        return 0.5 / deviation**2

    def deviation(self, cost: float) -> float:
        return float(np.sqrt(0.5 / cost))

    def selecting(self, epsilon: float) -> float:
        return epsilon**2 / 8.0

    def strength(self, cost: float) -> float:
        return float(np.sqrt(8.0 * cost))


class GaussianDp:
    """Budget in μ².

    The privacy loss of a selection lies in a range of length ε. Two outcomes are the worst that has such a range, and their trade-off
    curve, two straight lines, has its corner on or above the Gaussian curve of μ = 2 Φ⁻¹(1 / (1 + exp(-ε / 2))).
    """

    def __init__(self, epsilon: float, delta: float) -> None:
        self.total = brentq(lambda mu: self.delta(mu, epsilon) - delta, 1e-6, 1e3) ** 2

    @staticmethod
    def delta(mu: float, epsilon: float) -> float:
        first, second = norm.cdf(mu / 2 - epsilon / mu), norm.logcdf(-mu / 2 - epsilon / mu)
        return float(first - np.exp(epsilon + second))

    def measuring(self, deviation: float) -> float:
        return 1.0 / deviation**2

    def deviation(self, cost: float) -> float:
        return float(1.0 / np.sqrt(cost))

    def selecting(self, epsilon: float) -> float:
        return float((2.0 * norm.ppf(expit(epsilon / 2.0))) ** 2)

    def strength(self, cost: float) -> float:
        return float(2.0 * logit(norm.cdf(np.sqrt(cost) / 2.0)))
