"""What an order of a mixture leaves open, settled from the declared size, n and the budget alone."""

from __future__ import annotations

import math

from service.base.messages import Message
from service.domain.shapes import ImageShape
from service.methods.facts import Facts
from service.methods.knobs import DEFAULT_NUMERIC_BINS, AnyOrder
from service.methods.mixture.order import MixtureOrder
from service.methods.mixture.price import precision_shares
from service.methods.whole_noise import whole_noise

NUMBERS_OF_CELLS = (24, 16, 8)
MOST_NOISE_PER_CELL = 0.04
"""Cells are worth it while the largest eigenvalue of the noise in one is at most this part of the squared clip norm."""

BECAUSE = Message(
    "mixture: on digits of 14×14 pixels at ε = 10, classifiers trained on its images had an accuracy of 92.9 %; on those of a "
    "generator trained with noisy gradients 89.7 %, or 92.4 % where it began with a mixture (docs/results.md)"
)


def offer(_order: AnyOrder, facts: Facts) -> str | None:
    """Offers itself for all images."""
    return BECAUSE if isinstance(facts.shape(DEFAULT_NUMERIC_BINS), ImageShape) else None


def resolve(order: MixtureOrder, facts: Facts) -> MixtureOrder:
    """The number of cells. Images in colour are no handwriting, whose slant is looked for."""
    shape = facts.images()
    if order.upright is None and shape.channels > 1:
        order = order.model_copy(update={"upright": False})
    if order.cells is not None:
        return order
    return order.model_copy(update={"cells": affordable_cells(order, facts, shape)})


def affordable_cells(order: MixtureOrder, facts: Facts, shape: ImageShape, *, precision_share: float = 1.0) -> int:
    """The most cells a class whose own noise is small, where the measurement has this part of the precision.

    Noise is for all images that a unit may have. How many it has is not public: it is taken to have one, as for tables.
    """
    noise = whole_noise(order, facts.budget) / math.sqrt(precision_share) * shape.max_images_per_unit
    directions = min(order.rank, order.coefficients, shape.pixels)

    def edge(cells: int) -> float:
        precision = precision_shares(order.model_copy(update={"cells": cells}))[-1][1]
        return math.sqrt(2.0 * directions / precision) * noise * shape.classes * cells / facts.units

    return next((cells for cells in NUMBERS_OF_CELLS if edge(cells) <= MOST_NOISE_PER_CELL), 1)
