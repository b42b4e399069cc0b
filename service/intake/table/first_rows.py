"""Where in the file the first cells of a kind stand: row numbers for the owner, never a cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from service.base.messages import Message, plural

if TYPE_CHECKING:
    import polars as pl

    from service.intake.table.columns import Column

_SHOWN = 5


class FirstRows:
    """The first rows of one column that hold a cell of a kind, chunk by chunk. The first row below the header is row 1."""

    def __init__(self) -> None:
        self._before = 0
        self._found: dict[str, list[int]] = {}
        self._has_more: set[str] = set()

    def note(self, kind: str, column: Column, mask: pl.Series) -> None:
        """The rows whose cells the mask names."""
        if kind in self._has_more or not mask.any():
            return
        places = np.flatnonzero(column.spread(mask).to_numpy())[: _SHOWN + 1] + self._before + 1
        found = self._found.setdefault(kind, [])
        found.extend(places.tolist())
        if len(found) > _SHOWN:
            del found[_SHOWN:]
            self._has_more.add(kind)

    def go_on(self, column: Column) -> None:
        """Go on behind this chunk's rows."""
        self._before += column.rows

    def said(self, kind: str) -> str:
        """` (rows 3, 7, … below the header)`, or nothing."""
        return in_brackets(self._found.get(kind, []), has_more=kind in self._has_more)


def in_brackets(numbers: list[int], *, has_more: bool) -> str:
    """` (rows 3, 7, … below the header)`, or nothing."""
    return Message(" (%(rows)s)", rows=rows_are(numbers, has_more=has_more)) if numbers else ""


def rows_are(numbers: list[int], *, has_more: bool) -> str:
    """`row 3` or `rows 3, 7, …`; the first below the header is row 1."""
    shown = f"{', '.join(map(str, numbers))}{', …' if has_more else ''}"
    return plural(
        "row %(numbers)s below the header", "rows %(numbers)s below the header", len(numbers) + has_more, numbers=shown
    )
