"""One-way tables within each value of the condition, two-way ones within it or of all rows, and how far pairs of columns are from independent."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from workers.mechanism import PrivateSum

BLOCK_ROWS = 65_536
"""Rows counted at once; bounds memory, changes no count."""

BLOCK_ROWS_OF_VALUES = 1_048_576
"""The same of intervals of one column: fewer blocks are faster."""

Columns = tuple[int, ...]
"""The columns of a table: one or two, in increasing order, never the label."""

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class TableLayout:
    """The public form of all tables: from the declared domain, the order, and counts that were released before.

    A table of columns (i,) has shape (strata, widths[i]); one of (i, j) has (pair_slices, pair_widths[i], pair_widths[j]), where
    cells of a column share a group: as many neighbours each, or as `grouping` says. A missing cell, always the last, has its own.
    """

    widths: tuple[int, ...]
    pair_widths: tuple[int, ...]
    has_missing: tuple[bool, ...]
    label: int | None
    grouping: tuple[tuple[int, ...] | None, ...] | None = None
    """For each column the group of each of its cells, or None where groups are of equal width."""
    is_sliced: bool = True
    """Whether tables are counted within each value of the label."""
    pairs_are_sliced: bool = True
    """Whether two-way ones are, where others are."""

    @property
    def slices(self) -> int:
        return self.widths[self.label] if self.label is not None and self.is_sliced else 1

    @property
    def pair_slices(self) -> int:
        return self.slices if self.pairs_are_sliced else 1

    @property
    def free(self) -> Columns:
        """Every column but the label."""
        return tuple(column for column in range(len(self.widths)) if column != self.label)

    def shape(self, columns: Columns) -> tuple[int, ...]:
        if len(columns) == 1:
            return (self.slices, self.widths[columns[0]])
        return (self.pair_slices, *(self.pair_widths[column] for column in columns))

    def size(self, columns: Columns) -> int:
        return math.prod(self.shape(columns))

    def groups_of(self, column: int) -> NDArray[np.int64]:
        """The group of each cell of a column in two-way tables: (widths[column],)."""
        if self.grouping is not None and (given := self.grouping[column]) is not None:
            return np.array(given, dtype=np.int64)
        cells, groups = self.widths[column], self.pair_widths[column]
        codes = np.arange(cells, dtype=np.int64)
        if cells == groups:
            return codes
        if not self.has_missing[column]:
            return codes * groups // cells
        return np.append(codes[:-1] * (groups - 1) // (cells - 1), groups - 1)

    def of_all_rows(self) -> TableLayout:
        """This layout without strata."""
        return replace(self, is_sliced=False)

    def with_pairs_of_all_rows(self) -> TableLayout:
        """This layout, with two-way tables that have no strata."""
        return replace(self, pairs_are_sliced=False)

    def with_groups(self, groups: Mapping[int, NDArray[np.int64]]) -> TableLayout:
        """This layout with groups (widths[column],), counted from 0, for these columns; they must be public."""
        widths = tuple(int(groups[c].max()) + 1 if c in groups else width for c, width in enumerate(self.pair_widths))
        grouping = tuple(tuple(groups[c].tolist()) if c in groups else None for c in range(len(self.widths)))
        return replace(self, pair_widths=widths, grouping=grouping)


def count_tables(
    codes: NDArray[np.uint16],
    layout: TableLayout,
    tables: Sequence[Columns],
    *,
    unit_starts: NDArray[np.int64] | None = None,
    max_rows_per_unit: int = 1,
    block_rows: int = BLOCK_ROWS,
) -> PrivateSum:
    """How many rows fall into every cell of every table.

    Adjacency:   zero-out one unit.
    Sensitivity: L2 max_rows_per_unit for each table (1 where a unit is a row), jointly over all strata: a row adds one to
                 one cell of the table, in the stratum of its label where the table has strata. These are disjoint, so they
                 share the bound and nothing is paid for their number.
    Shapes:      codes (rows, columns); one int64 tensor of layout.shape(table) per table, each its own group.
    Source:      docs/privacy.md, Lemma 4.
    Edge cases:  rows with a code outside its column (null records) count nowhere; rows beyond max_rows_per_unit of
                 their unit are left out here, whatever the encoder promised.
    """
    totals = [np.zeros(layout.size(table), dtype=np.int64) for table in tables]
    for block in _blocks(codes, layout, unit_starts, max_rows_per_unit, block_rows):
        for place, columns in enumerate(tables):
            totals[place] += block.count(columns)
    return PrivateSum(
        tuple(torch.from_numpy(t.reshape(layout.shape(c))) for t, c in zip(totals, tables, strict=True)),
        tuple((place,) for place in range(len(tables))),
        (float(max_rows_per_unit if unit_starts is not None else 1),) * len(tables),
    )


def count_intervals(
    places: NDArray[np.uint32],
    starts: Counts,
    stops: Counts,
    *,
    unit_starts: NDArray[np.int64] | None = None,
    max_rows_per_unit: int = 1,
    block_rows: int = BLOCK_ROWS_OF_VALUES,
) -> PrivateSum:
    """How many rows of one column lie in each of these intervals: one level of a tree of counts.

    Adjacency:   zero-out one unit.
    Sensitivity: L2 max_rows_per_unit (1 where a unit is a row), however many intervals there are: none overlaps another, which is
                 checked, so a row adds one to at most one of the counts. Levels of a tree overlap each other; each is a release of its
                 own, and may be of intervals that were chosen by released counts of others: L of them, each at √L times a noise
                 multiplier, compose adaptively to one Gaussian of that multiplier.
    Shapes:      places (rows,), each value's place in its grid; starts and stops (intervals,), increasing, the first place and the one
                 past the last; one int64 tensor (intervals,).
    Source:      docs/privacy.md, Lemmas 1 and 4; Hay et al. 2010; Zhang et al. 2016.
    Edge cases:  a place in no interval (missing, a null record) counts nowhere; rows beyond max_rows_per_unit of their unit are
                 left out here, whatever the encoder promised.
    """
    if (stops[:-1] > starts[1:]).any() or (starts >= stops).any():
        raise ValueError("these intervals overlap, or are not in order")
    total = np.zeros(len(starts), dtype=np.int64)
    for start in range(0, len(places), block_rows):
        block = np.asarray(places[start : start + block_rows])
        within = _within_bound(start, len(block), unit_starts, max_rows_per_unit)
        which = np.searchsorted(starts, block, side="right") - 1
        counts = (which >= 0) & (block < stops[which]) & within
        total += np.bincount(which[counts], minlength=len(starts))
    bound = float(max_rows_per_unit if unit_starts is not None else 1)
    return PrivateSum((torch.from_numpy(total),), ((0,),), (bound,))


def pair_scores(
    codes: NDArray[np.uint16],
    layout: TableLayout,
    expected: Mapping[Columns, Counts],
    *,
    unit_starts: NDArray[np.int64] | None = None,
    max_rows_per_unit: int = 1,
    block_rows: int = BLOCK_ROWS,
) -> PrivateSum:
    """For each pair of columns, the L1 distance of its table from the whole, public counts `expected` of it.

    Adjacency:   zero-out one unit.
    Sensitivity: L2 max_rows_per_unit·√pairs: a unit moves a table by at most max_rows_per_unit in L1, and so its
                 distance from anything fixed.
    Shapes:      one tensor (pairs,) in the order of `expected`, whose values have layout.shape(pair).
    Source:      docs/privacy.md, Lemma 4.
    Edge cases:  as in count_tables; distances are whole numbers.
    """
    pairs = list(expected)
    counted = count_tables(
        codes,
        layout,
        pairs,
        unit_starts=unit_starts,
        max_rows_per_unit=max_rows_per_unit,
        block_rows=block_rows,
    )
    distances = [
        int(np.abs(table.numpy() - expected[pair]).sum()) for table, pair in zip(counted.values, pairs, strict=True)
    ]
    rows = max_rows_per_unit if unit_starts is not None else 1
    return PrivateSum((torch.tensor(distances, dtype=torch.int64),), ((0,),), (rows * math.sqrt(len(pairs)),))


class _Block:
    """Rows that count, as positions of their cells."""

    def __init__(self, codes: NDArray[np.uint16], layout: TableLayout) -> None:
        self._layout = layout
        columns = list(codes.T.astype(np.int64))
        label = columns[layout.label] if layout.label is not None and layout.is_sliced else 0
        self._cells = columns
        self._slice_of_row = label
        self._groups = {i: layout.groups_of(i)[columns[i]] for i in layout.free}
        pair_slice = label if layout.pairs_are_sliced else 0
        self._first = {i: pair_slice * layout.pair_widths[i] + self._groups[i] for i in layout.free}

    def count(self, columns: Columns) -> Counts:
        layout = self._layout
        if len(columns) == 1:
            (i,) = columns
            places = self._slice_of_row * layout.widths[i] + self._cells[i]
        else:
            i, j = columns
            places = self._first[i] * layout.pair_widths[j] + self._groups[j]
        return np.bincount(places, minlength=layout.size(columns))


def _blocks(
    codes: NDArray[np.uint16],
    layout: TableLayout,
    unit_starts: NDArray[np.int64] | None,
    max_rows_per_unit: int,
    block_rows: int,
) -> Iterator[_Block]:
    widths = np.array(layout.widths)
    for start in range(0, len(codes), block_rows):
        block = np.asarray(codes[start : start + block_rows])
        counts = (block < widths).all(axis=1) & _within_bound(start, len(block), unit_starts, max_rows_per_unit)
        yield _Block(block[counts], layout)


def _within_bound(
    start: int, rows: int, unit_starts: NDArray[np.int64] | None, max_rows_per_unit: int
) -> NDArray[np.bool_]:
    """(rows,) from the row `start` on: whether each is among the first so many of its unit."""
    if unit_starts is None:
        return np.ones(rows, dtype=np.bool_)
    places = np.arange(start, start + rows)
    unit = np.searchsorted(unit_starts, places, side="right") - 1
    within: NDArray[np.bool_] = places - unit_starts[unit] < max_rows_per_unit
    return within
