"""Write the canonical Parquet file: rows as uploaded, or grouped by privacy unit through buckets on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from pathlib import Path

UNIT_COLUMN = "__unit__"
_UNIT_KEY = "__unit_key__"
_GROUP_ROWS = 131_072
_GROUP_BYTES = 32 * 1024 * 1024
_BUCKET_BYTES = 128 * 1024 * 1024
_MAX_BUCKETS = 256


class RowGroupWriter:
    """Collects chunks into row groups of bounded size."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._held: list[pl.DataFrame] = []
        self._held_rows = 0
        self._held_bytes = 0
        self._file: pq.ParquetWriter | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, frame: pl.DataFrame) -> None:
        self._held.append(frame)
        self._held_rows += frame.height
        self._held_bytes += int(frame.estimated_size())
        if self._held_rows >= _GROUP_ROWS or self._held_bytes >= _GROUP_BYTES:
            self.flush()

    def flush(self) -> None:
        if not self._held:
            return
        table = pl.concat(self._held).to_arrow(compat_level=pl.CompatLevel.oldest())
        if self._file is None:
            self._file = pq.ParquetWriter(self._path, table.schema, compression="zstd")
        self._file.write_table(table, row_group_size=_GROUP_ROWS)
        self._held, self._held_rows, self._held_bytes = [], 0, 0


class CanonicalWriter(Protocol):
    """Takes the table's chunks; `finish` closes the file and returns what is known about the units."""

    def add(self, frame: pl.DataFrame, unit_keys: pl.Series | None) -> None: ...

    def finish(self) -> Units: ...


class Units:
    """How many units there are, and how many of them have more rows than the declared maximum."""

    def __init__(self, count: int, over_maximum: int = 0) -> None:
        self.count = count
        self.over_maximum = over_maximum


class RowUnits:
    """Every row is a unit: rows go straight to the file."""

    def __init__(self, path: Path) -> None:
        self._writer = RowGroupWriter(path)
        self._rows = 0

    def add(self, frame: pl.DataFrame, unit_keys: pl.Series | None) -> None:  # noqa: ARG002 - same signature
        self._writer.write(frame)
        self._rows += frame.height

    def finish(self) -> Units:
        with self._writer as writer:
            writer.flush()
        return Units(self._rows)


class ColumnUnits:
    """Rows of one unit side by side, with a dense code, without holding the table in memory.

    Chunks are dealt into buckets on disk by a hash of the unit; one bucket at a time is then sorted and numbered on.
    """

    def __init__(self, path: Path, workdir: Path, *, expected_bytes: int, max_rows_per_unit: int) -> None:
        self._path = path
        self._max_rows_per_unit = max_rows_per_unit
        buckets = min(_MAX_BUCKETS, 1 + expected_bytes // _BUCKET_BYTES)
        self._paths = [workdir / f"bucket-{number}.arrow" for number in range(buckets)]
        self._streams: list[Any] = [None] * buckets

    def add(self, frame: pl.DataFrame, unit_keys: pl.Series | None) -> None:
        if unit_keys is None:
            raise ValueError("a table with a privacy unit needs unit keys")
        frame = frame.with_columns(unit_keys.alias(_UNIT_KEY))
        if len(self._paths) == 1:
            self._append(0, frame)
            return
        bucket = unit_keys.hash(seed=0) % len(self._paths)  # only has to be stable within this process
        for (number,), part in (
            frame.with_columns(bucket.alias("__bucket__"))
            .partition_by("__bucket__", as_dict=True, include_key=False, maintain_order=True)
            .items()
        ):
            self._append(int(number), part)

    def finish(self) -> Units:
        count = over_maximum = 0
        with RowGroupWriter(self._path) as writer:
            for path, stream in zip(self._paths, self._streams, strict=True):
                if stream is None:
                    continue
                stream.close()
                bucket = pl.read_ipc_stream(path).sort(_UNIT_KEY, maintain_order=True)
                path.unlink()
                codes = bucket[_UNIT_KEY].rle_id().cast(pl.Int64) + count
                sizes = bucket[_UNIT_KEY].rle().struct.field("len")
                count += len(sizes)
                over_maximum += int((sizes > self._max_rows_per_unit).sum())
                bucket = bucket.drop(_UNIT_KEY).with_columns(codes.alias(UNIT_COLUMN))
                for part in bucket.iter_slices(_GROUP_ROWS):
                    writer.write(part)
            writer.flush()
        return Units(count, over_maximum)

    def _append(self, number: int, frame: pl.DataFrame) -> None:
        table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
        if self._streams[number] is None:
            self._streams[number] = pa.ipc.new_stream(self._paths[number], table.schema)
        self._streams[number].write_table(table)
