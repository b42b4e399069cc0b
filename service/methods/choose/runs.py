"""How many runs a selection has: the truncated negative binomial of Papernot and Steinke 2022."""

from __future__ import annotations

import math

from service.privacy.mechanisms import log_inverse_gamma

_LESS = 4e-9
"""Relative: ln(1/gamma) of the runs that are made lies below that which is priced, so both it and the mean are."""


def gamma_of(mean: float, shape: float) -> float:
    """The gamma of P(k) ∝ (1-gamma)^k·Π_{l<k}(l+η)/(l+1), whose mean is at most this one, by a hair."""
    return min(1.0, math.exp(-log_inverse_gamma(mean, shape) * (1.0 - _LESS)))


def exceeded_rarely(mean: float, shape: float, probability: float) -> int:
    """The least number of runs that is exceeded with at most this probability."""
    gamma = gamma_of(mean, shape)
    if gamma >= 1.0:
        return 1
    weights: list[float] = []
    weight, k = 1.0, 1
    while weight > 1e-20 * (1.0 + len(weights)) or k < mean:
        weights.append(weight)
        weight *= (1.0 - gamma) * (k + shape) / (k + 1)
        k += 1
    left, total = math.fsum(weights), math.fsum(weights)
    for runs, each in enumerate(weights, start=1):
        left -= each
        if left <= probability * total:
            return runs
    return len(weights)
