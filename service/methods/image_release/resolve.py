"""What an order of single images leaves open, settled from the declaration alone."""

from __future__ import annotations

import math

from service.base.errors import InvalidOrder
from service.base.messages import Figure, Message
from service.domain.image_schema import DeclaredSchema, ImageSchema
from service.domain.shapes import ImageShape
from service.methods.facts import Facts
from service.methods.image_release.drawable import least_drawable_epsilon
from service.methods.image_release.order import Block, ImageReleaseOrder
from service.methods.knobs import DEFAULT_NUMERIC_BINS, AnyOrder

MOST_IMAGES = 1_000_000
"""Of one release: the published network holds them all, and a unit with fewer than it may have is filled up with noise."""

SMALLEST_EPSILON = 0.01
"""Of any image; large ones may need more (`least_drawable_epsilon`)."""

BECAUSE = Message(
    "image_release: the schema's pixel_unit declares parts of images as units, and no other method protects these"
)


def offer(_order: AnyOrder, facts: Facts) -> str | None:
    """Only where no other method can: whole images, and persons, are better protected as members of a set."""
    shape = facts.shape(DEFAULT_NUMERIC_BINS)
    return BECAUSE if isinstance(shape, ImageShape) and shape.unit_pixels is not None else None


def declared_unit(shape: tuple[int, int], unit_pixels: tuple[int, int] | None) -> Block | str:
    """A declared unit in the words of orders."""
    if unit_pixels is None:
        return "image"
    return "column" if unit_pixels == (shape[0], 1) else Block(rows=unit_pixels[0], columns=unit_pixels[1])


def unit_rows_and_columns(order: ImageReleaseOrder, shape: tuple[int, int]) -> tuple[int, int]:
    """Rows and columns of pixels of one unit of a resolved order."""
    if order.unit is None:
        raise InvalidOrder("unit must be resolved before anything is measured", where="unit")
    if isinstance(order.unit, Block):
        return order.unit.rows, order.unit.columns
    return shape if order.unit == "image" else (shape[0], 1)


def has_declared_unit(order: ImageReleaseOrder, schema: DeclaredSchema) -> bool:
    """The unit of a resolved order is that of the dataset's budget."""
    return isinstance(schema, ImageSchema) and order.unit == declared_unit(schema.shape[:2], schema.unit_pixels)


def check(order: ImageReleaseOrder, schema: DeclaredSchema) -> None:
    """Refuse another unit than is declared, and sizes that no image has."""
    if not isinstance(schema, ImageSchema):
        return
    declared = declared_unit(schema.shape[:2], schema.unit_pixels)
    if order.unit not in {None, declared}:
        said = (
            Message("a block of %(rows)s × %(columns)s", rows=declared.rows, columns=declared.columns)
            if isinstance(declared, Block)
            else f"`{declared}`"
        )
        raise InvalidOrder(
            Message(
                "unit: this dataset's is %(unit)s, for which its budget holds; leave it out, or declare another pixel_unit",
                unit=said,
            ),
            where="unit",
        )
    smallest = min(schema.height, schema.width)
    if order.coefficients is not None and order.coefficients > smallest:
        raise InvalidOrder(
            Message("coefficients: at most %(smallest)s, the shorter side", smallest=smallest), where="coefficients"
        )
    if order.coefficients is None and order.sizes[0] > smallest:
        raise InvalidOrder(
            Message("sizes: at least one of at most %(smallest)s, the shorter side", smallest=smallest), where="sizes"
        )


def resolve(order: ImageReleaseOrder, facts: Facts) -> ImageReleaseOrder:
    """The unit, and the sizes that fit."""
    shape = facts.images()
    if facts.units * shape.max_images_per_unit > MOST_IMAGES:
        raise InvalidOrder(
            Message("method: image_release publishes at most %(most)s images; take `mixture`", most=MOST_IMAGES),
            where="method",
        )
    least = _least_epsilon(order, shape, facts)
    if _epsilon(order, facts) < least:
        raise InvalidOrder(
            Message(
                "epsilon: image_release needs %(least)s at least; below it all images are grey, and the noise of large ones "
                "is more than whole numbers hold",
                least=Figure(f"{least:g}"),
            ),
            where="epsilon",
        )
    smallest = min(shape.height, shape.width)
    return order.model_copy(
        update={
            "unit": declared_unit((shape.height, shape.width), shape.unit_pixels),
            "sizes": tuple(size for size in order.sizes if size <= smallest) or order.sizes,
        }
    )


def _least_epsilon(order: ImageReleaseOrder, shape: ImageShape, facts: Facts) -> float:
    """Rounded up to two digits, so that what is named is taken."""
    unit = shape.unit_pixels or (shape.height, shape.width)
    drawable = least_drawable_epsilon(order, unit, shape, facts.budget)
    if drawable <= SMALLEST_EPSILON:
        return SMALLEST_EPSILON
    digit = 10.0 ** (math.floor(math.log10(drawable)) - 1)
    return float(f"{math.ceil(drawable / digit) * digit:.3g}")


def _epsilon(order: ImageReleaseOrder, facts: Facts) -> float:
    """That is ordered; of an order of the rest, which is settled later, that of the budget."""
    if order.epsilon is not None:
        return order.epsilon
    return facts.budget.epsilon * (order.share if isinstance(order.share, float) else 1.0)
