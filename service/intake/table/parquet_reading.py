"""Parquet as chunks of columns. Metadata can lie, so what really comes out is counted against the same limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from service.base.errors import InvalidFile, TooLarge
from service.base.messages import Message
from service.domain.dialect import USUAL
from service.intake.table.columns import Chunk, ColumnSource, chunk
from service.intake.table.header import named
from service.intake.table.typed_columns import check_size, check_types, validate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.domain.dialect import Dialect
    from service.intake.limits import IngestLimits
    from service.intake.room import Room, Source

_BATCH_ROWS = 131_072
_BATCH_CELLS = 2_000_000
_METADATA_BYTES = 64 * 1024 * 1024
_DAMAGED = Message("The file begins like Parquet but cannot be read; it is damaged, cut off or encrypted.")


class ParquetTable:
    """An opened Parquet file."""

    def __init__(self, file: Source, limits: IngestLimits, dialect: Dialect = USUAL, room: Room | None = None) -> None:  # noqa: ARG002 - as all readers
        self._limits = limits
        self._size = file.size
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
            names = schema.names  # a damaged one is no UTF-8
            metadata = self._file.metadata
            columns = metadata.num_columns
            if columns <= limits.columns:
                groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
                unpacked = sum(max(0, group.total_byte_size) for group in groups)
        except (pa.ArrowException, OSError, ValueError, TypeError):
            raise InvalidFile(_DAMAGED) from None
        if columns > limits.columns:
            raise InvalidFile(
                Message(
                    "The file has %(columns)s columns; at most %(columns_2)s are accepted.",
                    columns=columns,
                    columns_2=limits.columns,
                )
            )
        check_types(schema, "Parquet")
        check_size(metadata.num_rows, unpacked, file.size, limits)
        self.names = named(names, dialect)
        self.notices: list[str] = []
        self.hint = ""
        self.expected_bytes = metadata.num_rows * 8 * (len(self.names) + 2)

    def chunks(self) -> Iterator[Chunk]:
        sources = [ColumnSource(name, self._limits) for name in self.names]
        for batch, share in self.batches():
            yield chunk(sources, batch.columns, share)

    def batches(self) -> Iterator[tuple[pa.RecordBatch, float]]:
        """Rows, and how much of the file has been read with them."""
        batch_rows = max(256, min(_BATCH_ROWS, _BATCH_CELLS // max(1, len(self.names))))
        rows = unpacked = 0
        try:
            for batch in self._file.iter_batches(batch_size=batch_rows):
                rows += batch.num_rows
                unpacked += batch.nbytes
                check_size(rows, unpacked, self._size, self._limits)
                validate(batch)
                yield batch, rows / max(1, self._file.metadata.num_rows)
        except (pa.ArrowMemoryError, MemoryError):
            raise
        except (pa.ArrowException, OSError, ValueError, TypeError):
            raise InvalidFile(_DAMAGED) from None


def _check_footer(file: Source) -> None:
    """The file must end as Parquet does, and its metadata must be small enough to look at."""
    size = file.size
    if size < 12:
        raise InvalidFile(_DAMAGED)
    footer = file.read_at(size - 8, 8)
    length = int.from_bytes(footer[:4], "little")
    if footer[4:] != b"PAR1" or length > size - 12:
        raise InvalidFile(_DAMAGED)
    if length > _METADATA_BYTES:
        raise TooLarge(Message("The Parquet file's metadata is too large."), limit_bytes=_METADATA_BYTES)
