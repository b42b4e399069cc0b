"""Rows of a table or images as an autoencoder sees them: unit by unit, as many places for each as it may have records. Private."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from workers.encoding.images import EncodedImages
from workers.encoding.places import codes_in_places, records_in_places
from workers.mechanism.image_moments import NO_CELL, Units
from workers.networks.table import one_hot_records

if TYPE_CHECKING:
    from workers.encoding.table import EncodedTable, TableDomain

PLACES_AT_ONCE = 8_192
"""Of a pass over all records; bounds memory."""


@dataclass(frozen=True)
class Given:
    """Records of some units. A place without a record, or with one outside the declared domain, is not present and holds zeros."""

    records: Tensor  # (R, width) one-hot cells or pixels between 0 and 1
    labels: Tensor  # (R,) int64; 0 where there is no condition
    present: Tensor  # (R,) bool


class PlacedRecords:
    """A dataset whose every unit has the same places, so that a record's place tells nothing of other units."""

    def __init__(
        self,
        data: EncodedTable | EncodedImages,
        domain: TableDomain | None,
        condition: int | None,
        device: torch.device,
    ) -> None:
        """domain: of a table. condition: the column whose cells are labels."""
        self.data, self.device, self.condition = data, device, condition
        self.units = data.units
        if isinstance(data, EncodedImages):
            self.places, self.classes, self.width = (
                data.max_images_per_unit,
                max(1, data.classes),
                math.prod(data.shape),
            )
            self.widths: tuple[int, ...] | None = None
            return
        if domain is None:
            raise TypeError("a table has a domain")
        self.all_widths = tuple(domain.widths)
        self.places = data.max_rows_per_unit
        self.widths = tuple(width for place, width in enumerate(self.all_widths) if place != condition)
        self.width = sum(self.widths)
        self.classes = 1 if condition is None else self.all_widths[condition]

    @property
    def most(self) -> int:
        """How many records there may be, by what is public."""
        return self.units * self.places

    @cached_property
    def owners(self) -> Units:
        """Whose places are whose."""
        return Units(np.arange(self.units + 1, dtype=np.int64) * self.places, self.places)

    def of(self, units: NDArray[np.int64]) -> Given:
        """The records of these units, side by side."""
        return self._images(self.data, units) if isinstance(self.data, EncodedImages) else self._rows(self.data, units)

    def everything(self) -> Iterator[tuple[slice, Given]]:
        """All places, some whole units at a time."""
        units_at_once = max(1, PLACES_AT_ONCE // self.places)
        for start in range(0, self.units, units_at_once):
            units = np.arange(start, min(start + units_at_once, self.units))
            yield slice(start * self.places, (start + len(units)) * self.places), self.of(units)

    def _rows(self, table: EncodedTable, units: NDArray[np.int64]) -> Given:
        placed = torch.from_numpy(codes_in_places(table, units).astype(np.int64)).to(self.device)
        records, present = one_hot_records(placed, self.all_widths)
        if self.condition is None:
            return Given(records, torch.zeros(len(records), dtype=torch.int64, device=self.device), present)
        before = sum(self.all_widths[: self.condition])
        after = before + self.all_widths[self.condition]
        labels = torch.where(present, placed[:, self.condition], 0)
        return Given(torch.cat((records[:, :before], records[:, after:]), dim=1), labels, present)

    def _images(self, images: EncodedImages, units: NDArray[np.int64]) -> Given:
        places, empty = records_in_places(units, images.unit_starts, images.max_images_per_unit)
        labels = torch.from_numpy(np.where(empty, NO_CELL, images.labels[places])).to(self.device)
        present = (labels >= 0) & (labels < self.classes)
        pixels = torch.from_numpy(images.pixels[places]).to(self.device).float() / 255.0
        return Given(torch.where(present.unsqueeze(1), pixels, 0.0), torch.where(present, labels, 0), present)

    @cached_property
    def labels(self) -> NDArray[np.int64]:
        """(places of all units,) the label of every record; NO_CELL where there is none. Private."""
        found = np.empty(self.most, dtype=np.int64)
        for rows, given in self.everything():
            found[rows] = torch.where(given.present, given.labels, NO_CELL).cpu().numpy()
        return found


def with_labels(given: Given, label_inputs: int) -> Tensor:
    """Records with their one-hot label behind them, where the networks are told it."""
    if not label_inputs:
        return given.records
    named = F.one_hot(given.labels, label_inputs).float() * given.present.unsqueeze(1)
    return torch.cat((given.records, named), dim=1)
