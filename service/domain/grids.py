"""The public grid of a declared range, and the number of cells of every column. From the declaration alone."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from service.base.errors import InvalidSchema
from service.base.lazy import lazy
from service.domain.field_schema import FieldSchema, FieldType
from service.domain.shapes import TableShape
from service.domain.table_schema import TableSchema
from service.domain.value_grids import value_grid

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
else:
    np = lazy("numpy")

ONE_CELL_PER_VALUE = 64
"""A range of at most this many whole values gets one cell per value, unless the schema declares a grid."""

PARTS_OF_A_CELL = 2
"""Where noised counts say which cells a range has, each of its equal cells may be cut into so many,"""

HALVINGS = 14
"""and the one next to zero, where amounts and counts crowd, into halves of what is left: down to single whole numbers, or to this
many halvings of the range's larger end."""

NEXT_TO_NOTHING = 2.0**-41
"""A number column's zero, which many rows may share, has a part to itself: this much of the range's larger end, and not so wide that a
sampler would draw anything else (`service.samples.table.ranges.POINT`)."""

_AMOUNTS: frozenset[FieldType] = frozenset({"integer", "number"})
_WHOLE: frozenset[FieldType] = frozenset({"integer", "date", "datetime"})  # days and seconds since 1970-01-01


def shape_of(schema: TableSchema, *, numeric_bins: int, max_rows_per_unit: int = 1) -> TableShape:
    """What the choice of a method and the price of an order may depend on."""
    schema = schema.modelled
    cells = {field.name: _cells(field, numeric_bins) for field in schema.fields}
    has_open_ranges = any(finer_edges(field, numeric_bins) is not None for field in schema.fields)
    counted = sum(value_grid(field, cells[field.name]) is not None for field in schema.fields)
    return TableShape(cells, schema.target, max_rows_per_unit, has_open_ranges, counted)


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
            what = field.resolution or "second"
            raise InvalidSchema(f"{field.name}: no whole {what} is from minimum to maximum.", where=field.name)
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


def finer_edges(field: FieldSchema, numeric_bins: int) -> tuple[float, ...] | None:
    """Edges of a range's equal cells and of parts of them, from which noised counts choose.

    None where the declaration leaves nothing open: categories, a declared grid, one cell per value.
    """
    if field.is_categorical or field.edges is not None or field.bins is not None:
        return None
    edges, whole = np.asarray(grid_edges(field, numeric_bins)), field.type in _WHOLE
    if whole and (np.diff(edges) == field.step).all():
        return None
    largest = float(np.abs(edges).max())
    step = 1.0 if whole else 0.0 if field.decimals is None else 10.0**-field.decimals
    smallest = step if whole else max(step, largest * 2.0**-HALVINGS)
    cut = _cut_an_amount if field.type in _AMOUNTS else _cut_equally
    found = np.concatenate([cut(low, high, smallest) for low, high in pairwise(edges.tolist())])
    if field.type == "number" and edges[0] <= 0.0 < edges[-1]:
        found = np.append(found, min(edges[-1], max(step, largest * NEXT_TO_NOTHING)))
    return tuple(np.unique(field.step * np.ceil(found / field.step) if whole else found).tolist())


def _cut_equally(low: float, high: float, _smallest: float) -> NDArray[np.float64]:
    return np.linspace(low, high, PARTS_OF_A_CELL + 1)


def _cut_an_amount(low: float, high: float, smallest: float) -> NDArray[np.float64]:
    """By halves where zero is near: in the cell, or so near to it that one end is many times the other."""
    near, far = sorted((abs(low), abs(high)))
    if low <= 0.0 <= high:
        return np.concatenate([[low, 0.0, high], _halves(high, smallest), -_halves(-low, smallest)])
    if far > PARTS_OF_A_CELL * near:
        halves = _halves(far, max(near, smallest))
        return np.concatenate([[low, high], halves if high > 0.0 else -halves])
    return _cut_equally(low, high, smallest)


def _halves(end: float, smallest: float) -> NDArray[np.float64]:
    """end, end/2, … down to `smallest`, which is the last; none where `end` is smaller."""
    count = math.floor(math.log2(end / smallest)) + 1 if end >= smallest else 0
    return np.append(end * 2.0 ** -np.arange(count), [smallest] * min(count, 1))
