"""Whether a file's first line is a row: then its cells would become public column names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from service.base.errors import InvalidFile
from service.base.messages import Message
from service.intake.table.cells import MARKERS_ANY_CASE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from service.intake.table.columns import Column

ROWS_LOOKED_AT = 1_000
_SEQUENCE = 5
"""Names that are so many numbers from 0 or 1 on, or different dates, are names: the pixels or days of a wide table."""

_UNMISTAKABLE = re.compile(
    r"[^@\s]+@[^@\s]+\.[A-Za-z]{2,}|[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){3,7} ?[A-Z0-9]{0,3}"
    r"|\+[0-9][0-9 ()/.-]{6,}"
)
"""An e-mail address, a UUID, an account number, a phone number: no column is named so."""

_YEARS = range(1800, 2201)
_NUMBER = re.compile(r"[($€£+-]*\s?[0-9][0-9.,'\u00a0\u202f ]*(e[+-]?[0-9]+)?\s?[%€$£)]*", re.IGNORECASE)
_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([T ].*)?|[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{2,4}([T ].*)?")
_LIKE = {"date": {"date"}, "number": {"number", "year"}, "year": {"year"}}
"""Kind of a name -> kinds of cells that it could be one of. 2019 above amounts is a name."""

NO_HEADER = Message(
    "The first line looks like a row, not like column names: a row must not become public as names. Put "
    "a line with the columns' names at the top of the file. If these are names, rename those that look "
    "like values, for example 2019 to y2019."
)


def refuse_row_as_header(names: Sequence[str], columns: Mapping[str, Sequence[str]]) -> None:
    """`columns`: some cells of each column. The refusal quotes nothing."""
    if is_a_row(names, columns):
        raise InvalidFile(NO_HEADER)


def is_a_row(names: Sequence[str], columns: Mapping[str, Sequence[str]]) -> bool:
    """Names that are values like those below them, in at least half of the columns, and no column that says the opposite as often."""
    named = [name for name in names if name.strip().lower() not in MARKERS_ANY_CASE]
    if any(_UNMISTAKABLE.fullmatch(name) for name in named):
        return True
    numbered = set(_in_order(named))
    like = unlike = 0
    for name in named:
        cells = [cell for cell in columns.get(name, ()) if cell.strip().lower() not in MARKERS_ANY_CASE]
        if not cells or name in numbered:
            continue
        kind = _kind(name)
        if kind != "text":
            like += all(_kind(cell) in _LIKE[kind] for cell in cells)
        elif all(_kind(cell) != "text" for cell in cells):
            unlike += 1
        else:
            like += name in cells
    return like > 2 * unlike and 2 * like >= len(named)


def some_cells(column: Column) -> list[str]:
    """Some cells of the column's beginning, as text."""
    return column.cells.head(ROWS_LOOKED_AT).text.drop_nulls().to_list()


def _kind(text: str) -> str:
    if _DATE.fullmatch(text):
        return "date"
    if not _NUMBER.fullmatch(text):
        return "text"
    return "year" if text.isdecimal() and int(text) in _YEARS else "number"


def _in_order(names: Sequence[str]) -> list[str]:
    """Names that are whole numbers from 0 or 1 on, or dates each of which occurs once."""
    numbers = [int(name) for name in names if name.isdecimal()]
    dates = [name for name in names if _DATE.fullmatch(name)]
    from_start = numbers in (list(range(len(numbers))), list(range(1, len(numbers) + 1)))
    found = [name for name in names if name.isdecimal()] if len(numbers) >= _SEQUENCE and from_start else []
    return found + (dates if len(set(dates)) == len(dates) >= _SEQUENCE else [])
