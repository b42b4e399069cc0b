"""Private rows as the statistics of questions need them: which rows count, in which cell each is, where on a lattice. Never released as they are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from service.methods.queries.axes import Axis
from service.methods.queries.check import key_size, value_range
from service.methods.queries.lattice import Lattice, lattice_of
from workers.mechanism import RowsOfUnits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.domain.field_schema import FieldSchema
    from service.methods.queries.order import Where
    from workers.encoding.values import TableValues

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


class PrivateRows:
    """The columns that the questions of one order read."""

    def __init__(self, table: TableValues) -> None:
        self._table = table
        self.units = RowsOfUnits(table.unit_starts, table.max_rows_per_unit)

    def meeting(self, where: Sequence[Where]) -> Mask:
        """(rows,) which rows meet all conditions; each goes over all rows, whatever the others left."""
        met = np.ones(self._table.rows, dtype=bool)
        for condition in where:
            met &= self._meeting(condition)
        return met

    def _meeting(self, condition: Where) -> Mask:
        field = self._table.fields[condition.column]
        if field.categories is not None:
            declared = {value: code for code, value in enumerate(field.categories)}
            wanted = [-1 if value is None else declared[value] for value in condition.listed or ()]
            return np.isin(self._table.codes[condition.column], wanted)
        numbers = self._table.numbers[condition.column]
        if condition.listed is not None:  # of a range, [null] is all that can be listed
            return np.isnan(numbers)
        low, high = field.numbers_of(value_range(condition))
        return (numbers >= low) & (numbers <= high)

    def has_value(self, column: str) -> Mask:
        """(rows,) where it is not missing."""
        if column in self._table.codes:
            return self._table.codes[column] >= 0
        return ~np.isnan(self._table.numbers[column])

    def cells(self, axes: Sequence[Axis], counted: Mask) -> Integers:
        """(rows,) the cell of the cross table of these axes, the last one fastest; -1 for rows that do not count."""
        cells = np.zeros(self._table.rows, dtype=np.int64)
        for axis in axes:
            own = self._cell(axis)
            cells = cells * axis.size + own
            counted = counted & (own >= 0)
        return np.where(counted, cells, -1)

    def _cell(self, axis: Axis) -> Integers:
        """A missing value has the last cell; -1 in a required column, where there is none."""
        if axis.edges is None:
            cells = self._table.codes[axis.column]
        else:
            numbers, edges = self._table.numbers[axis.column], np.asarray(axis.edges)
            found = np.searchsorted(edges[1:-1], np.nan_to_num(numbers), side="right").astype(np.int64)
            cells = np.where(np.isnan(numbers), -1, found)
        return np.where(cells < 0, axis.known, cells) if axis.has_missing else cells

    def places(self, column: str, lattice: Lattice) -> Integers:
        """(rows,) the place of each value on the lattice; that of the middle where it is missing."""
        numbers = self._table.numbers[column]
        step = float(lattice.step)
        places = np.rint(np.nan_to_num(numbers) / step) - lattice.first
        places = np.where(np.isnan(numbers), (lattice.size - 1) // 2, places)
        found: Integers = np.clip(places, 0, lattice.size - 1).astype(np.int64)
        return found

    def first_above(self, column: str, lattice: Lattice) -> Integers:
        """(rows,) the first place whose value is greater than the row's; the lattice's size if none is."""
        candidates = np.array([float(lattice.value(place)) for place in range(lattice.size)])
        numbers = np.nan_to_num(self._table.numbers[column])
        found: Integers = np.searchsorted(candidates, numbers, side="right").astype(np.int64)
        return found

    def keys(self, columns: Sequence[str]) -> Integers:
        """(rows,) one number for each combination of values: see `key_values`."""
        keys = np.zeros(self._table.rows, dtype=np.int64)
        for column, size in zip(columns, self._key_sizes(columns), strict=True):
            field = self._table.fields[column]
            if field.categories is not None:
                own = self._table.codes[column] + 1
            else:
                own = np.where(self.has_value(column), self.places(column, lattice_of(field)) + 1, 0)
            keys = keys * size + own
        return keys

    def key_values(self, keys: Integers, columns: Sequence[str]) -> list[list[object]]:
        """The values of released keys; reads the declaration alone."""
        found: list[list[object]] = []
        for key in keys.tolist():
            rest, values = key, list[object]()
            for column, size in reversed(list(zip(columns, self._key_sizes(columns), strict=True))):
                rest, place = divmod(rest, size)
                field = self._table.fields[column]
                if place == 0:
                    values.append(None)
                else:
                    known = field.categories
                    values.append(lattice_of(field).value(place - 1) if known is None else known[place - 1])
            found.append(values[::-1])
        return found

    def _key_sizes(self, columns: Sequence[str]) -> list[int]:
        return [key_size(self._table.fields[column]) for column in columns]

    def lattice(self, column: str, *, most_places: int, largest: int | None = None) -> Lattice:
        """The lattice of a range of this table."""
        return lattice_of(self._table.fields[column], most_places=most_places, largest=largest)

    def field(self, column: str) -> FieldSchema:
        """The column as it is declared."""
        return self._table.fields[column]

    def field_kind(self, column: str) -> str:
        """The declared type."""
        return self._table.fields[column].type


def per_unit(largest: int, rows: RowsOfUnits) -> int:
    """How many steps one row may have at most, so that those of a unit add up to at most `largest`."""
    return max(2, math.floor(largest / rows.most))
