"""`method: mixture` before any record is read: what its order leaves open, and its price list."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.errors import InvalidOrder
from service.lazy import lazy
from service.privacy.events import CELL_MOMENTS, CLASS_MEANS, CLASS_MOMENTS, Events, GaussianEvent
from service.privacy.filters import Budget, exact
from service.privacy.orders import MixtureOrder

if TYPE_CHECKING:
    from dp_accounting import gaussian_mechanism
else:
    gaussian_mechanism = lazy("dp_accounting.gaussian_mechanism")

DEFAULT_CELLS = 8
MOST_NOISE_PER_CELL = 0.03
"""Cells are worth it while the largest eigenvalue of the noise in one is at most this part of the squared clip norm."""

BECAUSE_MIXTURE = (
    "mixture: on digits it trained better classifiers than generators trained by noisy gradients (docs/results.md)"
)


@dataclass(frozen=True)
class ImageShape:
    """The declared size of the images, and classes (1 where there are none)."""

    height: int
    width: int
    channels: int
    classes: int

    @property
    def pixels(self) -> int:
        """Numbers in an image."""
        return self.height * self.width * self.channels


def resolve_mixture(
    order: MixtureOrder, *, units: int, shape: ImageShape | None, budget: Budget | None
) -> MixtureOrder:
    """Fill in the number of cells; without a shape or a budget there is one, which costs the same."""
    if order.cells is not None:
        return order
    if shape is None or budget is None:
        return order.model_copy(update={"cells": 1})
    wanted = exact(float(order.share or 1)) if order.epsilon is None else exact(order.epsilon) / exact(budget.epsilon)
    share = float(wanted)
    noise = float(gaussian_mechanism.get_sigma_gaussian(share * budget.epsilon, share * budget.delta / 2))
    directions = min(order.coefficients, shape.pixels)
    precision = (1.0 - order.means_precision_share) * (1.0 - order.coarse_precision_share)
    per_cell = units / (shape.classes * DEFAULT_CELLS)
    edge = math.sqrt(2.0 * directions) * noise / math.sqrt(precision) / per_cell
    return order.model_copy(update={"cells": DEFAULT_CELLS if edge <= MOST_NOISE_PER_CELL else 1})


def mixture_events(order: MixtureOrder, *, noise_multiplier: float) -> Events:
    """Gaussian releases from all units that together are one of this noise multiplier: Σ 1/σ_i² = 1/σ².

    Each is joint over the counts, sums and products of all classes or cells, whose noise is shared out by the worker.
    """
    if order.cells is None:
        raise InvalidOrder("cells must be resolved before pricing")
    rest = 1.0 - order.means_precision_share
    shares = {CLASS_MEANS: order.means_precision_share, CLASS_MOMENTS: rest}
    if order.cells > 1:
        shares |= {
            CLASS_MOMENTS: rest * order.coarse_precision_share,
            CELL_MOMENTS: rest * (1.0 - order.coarse_precision_share),
        }
    return tuple(GaussianEvent(purpose, noise_multiplier / math.sqrt(share)) for purpose, share in shares.items())
