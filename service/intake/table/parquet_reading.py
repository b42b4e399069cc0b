"""Parquet as chunks of columns. Metadata can lie, so what really comes out is counted against the same limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from service.base.errors import InvalidFile, TooLarge
from service.intake.table.columns import Chunk, ColumnSource, chunk, is_supported

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.intake.limits import IngestLimits
    from service.intake.sealed import SealedFile

_BATCH_ROWS = 131_072
_BATCH_CELLS = 2_000_000
_METADATA_BYTES = 64 * 1024 * 1024
_DAMAGED = "The file begins like Parquet but cannot be read; it is damaged, cut off or encrypted."


class ParquetTable:
    """An opened Parquet file."""

    def __init__(self, file: SealedFile, limits: IngestLimits) -> None:
        self._limits = limits
        self._unpacked_limit = limits.unpacked_limit(file.size)
        _check_footer(file)
        try:
            self._file = pq.ParquetFile(
                file.reader(),
                thrift_string_size_limit=_METADATA_BYTES,
                thrift_container_size_limit=1_000_000,
                page_checksum_verification=True,
                coerce_int96_timestamp_unit="us",  # nanoseconds of 64 bits end in 2262, and turn over silently
            )
            schema = self._file.schema_arrow
            metadata = self._file.metadata
            columns = metadata.num_columns
            if columns <= limits.columns:
                groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
                unpacked = sum(max(0, group.total_byte_size) for group in groups)
        except (pa.ArrowException, OSError, ValueError, TypeError):
            raise InvalidFile(_DAMAGED) from None
        if columns > limits.columns:
            raise InvalidFile(f"The file has {columns} columns; at most {limits.columns} are accepted.")
        for field in schema:
            if not is_supported(field.type):
                raise InvalidFile(
                    f"Column {field.name[:100]!r} has a Parquet type that is nested, binary or otherwise not a plain"
                    " text, number, boolean, date or datetime.",
                    column=field.name[:200],
                )
        self._check_size(metadata.num_rows, unpacked)
        self.names = tuple(field.name.strip() for field in schema)
        self.expected_bytes = metadata.num_rows * 8 * (len(self.names) + 2)

    def chunks(self) -> Iterator[Chunk]:
        batch_rows = max(256, min(_BATCH_ROWS, _BATCH_CELLS // max(1, len(self.names))))
        rows = unpacked = 0
        sources = [ColumnSource(name, self._limits) for name in self.names]
        try:
            for batch in self._file.iter_batches(batch_size=batch_rows):
                rows += batch.num_rows
                unpacked += batch.nbytes
                self._check_size(rows, unpacked)
                _validate(batch)
                yield chunk(sources, batch.columns, rows / max(1, self._file.metadata.num_rows))
        except (pa.ArrowMemoryError, MemoryError):
            raise
        except (pa.ArrowException, OSError, ValueError, TypeError):
            raise InvalidFile(_DAMAGED) from None

    def _check_size(self, rows: int, unpacked_bytes: int) -> None:
        if rows > self._limits.rows:
            raise TooLarge(f"The file has more than {self._limits.rows} rows.", limit_rows=self._limits.rows)
        if unpacked_bytes > self._unpacked_limit:
            raise TooLarge(
                f"The Parquet file unpacks to more than {self._unpacked_limit} bytes, far more than its own size.",
                limit_bytes=self._unpacked_limit,
            )


def _validate(batch: pa.RecordBatch) -> None:
    """Text that is not UTF-8 must not reach polars, which trusts it."""
    try:
        batch.validate(full=True)
    except pa.ArrowException:
        raise InvalidFile("The file holds text that is not UTF-8, or is damaged.") from None


def _check_footer(file: SealedFile) -> None:
    """The file must end as Parquet does, and its metadata must be small enough to look at."""
    size = file.size
    if size < 12:
        raise InvalidFile(_DAMAGED)
    footer = file.read_at(size - 8, 8)
    length = int.from_bytes(footer[:4], "little")
    if footer[4:] != b"PAR1" or length > size - 12:
        raise InvalidFile(_DAMAGED)
    if length > _METADATA_BYTES:
        raise TooLarge("The Parquet file's metadata is too large.", limit_bytes=_METADATA_BYTES)
