"""Trees of noisy counts over open ranges: where values lie. Post-processing of counts that are asked for level by level.

The first level of a tree is a range's equal cells, the last single values; each node is cut into about sixteen parts. The parts of a
node are counted if its own noisy count stands out, all of them, also those without rows. So which nodes are counted follows from the
declared range and noisy counts alone, and there are at most MOST_REFINED times as many as a node has parts in each level.

What the levels say of each other is brought together (Hay et al. 2010): upwards a node and its parts are averaged by their precision;
downwards the parts of a node are as even as noise leaves open (after James and Stein 1961), not negative, and add up to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.domain.value_grids import ValueGrid
from workers.encoding.table import ColumnDomain
from workers.methods.marginals.estimate.denoising import Floats, onto_simplex

STANDARD_DEVIATIONS = 3.0
"""A node is cut into parts if its noisy count is so many of its noise: of sixteen parts without rows, one in forty is by mistake."""

MOST_REFINED = 512
"""Nodes of a level."""

MOST_SHARED = 4_096
"""Single values of a column; where noise is next to nothing every value stands out, and a generator is no list of them."""

MOST_DOUBT, MOST_NOISE = 2.0, 0.05
"""Numbers have no further digits if the rows that seem to have some are so few standard deviations, and one is at most such a part of all."""

Places = NDArray[np.int64]
Count = Callable[[Places, Places], NDArray[np.int64]]
"""First places of intervals, and those past their last -> noisy counts."""


@dataclass(frozen=True)
class RangeTree:
    """Intervals of one column's value grid, side by side, and rows of each as estimated. Public."""

    starts: Places
    rows: Floats
    size: int
    noise_std: float
    decimals: int | None = None
    """Digits after the point that numbers have, where the schema says nothing of them and noise does."""

    @property
    def stops(self) -> Places:
        return np.append(self.starts[1:], self.size)

    @property
    def single(self) -> NDArray[np.bool_]:
        """Which intervals are one value that many rows share."""
        found: NDArray[np.bool_] = (self.stops - self.starts == 1) & (self.rows > STANDARD_DEVIATIONS * self.noise_std)
        return found

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "starts": self.starts.tolist(), "rows": self.rows.tolist()}

    @classmethod
    def from_json(cls, kept: dict[str, Any]) -> RangeTree:
        return cls(**{**kept, "starts": np.array(kept["starts"], np.int64), "rows": np.array(kept["rows"])})

    def bins(self, count: int) -> Places:
        """First places of bins, cut at so many quantiles less one; a single value with a bin's share of rows is one itself.

        There are at most twice as many. Each end of the range with next to no rows is a bin, too: its values would be anywhere up to there.
        """
        below = np.concatenate([[0.0], np.cumsum(self.rows)])
        wanted, few = below[-1] * np.arange(1, count) / count, STANDARD_DEVIATIONS * self.noise_std
        if 2.0 * few * count < below[-1]:
            wanted = np.concatenate([[few], wanted, [below[-1] - few]])
        bounds = np.append(self.starts, self.size)
        inside = np.interp(wanted, below, bounds.astype(np.float64)).round().astype(np.int64)
        alone = self.single & (self.rows * count >= below[-1])
        in_one_alone = alone[np.searchsorted(below[1:-1], wanted, side="right")]
        found = np.unique(np.concatenate([[0], inside[~in_one_alone], self.starts[alone], self.stops[alone]]))
        return found[found < self.size]


def grow(grid: ValueGrid, column: ColumnDomain, count: Count, *, noise_std: float) -> RangeTree:
    """The tree of one column, by noisy counts with this standard deviation."""
    starts = np.unique(np.append(0, grid.below(np.asarray(column.edges)[1:-1])))
    starts = starts[starts < grid.size]
    stops = np.append(starts[1:], grid.size)
    depth, parts = grid.tree(len(column.edges or ()) - 1)
    levels: list[_Level] = []
    for _ in range(depth):
        levels.append(_Level(starts, stops, counts := count(starts, stops)))
        refined = np.flatnonzero((counts > STANDARD_DEVIATIONS * noise_std) & (stops - starts > 1))
        if len(refined) > MOST_REFINED:
            refined = np.sort(refined[np.argsort(counts[refined])[-MOST_REFINED:]])
        if not len(refined) or len(levels) == depth:
            break
        cut = [_parts(int(starts[node]), int(stops[node]), parts) for node in refined]
        levels[-1].refined, levels[-1].sizes = refined, np.array([len(one) - 1 for one in cut])
        starts, stops = (np.concatenate([one[side] for one in cut]) for side in (slice(None, -1), slice(1, None)))
    return _consistent(levels, grid.size, noise_std)


