"""Cells that point to somebody by their look: e-mail addresses, phone numbers, account numbers, identifiers; and free text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imprimatur.personal_looks import LOOKS

if TYPE_CHECKING:
    import polars as pl


def counts_by_look(text: pl.Series, times: pl.Series) -> dict[str, int]:
    """How many rows hold a cell of each look."""
    found = {}
    for look, pattern in LOOKS.items():
        count = int(times.filter(text.str.contains(pattern).fill_null(value=False)).sum())
        if count:
            found[look] = count
    return found
