"""Arrow columns as distinct cells: what a cell means is found once, however many rows hold it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from service.base.errors import InvalidFile
from service.base.messages import Message, plural
from service.intake.table.cells import Cells, MomentCells, NumberCells, WholeCells

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from service.intake.limits import IngestLimits

Codes = NDArray[np.uint32]


class Column:
    """One column of one chunk: cells, and which of them stands in each row (`codes`; None: one cell per row)."""

    def __init__(self, name: str, cells: Cells, codes: Codes | None, rows: int) -> None:
        self.name = name
        self.cells = cells
        self.codes = codes
        self.rows = rows

    def count(self, mask: pl.Series) -> int:
        """How many rows hold a cell of the mask (boolean, without null)."""
        if self.times is None or not mask.any():
            return int(mask.sum())
        return int(self.times[mask.to_numpy()].sum())

    def spread(self, of_cells: pl.Series) -> pl.Series:
        """One value per cell to one per row."""
        return of_cells if self.codes is None else of_cells.gather(pl.Series(self.codes))

    @cached_property
    def times(self) -> NDArray[np.intp] | None:
        """How many rows hold each cell; None: one."""
        return None if self.codes is None else np.bincount(self.codes, minlength=len(self.cells.raw))


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some rows of an opened file. A column is made when it is asked for: threads may make several at once."""

    columns: Mapping[str, Callable[[], Column]]
    share: float
    """How much of the file has been read with this chunk, from 0 to 1."""


class ColumnSource:
    """Makes columns of one name, chunk by chunk. Looks for distinct cells as long as that saves work."""

    def __init__(self, name: str, limits: IngestLimits) -> None:
        self.name = name
        self._field_bytes = limits.field_bytes
        self._repeats = True

    def column(self, array: pa.Array | pa.ChunkedArray) -> Column:
        """The array as a column. Refuses giant cells, and NUL, which only a Parquet file can still hold here."""
        rows = len(array)
        if isinstance(array, pa.ChunkedArray):
            array = array.combine_chunks()
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        codes: Codes | None = None
        if self._repeats and not pa.types.is_null(array.type):
            encoded = array.dictionary_encode(null_encoding="encode")
            self._repeats = len(encoded.dictionary) <= rows // 2
            array, codes = encoded.dictionary, encoded.indices.to_numpy().view(np.uint32)
        column = Column(self.name, _cells(self.name, array), codes, rows)
        if _is_text(array.type):
            self._check(column)
        return column

    def _check(self, column: Column) -> None:
        text = column.cells.raw
        too_long = column.count((text.str.len_bytes() > self._field_bytes).fill_null(value=False))
        if too_long:
            raise InvalidFile(
                Message(
                    "Column %(name)s: %(cells)s longer than %(field_bytes)s bytes.",
                    name=repr(self.name),
                    cells=cells_are(too_long),
                    field_bytes=self._field_bytes,
                ),
                column=self.name,
                count=too_long,
            )
        nul = text.str.contains("\x00", literal=True).fill_null(value=False)
        if nul.any():
            count = column.count(nul)
            what = Message("%(cells)s not text: they contain NUL", cells=cells_are(count))
            raise InvalidFile(
                Message("Column %(name)s: %(what)s.", name=repr(self.name), what=what), column=self.name, count=count
            )


def chunk(sources: Iterable[ColumnSource], arrays: Iterable[pa.Array | pa.ChunkedArray], share: float) -> Chunk:
    """A chunk whose columns are still to be made."""
    columns = {source.name: partial(source.column, array) for source, array in zip(sources, arrays, strict=True)}
    return Chunk(columns, min(share, 1.0))


def is_supported(kind: pa.DataType) -> bool:
    """Flat types that have an obvious spelling in a CSV."""
    if pa.types.is_dictionary(kind):
        return is_supported(kind.value_type) and not pa.types.is_dictionary(kind.value_type)
    tests = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
        pa.types.is_decimal,
        pa.types.is_date,
        pa.types.is_timestamp,
        pa.types.is_null,
    )
    return _is_text(kind) or any(test(kind) for test in tests)


def cells_are(count: int) -> str:
    """`1 cell is` or `3 cells are`, the beginning of a sentence about a column."""
    return plural("1 cell is", "%(count)s cells are", count, count=count)


def _cells(name: str, array: pa.Array) -> Cells:
    """The array's cells, null where there is no value."""
    was_text = _is_text(array.type)
    if pa.types.is_decimal(array.type):
        array = array.cast(pa.string())
    elif pa.types.is_float16(array.type):
        array = array.cast(pa.float32())
    series = pl.Series(name, array)
    if isinstance(series.dtype, pl.Datetime) and series.dtype.time_zone is not None:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    if series.dtype.is_integer() and series.dtype != pl.UInt64:
        return WholeCells(series)
    if series.dtype == pl.Float64 and series.is_finite().all():  # nulls do not count
        return NumberCells(series)
    if series.dtype == pl.Date or isinstance(series.dtype, pl.Datetime):
        return MomentCells(series)
    return Cells(series.cast(pl.String), was_text=was_text)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
