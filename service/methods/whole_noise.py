"""What the rules behind defaults look at: the noise that one Gaussian release with the whole price of an order would have."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

from service.base.lazy import lazy
from service.methods.knobs import Order
from service.privacy.filters import Budget, exact

if TYPE_CHECKING:
    from dp_accounting import gaussian_mechanism
else:
    gaussian_mechanism = lazy("dp_accounting.gaussian_mechanism")


def whole_noise(order: Order, budget: Budget) -> float:
    """Noise multiplier of a single release of (s·ε, s·δ/2), s the share of the budget that is ordered; all of it where none is settled.

    Less what a report keeps of its precision.

    Source: Balle and Wang 2018, as in dp_accounting.
    """
    wanted = exact(float(order.share or 1)) if order.epsilon is None else exact(order.epsilon) / exact(budget.epsilon)
    share = float(wanted)
    left = 1.0 if order.report is None else 1.0 - order.report.share
    return _noise_multiplier(share * budget.epsilon, share * budget.delta / 2) / math.sqrt(left)


def noise_of_share(precision_share: float, epsilon: float, delta: float) -> float:
    """σ of a release that has a fixed part of the precision 1/σ² that one Gaussian release of this (ε, δ) would have."""
    return _noise_multiplier(epsilon, delta) / math.sqrt(precision_share)


@lru_cache(4_096)
def _noise_multiplier(epsilon: float, delta: float) -> float:
    return float(gaussian_mechanism.get_sigma_gaussian(epsilon, delta))
