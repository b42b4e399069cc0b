"""A sample that was asked for, as its writer gets it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from service.samples.formulas import Formulas
    from service.samples.table.base import Columns
    from service.samples.table.blocks import InOrder
    from service.samples.table.conditions import Where
    from service.samples.table.weighting import Weights


@dataclass(frozen=True)
class Wanted:
    """So many rows or images; the other fields are those of `stream_rows`."""

    rows: int
    seed: int | None = None
    where: Where | None = None
    formulas: Formulas = "keep"
    each: InOrder = map
    weights: Weights | None = None
    drawn: Iterable[Columns] | None = None
    """Rows of a table that have been drawn already."""
    decimal_comma: bool = False
    """Of a file for a spreadsheet: numbers have a decimal comma there, even if no column is declared so."""
