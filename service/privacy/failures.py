"""Outputs that a mechanism's loss does not account for: with a small probability that is charged as δ.

A mechanism P on a dataset with a unit, against Q without it, fails with probability F if P = (1 - F)·P' + F·(anything) and P', Q are what the
event accounts for. Then P(S) ≤ P'(S) + F, and Q(S) ≤ e^ε·P'(S) + δ' ≤ e^(ε - ln(1 - F))·P(S) + δ'. Composed adaptively, F adds up, and so
does -ln(1 - F), which is added to the loss (docs/privacy.md, Failures). Nothing here sees data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from service.privacy.losses import Loss

GUARD = 1.0 + 1e-12
"""Relative: above the rounding of these few operations."""


def loss_of_failures(failures: float) -> float:
    """What failures of this probability in all add to a loss: Σ -ln(1 - F) is at most -ln(1 - Σ F)."""
    return -math.log1p(-failures) * GUARD


@dataclass(frozen=True)
class LossWithFailures:
    """The loss of a list of which something fails with this probability."""

    loss: Loss
    failures: float

    def epsilon(self, delta: float) -> float:
        left = delta - self.failures * GUARD
        return self.loss.epsilon(left) + loss_of_failures(self.failures) if left > 0.0 else math.inf

    def delta(self, epsilon: float) -> float:
        shifted = epsilon - loss_of_failures(self.failures)
        return min(1.0, self.loss.delta(shifted) + self.failures * GUARD) if shifted >= 0.0 else 1.0
