"""A table as small integers: the public domain of every column, and the rows as codes of that domain.

The domain comes from the declared schema alone, never from rows. Every column becomes one list of cells: declared
categories, or the cells of a fixed public grid; where values may be missing, "missing" is one more cell, the last.
A row is one code per column. What lies outside the domain is clamped or becomes missing here, inside the private
pipeline, and is never reported.
"""

from __future__ import annotations

import dataclasses
import io
import math
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple

import numpy as np
import polars as pl
import pyarrow.parquet as pq
from numpy.typing import NDArray

from service.base.errors import InvalidFile
from service.domain.field_schema import ValueRange
from service.domain.grids import grid_edges
from service.domain.spelling_config import written_as
from service.domain.table_schema import UNIT_COLUMN
from service.domain.value_grids import ValueGrid, value_grid
from workers.encoding.kept_rows import RandomKeys, choose_rows, moved_up, operating_system_keys

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from service.domain.field_schema import FieldSchema, FieldType, Scalar
    from service.domain.table_schema import Exclusion, TableSchema

ABSENT = 65_535
"""The code of no cell: pads units that have fewer than max_rows_per_unit rows. No real row ever has it."""

_BATCH_ROWS = 65_536
_SMALLEST_MAPPED_BYTES = 32 * 1024 * 1024
"""Codes of smaller tables stay in memory; larger ones are mapped from a scratch file that has no name."""

Codes = NDArray[np.unsignedinteger]


class Interval(NamedTuple):
    """Numbers of a range, ends included."""

    low: float
    high: float


Condition = tuple["Scalar | None", ...] | Interval
"""On one column: one of these values, or a number in this interval."""


