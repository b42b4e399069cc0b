"""Which values of a column are meant: the part of each cell that has them, and draws among them alone."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from service.base.messages import Message
from service.samples.table.base import Array, SamplingError
from service.samples.table.columns import CategoryColumn
from service.samples.table.hierarchies import HierarchyColumn
from service.samples.table.intervals import Intervals, StepsMeant, intervals_of
from service.samples.table.ranges import GridColumn

MOST_PAIRS = 4_096
"""Of ranges that are compared for the weights of one sample."""


class CategorySelection:
    """Some of the values of a column of categories."""

    def __init__(self, column: CategoryColumn, allowed: Array) -> None:
        self.column, self.allowed = column, allowed
        self.chances: Array = column.chances_of(allowed)

    @property
    def cell(self) -> int | None:
        """The one cell that is meant, if it is one and the whole of it."""
        (cells,) = np.nonzero(self.chances)
        return int(cells[0]) if len(cells) == 1 and self.chances[cells[0]] == 1.0 else None

    def can_be(self) -> bool:
        """Whether any of its values can be drawn."""
        return bool(self.chances.any())

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

    def fill(self, codes: Array, rng: np.random.Generator) -> Array:
        """A value of those meant in each drawn cell."""
        return self.column.fill_allowed(codes, self.allowed, rng)


class RangeSelection:
    """Numbers of a range in some intervals, ends included, and perhaps the missing value."""

    def __init__(self, column: GridColumn, intervals: Intervals, *, missing: bool) -> None:
        self.column, self.intervals = column, intervals
        self.missing = missing and column.missing

    def both(self, other: RangeSelection) -> RangeSelection:
        """What both mean."""
        return RangeSelection(self.column, self.intervals.both(other.intervals), missing=self.missing and other.missing)

    def holds(self, drawn: Array) -> Array:
        """(rows,) which of them are meant."""
        found = self.intervals.places(np.ma.getdata(drawn)) >= 0
        return np.where(np.ma.getmaskarray(drawn), self.missing, found)

    def is_within(self, other: RangeSelection) -> bool:
        """Whether the other one means all of these values that can be drawn."""
        drawn_by_both = self.both(other).chances
        return not (self.chances > drawn_by_both + 1e-12).any()

    @functools.cached_property
    def chances(self) -> Array:
        """(size,) what part of a cell's rows is meant."""
        chances = np.zeros(self.column.size)
        bins = len(self.column.steps)
        chances[:bins] = StepsMeant(self.column, self.intervals).totals / self.column.steps
        if self.column.shared is not None:
            chances[:bins] *= 1.0 - self.column.shared.all_of_cell
            chances[:bins] += self._shared_of_bin
        if self.column.missing:
            chances[-1] = self.missing
        return chances

    def can_be(self) -> bool:
        """Whether any of its values can be drawn; soon told where it holds the first or the last number of a bin."""
        if self.missing:
            return True
        if self.column.shared is None:
            for ends in self.column.ends_so_far:
                past = np.searchsorted(ends, self.intervals.highs, side="right")
                if (past > np.searchsorted(ends, self.intervals.lows)).any():
                    return True
        return bool(self.chances.any())

    @property
    def are_drawn(self) -> Array:
        """(intervals,) in which of them a value lies that can be drawn."""
        found, steps, shared = np.zeros(len(self.intervals), dtype=bool), self._steps, self.column.shared
        left = np.ones(len(steps.bins)) if shared is None else 1.0 - shared.all_of_cell[steps.bins]
        found[steps.owners[left > 0]] = True
        if shared is not None:
            places = self.intervals.places(shared.values)
            found[places[(places >= 0) & (shared.shares > 0)]] = True
        return found

    def fill(self, codes: Array, rng: np.random.Generator) -> Array:
        """A value of those meant inside each drawn bin: one that many rows share, or a uniform one."""
        bins = np.minimum(codes, len(self.column.steps) - 1)
        meant = np.maximum(self.chances[bins], np.finfo(np.float64).tiny)
        of_shared = self._shared_of_bin[bins]
        uniforms = rng.random(len(bins)) * meant
        is_shared = uniforms < of_shared
        rest = np.clip((uniforms - of_shared) / np.maximum(meant - of_shared, 2.0**-1000), 0.0, 1.0 - 2.0**-53)
        # The steps of one interval after the other, numbered through.
        totals = self._steps.totals[bins]
        steps = self._steps.at(bins, np.minimum(np.floor(rest * totals), totals - 1))
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
    def _steps(self) -> StepsMeant:
        """Of what is drawn; the chances alone need not keep it."""
        return StepsMeant(self.column, self.intervals)


Selection = CategorySelection | RangeSelection
Selections = dict[int, Selection]
"""By the place of the column; what is not there is not restricted."""


def selection_of(column: CategoryColumn | GridColumn, part: Mapping[str, Any]) -> Selection:
    """What a part of an exclusion means: `values`, or a range, ends included."""
    if isinstance(column, HierarchyColumn):
        return CategorySelection(column, column.coarse_of(column.cells_of(part)))
    if isinstance(column, CategoryColumn):
        return CategorySelection(column, column.cells_of(part))
    if "values" in part:
        return RangeSelection(column, intervals_of([]), missing=True)
    return RangeSelection(column, intervals_of([(part["low"], part["high"])]), missing=False)


def everything_of(column: CategoryColumn | GridColumn) -> Selection:
    """All values of a column, the missing one included."""
    if isinstance(column, CategoryColumn):
        return CategorySelection(column, np.ones(len(column.values), dtype=bool))
    return RangeSelection(column, intervals_of([(-np.inf, np.inf)]), missing=True)


def met_by(selections: Mapping[int, Selection], columns: Sequence[Array]) -> Array:
    """(rows,) which of them every selection means."""
    found = np.ones(len(columns[0]), dtype=bool)
    for index, selection in selections.items():
        found &= selection.holds(columns[index])
    return found


class Pairs:
    """What two selections mean together. Each pair is looked at once: the strata of a sample ask for the same ones over and over."""

    def __init__(self, *, most_ranges: int | None = None) -> None:
        """most_ranges: so many pairs of ranges are compared, and no more."""
        self._left = most_ranges
        self._both: dict[tuple[Selection, Selection], Selection] = {}
        self._within: dict[tuple[Selection, Selection], bool] = {}

    def both(self, one: Selection, other: Selection) -> Selection:
        """What both mean."""
        if (one, other) not in self._both:
            self._count(one)
            self._both[one, other] = one.both(other)  # type: ignore[arg-type]
        return self._both[one, other]

    def is_within(self, one: Selection, other: Selection) -> bool:
        """Whether the other one means all of these values that can be drawn."""
        if (one, other) not in self._within:
            self._count(one)
            self._within[one, other] = one.is_within(other)  # type: ignore[arg-type]
        return self._within[one, other]

    def joined(self, one: Mapping[int, Selection], other: Mapping[int, Selection]) -> Selections:
        """What both mean, of every column."""
        found = dict(one)
        for index, selection in other.items():
            found[index] = self.both(found[index], selection) if index in found else selection
        return found

    def _count(self, one: Selection) -> None:
        if self._left is None or isinstance(one, CategorySelection):
            return
        if not self._left:
            raise SamplingError(
                Message(
                    "weights: more than %(most)s pairs of ranges, of values, conditions and exclusions, would be compared; "
                    "weight fewer values",
                    most=MOST_PAIRS,
                )
            )
        self._left -= 1


def joined_selections(one: Mapping[int, Selection], other: Mapping[int, Selection]) -> Selections:
    """What both mean, of every column."""
    return Pairs().joined(one, other)
