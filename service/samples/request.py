"""A sample that was asked for, as its writer gets it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.samples.formulas import Formulas
    from service.samples.table.blocks import InOrder


@dataclass(frozen=True)
class Wanted:
    """So many rows or images; the other fields are those of `stream_rows`."""

    rows: int
    seed: int | None = None
    where: str | Mapping[str, Any] | None = None
    formulas: Formulas = "keep"
    each: InOrder = map
