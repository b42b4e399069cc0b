"""Columns of a table as their declared values: codes of categories, numbers of ranges. For questions, which need more than bins."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
import polars as pl
import pyarrow.parquet as pq
from numpy.typing import NDArray

from service.base.errors import InvalidFile
from service.domain.open_columns import Candidate, candidates, open_fields
from service.domain.table_schema import UNIT_COLUMN
from workers.encoding.kept_rows import RandomKeys, choose_rows, operating_system_keys
from workers.encoding.table import ColumnDomain

if TYPE_CHECKING:
    from service.domain.field_schema import FieldSchema
    from service.domain.table_schema import TableSchema

_BATCH_ROWS = 65_536

Plain = NDArray[Any]


@dataclass(frozen=True)
class TableValues:
    """The values of some columns, and whose rows they are."""

    fields: Mapping[str, FieldSchema]
    """Of every column of the table."""
    codes: Mapping[str, NDArray[np.int64]]
    """Of each column of categories: the place of the value among those declared; -1 where it is missing."""
    numbers: Mapping[str, NDArray[np.float64]]
    """Of each range: dates as days, datetimes as seconds since 1970-01-01; NaN where it is missing."""
    rows: int
    unit_starts: NDArray[np.int64] | None
    max_rows_per_unit: int
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Of columns whose categories are still to be bought: what its codes stand for, in order. As private as the rows."""
    candidates: Mapping[str, tuple[Candidate, ...]] = field(default_factory=dict)
    """Of ranges whose bounds are: the public values that they may become."""

    @property
    def units(self) -> int:
        return self.rows if self.unit_starts is None else len(self.unit_starts) - 1


def read_values(
    source: bytes | BinaryIO,
    schema: TableSchema,
    names: Sequence[str],
    *,
    units: int,
    max_rows_per_unit: int = 1,
    random_keys: RandomKeys = operating_system_keys,
) -> TableValues:
    """These columns of the canonical Parquet file; of each unit at most `max_rows_per_unit` rows, chosen at random as `encode_table` does."""
    domains = {one.name: ColumnDomain.from_field(one, numeric_bins=1) for one in schema.fields}
    with pq.ParquetFile(io.BytesIO(source) if isinstance(source, bytes) else source) as file:
        stored, rows = tuple(file.schema_arrow.names), file.metadata.num_rows
        by_unit = stored == (*schema.names, UNIT_COLUMN)
        if not by_unit and (stored != schema.names or rows != units):
            raise InvalidFile("The stored table is not the one that is recorded; upload it again.")
        codes, texts = _open_texts(file, schema, names)
        known = [name for name in names if name not in texts]
        whole = _columns(file, [*known, *([UNIT_COLUMN] if by_unit else [])], schema, domains)
        whole |= codes
    starts = None
    if by_unit:
        kept, starts = _few_of_each(whole.pop(UNIT_COLUMN).astype(np.int64), units, max_rows_per_unit, random_keys)
        whole, rows = {name: own[kept] for name, own in whole.items()}, len(kept)
    return TableValues(
        {one.name: one for one in schema.fields},
        {name: own.astype(np.int64) for name, own in whole.items() if domains[name].kind == "categories"},
        {name: own.astype(np.float64) for name, own in whole.items() if domains[name].kind == "grid"},
        rows,
        starts,
        max_rows_per_unit if by_unit else 1,
        texts,
        _open_ranges(schema, names),
    )


def _open_texts(
    file: pq.ParquetFile, schema: TableSchema, names: Sequence[str]
) -> tuple[dict[str, Plain], dict[str, tuple[str, ...]]]:
    """Of columns whose categories are still to be bought, codes and what these stand for."""
    open_ = [one.name for one in open_fields(schema) if one.is_categorical and one.name in names]
    found = {name: _texts(file, name) for name in open_}
    return {name: codes for name, (codes, _) in found.items()}, {name: texts for name, (_, texts) in found.items()}


def _open_ranges(schema: TableSchema, names: Sequence[str]) -> dict[str, tuple[Candidate, ...]]:
    """Of columns whose bounds are."""
    open_ = [one for one in open_fields(schema) if not one.is_categorical and one.name in names]
    return {one.name: candidates(schema, one) for one in open_}


def _texts(file: pq.ParquetFile, name: str) -> tuple[Plain, tuple[str, ...]]:
    """Codes of a column of any text, -1 where it is missing, and the texts, sorted: their order says nothing of the rows'."""
    parts = [pl.DataFrame(batch)[name] for batch in file.iter_batches(batch_size=_BATCH_ROWS, columns=[name])]
    whole = pl.concat(parts).cast(pl.String) if parts else pl.Series(name, [], dtype=pl.String)
    texts = sorted(whole.drop_nulls().unique().to_list())
    codes = whole.replace_strict(texts, range(len(texts)), default=-1, return_dtype=pl.Int64) if texts else None
    return np.full(len(whole), -1, dtype=np.int64) if codes is None else codes.to_numpy(), tuple(texts)


def _columns(
    file: pq.ParquetFile, names: Sequence[str], schema: TableSchema, domains: Mapping[str, ColumnDomain]
) -> dict[str, Plain]:
    """These columns, batch by batch."""
    bounds = {one.name: one.bounds for one in schema.fields if not one.is_categorical}
    parts: dict[str, list[Plain]] = {name: [] for name in names}
    batches = file.iter_batches(batch_size=_BATCH_ROWS, columns=list(parts)) if parts else ()
    for batch in batches:
        frame = pl.DataFrame(batch)
        for name, own in parts.items():
            own.append(_plain(frame[name], domains.get(name), bounds.get(name, (0.0, 0.0))))
    return {name: np.concatenate(own) if own else np.zeros(0) for name, own in parts.items()}


def _few_of_each(
    of_row: NDArray[np.int64], units: int, most: int, random_keys: RandomKeys
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """The rows that are kept, and where each unit's begin."""
    if len(of_row) and (of_row.min() < 0 or of_row.max() >= units or (np.diff(of_row) < 0).any()):
        raise InvalidFile("The stored table does not have the recorded privacy units; upload it again.")
    kept = choose_rows(of_row, most, random_keys)
    return kept, np.searchsorted(of_row[kept], np.arange(units + 1)).astype(np.int64)


def _plain(series: pl.Series, domain: ColumnDomain | None, bounds: tuple[float, float]) -> Plain:
    if domain is None:
        return series.to_numpy().astype(np.int64)
    if domain.kind == "grid":
        numbers, known = domain.numbers(series)
        low, high = bounds
        return np.where(known.to_numpy(), np.clip(numbers.to_numpy().astype(np.float64), low, high), np.nan)
    codes = domain.encode(series).astype(np.int64)
    return np.where(codes == domain.missing_code, -1, codes) if domain.missing_code is not None else codes
