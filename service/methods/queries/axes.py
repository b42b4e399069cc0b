"""The cells that counts of a column have. From the declaration alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from service.domain.field_schema import FieldSchema, Scalar
from service.domain.grids import grid_edges
from service.methods.knobs import DEFAULT_NUMERIC_BINS


@dataclass(frozen=True)
class Axis:
    """One column's cells: its declared values, or bins between edges; a missing value, if any, has the last."""

    column: str
    categories: tuple[Scalar, ...] | None
    edges: tuple[float, ...] | None
    has_missing: bool

    @property
    def known(self) -> int:
        """Cells without the missing one."""
        return len(self.categories or ()) if self.edges is None else len(self.edges) - 1

    @property
    def size(self) -> int:
        return self.known + self.has_missing

    @property
    def as_json(self) -> dict[str, Any]:
        cells = {"values": list(self.categories or ())} if self.edges is None else {"edges": list(self.edges)}
        return {"column": self.column, **cells, "missing": self.has_missing}


def axis_of(field: FieldSchema, bins: int | None) -> Axis:
    """bins: of a range that declares none."""
    missing = not field.constraints.required
    if field.categories is not None:
        return Axis(field.name, field.categories, None, missing)
    return Axis(field.name, None, grid_edges(field, bins or DEFAULT_NUMERIC_BINS), missing)
