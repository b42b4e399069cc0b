"""The least ε at which the noise of single images can be drawn, from the order and the declaration alone.

A run whose noise is more than its whole numbers hold ends after its charge. Sensitivities here are those of
`workers.mechanism.image_coefficients` from above, in floats.
"""

from __future__ import annotations

import math

from service.domain.shapes import ImageShape
from service.methods.image_release.order import ImageReleaseOrder
from service.privacy.filters import Budget

LARGEST_GEOMETRIC_SCALE, LARGEST_GAUSSIAN_STD = 2.0**46, 2.0**57
"""What the samplers of workers take."""
WHITE, OF_COEFFICIENTS, OF_VALUES = 255.0, 2.0**24, 2.0**10
"""Half levels of a pixel, and whole numbers to a half level of coefficients and of singular values."""
SLACK = 1.05
"""For rounded bases, roots that are rounded up, and a calibration to 1 %."""


def least_drawable_epsilon(order: ImageReleaseOrder, unit: tuple[int, int], shape: ImageShape, budget: Budget) -> float:
    """An ε from which on the noise of all releases of the order fits; unit: its rows and columns of pixels."""
    smallest = min(shape.height, shape.width)
    kept = order.coefficients or max((size for size in order.sizes if size <= smallest), default=1)
    each = shape.channels * shape.max_images_per_unit
    inside = _squared_norm(kept, unit[0], shape.height) * _squared_norm(kept, unit[1], shape.width)
    norm = WHITE * math.sqrt(math.prod(unit) * each * inside)
    of_choice = order.selection_share if order.coefficients is None else 0.0
    of_values = order.singular_values_share
    if order.noise == "gaussian":
        # Composed simply, an ε of this size over the noise multiplier suffices.
        delta = budget.delta / 2.0 * min(1.0, 0.01 / budget.epsilon)
        wanted = (1.0 + of_choice) * math.sqrt(2.0 * math.log(1.25 / delta))
        parts = [norm * OF_COEFFICIENTS / math.sqrt(1.0 - of_values)]
        parts += [norm * OF_VALUES / math.sqrt(of_values)] if of_values else []
        return SLACK * wanted * max(parts) / LARGEST_GAUSSIAN_STD
    rank = min(*unit, kept) * each
    parts = [norm * math.sqrt(kept**2 * each) * OF_COEFFICIENTS / (1.0 - of_values)]
    parts += [(norm * math.sqrt(rank) * OF_VALUES + 2.0 * kept * each) / of_values] if of_values else []
    return SLACK * max(parts) / (1.0 - of_choice) / LARGEST_GEOMETRIC_SCALE


def _squared_norm(kept: int, rows: int, side: int) -> float:
    """What workers take for that of neighbouring rows of cosines: their squares, (2/side) each at most, or the largest row of XᵀX."""
    return 1.0 if rows == side else min(2.0 * kept * rows / side, math.sqrt(kept))
