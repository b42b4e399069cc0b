"""`method: mixture` before any record is read: what its order leaves open, and its price list."""

from __future__ import annotations

import math

from service.base.errors import InvalidOrder
from service.domain.shapes import ImageShape
from service.methods.orders import IdpganOrder, MixtureFirst, MixtureOrder
from service.methods.whole_noise import whole_noise
from service.privacy.events import (
    CELL_MEANS,
    CELL_MOMENTS,
    CLASS_MEANS,
    LEANINGS,
    SHARED_MOMENTS,
    TONES,
    Events,
    GaussianEvent,
)
from service.privacy.filters import Budget

NUMBERS_OF_CELLS = (24, 16, 8)
MOST_NOISE_PER_CELL = 0.04
"""Cells are worth it while the largest eigenvalue of the noise in one is at most this part of the squared clip norm."""

BECAUSE_MIXTURE = (
    "mixture: on digits of 14×14 pixels at ε = 10 it trained better classifiers (92.9 % right on real images) than a "
    "generator trained by noisy gradients, from nothing (89.7 %) or from a cheaper mixture (92.4 %) (docs/results.md)"
)


def resolve_mixture(
    order: MixtureOrder, *, units: int, shape: ImageShape | None, budget: Budget | None
) -> MixtureOrder:
    """Fill in the number of cells; without a shape or a budget there is one, which costs the same.

    Images in colour are no handwriting, whose slant is looked for.
    """
    if order.upright is None and shape is not None and shape.channels > 1:
        order = order.model_copy(update={"upright": False})
    if order.cells is not None:
        return order
    if shape is None or budget is None:
        return order.model_copy(update={"cells": 1})
    return order.model_copy(update={"cells": affordable_cells(order, units=units, shape=shape, budget=budget)})


def resolve_mixture_first(
    order: IdpganOrder, *, units: int, shape: ImageShape | None, budget: Budget | None
) -> IdpganOrder:
    """The same for a generator that begins with a mixture's samples."""
    start = order.mixture_first
    if start is None or start.cells is not None:
        return order
    cells = 1
    if shape is not None and budget is not None:
        priced = mixture_of(start).model_copy(update={"epsilon": order.epsilon, "share": order.share})
        spent = start.precision_share
        cells = affordable_cells(priced, units=units, shape=shape, budget=budget, precision_share=spent)
    return order.model_copy(update={"warm_start": start.model_copy(update={"cells": cells})})


def affordable_cells(
    order: MixtureOrder, *, units: int, shape: ImageShape, budget: Budget, precision_share: float = 1.0
) -> int:
    """The most cells a class whose own noise is small, where the measurement has this part of the precision.

    Noise is for all images that a unit may have. How many it has is not public: it is taken to have one, as for tables.
    """
    noise = whole_noise(order, budget) / math.sqrt(precision_share) * shape.max_images_per_unit
    directions = min(order.rank, order.coefficients, shape.pixels)

    def edge(cells: int) -> float:
        precision = _shares(order.model_copy(update={"cells": cells}))[-1][1]
        return math.sqrt(2.0 * directions / precision) * noise * shape.classes * cells / units

    return next((cells for cells in NUMBERS_OF_CELLS if edge(cells) <= MOST_NOISE_PER_CELL), 1)


def mixture_of(start: MixtureFirst) -> MixtureOrder:
    """What is measured before the first step; its ε is that of the whole release and says nothing here.

    Images as they are: the perceptron that corrects them was measured with these alone.
    """
    return MixtureOrder(method="mixture", share="rest", cells=start.cells, upright=False)


def _shares(order: MixtureOrder) -> list[tuple[str, float]]:
    """Every measurement in order, with its part of the precision; 1 together."""
    rounds = order.sorting_rounds if order.cells and order.cells > 1 else 0
    shares = [
        *([(LEANINGS, order.leanings_precision_share)] if order.upright is None else []),
        (CLASS_MEANS, order.means_precision_share),
        (TONES, order.tones_precision_share),
        (SHARED_MOMENTS, order.directions_precision_share),
        *[(CELL_MEANS, order.sorting_precision_share)] * rounds,
    ]
    return [*shares, (CELL_MOMENTS, 1.0 - sum(share for _, share in shares))]


def mixture_events(order: MixtureOrder, *, noise_multiplier: float) -> Events:
    """Gaussian releases from all units that together are one of this noise multiplier: Σ 1/σ_i² = 1/σ².

    Each is joint over the counts, sums and products of all classes or cells, whose noise is shared out by the worker.
    """
    if order.cells is None:
        raise InvalidOrder("cells must be resolved before pricing")
    return tuple(GaussianEvent(purpose, noise_multiplier / math.sqrt(share)) for purpose, share in _shares(order))
