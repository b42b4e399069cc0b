"""A Parquet table in parts, as Spark writes a folder: all parts are one table, folders like `year=2024` are a column."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa

from service.base.errors import InvalidFile, TooLarge
from service.base.messages import Message
from service.intake.table.columns import Chunk, ColumnSource, chunk
from service.intake.table.header import check_width, named
from service.intake.table.parquet_reading import ParquetTable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from service.domain.dialect import Dialect
    from service.intake.limits import IngestLimits
    from service.intake.table.unpacking import Member

PARQUET_MARK = b"PAR1"
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


class ParquetParts:
    """Opened parts. Each has the same columns, in any order."""

    def __init__(self, members: Sequence[Member], limits: IngestLimits, dialect: Dialect) -> None:
        self._limits = limits
        self._parts = [ParquetTable(member.content, limits) for member in sorted(members)]
        self._constants = [_partition(member.path[:-1]) for member in sorted(members)]
        first, keys = self._parts[0].names, list(self._constants[0])
        own = set(first)
        for part, constants in zip(self._parts, self._constants, strict=True):
            if set(part.names) != own or len(part.names) != len(first) or list(constants) != keys:
                raise InvalidFile(
                    Message(
                        "The archive's Parquet files do not have the same columns; pack the parts of one table, and nothing "
                        "else."
                    )
                )
        if own & set(keys):
            raise InvalidFile(
                Message(
                    "A column is in the Parquet files and in their folders' names as well; write the table without one "
                    "of them."
                )
            )
        self._columns = list(first)
        check_width([*first, *keys], limits)
        self.names = named([*first, *keys], dialect)
        self.notices: list[str] = []
        self.hint = ""
        self.expected_bytes = sum(part.expected_bytes for part in self._parts)

    def chunks(self) -> Iterator[Chunk]:
        sources = [ColumnSource(name, self._limits) for name in self.names]
        rows = unpacked = 0
        for place, (part, constants) in enumerate(zip(self._parts, self._constants, strict=True)):
            order = [part.names.index(name) for name in self._columns]
            for batch, share in part.batches():
                rows += batch.num_rows
                unpacked += batch.nbytes
                if unpacked > self._limits.unpacked_bytes:
                    raise TooLarge(
                        Message(
                            "The parts unpack to more than %(unpacked_bytes)s bytes, far more than the file's own size.",
                            unpacked_bytes=self._limits.unpacked_bytes,
                        ),
                        limit_bytes=self._limits.unpacked_bytes,
                    )
                if rows > self._limits.rows:
                    raise TooLarge(
                        Message("The file has more than %(rows)s rows.", rows=self._limits.rows),
                        limit_rows=self._limits.rows,
                    )
                arrays = [batch.columns[at] for at in order]
                arrays += [pa.repeat(pa.scalar(value, pa.string()), batch.num_rows) for value in constants.values()]
                yield chunk(sources, arrays, (place + share) / len(self._parts))


def _partition(folders: Sequence[str]) -> dict[str, str | None]:
    """Columns that stand in the folders' names, as Hive and Spark write them."""
    pairs = [folder.partition("=") for folder in folders if "=" in folder]
    if len({unquote(name).strip() for name, _, _ in pairs}) != len(pairs):
        raise InvalidFile(Message("Two folders of one path name the same column."))
    return {unquote(name).strip(): None if value == _NO_VALUE else unquote(value) for name, _, value in pairs}
