"""Parts of a table, each of whole units: which unit is in which part, public coins say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from workers.encoding.units import with_units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from workers.encoding.images import EncodedImages
    from workers.encoding.table import EncodedTable, TableDomain
    from workers.encoding.values import TableValues
    from workers.sources import PublicSource, Source

SEED_BITS = 128


def units_of_part(units: int, *, seed: int, parts: int, part: int) -> NDArray[np.int64]:
    """The indices of ⌊n/parts⌋ units. Of one seed, no unit is in two parts; of the rest of the division each is in none."""
    size = units // parts
    shuffled = np.random.Generator(np.random.Philox(seed)).permutation(units)
    return np.sort(shuffled[part * size : (part + 1) * size]).astype(np.int64)


@dataclass(frozen=True)
class Part:
    """A source of one part of the units of another."""

    whole: Source
    seed: int
    parts: int
    part: int
    holds_images: bool = False

    def table(self, *, numeric_bins: int, with_places: bool = False) -> tuple[EncodedTable, TableDomain]:
        table, domain = self.whole.table(numeric_bins=numeric_bins, with_places=with_places)
        units = units_of_part(table.units, seed=self.seed, parts=self.parts, part=self.part)
        return with_units(table, units), domain

    def public_table(self, *, numeric_bins: int) -> tuple[EncodedTable, TableDomain]:
        """All of them, in every part: they are no units of this dataset."""
        return cast("PublicSource", self.whole).public_table(numeric_bins=numeric_bins)

    def values(self, names: Sequence[str]) -> TableValues:
        raise TypeError(f"the values of {', '.join(names)} are not read in parts")

    def images(self) -> EncodedImages:
        raise TypeError("this is a table")
