"""Cells that point to somebody by their look: e-mail addresses, phone numbers, account numbers, identifiers; and free text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imprimatur.personal_looks import LOOKS, SHORT_DATE
from service.base.messages import Message

if TYPE_CHECKING:
    import polars as pl

LOOK_WORDS = {
    str(look): look
    for look in (
        Message("e-mail addresses"),
        Message("UUIDs"),
        Message("IBANs"),
        Message("phone numbers"),
        Message("IP addresses"),
        Message("web addresses"),
        Message("social security numbers"),
        Message("hashes"),
    )
}
"""The words of `imprimatur.personal_looks`, which knows no page."""


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
