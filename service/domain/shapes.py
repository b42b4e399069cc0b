"""What the declared schema says of a table or of images, as far as prices and defaults go by it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class TableShape:
    """The declared columns: cells of each, the field named as target, and how many rows of a unit are used."""

    cells: Mapping[str, int]
    target: str | None = None
    max_rows_per_unit: int = 1
    has_open_ranges: bool = False
    """Whether a range may be cut into other cells than equal ones, because none are declared."""
    columns_of_values: int = 0
    """Ranges whose values may be counted one by one."""


@dataclass(frozen=True)
class ImageShape:
    """The declared size of the images, classes (1 where there are none), and how many images of a unit are used."""

    height: int
    width: int
    channels: int
    classes: int
    max_images_per_unit: int = 1

    @property
    def pixels(self) -> int:
        """Numbers in an image."""
        return self.height * self.width * self.channels
