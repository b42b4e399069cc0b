"""Intervals of a range, and the steps of its bins that lie in them: as much work as there are bins and intervals, not their product."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from service.samples.table.base import Array
from service.samples.table.ranges import GridColumn


class Intervals:
    """Intervals of numbers that do not overlap, in order, ends included."""

    def __init__(self, lows: Array, highs: Array) -> None:
        self.lows, self.highs = lows, highs

    def __len__(self) -> int:
        return len(self.lows)

    def both(self, other: Intervals) -> Intervals:
        """What is in one of these and in one of those."""
        first = np.searchsorted(other.highs, self.lows, side="left")
        own, others = places_in_ranges(first, np.searchsorted(other.lows, self.highs, side="right"))
        return Intervals(
            np.maximum(self.lows[own], other.lows[others]), np.minimum(self.highs[own], other.highs[others])
        )

    def places(self, numbers: Array) -> Array:
        """The interval that each number lies in; -1 where none."""
        found = np.searchsorted(self.lows, numbers, side="right") - 1
        if not len(self):
            return found
        return np.where(numbers <= self.highs[found], found, -1)  # of -1 the last: its end is no smaller than any low


def intervals_of(ends: Sequence[tuple[float, float]]) -> Intervals:
    """In order, without those that hold nothing."""
    held = sorted(each for each in ends if each[0] <= each[1])
    lows, highs = np.array(held, dtype=np.float64).reshape(-1, 2).T
    return Intervals(np.ascontiguousarray(lows), np.ascontiguousarray(highs))


class StepsMeant:
    """The steps of each bin that lie in intervals: one entry for each interval that holds some of a bin's, bin after bin."""

    def __init__(self, column: GridColumn, intervals: Intervals) -> None:
        with np.errstate(over="ignore"):  # after the largest number comes infinity
            past = np.nextafter(intervals.highs, np.inf)
        lasts, firsts = column.ends_so_far
        # Bins before these have all their steps below the number; from these on, none.
        all_before, none_from = (np.searchsorted(lasts, ends, side="left") for ends in (intervals.lows, past))
        touched = np.searchsorted(firsts, past, side="left")
        whole_from = np.searchsorted(firsts, intervals.lows, side="left")
        owners, bins = places_in_ranges(all_before, touched)
        first, end = np.zeros(len(bins)), column.steps[bins].astype(np.float64)
        cut = np.flatnonzero(bins < whole_from[owners])
        first[cut] = _steps_below(column, bins[cut], intervals.lows[owners[cut]])
        cut = np.flatnonzero(bins >= none_from[owners])
        end[cut] = _steps_below(column, bins[cut], past[owners[cut]])
        some = np.flatnonzero(end > first)
        order = some[np.argsort(bins[some], kind="stable")]
        self.owners, self.bins = owners[order], bins[order]
        self._firsts, counts = first[order], (end - first)[order]
        self.totals: Array = np.bincount(self.bins, weights=counts, minlength=len(column.steps))
        """(bins,) how many steps of each are meant."""
        self._starts = np.searchsorted(self.bins, np.arange(len(column.steps) + 1))
        whole = counts.astype(np.int64)  # exact, whatever the sum over bins
        before = np.cumsum(whole) - whole
        self._before = (before - before[self._starts[self.bins]]).astype(np.float64)

    def at(self, bins: Array, numbers: Array) -> Array:
        """The steps with these numbers, counted from 0, among those of their bins that are meant; 0 in a bin without any."""
        if not len(self.bins):
            return np.zeros(len(bins))
        low, end = self._starts[bins], self._starts[bins + 1]
        is_empty = low == end
        low, high = np.minimum(low, len(self.bins) - 1), np.maximum(end - 1, 0)
        for _ in range(int(np.diff(self._starts).max() - 1).bit_length()):
            middle = (low + high + 1) // 2
            is_before = self._before[middle] <= numbers
            low, high = np.where(is_before, middle, low), np.where(is_before, high, np.maximum(low, middle - 1))
        steps: Array = np.maximum(self._firsts[low] + numbers - self._before[low], 0.0)
        steps[is_empty] = 0.0
        return steps


def places_in_ranges(first: Array, end: Array) -> tuple[Array, Array]:
    """Which range each place of these ranges is in, and the place: first, first + 1, … before end, of one after the other."""
    sizes = np.maximum(end - first, 0)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    return owners, np.arange(len(owners)) - np.repeat(np.cumsum(sizes) - sizes - first, sizes)


def _steps_below(column: GridColumn, bins: Array, numbers: Array) -> Array:
    """How many steps of each of these bins are below a number: by halving, with the very numbers that are drawn."""
    fewest, most = np.zeros(len(bins)), column.steps[bins].astype(np.float64)
    for _ in range(int(most.max(initial=0.0)).bit_length()):
        middle = fewest + np.floor((most - fewest) / 2)
        is_below = (column.number_at(bins, middle) < numbers) & (middle < most)
        fewest, most = np.where(is_below, middle + 1, fewest), np.where(is_below, most, middle)
    return fewest
