"""As many places for each unit as it may have records, filled or not: a record's place tells nothing of other units."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from workers.encoding.table import ABSENT

if TYPE_CHECKING:
    from workers.encoding.table import Codes, EncodedTable


def records_in_places(
    units: NDArray[np.int64], unit_starts: NDArray[np.int64] | None, places: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(R,) which record is in every place of these units, and whether none is. Private."""
    if unit_starts is None:
        return units, np.zeros(len(units), dtype=np.bool_)
    records = unit_starts[units][:, None] + np.arange(places)  # (U, places)
    empty = records >= unit_starts[units + 1][:, None]
    return np.where(empty, 0, records).ravel(), empty.ravel()


def codes_in_places(table: EncodedTable, units: NDArray[np.int64]) -> Codes:
    """(R, columns) codes of these units' rows; empty places hold null records. Private.

    However many rows a unit has, those of the others keep their places and every product its shape: float32
    results, which depend on both, are then the same to the last bit on a neighbouring table.
    """
    if table.unit_starts is None:
        alone: Codes = table.codes[units]
        return alone
    rows, empty = records_in_places(units, table.unit_starts, table.max_rows_per_unit)
    codes = np.full((len(rows), table.codes.shape[1]), ABSENT, dtype=np.uint16)
    codes[~empty] = table.codes[rows[~empty]]
    return codes
