"""Where in the file the first cells of a kind stand: row numbers for the owner, never a cell."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import polars as pl

    from service.intake.table.columns import Column

_SHOWN = 5


class FirstRows:
    """Of one column, chunk by chunk. The first row below the header is row 1."""

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
        """Behind this chunk's rows."""
        self._before += column.rows

    def said(self, kind: str) -> str:
        """` (rows 3, 7, … below the header)`, or nothing."""
        found = self._found.get(kind)
        return f" ({rows_are(found, has_more=kind in self._has_more)})" if found else ""


def rows_are(numbers: list[int], *, has_more: bool) -> str:
    """`row 3` or `rows 3, 7, …`; the first below the header is row 1."""
    several = len(numbers) > 1 or has_more
    return f"row{'s' if several else ''} {', '.join(map(str, numbers))}{', …' if has_more else ''} below the header"
