"""An event that may fail: with a small probability, which is charged as δ, its output is not accounted for by a loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from service.base.errors import Unpriceable
from service.privacy.event_kinds import PureEvent

LARGEST_FAILURE = 0.01


@dataclass(frozen=True, slots=True)
class ThresholdEvent(PureEvent):
    """Noisy counts of which only those above a threshold are released, with their keys: ε₀-DP unless a key that one unit alone has is told.

    failure_probability: of that, at most; it is charged as δ in both accounts.
    """

    kind: ClassVar[str] = "threshold"
    failure_probability: float = 0.0

    def __post_init__(self) -> None:
        PureEvent.__post_init__(self)
        if not 0.0 < self.failure_probability <= LARGEST_FAILURE:
            raise Unpriceable(
                f"the failure probability of a threshold must be positive, and at most {LARGEST_FAILURE:g}"
            )

    @property
    def failures(self) -> float:
        return self.count * self.failure_probability

    def parameters(self) -> dict[str, Any]:
        return {
            "sampling_probability": 1.0,
            "epsilon": self.epsilon,
            "failure_probability": self.failure_probability,
        }
