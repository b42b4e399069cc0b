"""Whose an image is: ids from the labels file or the NPZ file as units that are numbered from 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa

from service.base.errors import InvalidFile
from service.base.messages import Message, plural
from service.domain.privacy_unit import IMAGE_UNITS, ImageUnit, no_unit_ids, own_units
from service.intake.table.columns import ColumnSource
from service.intake.unit_ids import UnitIds, dense

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from service.intake.limits import IngestLimits

Ids = Sequence[int | str]
"""One for every image, in the file's order: text, or whole numbers."""

MOST_ID_CHARACTERS = 200


def check_units(ids: Ids | None, *, wanted: bool) -> None:
    """Raise `InvalidFile` where a file says whose images are and should not, or the other way round."""
    if wanted and ids is None:
        raise InvalidFile(
            Message(
                "A privacy unit is declared, but the file does not say whose an image is: add the column "
                "%(image_units)s to the labels file of the archive, or the array units to an NPZ file. An IDX file "
                "has no place for it.",
                image_units=IMAGE_UNITS,
            )
        )
    if not wanted and ids is not None:
        raise InvalidFile(
            Message(
                "The file says whose an image is, but no privacy unit is declared, and each image would be a unit: "
                'declare {"max_images_per_unit": k}, or take the units out of the file.'
            )
        )


@dataclass(frozen=True)
class ImageOwners:
    """The unit of every image, and what the owner is told."""

    unit_of_image: NDArray[np.int64]  # (n,)
    notices: tuple[str, ...]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Images of every unit."""
        return np.bincount(self.unit_of_image)


def owners_of(ids: Ids, unit: ImageUnit, limits: IngestLimits, key: bytes) -> ImageOwners:
    """Number the units; raises `InvalidFile` where images lack an id and none was declared for them."""
    values = pa.array(ids, pa.string()) if isinstance(next(iter(ids), ""), str) else _whole(ids)
    reader = UnitIds(key, IMAGE_UNITS, missing=unit.missing)
    blocks = reader.blocks(ColumnSource(IMAGE_UNITS, limits).column(values))
    if reader.missing and unit.missing == "refuse":
        raise InvalidFile(Message("%(missing)s.", missing=no_unit_ids(reader.missing, "image")), count=reader.missing)
    if reader.run_on:
        raise InvalidFile(
            Message("A unit id in the labels file is longer than a line: a quoted field may not be closed.")
        )
    owners = dense(blocks)
    notices: list[str] = [own_units(reader.missing, "image")] if reader.missing else []
    over = int((np.bincount(owners, minlength=1) > unit.most).sum())
    if over:
        notices.append(
            plural(
                "1 unit has more than %(most)s images; only %(most)s of them are used.",
                "%(over)s units have more than %(most)s images; of each, only %(most)s are used.",
                over,
                over=over,
                most=unit.most,
            )
        )
    return ImageOwners(owners, tuple(notices))


def _whole(ids: Ids) -> pa.Array:
    """Whole numbers of 64 bits, of which those without sign go to larger ones."""
    return pl.Series(ids, dtype=pl.Int64 if min(map(int, ids)) < 0 else pl.UInt64).to_arrow()
