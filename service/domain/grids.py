"""The public grid of a declared range, and the number of cells of every column. From the declaration alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from service.base.errors import InvalidSchema
from service.base.lazy import lazy
from service.base.messages import Message
from service.domain.field_schema import RESOLUTIONS, FieldSchema, FieldType
from service.domain.open_columns import open_columns
from service.domain.shapes import ColumnSort, TableShape
from service.domain.table_schema import TableSchema
from service.domain.value_grids import value_grid

if TYPE_CHECKING:
    import numpy as np
else:
    np = lazy("numpy")

ONE_CELL_PER_VALUE = 64
"""A range of at most this many whole values gets one cell per value, unless the schema declares a grid."""

_WHOLE: frozenset[FieldType] = frozenset({"integer", "date", "datetime"})  # days and seconds since 1970-01-01


def shape_of(schema: TableSchema, *, numeric_bins: int, max_rows_per_unit: int = 1) -> TableShape:
    """What the choice of a method and the price of an order may depend on."""
    is_open = open_columns(schema)
    schema = schema.modelled
    cells = {field.name: _cells(field, numeric_bins) for field in schema.fields}
    levels = {field.name: levels for field in schema.fields if (levels := tree_levels(field, numeric_bins))}
    sorts: dict[str, ColumnSort] = {
        field.name: "values" if field.name in levels else "cells" for field in schema.fields if field.categories is None
    }
    return TableShape(cells, schema.target, max_rows_per_unit, len(levels), sum(levels.values()), is_open, sorts)


def tree_levels(field: FieldSchema, numeric_bins: int) -> int:
    """Histograms of a range whose values a tree counts: its levels, and one of digits where none are declared; 0 of other fields."""
    grid = value_grid(field, _cells(field, numeric_bins))
    if grid is None:
        return 0
    levels, _ = grid.tree(len(grid_edges(field, numeric_bins)) - 1)
    return levels + (field.type == "number" and field.decimals is None)


def _cells(field: FieldSchema, numeric_bins: int) -> int:
    missing = 0 if field.constraints.required else 1
    known = len(grid_edges(field, numeric_bins)) - 1 if field.categories is None else len(field.categories)
    return known + missing


def grid_edges(field: FieldSchema, numeric_bins: int) -> tuple[float, ...]:
    """Edges of a range's cells: those declared, or equal cells; one cell per value where there are few values."""
    low, high = field.bounds
    whole, step = field.type in _WHOLE, field.step
    if whole:
        # Cells of whole steps, half open: [low, high] is [low, high + 1).
        low, high = math.ceil(low / step), math.floor(high / step) + 1
        if low >= high:
            raise InvalidSchema(
                Message(
                    "%(name)s: no whole %(what)s lies from minimum to maximum; widen the range.",
                    name=field.name,
                    what=RESOLUTIONS[field.resolution or "second"],
                ),
                where=field.name,
            )
    if field.edges is not None:
        edges = np.asarray([*field.edges[:-1], high], dtype=np.float64)
    else:
        cells = field.bins or numeric_bins
        values = high - low
        if whole and (values <= cells or (field.bins is None and values <= ONE_CELL_PER_VALUE)):
            cells = int(values)
        edges = np.linspace(low, high, cells + 1)
    # A cell without a whole number, or narrower than a float can tell, does not exist.
    return tuple((step * np.unique(np.ceil(edges) if whole else edges)).tolist())
