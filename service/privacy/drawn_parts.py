"""A release that reads one part of the units, drawn secretly anew each time, and may be wholly another without a unit of that part.

A sampled step adds up what units contribute, and a unit that is not there contributes nothing. Here a part is an arbitrary function of its units, such
as the slope of a discriminator that was trained on them without noise: only its length is bounded. Two of its values differ by twice that
length, and the other parts' values lie anywhere. What that costs: docs/privacy.md, One part of many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from service.base.errors import Unpriceable
from service.base.lazy import lazy
from service.privacy.event_kinds import _check_count, _check_noise, _Kind
from service.privacy.mechanisms import Counts, SampledGaussian

if TYPE_CHECKING:
    import dp_accounting
    import numpy as np
    from scipy import special

    from service.privacy.loss_cells import LossOfOne
    from service.privacy.mechanisms import Mechanism
else:
    np = lazy("numpy")
    special = lazy("scipy.special")

DRAWN_PARTS = "drawn_parts"
"""Purpose of all steps that read a drawn part."""

CELLS = 4_096
"""Of the sums that bound two integrals from above and below."""

FURTHEST = 9.0
"""Standard deviations that these sums go beyond the mean."""

_LARGEST_SHIFT = 30.0
"""1/σ above which the plain bound is taken: numbers would not fit in doubles."""

_UP, _DOWN = 1.0 + 1e-9, 1.0 - 1e-9
_ROUNDING = 1e-15


@dataclass(frozen=True, slots=True)
class DrawnPart(SampledGaussian):
    """One of 1/q parts is drawn; a unit changes its part's value by at most σ⁻¹ noise deviations, and so do two parts differ.

    Both directions are bounded by the hockey-stick curve of a sampled Gaussian at every α ≥ 1 (Balle, Barthe, Gaboardi 2018, Theorem 2).
    No one pair of distributions has that curve in both, and data can choose the direction at every step: so Rényi divergences alone price it.
    """

    @property
    def precision(self) -> float:
        return 0.0

    def divergences(self, orders: Sequence[int]) -> list[float]:
        """Of the sampled Gaussian, and what the curve of the other direction adds below α = 1."""
        sampled = SampledGaussian(self.sampling_probability, self.noise_multiplier).divergences(orders)
        return [
            divergence
            + math.log1p(self._excess(order) * math.exp(-min(700.0, (order - 1.0) * divergence))) / (order - 1.0)
            for order, divergence in zip(orders, sampled, strict=True)
        ]

    def _excess(self, order: int) -> float:
        """λ(λ-1)·∫₁^∞ α^(-λ-1)·(H_remove - H_add) dα, from above.

        With t the likelihood ratio of the sampled Gaussian at a standard normal x: the first part is the mean of
        t^(1-λ) + (λ-1)t - λ over t ≥ 1, the second that of t^λ - 1 - λ(t-1) over t < 1. Both functions are monotone in x.
        """
        q, shift, less = self.sampling_probability, 1.0 / self.noise_multiplier, order - 1.0
        plain = less * q  # t^(1-λ) + (λ-1)t - λ ≤ (λ-1)(t-1), whose mean over t ≥ 1 is q times a total variation
        if shift > _LARGEST_SHIFT or q >= 1.0:
            return plain
        middle = shift / 2.0
        above = np.linspace(middle, shift + FURTHEST, CELLS + 1)
        growth = q * np.expm1(shift * (above[1:] - middle))  # t - 1 at the upper end of each cell
        upper = np.minimum(np.expm1(-less * np.log1p(growth)) + less * growth, less * growth)
        first = float((upper * (special.ndtr(-above[:-1]) - special.ndtr(-above[1:]))).sum())
        tail = plain * float(special.ndtr(-FURTHEST))
        below = np.linspace(middle - FURTHEST, middle, CELLS + 1)
        fall = q * np.expm1(shift * (below[1:] - middle))  # t - 1 at the upper end, where the function is least
        lower = np.maximum(np.expm1(order * np.log1p(fall)) - order * fall, 0.0)
        second = float((lower * (special.ndtr(below[1:]) - special.ndtr(below[:-1]))).sum())
        found = first * _UP + tail - second * _DOWN + _ROUNDING * order * q
        return min(plain, max(0.0, found))

    def loss(self) -> LossOfOne:
        raise Unpriceable("a step that reads a drawn part has no loss distribution")

    def ways(self, count: int) -> list[Counts] | None:  # noqa: ARG002
        return None

    def dp_event(self) -> dp_accounting.DpEvent:
        raise Unpriceable("dp_accounting has no event for one part of many under zero-out adjacency")


@dataclass(frozen=True, slots=True)
class DrawnPartEvent(_Kind):
    """`count` steps, each of which draws one of 1/sampling_probability disjoint parts and releases a function of it with Gaussian noise.

    noise_multiplier: noise_std / the most that two values of the function differ by in L2, twice a bound of its length. Which part is drawn stays
    secret and decides nothing but this release: whatever else depends on the parts follows from public coins and earlier releases.
    """

    kind: ClassVar[str] = "drawn_part"
    sampling_probability: float
    noise_multiplier: float
    count: int

    def __post_init__(self) -> None:
        if not 0.0 < self.sampling_probability <= 1.0:
            raise Unpriceable("sampling_probability must be in (0, 1]")
        _check_noise(self.noise_multiplier)
        _check_count(self.count)

    @property
    def purpose(self) -> str:
        return DRAWN_PARTS

    @property
    def mechanism(self) -> Mechanism:
        return DrawnPart(self.sampling_probability, self.noise_multiplier)

    @property
    def private_steps(self) -> int:
        return self.count

    @property
    def quoted_noise_multiplier(self) -> float | None:
        return self.noise_multiplier

    def parameters(self) -> dict[str, Any]:
        return {"sampling_probability": self.sampling_probability, "noise_multiplier": self.noise_multiplier}