@dataclass(frozen=True)
class ColumnDomain:
    """One column's cells. `size` counts them all, the missing cell (always the last) included.

    categories: `values` holds one JSON value per cell, with None for missing.
    grid:       `edges` bound the cells [edges[i], edges[i+1]); dates are days, datetimes seconds since 1970-01-01.
                Cells of integer, date and datetime columns hold whole numbers only, so the last edge is maximum + 1;
                the last bin of a number column includes the maximum.
    """

    name: str
    type: FieldType
    kind: Literal["categories", "grid"]
    size: int
    values: tuple[Scalar | None, ...] | None
    edges: tuple[float, ...] | None
    missing: bool
    decimals: int | None = None
    step: int = 1
    """Whole values are multiples of it: seconds of a datetime's resolution."""
    value_grid: ValueGrid | None = None
    """The single values of an open range, which a tree of counts may tell apart."""
    shared_values: tuple[tuple[float, float], ...] = ()
    """Increasing values that many rows share, and of the rows of its cell the part that has each; others lie evenly in their cell."""
    other: str | None = None
    """Of categories that were bought, the one of all values that are not among them."""
    written: Mapping[str, Any] = dataclasses.field(default_factory=dict, compare=False)
    """How its values are spelled in text, for config.json."""

    @classmethod
    def from_field(cls, field: FieldSchema, *, numeric_bins: int) -> ColumnDomain:
        missing = not field.constraints.required
        name, kind, written = field.name, field.type, written_as(field)
        if field.categories is not None:
            values = (*field.categories, None) if missing else field.categories
            made = cls(name, kind, "categories", len(values), values, None, missing, written=written)
            return replace(made, other=field.other)
        edges = grid_edges(field, numeric_bins)
        counted = value_grid(field, len(edges) - 1 + missing)
        size = len(edges) - 1 + missing
        decimals = field.decimals_of_values
        return cls(name, kind, "grid", size, None, edges, missing, decimals, field.step, counted, written=written)

    def with_bins(self, starts: NDArray[np.int64]) -> ColumnDomain:
        """The column with bins that begin at these places of the value grid, the first of them 0."""
        grid, edges = self.value_grid, self.edges or ()
        if grid is None:
            raise ValueError(f"values of {self.name} are not counted")
        inner = grid.values(starts[1:])
        if self.type == "number":  # the maximum alone is a bin of next to no width
            inner = np.minimum(inner, np.nextafter(edges[-1], -np.inf))
        return replace(self, size=len(starts) + self.missing, edges=(edges[0], *inner.tolist(), edges[-1]))

    @property
    def missing_code(self) -> int | None:
        return self.size - 1 if self.missing else None

    def to_config(self) -> dict[str, Any]:
        """The form that service/samples/table/sampler.py reads."""
        head: dict[str, Any] = {"name": self.name, "type": self.type, "size": self.size, **self.written}
        if self.values is not None:
            return {**head, "values": list(self.values)}
        digits = {} if self.decimals is None else {"decimals": self.decimals}
        digits |= {} if self.step == 1 else {"step": self.step}
        shared = {"shared_values": [list(one) for one in self.shared_values]} if self.shared_values else {}
        return {**head, "edges": list(self.edges or ()), "missing": self.missing, **digits, **shared}

    def encode(self, series: pl.Series) -> Codes:
        """Codes of one column of the canonical table; what has no cell of its own becomes missing.

        In a required column, where upload refuses such values, it becomes the first cell: an error here would be
        an event that depends on private rows.
        """
        codes = self._category_codes(series) if self.values is not None else self._grid_codes(*self.numbers(series))
        fallback = 0 if self.missing_code is None else self.missing_code
        return codes.fill_null(fallback).cast(pl.UInt16).to_numpy()

    def _category_codes(self, series: pl.Series) -> pl.Series:
        values = [value for value in self.values or () if value is not None]
        if self.type == "boolean":
            return series.cast(pl.UInt32)
        if self.type == "string":
            codes = series.cast(pl.Enum([str(value) for value in values]), strict=False).to_physical()
            others = codes.is_null() & series.is_not_null()
            return codes if self.other is None else codes.set(others, values.index(self.other))
        keys = pl.Series(values, dtype=series.dtype, strict=False)
        return series.replace_strict(keys, pl.int_range(len(values), dtype=pl.UInt32, eager=True), default=None)

    def places(self, series: pl.Series) -> NDArray[np.uint32]:
        """The place of each cell's value in `value_grid`, (rows,); the grid's size where it is missing."""
        if self.value_grid is None:
            raise ValueError(f"values of {self.name} are not counted")
        numbers, known = self.numbers(series)
        places = self.value_grid.places(numbers.to_numpy().astype(np.float64))
        return np.where(known.to_numpy(), places, self.value_grid.size).astype(np.uint32)

    def _grid_codes(self, numbers: pl.Series, known: pl.Series) -> pl.Series:
        edges = np.asarray(self.edges, dtype=np.float64)
        # Inner edges only: whatever lies below the first or above the last edge is clamped into the end cells.
        cells = np.searchsorted(edges[1:-1], numbers.to_numpy(), side="right")
        return pl.select(pl.when(known).then(pl.Series(cells))).to_series()

    def numbers(self, series: pl.Series) -> tuple[pl.Series, pl.Series]:
        """The values of a range as numbers, (rows,), 0 where there is none; and which are known."""
        if self.type == "date":
            series = series.cast(pl.Int32)
        elif self.type == "datetime":
            series = series.cast(pl.Datetime("us")).cast(pl.Int64) // 1_000_000
        known = series.is_not_null()
        if series.dtype.is_float():
            known &= series.is_not_nan().fill_null(value=False)
        return series.fill_null(0), known


