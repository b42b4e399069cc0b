"""Text in a dialect that the fast parser does not know, written anew in the usual one: comments, spaces, several headers."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from service.base.errors import InvalidFile
from service.base.messages import Message
from service.intake.table.advice import QUOTES_AND_ESCAPES
from service.intake.table.header import csv_rows, named

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from service.domain.dialect import Dialect
    from service.intake.limits import IngestLimits
    from service.intake.room import Room, Source

_ROWS_AT_ONCE = 5_000


def is_plain(dialect: Dialect) -> bool:
    """Whether the fast parser reads it as it is: marks of its own, and a header in the first row or none."""
    usual_header = dialect.rows_of_header in {(), (1,)}
    return usual_header and dialect.comment_char is None and not dialect.skip_initial_space


def as_plain(content: Source, dialect: Dialect, room: Room, limits: IngestLimits) -> Source:
    """The table as UTF-8 with commas, doubled quotes and one header. Blank lines stay only in a table of one column."""
    return room.keep(_plain(content, dialect, limits))


def _plain(content: Source, dialect: Dialect, limits: IngestLimits) -> Iterator[bytes]:
    with content.reader() as file:
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        lines = _Lines(text, dialect.comment_char, limits.line_bytes)
        rows = _whole_rows(csv_rows(lines, dialect, limits), lines)
        try:
            header = header_of(rows, dialect)
            yield _written([header])
            held = []
            for row in rows:
                if row or len(header) == 1:
                    held.append(row)
                if len(held) == _ROWS_AT_ONCE:
                    yield _written(held)
                    held = []
            yield _written(held)
        except csv.Error:
            raise InvalidFile(QUOTES_AND_ESCAPES) from None


def header_of(rows: Iterator[list[str]], dialect: Dialect) -> list[str]:
    """The names; `rows` goes on behind the last row of the header. Names of several rows are joined."""
    if not dialect.header:
        return list(dialect.names or ())
    heads: list[list[str]] = []
    for number, row in enumerate(rows, start=1):
        if number in dialect.rows_of_header:
            heads.append(row)
        if number == dialect.rows_of_header[-1]:
            break
    if not heads or not any(cell.strip() for head in heads for cell in head):
        raise InvalidFile(
            Message("The header's row is blank or beyond the end of the file; say which it is by headerRows.")
        )
    width = max(map(len, heads))
    cells = [
        dialect.header_join.join(head[place].strip() for head in heads if place < len(head) and head[place].strip())
        for place in range(width)
    ]
    return (
        list(named(cells, dialect)) if dialect.names is None or len(dialect.names) == width else _named(cells, dialect)
    )


def _named(cells: Sequence[str], dialect: Dialect) -> list[str]:
    """With one name less than cells where the last has none: a delimiter at the end."""
    trailing = [] if cells[-1] else [""]
    return [*named(cells[: len(cells) - len(trailing)], dialect), *trailing]


class _Lines:
    """Lines without comments. A line within a quoted cell is no comment, whatever it begins with."""

    def __init__(self, lines: io.TextIOWrapper, comment: str | None, most: int) -> None:
        self._lines = lines
        self._comment = comment
        self._most = most
        self.within_row = False

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        while True:
            line = self._lines.readline(self._most)
            if not line:
                raise StopIteration
            if len(line) == self._most:
                raise InvalidFile(
                    Message("A row is longer than %(most)s bytes, or a quoted field is never closed.", most=self._most)
                )
            if self._comment is None or self.within_row or not line.startswith(self._comment):
                self.within_row = True
                return line


def _whole_rows(rows: Iterable[list[str]], lines: _Lines) -> Iterator[list[str]]:
    for row in rows:
        lines.within_row = False
        yield row


def _written(rows: Sequence[Sequence[str]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(row or [""] for row in rows)
    return text.getvalue().encode()
