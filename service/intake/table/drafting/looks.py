"""Cells that point to somebody by their look: e-mail addresses, phone numbers, account numbers, identifiers; and free text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imprimatur.personal_looks import LOOKS, SHORT_DATE

if TYPE_CHECKING:
    import polars as pl


def counts_by_look(text: pl.Series, times: pl.Series) -> dict[str, int]:
    """How many rows hold a cell of each look."""
    found = {}
    is_date = text.str.contains(SHORT_DATE).fill_null(value=False)
    text, times = text.filter(~is_date), times.filter(~is_date)
    for look, pattern in LOOKS.items():
        count = int(times.filter(text.str.contains(pattern).fill_null(value=False)).sum())
        if count:
            found[look] = count
    return found
