"""Units that a release is not made of, so that what it says of them can be tested: which, its id says and no row does.

The same at every attempt, whatever crashes: a second split, after rows of the first were read, would put a unit on both sides.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np

from service.methods.report import held_out_units
from workers.encoding.units import with_units

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from service.methods.knobs import Order
    from workers.encoding.images import EncodedImages
    from workers.encoding.table import EncodedTable, TableDomain
    from workers.encoding.values import TableValues
    from workers.sources import PublicSource, Source

COINS = b"held-out units of release "


@dataclass(frozen=True)
class Split:
    """Two sides of the units of one release. On which side a unit is depends on its place among n, on the order and on public coins."""

    order: Order
    seed: int

    @classmethod
    def of(cls, order: Order, release_id: uuid.UUID) -> Split | None:
        """The split of a release; None where its order holds nothing out."""
        if order.held_out is None:
            return None
        return cls(order, int.from_bytes(hashlib.sha256(COINS + release_id.bytes).digest()[:16], "big"))

    def units(self, units: int, *, held_out: bool) -> NDArray[np.int64]:
        """The units of one side, in increasing order; the other side has all others."""
        # Raw words of a bit generator are the same in every version of numpy; its permutations need not be.
        keys = np.random.Philox(self.seed).random_raw(units)
        shuffled = np.argsort(keys, kind="stable")
        count = held_out_units(self.order, units)
        return np.sort(shuffled[:count] if held_out else shuffled[count:]).astype(np.int64)

    def training(self, source: Source) -> Source:
        """What the release is made of."""
        return OneSide(source, self, held_out=False)

    def held_out(self, source: Source) -> Source:
        """What it is tested on."""
        return OneSide(source, self, held_out=True)


def training_rows(order: Order, release_id: uuid.UUID, source: Source) -> Source:
    """What a release is made of: all rows, or those of the units that its report does not hold out."""
    split = Split.of(order, release_id)
    return source if split is None else split.training(source)


@dataclass(frozen=True)
class OneSide:
    """A source of one side of the units of another."""

    whole: Source
    split: Split
    held_out: bool
    holds_images: bool = False

    def table(self, *, numeric_bins: int, with_places: bool = False) -> tuple[EncodedTable, TableDomain]:
        table, domain = self.whole.table(numeric_bins=numeric_bins, with_places=with_places)
        return with_units(table, self.split.units(table.units, held_out=self.held_out)), domain

    def values(self, names: Sequence[str]) -> TableValues:
        raise TypeError(f"the values of {', '.join(names)} are not read in parts")

    def images(self) -> EncodedImages:
        raise TypeError("this is a table")

    def public_images(self) -> EncodedImages:
        raise TypeError("this is a table")

    def public_table(self, *, numeric_bins: int) -> tuple[EncodedTable, TableDomain]:
        """The table of another dataset, which is public: nothing of it is held out."""
        return cast("PublicSource", self.whole).public_table(numeric_bins=numeric_bins)
