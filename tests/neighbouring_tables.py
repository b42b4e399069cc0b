"""A random table, and the same without one unit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from bench.audit.worlds import DOMAIN
from workers.encoding.table import ABSENT, EncodedTable


def random_table(units: int, rows_per_unit: int, seed: int = 1) -> EncodedTable:
    """Units of as many rows each."""
    rng, rows = np.random.default_rng(seed), units * rows_per_unit
    codes = np.stack([rng.integers(width, size=rows) for width in DOMAIN.widths], axis=1).astype(np.uint16)
    starts = None if rows_per_unit == 1 else np.arange(0, rows + 1, rows_per_unit)
    return EncodedTable(codes, units, starts, rows_per_unit)


def neighbours(table: EncodedTable, unit: int) -> list[EncodedTable]:
    """The unit's rows have no cell; or, where it may have any number of them, it has none."""
    zeroed = zeroed_out(table, unit)
    return [zeroed] if table.unit_starts is None else [zeroed, with_rows_removed(table, unit)]


def row_starts(table: EncodedTable) -> np.ndarray:
    """(units + 1,) where the rows of each unit begin, and the last ones end."""
    return np.arange(table.units + 1) if table.unit_starts is None else table.unit_starts


def zeroed_out(table: EncodedTable, unit: int) -> EncodedTable:
    """Its rows are null records."""
    codes, starts = table.codes.copy(), row_starts(table)
    codes[starts[unit] : starts[unit + 1]] = ABSENT
    return replace(table, codes=codes)


def with_rows_removed(table: EncodedTable, unit: int) -> EncodedTable:
    """n - 1 units have rows, the same n is declared."""
    starts = row_starts(table)
    gone = np.s_[starts[unit] : starts[unit + 1]]
    kept = np.delete(table.codes, gone, axis=0)
    places = {column: np.delete(within, gone) for column, within in table.places.items()}
    fewer = starts - np.where(np.arange(table.units + 1) > unit, starts[unit + 1] - starts[unit], 0)
    return EncodedTable(kept, table.units, fewer, table.max_rows_per_unit, places)