@dataclass(frozen=True)
class TableDomain:
    """The columns in schema order; `logits` of a generator are their cells side by side."""

    columns: tuple[ColumnDomain, ...]
    exclusions: tuple[Mapping[int, Condition], ...] = ()
    """No row meets all conditions of one of these, by column."""

    @classmethod
    def from_schema(cls, schema: TableSchema, *, numeric_bins: int) -> TableDomain:
        """The public domain of a declared schema; `numeric_bins` cells where a range declares no grid."""
        schema = schema.modelled
        return cls(
            tuple(ColumnDomain.from_field(field, numeric_bins=numeric_bins) for field in schema.fields),
            tuple(_by_place(exclusion, schema.fields) for exclusion in schema.exclusions),
        )

    def with_bins(self, starts: Mapping[int, NDArray[np.int64]]) -> TableDomain:
        """The domain with bins of these columns that begin at these places of their value grids."""
        columns = list(self.columns)
        for place, own in starts.items():
            columns[place] = columns[place].with_bins(own)
        return replace(self, columns=tuple(columns))

    @property
    def value_grids(self) -> dict[int, ValueGrid]:
        """The value grid of every column whose values may be counted."""
        grids = {place: column.value_grid for place, column in enumerate(self.columns)}
        return {place: grid for place, grid in grids.items() if grid is not None}

    @property
    def widths(self) -> tuple[int, ...]:
        return tuple(column.size for column in self.columns)

    @property
    def total_width(self) -> int:
        return sum(self.widths)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def index(self, name: str) -> int:
        """Position of a column; KeyError if there is none of that name."""
        try:
            return self.names.index(name)
        except ValueError:
            raise KeyError(name) from None

    def to_config(self) -> list[dict[str, Any]]:
        """`columns` of the generator's config.json."""
        return [column.to_config() for column in self.columns]

    def exclusions_to_config(self) -> list[list[dict[str, Any]]]:
        """`exclusions` of the generator's config.json: all conditions of each."""
        return [
            [
                {"column": self.names[place]}
                | (condition._asdict() if isinstance(condition, Interval) else {"values": list(condition)})
                for place, condition in exclusion.items()
            ]
            for exclusion in self.exclusions
        ]


def _by_place(exclusion: Exclusion, fields: tuple[FieldSchema, ...]) -> Mapping[int, Condition]:
    """In the order of the fields: an object's keys have none that is kept (Postgres sorts them, as JSON allows)."""
    return {
        place: Interval(*field.numbers_of(condition)) if isinstance(condition, ValueRange) else condition
        for place, field in enumerate(fields)
        if (condition := exclusion.get(field.name)) is not None
    }


@dataclass(frozen=True)
class EncodedTable:
    """Rows as codes, and which rows are whose.

    Without a privacy unit, row i is unit i and `unit_starts` is None. With one, unit i holds the rows
    unit_starts[i]:unit_starts[i+1], at most max_rows_per_unit of them.
    """

    codes: Codes  # (rows, columns), C-contiguous
    units: int
    unit_starts: NDArray[np.int64] | None  # (units + 1,)
    max_rows_per_unit: int
    places: Mapping[int, NDArray[np.uint32]] = dataclasses.field(default_factory=dict)
    """(rows,) of each column whose values are counted: their places in its value grid."""

    def rows_alone(self) -> EncodedTable:
        """The same rows, each a unit of its own: for a public table, which has no units to protect."""
        return EncodedTable(self.codes, len(self.codes), None, 1)

    def encode_anew(self, column: ColumnDomain, place: int, starts: NDArray[np.int64]) -> None:
        """Codes of one column by bins that begin at these places, in place. Null records stay what they are."""
        grid, missing = column.value_grid, column.size - 1 if column.missing else 0
        if grid is None:
            raise ValueError(f"values of {column.name} are not counted")
        for first in range(0, len(self.codes), _BATCH_ROWS):
            rows = slice(first, first + _BATCH_ROWS)
            places = self.places[place][rows]
            bins = np.where(places < grid.size, np.searchsorted(starts, places, side="right") - 1, missing)
            self.codes[rows, place] = np.where(places > grid.size, self.codes[rows, place], bins)


def encode_table(
    source: Path | str | bytes | BinaryIO,
    domain: TableDomain,
    *,
    units: int,
    max_rows_per_unit: int = 1,
    random_keys: RandomKeys = operating_system_keys,
    scratch_dir: Path | None = None,
    with_places: bool = False,
) -> EncodedTable:
    """Encode the canonical Parquet file batch by batch; memory does not grow with a table of single rows.

    with_places: of every column that has a value grid, too.

    With a `__unit__` column, each unit keeps at most `max_rows_per_unit` of its rows, chosen uniformly at random
    by sorting on `random_keys` (count -> that many independent uniform 64-bit keys).
    """
    with pq.ParquetFile(io.BytesIO(source) if isinstance(source, bytes) else source) as file:
        by_unit = _has_units(file, domain, units)
        rows = _read(file, domain, by_unit=by_unit, with_places=with_places, scratch_dir=scratch_dir)
    if not by_unit:
        return EncodedTable(rows.codes, units, None, 1, rows.places)
    return _with_few_rows_per_unit(rows, units, max_rows_per_unit, random_keys)


