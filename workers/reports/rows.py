"""Real and synthetic rows side by side: in the same public cells, and as numbers. For reports alone; not private."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from service.domain.roles import fine_shares
from service.domain.table_schema import UNIT_COLUMN
from service.methods.report_noise import NUMERIC_BINS
from service.samples.samplers import sampler_from_bundle
from service.samples.streams import stream_rows
from service.samples.table.sampler import TableSampler
from workers.encoding.table import TableDomain

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import BinaryIO

    from numpy.typing import NDArray

    from service.domain.table_schema import TableSchema
    from workers.encoding.table import ColumnDomain


@dataclass(frozen=True)
class Rows:
    """Some rows of a table."""

    codes: NDArray[np.int64]  # (rows, columns): cells of the public domain
    numbers: NDArray[np.float64]  # (rows, columns): values of ranges, NaN where missing; cells of categories

    def __len__(self) -> int:
        return len(self.codes)

    def at(self, places: NDArray[Any]) -> Rows:
        return Rows(self.codes[places], self.numbers[places])

    def shuffled(self, random: np.random.Generator) -> Rows:
        """The same columns, each in an order of its own: rows of a table whose columns are independent."""
        orders = [random.permutation(len(self)) for _ in range(self.codes.shape[1])]
        codes = np.stack([self.codes[order, c] for c, order in enumerate(orders)], axis=1)
        numbers = np.stack([self.numbers[order, c] for c, order in enumerate(orders)], axis=1)
        return Rows(codes, numbers)


def domain_of(schema: TableSchema) -> TableDomain:
    """The cells that reports count in: from the declaration alone."""
    return TableDomain.from_schema(schema, numeric_bins=NUMERIC_BINS)


def rows_of(frame: pl.DataFrame, domain: TableDomain) -> Rows:
    """Columns of the canonical types."""
    codes = [column.encode(frame[column.name]).astype(np.int64) for column in domain.columns]
    numbers = [_numbers(column, frame[column.name], own) for column, own in zip(domain.columns, codes, strict=True)]
    return Rows(np.stack(codes, axis=1), np.stack(numbers, axis=1))


def _numbers(column: ColumnDomain, series: pl.Series, codes: NDArray[np.int64]) -> NDArray[np.float64]:
    if column.values is not None:
        return codes.astype(np.float64)
    if column.type == "date":
        series = series.cast(pl.Int32)
    elif column.type == "datetime":
        series = series.cast(pl.Datetime("us")).cast(pl.Int64) // 1_000_000
    low, high = (column.edges or (0.0, 0.0))[0], (column.edges or (0.0, 0.0))[-1]
    return series.cast(pl.Float64).fill_null(float("nan")).to_numpy().clip(low, high)


def read_owned(source: BinaryIO) -> tuple[pl.DataFrame, NDArray[np.int64]]:
    """All rows of the canonical file, and the unit of each."""
    with pq.ParquetFile(source) as file:
        frame = pl.DataFrame(file.read())
    owners = frame[UNIT_COLUMN].to_numpy() if UNIT_COLUMN in frame.columns else np.arange(frame.height)
    return frame, owners.astype(np.int64)


def halves_of(
    frame: pl.DataFrame, owners: NDArray[np.int64], domain: TableDomain, *, most: int, random: np.random.Generator
) -> tuple[Rows, Rows]:
    """Two random halves of at most so many rows; all rows of a unit are in one of them."""
    units = int(owners.max(initial=-1)) + 1
    order = random.permutation(units)
    place = np.empty(units, dtype=np.int64)
    place[order] = np.arange(units)
    of_row = place[owners]
    halves = [np.flatnonzero(of_row % 2 == half) for half in (0, 1)]
    some = [np.sort(half[np.argsort(of_row[half], kind="stable")][: most // 2]) for half in halves]
    one, other = (rows_of(frame[places], domain) for places in some)
    return one, other


def one_of_each(
    frame: pl.DataFrame,
    owners: NDArray[np.int64],
    domain: TableDomain,
    units: NDArray[np.int64],
    *,
    most: int,
    random: np.random.Generator,
) -> Rows:
    """One row, at random, of each of these units; of at most so many of them, in a random order."""
    shuffled = random.permutation(np.flatnonzero(np.isin(owners, units)))
    _, firsts = np.unique(owners[shuffled], return_index=True)
    return rows_of(frame[shuffled[random.permutation(firsts)[:most]]], domain)


def draw_frame(bundle: bytes, rows: int, *, seed: int | None = None) -> pl.DataFrame:
    """Rows of a published generator, with every column that a sample has."""
    sampler = sampler_from_bundle(bundle)
    if not isinstance(sampler, TableSampler):
        raise TypeError("reports are made of tables")
    return pl.read_parquet(io.BytesIO(b"".join(stream_rows(sampler, rows=rows, format="parquet", seed=seed))))


def next_seed(random: np.random.Generator) -> int:
    """Of rows that are drawn next: another one each time, the same ones in a report that is repeated from one seed."""
    return int(random.integers(2**63))


def modelled(frame: pl.DataFrame, schema: TableSchema) -> pl.DataFrame:
    """The columns that a generator learns: of a hierarchy the coarse level."""
    columns = []
    for name in schema.modelled.names:
        field, column = schema.field(name), frame[name]
        if field is not None and field.hierarchy is not None:
            coarse = {fine: one for one, shares in fine_shares(field.hierarchy).items() for fine in shares}
            column = column.cast(pl.String).replace_strict(coarse, default=None, return_dtype=pl.String)
        columns.append(column)
    return pl.DataFrame(columns)


def unsigned_bundle(files: Mapping[str, bytes]) -> bytes:
    """The files of a generator that is not certified yet, to draw rows from it; leaves this process nowhere."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in ("config.json", "generator.onnx"):
            archive.writestr(name, files[name])
    return buffer.getvalue()
