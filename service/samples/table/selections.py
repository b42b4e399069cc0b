"""Which values of a column are meant: the part of each cell that has them, and draws among them alone."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from service.samples.table.base import Array
from service.samples.table.columns import CategoryColumn
from service.samples.table.ranges import GridColumn

HALVINGS = 54
"""Of the steps in a bin, of which there are 2**53 at most."""


class CategorySelection:
    """Some of the values of a column of categories."""

    def __init__(self, column: CategoryColumn, allowed: Array) -> None:
        self.column, self.allowed = column, allowed
        self.chances: Array = allowed.astype(np.float64)

    def both(self, other: CategorySelection) -> CategorySelection:
        """What both mean."""
        return CategorySelection(self.column, self.allowed & other.allowed)

    def holds(self, drawn: Array) -> Array:
        """(rows,) which of them are meant."""
        found: Array = self.allowed[drawn]
        return found

    def is_within(self, other: CategorySelection) -> bool:
        """Whether the other one means all of these values."""
        return not (self.allowed & ~other.allowed).any()

    def fill(self, codes: Array, _rng: np.random.Generator) -> Array:
        """A category has one value: its code."""
        return codes


class RangeSelection:
    """Numbers of a range in some intervals, ends included, and perhaps the missing value."""

    def __init__(self, column: GridColumn, intervals: Sequence[tuple[float, float]], *, missing: bool) -> None:
        self.column = column
        self.intervals = sorted(each for each in intervals if each[0] <= each[1])
        self.missing = missing and column.missing

    def both(self, other: RangeSelection) -> RangeSelection:
        """What both mean."""
        pairs = [(max(a, c), min(b, d)) for a, b in self.intervals for c, d in other.intervals]
        return RangeSelection(self.column, pairs, missing=self.missing and other.missing)

    def holds(self, drawn: Array) -> Array:
        """(rows,) which of them are meant."""
        numbers, masked = np.ma.getdata(drawn), np.ma.getmaskarray(drawn)
        found = np.zeros(len(numbers), dtype=bool)
        for low, high in self.intervals:
            found |= (numbers >= low) & (numbers <= high)
        return np.where(masked, self.missing, found)

    def is_within(self, other: RangeSelection) -> bool:
        """Whether the other one means all of these values that can be drawn."""
        drawn_by_both = self.both(other).chances
        return not (self.chances > drawn_by_both + 1e-12).any()

    @functools.cached_property
    def chances(self) -> Array:
        """(size,) what part of a cell's rows is meant."""
        chances = np.zeros(self.column.size)
        bins = len(self.column.steps)
        chances[:bins] = self._counts.sum(axis=0) / self.column.steps
        if self.column.shared is not None:
            chances[:bins] *= 1.0 - self.column.shared.all_of_cell
            chances[:bins] += self._shared_of_bin
        if self.column.missing:
            chances[-1] = self.missing
        return chances

    def fill(self, codes: Array, rng: np.random.Generator) -> Array:
        """A value of those meant inside each drawn bin: one that many rows share, or a uniform one."""
        bins = np.minimum(codes, len(self.column.steps) - 1)
        meant = np.maximum(self.chances[bins], np.finfo(np.float64).tiny)
        of_shared = self._shared_of_bin[bins]
        uniforms = rng.random(len(bins)) * meant
        is_shared = uniforms < of_shared
        rest = np.clip((uniforms - of_shared) / np.maximum(meant - of_shared, 2.0**-1000), 0.0, 1.0 - 2.0**-53)
        # The steps of one interval after the other, numbered through.
        before = np.concatenate([np.zeros((1, len(self.column.steps))), np.cumsum(self._counts, axis=0)])[:, bins]
        numbered = np.minimum(np.floor(rest * before[-1]), before[-1] - 1)
        which = np.clip((before[1:] <= numbered).sum(axis=0), 0, max(0, len(self._counts) - 1))
        steps = np.zeros(len(bins))
        if len(self._counts):
            rows = np.arange(len(bins))
            steps = np.maximum(self._first_steps[which, bins] + numbered - before[which, rows], 0.0)
        numbers = self.column.number_at(bins, steps)
        if self.column.shared is not None and is_shared.any():
            values = self.column.shared.values[self._meant_shared]
            shares = self.column.shared.shares[self._meant_shared]
            cells = self.column.shared.cells[self._meant_shared]
            up_to = np.cumsum(shares)
            start = (np.cumsum(self._shared_of_bin) - self._shared_of_bin)[bins[is_shared]]
            found = np.searchsorted(up_to, start + uniforms[is_shared], side="right")
            lowest, past = (np.searchsorted(cells, bins[is_shared], side=side) for side in ("left", "right"))
            numbers[is_shared] = values[np.clip(found, lowest, past - 1)]
        return self.column.drawn_of(numbers, codes)

    @functools.cached_property
    def _meant_shared(self) -> Array:
        """Which of the values that many rows share are meant."""
        assert self.column.shared is not None  # noqa: S101 - asked for only then
        return self.holds(np.ma.asarray(self.column.shared.values))

    @functools.cached_property
    def _shared_of_bin(self) -> Array:
        """(bins,) the part of a bin's rows that has a shared value that is meant."""
        shared, bins = self.column.shared, len(self.column.steps)
        if shared is None:
            return np.zeros(bins)
        return np.bincount(shared.cells, weights=shared.shares * self._meant_shared, minlength=bins)

    @functools.cached_property
    def _first_steps(self) -> Array:
        """(intervals, bins) the first step of each bin that is not below an interval."""
        firsts = [_steps_before(self.column, low) for low, _ in self.intervals]
        return np.array(firsts).reshape(len(self.intervals), len(self.column.steps))

    @functools.cached_property
    def _counts(self) -> Array:
        """(intervals, bins) how many steps of each bin are in an interval."""
        past = [_steps_before(self.column, np.nextafter(high, np.inf)) for _, high in self.intervals]
        counts: Array = np.array(past).reshape(self._first_steps.shape) - self._first_steps
        return counts


