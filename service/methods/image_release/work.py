"""How much a release of single images is."""

from __future__ import annotations

from service.methods.facts import Facts
from service.methods.image_release.order import ImageReleaseOrder
from service.methods.work import Work


def estimate(order: ImageReleaseOrder, facts: Facts) -> Work:
    """Each size is tried on all images, then one is measured."""
    shape = facts.images()
    images, pixels = float(facts.units) * shape.max_images_per_unit, float(shape.pixels)
    tried = order.sizes if order.coefficients is None else ()
    largest = float(order.coefficients or order.sizes[-1])
    numbers = images * largest**2 * shape.channels
    return Work(
        products=2.0 * images * pixels * (largest + sum(2.0 * size for size in tried)) + 30.0 * numbers * largest,
        elements=images * pixels * (4.0 + 4.0 * len(tried)),
        draws=4.0 * numbers,
        calls=images / 256.0 * (1.0 + len(tried)),
        memory_bytes=images * pixels + 64.0 * numbers + 40e6,
    )
