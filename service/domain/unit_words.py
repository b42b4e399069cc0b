"""What one unit is called, for certificates, forecasts and the page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.base.messages import Message
from service.domain.image_schema import ImageSchema
from service.domain.privacy_unit import ImageUnit

if TYPE_CHECKING:
    from service.domain.image_schema import DeclaredSchema
    from service.domain.privacy_unit import DeclaredUnit


def unit_in_words(schema: DeclaredSchema, unit: DeclaredUnit | None) -> str:
    """Whose contribution is hidden."""
    if unit is None:
        return (
            part_in_words(schema.unit_pixels, schema.height) if isinstance(schema, ImageSchema) else Message("one row")
        )
    if isinstance(unit, ImageUnit):
        words = Message("all images of one unit, of which at most %(most)s are used", most=unit.most)
        alone = Message("%(unit)s; images without a unit id are units of their own", unit=words)
    else:
        words = Message(
            "all rows of one value of %(column)s, of which at most %(most)s are used",
            column=repr(unit.column),
            most=unit.most,
        )
        alone = Message("%(unit)s; rows without a unit id are units of their own", unit=words)
    return words if unit.missing == "refuse" else alone


def protected_units(schema: DeclaredSchema | None, units: int) -> int:
    """How many units a promise is for, of which δ is judged: where one is a part of an image, `units` counts images, and each has several."""
    if not isinstance(schema, ImageSchema) or schema.unit_pixels is None:
        return units
    rows, columns = schema.unit_pixels
    return units * -(-schema.height // rows) * -(-schema.width // columns)


def part_in_words(unit_pixels: tuple[int, int] | None, height: int) -> str:
    """A unit that is a part of an image, in words; None means a whole image."""
    if unit_pixels is None:
        return Message("one image")
    rows, columns = unit_pixels
    if (rows, columns) == (height, 1):
        return Message("one column of pixels of one image: neither an image nor a person (`units` counts images)")
    return Message(
        "one block of %(rows)s × %(columns)s pixels of one image: neither an image nor a person (`units` counts images)",
        rows=rows,
        columns=columns,
    )