def names_units(source: BinaryIO) -> bool:
    """Whether the rows of a canonical Parquet file are grouped by units; reads its end alone, and goes back to its beginning."""
    with pq.ParquetFile(source) as file:
        found = UNIT_COLUMN in file.schema_arrow.names
    source.seek(0)
    return found


def _has_units(file: pq.ParquetFile, domain: TableDomain, units: int) -> bool:
    """Whether each row names its unit; raises `InvalidFile` where the file is not what is recorded of it."""
    names = tuple(file.schema_arrow.names)
    by_unit = names == (*domain.names, UNIT_COLUMN)
    if not by_unit and names != domain.names:
        raise InvalidFile("The stored table does not have the columns of its declared schema; upload it again.")
    if not by_unit and file.metadata.num_rows != units:
        raise InvalidFile("The stored table does not have the recorded number of rows; upload it again.")
    return by_unit


@dataclass(frozen=True)
class _Rows:
    """All rows of a file."""

    codes: Codes  # (rows, columns)
    places: Mapping[int, NDArray[np.uint32]]
    unit_of_row: NDArray[np.int64]  # (rows,), or empty where rows are units


def _read(
    file: pq.ParquetFile, domain: TableDomain, *, by_unit: bool, with_places: bool, scratch_dir: Path | None
) -> _Rows:
    rows = file.metadata.num_rows
    codes = _empty((rows, len(domain.columns)), _code_type(domain), scratch_dir)
    counted = domain.value_grids if with_places else {}
    places = {index: _empty((rows,), np.uint32, scratch_dir) for index in counted}
    unit_of_row = np.empty(rows if by_unit else 0, dtype=np.int64)
    for start, frame in _batches(file):
        stop = start + frame.height
        for index, column in enumerate(domain.columns):
            codes[start:stop, index] = column.encode(frame[column.name])
        for index, own in places.items():
            own[start:stop] = domain.columns[index].places(frame[domain.columns[index].name])
        if by_unit:
            unit_of_row[start:stop] = frame[UNIT_COLUMN].to_numpy()
    return _Rows(codes, places, unit_of_row)


def _with_few_rows_per_unit(rows: _Rows, units: int, most: int, random_keys: RandomKeys) -> EncodedTable:
    """At most so many rows of each unit, chosen uniformly at random; the arrays of `rows` are used up."""
    of_row = rows.unit_of_row
    if len(of_row) and (of_row.min() < 0 or of_row.max() >= units or (np.diff(of_row) < 0).any()):
        raise InvalidFile("The stored table does not have the recorded privacy units; upload it again.")
    kept = choose_rows(of_row, most, random_keys)
    unit_starts = np.searchsorted(of_row[kept], np.arange(units + 1)).astype(np.int64)
    places = {index: moved_up(own, kept) for index, own in rows.places.items()}
    return EncodedTable(moved_up(rows.codes, kept), units, unit_starts, most, places)


def _code_type(domain: TableDomain) -> type[np.unsignedinteger]:
    """One byte a code where every column's cells fit; of an open range twice as many: so many bins a tree may give it."""
    most = max((column.size * (1 if column.value_grid is None else 2) for column in domain.columns), default=0)
    return np.uint8 if most <= np.iinfo(np.uint8).max else np.uint16


def _empty(shape: tuple[int, ...], dtype: type[np.unsignedinteger], scratch_dir: Path | None) -> NDArray[Any]:
    """An array of this shape; a large one mapped from a file that has no name.

    Such a file is gone when the process is, however it ends. The kernel keeps in memory what the draws touch.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < _SMALLEST_MAPPED_BYTES:
        return np.empty(shape, dtype=dtype)
    with tempfile.TemporaryFile(prefix="imprimatur-codes-", dir=scratch_dir) as file:
        os.posix_fallocate(file.fileno(), 0, size)  # a full disk is an error here, not a signal later
        return np.memmap(file, dtype=dtype, mode="r+", shape=shape)


def _batches(file: pq.ParquetFile) -> Iterator[tuple[int, pl.DataFrame]]:
    start = 0
    for batch in file.iter_batches(batch_size=_BATCH_ROWS):
        frame = pl.DataFrame(batch)
        yield start, frame
        start += frame.height
