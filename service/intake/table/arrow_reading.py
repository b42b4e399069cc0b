"""Arrow IPC, as file (Feather) or stream, as chunks of columns. What comes out is counted: metadata can lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from service.base.errors import InvalidFile
from service.base.messages import Message
from service.intake.table.columns import Chunk, ColumnSource, chunk
from service.intake.table.header import check_width, named
from service.intake.table.typed_columns import check_size, check_types, validate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.domain.dialect import Dialect
    from service.intake.limits import IngestLimits
    from service.intake.room import Room, Source

FILE_MARK, STREAM_MARK = b"ARROW1", b"\xff\xff\xff\xff"
_CHUNK_ROWS = 131_072
_DAMAGED = Message("The file begins like Arrow IPC but cannot be read; it is damaged or cut off.")


class ArrowTable:
    """An opened file or stream of record batches."""

    def __init__(self, content: Source, limits: IngestLimits, dialect: Dialect, room: Room) -> None:  # noqa: ARG002 - as all readers
        self._file, self._limits = content, limits
        self._is_file = content.read_at(0, len(FILE_MARK)) == FILE_MARK
        try:
            schema = self._opened().schema
            names = schema.names  # a damaged one is no UTF-8
        except (pa.ArrowException, OSError, ValueError, TypeError):
            raise InvalidFile(_DAMAGED) from None
        check_width(names, limits)
        check_types(schema, "Arrow")
        self.names = named(names, dialect)
        self.notices: list[str] = []
        self.hint = ""
        self.expected_bytes = 4 * content.size

    def _opened(self) -> pa.ipc.RecordBatchFileReader | pa.ipc.RecordBatchStreamReader:
        file = self._file.reader()
        return pa.ipc.open_file(file) if self._is_file else pa.ipc.open_stream(file)

    def chunks(self) -> Iterator[Chunk]:
        sources = [ColumnSource(name, self._limits) for name in self.names]
        rows = unpacked = 0
        try:
            for place, total, batch in self._batches():
                rows += batch.num_rows
                unpacked += batch.nbytes
                check_size(rows, unpacked, self._file.size, self._limits)
                validate(batch)
                for start in range(0, batch.num_rows, _CHUNK_ROWS):
                    part = batch.slice(start, _CHUNK_ROWS)
                    share = (place + (start + part.num_rows) / batch.num_rows) / total
                    yield chunk(sources, [_plain(column) for column in part.columns], share)
        except (pa.ArrowMemoryError, MemoryError):
            raise
        except (pa.ArrowException, OSError, ValueError, TypeError, IndexError):
            raise InvalidFile(_DAMAGED) from None

    def _batches(self) -> Iterator[tuple[int, int, pa.RecordBatch]]:
        """Place, how many there are (of a stream one more than are known), and the batch."""
        opened = self._opened()
        if self._is_file:
            for place in range(opened.num_record_batches):
                yield place, opened.num_record_batches, opened.get_batch(place)
            return
        for place, batch in enumerate(opened):
            yield place, place + 2, batch


def _plain(column: pa.Array) -> pa.Array:
    """Views of text as text: they have no distinct values in the library yet."""
    if pa.types.is_string_view(column.type):
        return column.cast(pa.large_string())
    if pa.types.is_dictionary(column.type) and pa.types.is_string_view(column.type.value_type):
        texts = column.dictionary.cast(pa.large_string())
        return pa.DictionaryArray.from_arrays(column.indices, texts).dictionary_decode()
    if pa.types.is_run_end_encoded(column.type):
        return column.run_end_decode()
    return column
