"""How much a mixture of images is: their moments, and eigenvalues of what was measured."""

from __future__ import annotations

from service.methods.facts import Facts
from service.methods.mixture.order import MixtureOrder
from service.methods.work import Work

DRAWN_PER_CELL, DRAWN_FOR_TONES = 200, 2_000
"""As `workers.methods.mixture.measuring` has them."""


def estimate(order: MixtureOrder, facts: Facts) -> Work:
    """Every measurement goes over all images, as many as there may be."""
    shape = facts.images()
    images, pixels = float(facts.units) * shape.max_images_per_unit, float(shape.pixels)
    coefficients = float(min(order.coefficients, shape.pixels + 1))
    rank = min(float(order.rank), coefficients)
    cells = float((order.cells or 1) * shape.classes)
    rounds = float(order.sorting_rounds) if order.cells and order.cells > 1 else 0.0
    passes = 2.0 + 2.0 * rounds + 2.0
    drawn = float(DRAWN_PER_CELL) * cells
    return Work(
        products=2.0 * images * (2.0 * pixels * coefficients + passes * pixels * rank + coefficients**2 + rank**2)
        + 2.0 * images * rank * (order.cells or 1) * (rounds + 1.0)
        + 20.0 * (coefficients**3 + cells * rank**3)
        + 4.0 * drawn * pixels * rank,
        elements=images * pixels * (8.0 + 40.0 * float(order.upright is not False))
        + 30.0 * drawn * rank * (order.cells or 1)
        + 20.0 * DRAWN_FOR_TONES * pixels,
        draws=coefficients**2 + cells * rank**2 + drawn * rank + DRAWN_FOR_TONES * rank,
        calls=5.0 * cells,
        memory_bytes=images * pixels * (2.0 if order.upright is False else 4.0)
        + 8.0 * (6.0 * cells * rank**2 + 4.0 * coefficients**2 + 4.0 * drawn / shape.classes * pixels)
        + 32.0 * DRAWN_FOR_TONES * pixels,
    )
