"""The header of a text file: the columns' names, and how many cells a row has."""

from __future__ import annotations

import codecs
import csv
import io
from typing import TYPE_CHECKING, NamedTuple

from service.base.errors import InvalidFile
from service.base.messages import Message
from service.domain.dialect import UTF_8
from service.intake.table.advice import NO_COMMAS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from service.domain.dialect import Dialect
    from service.intake.limits import IngestLimits
    from service.intake.room import Source

TRAILING = Message("Every row ends in a delimiter; the last column, which has neither a name nor values, was left out.")


class Header(NamedTuple):
    """What stands above the rows."""

    names: tuple[str, ...]
    rows: int
    """How many rows of the file are not data."""
    trailing: bool
    """A delimiter stands at the end of every row."""
    has_rows: bool

    @property
    def cells(self) -> int:
        """The number of cells of every row."""
        return len(self.names) + self.trailing


def read_header(content: Source, limits: IngestLimits, dialect: Dialect) -> Header:
    """Names as the file has them, or as the dialect lists them. For a dialect that `plain_text.is_plain`."""
    start = content.read_at(0, limits.line_bytes)
    more = content.size > len(start)
    text = codecs.getincrementaldecoder(UTF_8)().decode(start).removeprefix("\ufeff")
    lines = io.StringIO(text, newline="")
    rows = csv_rows(lines, dialect, limits)
    try:
        first = next(rows, [])
    except csv.Error:
        raise InvalidFile(Message("The first line cannot be read as a CSV header.")) from None
    rest = text[lines.tell() :]
    if more and not rest:
        raise InvalidFile(
            Message(
                "The first line is longer than %(line_bytes)s bytes; it must be the header.",
                line_bytes=limits.line_bytes,
            )
        )
    if not any(name.strip() for name in first):
        raise InvalidFile(Message("The first line is blank; it must be the header with the schema's column names."))
    if not dialect.header:
        return _without_header(first, limits, dialect)
    second = _next_row(rows, more=more)
    trailing = _has_trailing(first, second, dialect)
    cells = first[:-1] if trailing and not first[-1].strip() else first
    names = named(cells, dialect)
    check_width(names, limits)
    if len(names) == 1 and any(mark in names[0] for mark in ";\t|") and dialect.names is None:
        raise InvalidFile(NO_COMMAS)
    return Header(names, 1, trailing, more or bool(rest.strip("\r\n")))


def _without_header(first: Sequence[str], limits: IngestLimits, dialect: Dialect) -> Header:
    trailing = len(first) == len(dialect.names or ()) + 1 and not first[-1].strip()
    names = named(first[:-1] if trailing else first, dialect)
    check_width(names, limits)
    return Header(names, 0, trailing, has_rows=True)


def csv_rows(lines: Iterator[str], dialect: Dialect, limits: IngestLimits) -> Iterator[list[str]]:
    """Rows by Python's reader, which is slow and can do every dialect."""
    csv.field_size_limit(limits.line_bytes)
    return csv.reader(
        lines,
        delimiter=dialect.delimiter,
        quotechar=dialect.quote_char or None,
        quoting=csv.QUOTE_MINIMAL if dialect.quote_char else csv.QUOTE_NONE,
        doublequote=dialect.double_quote,
        escapechar=dialect.escape_char,
        skipinitialspace=dialect.skip_initial_space,
    )


def _next_row(rows: Iterator[list[str]], *, more: bool) -> list[str]:
    """The first row that is not blank; nothing where it is not whole."""
    try:
        found = [row for row in (next(rows, []), next(rows, [])) if row]
    except csv.Error:
        return []
    return found[0] if found and (len(found) > 1 or not more) else []


def _has_trailing(header: Sequence[str], row: Sequence[str], dialect: Dialect) -> bool:
    """Whether rows, and perhaps the header, end in a delimiter behind the last column."""
    if len(header) > 1 and not header[-1].strip():
        return dialect.names is None or len(dialect.names) == len(header) - 1
    return len(row) == len(header) + 1 and not row[-1].strip()


def named(cells: Sequence[str], dialect: Dialect) -> tuple[str, ...]:
    """The names in the file, or in their place those of the dialect."""
    if dialect.names is None:
        return tuple(cell.strip() for cell in cells)
    if len(dialect.names) != len(cells):
        raise InvalidFile(
            Message(
                "The dialect's names are %(count)s, but the file has %(count_2)s columns.",
                count=len(dialect.names),
                count_2=len(cells),
            ),
            count=len(cells),
        )
    return dialect.names


def check_width(names: Sequence[str], limits: IngestLimits) -> None:
    """Not more columns than are accepted."""
    if len(names) > limits.columns:
        raise InvalidFile(
            Message(
                "The file has %(count)s columns; at most %(columns)s are accepted.",
                count=len(names),
                columns=limits.columns,
            )
        )
