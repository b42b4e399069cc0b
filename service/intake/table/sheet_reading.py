"""A workbook's sheet (.xlsx) as chunks of text. Read whole by a library, so what it unpacks to is counted before.

The directory of a ZIP can lie about sizes, so every member is unpacked once and counted; entities of XML, which could
grow, are refused, and so is a cell so far from the others that the rectangle around them would not fit.
"""

from __future__ import annotations

import datetime as dt
import re
import zipfile
import zlib
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from service.base.errors import InvalidFile, TooLarge
from service.base.messages import Message
from service.intake.table.columns import Chunk, ColumnSource, chunk
from service.intake.table.header import check_width
from service.intake.table.plain_text import header_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from python_calamine import CalamineSheet, CalamineWorkbook

    from service.domain.dialect import Dialect
    from service.intake.limits import IngestLimits
    from service.intake.room import Room, Source

_Found = TypeVar("_Found")

_MOST_BYTES = 512 * 1024 * 1024
"""Of XML; a full sheet of a million rows and ten columns has about 500 MB."""
_MOST_CELLS = 30_000_000
_MOST_MEMBERS = 10_000
_PIECE_BYTES = 1024 * 1024
_CHUNK_ROWS = 32_768
_CELL = re.compile(rb"<(?:\w+:)?c\s[^>]{0,200}?\br=[\"']([A-Za-z]{1,3})([0-9]{1,7})[\"']")
_LONGEST_CELL_START = 300
_ENTITY = re.compile(rb"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)
_ZERO_FORMAT = re.compile(rb"formatCode=[\"']0{2,}[\"';\\\\-]")
_ZEROS = Message(
    "The workbook has a number format of zeros, like 00000, which shows 1234 as 01234: numbers in such "
    "cells are read without the zeros that the format adds. Where they count, as in postal codes, make "
    "the cells text."
)
_SHOWN_SHEETS = 10
_DAMAGED = Message("The file begins like a workbook (.xlsx) but cannot be read; it is damaged, cut off or encrypted.")


class SheetTable:
    """An opened sheet."""

    def __init__(self, content: Source, limits: IngestLimits, dialect: Dialect, room: Room) -> None:  # noqa: ARG002 - as all readers
        self._limits = limits
        has_zeros = check_workbook(content, limits)
        sheet = _sheet(_workbook(content), dialect)
        rows = (_texts(row) for row in sheet.iter_rows())
        heads = ([cell or "" for cell in _without_empty_end(row)] for row in rows)
        header = _checked(header_of, heads, dialect)
        check_width(header, limits)
        self._rows = rows
        self.notices: list[str] = [_ZEROS] if has_zeros else []
        self.names = tuple(header)
        self.hint = ""
        self._height = max(1, sheet.total_height)
        self.expected_bytes = 8 * self._height * (len(self.names) + 2)

    def chunks(self) -> Iterator[Chunk]:
        sources = [ColumnSource(name, self._limits) for name in self.names]
        width, done = len(self.names), 0
        while held := list(islice(self._rows, _CHUNK_ROWS)):
            for number, row in enumerate(held, start=done + 1):
                if any(cell for cell in row[width:]):
                    raise InvalidFile(
                        Message(
                            "Row %(number)s below the header has more cells than the header, which has %(width)s.",
                            number=number,
                            width=width,
                        ),
                        rows=[number],
                    )
            done += len(held)
            kept = [row for row in held if any(cell is not None for cell in row)]
            columns = [[row[place] if place < len(row) else None for row in kept] for place in range(width)]
            if kept:
                yield chunk(sources, [pa.array(column, pa.string()) for column in columns], done / self._height)


def sheet_names(content: Source, limits: IngestLimits) -> list[str]:
    """The names of all sheets, in their order."""
    check_workbook(content, limits)
    return list(_workbook(content).sheet_names)


def check_workbook(content: Source, limits: IngestLimits) -> bool:
    """Unpack every member once, keeping nothing; refuses what would not fit and what XML could make grow.

    Whether numbers are formatted with leading zeros; the library gives numbers without their formats.
    """
    has_zeros = False
    most = min(_MOST_BYTES, limits.unpacked_limit(content.size))
    total = 0
    try:
        with zipfile.ZipFile(content.reader()) as archive:
            members = archive.infolist()
            if len(members) > _MOST_MEMBERS:
                raise TooLarge(
                    Message("The workbook holds more than %(most_members)s files.", most_members=_MOST_MEMBERS),
                    limit_members=_MOST_MEMBERS,
                )
            for member in members:
                rest = b""
                with archive.open(member) as stream:
                    while piece := stream.read(_PIECE_BYTES):
                        total += len(piece)
                        if total > most:
                            raise TooLarge(
                                Message(
                                    "The workbook unpacks to more than %(most)s bytes; save the sheet as CSV or Parquet.",
                                    most=most,
                                ),
                                limit_bytes=most,
                            )
                        if member.filename.lower().endswith("styles.xml"):
                            has_zeros = has_zeros or _ZERO_FORMAT.search(rest + piece) is not None
                        rest = _checked_piece(rest + piece, member.filename)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, ValueError, RuntimeError):
        raise InvalidFile(_DAMAGED) from None
    return has_zeros


