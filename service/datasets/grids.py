"""The public grid of a declared range, and the number of cells of every column. From the declaration alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from service.datasets.table_schema import FieldSchema, FieldType, TableSchema
from service.errors import InvalidSchema
from service.lazy import lazy
from service.privacy.choices import TableShape

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy("numpy")

ONE_CELL_PER_VALUE = 64
"""A range of at most this many whole values gets one cell per value, unless the schema declares a grid."""

_WHOLE: frozenset[FieldType] = frozenset({"integer", "date", "datetime"})  # days and seconds since 1970-01-01


def shape_of(schema: TableSchema, *, numeric_bins: int, max_rows_per_unit: int = 1) -> TableShape:
    """What the choice of a method and the price of an order may depend on."""
    cells = {field.name: _cells(field, numeric_bins) for field in schema.fields}
    return TableShape(cells, schema.target, max_rows_per_unit)


def _cells(field: FieldSchema, numeric_bins: int) -> int:
    missing = 0 if field.constraints.required else 1
    if field.type == "boolean":
        return 2 + missing
    if field.constraints.enum is not None:
        return len(field.constraints.enum) + missing
    return len(grid_edges(field, numeric_bins)) - 1 + missing


def grid_edges(field: FieldSchema, numeric_bins: int) -> tuple[float, ...]:
    """Edges of a range's cells: those declared, or equal cells; one cell per value where there are few values."""
    low, high = field.bounds
    whole = field.type in _WHOLE
    if whole:
        # Cells of whole numbers, half open: [low, high] is [low, high + 1).
        low, high = math.ceil(low), math.floor(high) + 1
        if low >= high:
            raise InvalidSchema(f"{field.name}: give minimum and maximum in whole seconds.", where=field.name)
    if field.edges is not None:
        edges = np.asarray([*field.edges[:-1], high], dtype=np.float64)
    else:
        cells = field.bins or numeric_bins
        values = high - low
        if whole and (values <= cells or (field.bins is None and values <= ONE_CELL_PER_VALUE)):
            cells = int(values)
        edges = np.linspace(low, high, cells + 1)
    # A cell without a whole number, or narrower than a float can tell, does not exist.
    return tuple(np.unique(np.ceil(edges) if whole else edges).tolist())
