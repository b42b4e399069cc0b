"""Some units of a table, with all their rows."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from workers.encoding.kept_rows import moved_up
from workers.encoding.table import EncodedTable

if TYPE_CHECKING:
    from numpy.typing import NDArray


def with_units(table: EncodedTable, units: NDArray[np.int64]) -> EncodedTable:
    """These units alone, with all their rows; they are counted anew from 0. A table that is mapped from a file is used up."""
    if table.unit_starts is None:
        rows, starts = units, None
    else:
        lengths = np.diff(table.unit_starts)[units]
        starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        rows = np.arange(starts[-1]) + np.repeat(table.unit_starts[units] - starts[:-1], lengths)
    places = {column: _of_rows(own, rows) for column, own in table.places.items()}
    codes = np.ascontiguousarray(_of_rows(table.codes, rows))
    return replace(table, codes=codes, units=len(units), unit_starts=starts, places=places)


def _of_rows(array: NDArray[Any], rows: NDArray[np.int64]) -> NDArray[Any]:
    """What is too large for memory moves up in its file."""
    return moved_up(array, rows) if isinstance(array, np.memmap) else array[rows]