def _checked_piece(piece: bytes, name: str) -> bytes:
    """What must be looked at again with the next piece."""
    if name.lower().endswith((".xml", ".rels")) and _ENTITY.search(piece):
        raise InvalidFile(
            Message(
                "The workbook declares XML entities, which no program that saves sheets does; save it again with one."
            )
        )
    if "worksheets/" in name.lower():
        across = down = 0
        for letters, digits in _CELL.findall(piece):
            across, down = max(across, _number(letters)), max(down, int(digits))
        if across * down > _MOST_CELLS:
            raise TooLarge(
                Message(
                    "A cell of the sheet lies so far from the first that %(most_cells)s cells do not reach it; delete "
                    "what stands there, or save the table as CSV or Parquet.",
                    most_cells=_MOST_CELLS,
                ),
                limit_cells=_MOST_CELLS,
            )
    return piece[-_LONGEST_CELL_START:]


def _number(letters: bytes) -> int:
    number = 0
    for letter in letters.upper():
        number = 26 * number + letter - 64
    return number


def _workbook(content: Source) -> CalamineWorkbook:
    import python_calamine  # noqa: PLC0415 - of few uploads; `child.py` imports it before the sandbox closes

    return _checked(python_calamine.CalamineWorkbook.from_filelike, content.reader())


def _sheet(workbook: CalamineWorkbook, dialect: Dialect) -> CalamineSheet:
    names = list(workbook.sheet_names)
    wanted = dialect.sheet
    if wanted is None and len(names) == 1:
        wanted = 1
    if isinstance(wanted, int) and wanted <= len(names):
        return _checked(workbook.get_sheet_by_index, wanted - 1)
    if isinstance(wanted, str) and wanted in names:
        return _checked(workbook.get_sheet_by_name, wanted)
    more = ", …" if len(names) > _SHOWN_SHEETS else ""
    listed = ", ".join(f"{name[:60]!r}" for name in names[:_SHOWN_SHEETS]) + more
    if wanted is None:
        raise InvalidFile(
            Message(
                "The workbook has %(count)s sheets (%(listed)s). Say in the schema which holds the table, like "
                '"dialect": {"sheet": 1}.',
                count=len(names),
                listed=listed,
            )
        )
    raise InvalidFile(
        Message("The workbook has no sheet %(wanted)s; it has %(listed)s.", wanted=repr(wanted), listed=listed)
    )


def _checked(read: Callable[..., _Found], *arguments: Any) -> _Found:
    try:
        return read(*arguments)
    except (InvalidFile, MemoryError):
        raise
    except Exception:  # noqa: BLE001 - the library's errors may quote cells
        raise InvalidFile(_DAMAGED) from None


def _texts(row: list[Any]) -> list[Any]:
    return [_text(cell) for cell in row]


def _text(cell: Any) -> str | None:
    """As the cell would stand in a CSV: whole numbers without a point, ISO dates, nothing where it is empty."""
    if isinstance(cell, str):
        return cell or None
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() and abs(cell) < 2**53 else repr(cell)
    if isinstance(cell, dt.date | dt.time):
        return cell.isoformat()
    return None if cell is None else str(cell)


def _without_empty_end(row: list[str | None]) -> list[str | None]:
    """Formats that reach beyond the table make cells without a text."""
    end = len(row)
    while end > 1 and not row[end - 1]:
        end -= 1
    return row[:end]
