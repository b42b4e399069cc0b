"""Write the canonical Parquet file: rows as uploaded, or grouped by privacy unit through buckets in a scratch file.

Text is written from Enums of the declared categories, and read back as plain text: the file names no Arrow types.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from service.domain.table_schema import UNIT_COLUMN

if TYPE_CHECKING:
    from service.intake.sealed import SealedFile
    from service.intake.table.fingerprint import Blocks

_LOW, _HIGH = "__unit_low__", "__unit_high__"
_GROUP_ROWS = 131_072
_GROUP_BYTES = 32 * 1024 * 1024
_BUCKET_BYTES = 128 * 1024 * 1024
_MAX_BUCKETS = 256


class RowGroupWriter:
    """Collects chunks into row groups of bounded size; one thread of its own packs the last while the next is read."""

    def __init__(self, file: SealedFile) -> None:
        self._bytes = file.writer()
        self._held: list[pl.DataFrame] = []
        self._held_rows = 0
        self._held_bytes = 0
        self._file: pq.ParquetWriter | None = None
        self._thread = ThreadPoolExecutor(1)
        self._writing: Future[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown()
        if self._file is not None:
            self._file.close()
        self._bytes.close()

    def write(self, frame: pl.DataFrame) -> None:
        self._held.append(frame)
        self._held_rows += frame.height
        self._held_bytes += int(frame.estimated_size())
        if self._held_rows >= _GROUP_ROWS or self._held_bytes >= _GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hand what is held to the thread, once it is done with the group before."""
        self.wait()
        if self._held:
            self._writing = self._thread.submit(self._pack, self._held)
            self._held, self._held_rows, self._held_bytes = [], 0, 0

    def wait(self) -> None:
        """Until everything handed over is written; raises what went wrong."""
        if self._writing is not None:
            self._writing.result()
            self._writing = None

    def _pack(self, frames: list[pl.DataFrame]) -> None:
        table = pl.concat(frames, rechunk=True).to_arrow(compat_level=pl.CompatLevel.oldest())
        if self._file is None:
            self._file = pq.ParquetWriter(self._bytes, table.schema, compression="zstd", store_schema=False)
        self._file.write_table(table, row_group_size=_GROUP_ROWS)


class CanonicalWriter(Protocol):
    """Takes the table's chunks; `finish` closes the file and returns what is known about the units."""

    def add(self, frame: pl.DataFrame, units: Blocks | None) -> None: ...

    def finish(self) -> Units: ...


class Units:
    """How many units there are, and how many of them have more rows than the declared maximum."""

    def __init__(self, count: int, over_maximum: int = 0) -> None:
        self.count = count
        self.over_maximum = over_maximum


class RowUnits:
    """Every row is a unit: rows go straight to the file."""

    def __init__(self, file: SealedFile) -> None:
        self._writer = RowGroupWriter(file)
        self._rows = 0

    def add(self, frame: pl.DataFrame, units: Blocks | None) -> None:  # noqa: ARG002 - same signature
        self._writer.write(frame)
        self._rows += frame.height

    def finish(self) -> Units:
        with self._writer as writer:
            writer.flush()
            writer.wait()
        return Units(self._rows)


class ColumnUnits:
    """Rows of one unit side by side, with a dense code, without holding the table or its units in memory.

    A unit is known by 128 pseudorandom bits (`unit_ids.py`). Chunks are dealt into buckets of one scratch file by the low bits;
    one bucket at a time is then sorted and numbered on.
    """

    def __init__(self, file: SealedFile, scratch: SealedFile, *, expected_bytes: int, max_rows_per_unit: int) -> None:
        self._file = file
        self._scratch = scratch
        self._max_rows_per_unit = max_rows_per_unit
        buckets = min(_MAX_BUCKETS, 1 + expected_bytes // _BUCKET_BYTES)
        self._parts: list[list[tuple[int, int]]] = [[] for _ in range(buckets)]
        """Of each bucket, where its batches lie in the scratch file, and how long each is."""
        self._schema: pl.Schema | None = None
        self._stored: pa.Schema | None = None

    def add(self, frame: pl.DataFrame, units: Blocks | None) -> None:
        if units is None:
            raise ValueError("a table with a privacy unit needs the rows' units")
        self._schema = frame.schema
        frame = frame.with_columns(
            pl.col(pl.Enum).to_physical(), pl.Series(_LOW, units[:, 0]), pl.Series(_HIGH, units[:, 1])
        )
        if len(self._parts) == 1:
            self._append(0, frame)
            return
        bucket = (units[:, 0] % np.uint64(len(self._parts))).astype(np.uint32)
        frame = frame[np.argsort(bucket, kind="stable").astype(np.uint32)]
        stop = 0
        for number, rows in enumerate(np.bincount(bucket, minlength=len(self._parts)).tolist()):
            start, stop = stop, stop + rows
            if rows:
                self._append(number, frame[start:stop])

    def finish(self) -> Units:
        count = over_maximum = 0
        with RowGroupWriter(self._file) as writer:
            for parts in self._parts:
                if not parts or self._schema is None:
                    continue
                bucket = self._read(parts).sort(_LOW, _HIGH, maintain_order=True)
                units = bucket.select(pl.struct(_LOW, _HIGH).rle_id().cast(pl.Int64)).to_series()
                sizes = np.bincount(units.to_numpy())
                columns = [_restored(bucket[name], dtype) for name, dtype in self._schema.items()]
                bucket = pl.DataFrame([*columns, (units + count).alias(UNIT_COLUMN)])
                count += len(sizes)
                over_maximum += int((sizes > self._max_rows_per_unit).sum())
                for part in bucket.iter_slices(_GROUP_ROWS):
                    writer.write(part)
            writer.flush()
            writer.wait()
        return Units(count, over_maximum)

    def _append(self, number: int, frame: pl.DataFrame) -> None:
        table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
        self._stored = table.schema
        for batch in table.to_batches():
            message = batch.serialize()
            self._parts[number].append((self._scratch.append(message), message.size))

    def _read(self, parts: list[tuple[int, int]]) -> pl.DataFrame:
        batches = [pa.ipc.read_record_batch(pa.py_buffer(self._scratch.read_at(*part)), self._stored) for part in parts]
        return pl.DataFrame(pa.Table.from_batches(batches))


def _restored(column: pl.Series, dtype: pl.DataType) -> pl.Series:
    """The column as it was before its categories were dealt out as codes."""
    if not isinstance(dtype, pl.Enum):
        return column
    return pl.Series(dtype.categories, dtype=dtype).gather(column).alias(column.name)