Selection = CategorySelection | RangeSelection
Selections = dict[int, Selection]
"""By the place of the column; what is not there is not restricted."""


def _steps_before(column: GridColumn, low: float) -> Array:
    """(bins,) how many steps of each bin are below a number: by halving, with the very numbers that are drawn."""
    bins = np.arange(len(column.steps))
    fewest, most = np.zeros(len(bins)), column.steps.astype(np.float64).copy()
    for _ in range(HALVINGS):
        middle = np.floor((fewest + most) / 2)
        is_below = (column.number_at(bins, middle) < low) & (middle < most)
        fewest, most = np.where(is_below, middle + 1, fewest), np.where(is_below, most, middle)
    return fewest


def selection_of(column: CategoryColumn | GridColumn, part: Mapping[str, Any]) -> Selection:
    """What a part of an exclusion means: `values`, or a range, ends included."""
    if isinstance(column, CategoryColumn):
        return CategorySelection(column, column.cells_of(part))
    if "values" in part:
        return RangeSelection(column, [], missing=True)
    return RangeSelection(column, [(part["low"], part["high"])], missing=False)


def everything_of(column: CategoryColumn | GridColumn) -> Selection:
    """All values of a column, the missing one included."""
    if isinstance(column, CategoryColumn):
        return CategorySelection(column, np.ones(column.size, dtype=bool))
    return RangeSelection(column, [(-np.inf, np.inf)], missing=True)


def met_by(selections: Mapping[int, Selection], columns: Sequence[Array]) -> Array:
    """(rows,) which of them every selection means."""
    found = np.ones(len(columns[0]), dtype=bool)
    for index, selection in selections.items():
        found &= selection.holds(columns[index])
    return found


def joined_selections(one: Mapping[int, Selection], other: Mapping[int, Selection]) -> Selections:
    """What both mean, of every column."""
    found = dict(one)
    for index, selection in other.items():
        found[index] = found[index].both(selection) if index in found else selection  # type: ignore[arg-type]
    return found
