"""Open an uploaded table, CSV or Parquet by content, as chunks of columns.

A Parquet file is read as the CSV it could have been written as: both end as columns with one meaning per cell
(`cells.py`), so the same rows get the same fingerprint and the same canonical table whatever they came in.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Protocol

from service.base.errors import InvalidFile
from service.intake.table.csv_reading import CsvTable
from service.intake.table.parquet_reading import ParquetTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from service.intake.limits import IngestLimits
    from service.intake.sealed import SealedFile
    from service.intake.table.columns import Chunk

_NAMES_SHOWN = 5
_PACKED = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "ZIP (or a spreadsheet)",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstandard",
    b"ARROW1": "Arrow IPC",
    b"Obj\x01": "Avro",
    b"SQLite format 3": "SQLite",
    b"%PDF": "PDF",
    b"PARE": "encrypted Parquet",
}


class Table(Protocol):
    """An opened file: its column names, and its rows chunk by chunk."""

    names: tuple[str, ...]
    expected_bytes: int
    """About how much its values take in memory."""

    def chunks(self) -> Iterator[Chunk]: ...


READERS: dict[bytes, Callable[[SealedFile, IngestLimits], Table]] = {b"PAR1": ParquetTable, b"": CsvTable}
"""How a file begins -> what reads it; the first that fits does. CSV has no mark, and so comes last."""


def open_table(file: SealedFile, limits: IngestLimits) -> Table:
    """Tell the formats apart by content, never by name, and check the header."""
    start = file.read_at(0, 16)
    if not start:
        raise InvalidFile("The file is empty.")
    for magic, name in _PACKED.items():
        if start.startswith(magic):
            raise InvalidFile(f"The file is {name}; upload plain CSV or Parquet.")
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InvalidFile("The file is UTF-16 text; save it as CSV in UTF-8.")
    reader = next(reader for mark, reader in READERS.items() if start.startswith(mark))
    return reader(file, limits)


def check_names(names: Sequence[str], expected: Sequence[str]) -> None:
    """The file's columns must be the declared ones, in any order."""
    present, declared = set(names), set(expected)
    missing = [name for name in expected if name not in present]
    if not present & declared:
        # Then the first line may well be a row, so it is not quoted.
        raise InvalidFile(
            "None of the declared columns is in the file's header. The first line must hold the column names of the"
            " schema, separated by commas.",
            missing=missing[:_NAMES_SHOWN],
        )
    check_unique([name for name in names if name in declared])
    undeclared = [name for name in names if name not in declared]
    parts = []
    if missing:
        parts.append(f"the file lacks {_listed(missing)}")
    if undeclared:
        parts.append(f"the schema does not declare {_listed(undeclared)}")
    if parts:
        first = (missing or undeclared)[0]
        raise InvalidFile(
            f"The file's header differs from the schema: {' and '.join(parts)}.",
            column=first[:200],
            count=len(missing) + len(undeclared),
        )


def check_unique(names: Sequence[str]) -> None:
    """No name may occur twice."""
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise InvalidFile(
            f"The file's header repeats {_listed(repeated)}.", column=repeated[0][:200], count=len(repeated)
        )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"{name[:100]!r}" for name in names[:_NAMES_SHOWN])
    more = len(names) - _NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