@dataclass
class _Level:
    """Nodes that were counted."""

    starts: Places
    stops: Places
    counts: NDArray[np.int64]
    refined: Places = field(default_factory=lambda: np.zeros(0, np.int64))
    """Nodes whose parts are the next level, in order,"""
    sizes: Places = field(default_factory=lambda: np.zeros(0, np.int64))
    """and how many parts each has."""


def _parts(start: int, stop: int, parts: int) -> Places:
    """Edges of nearly equal parts, of one value at least."""
    count = min(parts, stop - start)
    return start + np.arange(count + 1) * (stop - start) // count


def _consistent(levels: list[_Level], size: int, noise_std: float) -> RangeTree:
    variance = noise_std**2
    best = [level.counts.astype(np.float64) for level in levels]
    variances = [np.full(len(level.counts), variance) for level in levels]
    for own, below in zip(range(len(levels) - 2, -1, -1), range(len(levels) - 1, 0, -1), strict=True):
        refined, of_part = levels[own].refined, np.repeat(np.arange(len(levels[own].refined)), levels[own].sizes)
        sums, of_sums = (np.bincount(of_part, weights=one[below]) for one in (best, variances))
        precision = 1.0 / variance + 1.0 / of_sums
        best[own][refined] = (best[own][refined] / variance + sums / of_sums) / precision
        variances[own][refined] = 1.0 / precision
    first = levels[0]
    rows = _shared_out(best[0], variances[0], (first.stops - first.starts).astype(np.float64), max(1.0, best[0].sum()))
    starts: list[Places] = []
    ended: list[Floats] = []
    for place, level in enumerate(levels):
        kept = np.ones(len(rows), np.bool_)
        kept[level.refined] = False
        starts.append(level.starts[kept])
        ended.append(rows[kept])
        if place + 1 < len(levels):
            widths = levels[place + 1].stops - levels[place + 1].starts
            ends = np.cumsum(level.sizes)[:-1]
            split = (np.split(one, ends) for one in (best[place + 1], variances[place + 1], widths.astype(np.float64)))
            rows = np.concatenate([_shared_out(*one) for one in zip(*split, rows[level.refined], strict=True)])
    order = np.argsort(all_starts := np.concatenate(starts))
    return RangeTree(all_starts[order], np.concatenate(ended)[order], size, noise_std)


def _shared_out(counts: Floats, variances: Floats, widths: Floats, rows: float) -> Floats:
    """The rows of a node among its parts: those that stand out as they were counted, the others evenly, but for what is beyond noise."""
    if rows <= 0.0:
        return np.zeros_like(counts)
    found = counts + (rows - counts.sum()) / len(counts)
    even = rows * widths / widths.sum()
    others = found - even <= STANDARD_DEVIATIONS * np.sqrt(variances)
    if others.any():
        left = max(0.0, rows - float(found[~others].sum()))
        even = left * widths[others] / widths[others].sum()
        beyond = found[others] + (left - found[others].sum()) / others.sum() - even
        noise = float((others.sum() - 1) * variances[others].mean())
        found[others] = even + max(0.0, 1.0 - noise / max(float(beyond @ beyond), 1e-300)) * beyond
    return onto_simplex(found, rows)


def digits_in_use(counts: NDArray[np.int64], grid: ValueGrid, *, noise_std: float) -> int | None:
    """How many digits after the point numbers have at most; None where noise does not tell.

    counts: by roundness, of values that are no multiple of ten of the grid's step, of those that are, and so on.
    """
    rows = max(0.0, float(counts.sum()))
    for round_to in range(min(grid.decimals, len(grid.multiples) - 1), 0, -1):
        further = float(counts[:round_to].sum())
        if noise_std * math.sqrt(round_to) <= MOST_NOISE * rows and further <= MOST_DOUBT * noise_std * math.sqrt(
            round_to
        ):
            return grid.decimals - round_to
    return None
