"""The public facts that an order is resolved and priced with. They are always complete; none depends on a row."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from service.base.caching import computed_once
from service.base.errors import InvalidOrder
from service.base.messages import Message
from service.domain.grids import shape_of
from service.domain.image_schema import DeclaredSchema, ImageSchema, parse_schema
from service.domain.shapes import ImageShape, TableShape
from service.methods.knobs import DEFAULT_NUMERIC_BINS
from service.privacy.filters import Budget

Shape = TableShape | ImageShape


@dataclass(frozen=True)
class PublicRows:
    """The public dataset that an order begins from, by its declaration and n."""

    rows: int
    """Rows or images, each unit taken to have the most that it may have."""
    held_bytes: int
    """Of all of them, as codes or pixels."""


@dataclass(frozen=True)
class Facts:
    """What was declared of a dataset, how many units it has, and its budget."""

    units: int
    budget: Budget
    shape: Callable[[int], Shape]
    """Bins of a numeric field that declares none -> the declared columns, or the declared size of images."""
    public: PublicRows | None = None
    """Of another dataset, so known of an order alone, and only where its work is estimated: no default and no price may depend on it."""

    @classmethod
    def of_declaration(cls, schema: str, *, units: int, most_per_unit: int, budget: Budget) -> Facts:
        """schema: the declared schema as JSON text. most_per_unit: rows or images of a unit that are used at most."""
        return cls(units, budget, lambda numeric_bins: _shape(schema, numeric_bins, most_per_unit))

    @classmethod
    def of_schema(cls, schema: DeclaredSchema, *, units: int, most_per_unit: int, budget: Budget) -> Facts:
        """The facts of a schema that was parsed already; otherwise as `of_declaration`."""
        return cls(units, budget, lambda numeric_bins: _shape_in(schema, numeric_bins, most_per_unit))

    def table(self, numeric_bins: int) -> TableShape:
        """The declared columns; `InvalidOrder` where the dataset holds images."""
        shape = self.shape(numeric_bins)
        if not isinstance(shape, TableShape):
            raise InvalidOrder(Message("method: this one makes tables, and the dataset holds images"), where="method")
        return shape

    def images(self) -> ImageShape:
        """The declared size of images; `InvalidOrder` where the dataset is a table."""
        shape = self.shape(DEFAULT_NUMERIC_BINS)
        if not isinstance(shape, ImageShape):
            raise InvalidOrder(Message("method: this one makes images, and the dataset is a table"), where="method")
        return shape


DECLARATIONS_BYTES, SHAPES_BYTES = 10 << 20, 4 << 20
"""A schema of a thousand fields takes 1.8 MB as it is checked; its cells a tenth of that."""


@computed_once(most_bytes=DECLARATIONS_BYTES)
def declared_schema(document: str) -> DeclaredSchema:
    """A schema document, parsed and kept by its whole text, so that a replaced one is another entry."""
    return parse_schema(json.loads(document))


@computed_once(most_bytes=SHAPES_BYTES)
def _shape(document: str, numeric_bins: int, most_per_unit: int) -> Shape:
    return _shape_in(declared_schema(document), numeric_bins, most_per_unit)


def _shape_in(schema: DeclaredSchema, numeric_bins: int, most_per_unit: int) -> Shape:
    if isinstance(schema, ImageSchema):
        classes = max(1, len(schema.class_names))
        return ImageShape(
            *schema.shape, classes=classes, max_images_per_unit=most_per_unit, unit_pixels=schema.unit_pixels
        )
    return shape_of(schema, numeric_bins=numeric_bins, max_rows_per_unit=most_per_unit)
