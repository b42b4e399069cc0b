"""What the declared schema says of a table or of images, as far as prices and defaults go by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from service.domain.open_columns import OpenColumn

ColumnSort = Literal["categories", "values", "cells"]
"""Declared values; a range whose values a tree can count; a range of declared or equal cells."""


@dataclass(frozen=True)
class TableShape:
    """The declared columns: cells of each, the field named as target, and how many rows of a unit are used."""

    cells: Mapping[str, int]
    target: str | None = None
    max_rows_per_unit: int = 1
    columns_of_values: int = 0
    """Open ranges: those that declare no cells, so that a tree of counts may say where values lie."""
    tree_levels: int = 0
    """Of the trees of all of these together."""
    open_columns: tuple[OpenColumn, ...] = ()
    """Whose bounds or categories are still to be bought."""
    sorts: Mapping[str, ColumnSort] = field(default_factory=dict)
    """Of columns; what is not named has categories."""


@dataclass(frozen=True)
class ImageShape:
    """The declared size of the images, classes (1 where there are none), and how many images of a unit are used."""

    height: int
    width: int
    channels: int
    classes: int
    max_images_per_unit: int = 1
    unit_pixels: tuple[int, int] | None = None
    """Rows and columns of one unit, where that is a part of an image."""

    @property
    def pixels(self) -> int:
        """Numbers in an image."""
        return self.height * self.width * self.channels
