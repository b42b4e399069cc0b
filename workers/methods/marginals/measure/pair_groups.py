"""Which cells of a column two-way tables count together, by its noisy one-way counts. Post-processing.

Public cells are of equal width, or as a schema lists them, and rows are not: a column of expenses has most of its rows in its first
cells, one of countries most of them in one. A pair of cells that next to no row is in costs as much precision as any other, so cells
that are rare share a group: neighbours where a column has an order, any where it has none.

Relatives: PrivSyn (Zhang et al. 2021) and AIM as its authors run it count rare cells of one-way tables together.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from workers.mechanism.marginals import TableLayout
from workers.methods.marginals.estimate.denoising import Floats

ROWS_BY_NOISE = 1.5
"""A group has this many times as many rows as the noise of all its cells in an average pair, in L2 (docs/log.md)."""

SHARE_OF_A_CATEGORY = 0.3
"""Categories share a group below this part of what ordered cells do: those beside each other in a list need not be alike."""

_SMALLEST_SHARES, _COARSER = np.geomspace(1e-4, 0.5, 60), 1.25
"""What is tried."""

Groups = NDArray[np.int64]


def group_by_counts(
    layout: TableLayout,
    shares: Mapping[int, Floats],
    *,
    rows: float,
    in_order: Mapping[int, bool],
    noise: Callable[[TableLayout], float],
) -> TableLayout:
    """The finest layout whose groups stand out from the noise; the coarsest there is where none does.

    shares: (cells,) of every free column, of sum 1, from noisy counts. rows: of an average stratum. noise: what that of one group
    in an average pair is together, in rows, under a layout; less the coarser it is. No column gets more groups than it had.
    """

    def grouped(place: int) -> TableLayout:
        groups = {}
        for column, part in shares.items():
            has_missing, most = layout.has_missing[column], layout.pair_widths[column]
            smallest = float(_SMALLEST_SHARES[place])
            groups[column] = _groups(part, smallest, in_order=in_order[column], has_missing=has_missing, most=most)
        return layout.with_groups(groups)

    def stands_out(place: int) -> bool:
        return bool(_SMALLEST_SHARES[place] * rows >= ROWS_BY_NOISE * noise(grouped(place)))

    return grouped(bisect_left(range(len(_SMALLEST_SHARES) - 1), True, key=stands_out))


def _groups(shares: Floats, smallest: float, *, in_order: bool, has_missing: bool, most: int) -> Groups:
    """(cells,) the group of each; a missing cell is the last and alone."""
    present = shares[: len(shares) - has_missing]
    smallest *= 1.0 if in_order else SHARE_OF_A_CATEGORY
    while (groups := rare_together(present, smallest, in_order=in_order)).max() >= most - has_missing:
        smallest *= _COARSER
    return np.append(groups, groups.max() + 1) if has_missing else groups


def rare_together(shares: Floats, smallest: float, *, in_order: bool) -> Groups:
    """(cells,) the group of each: alone if its share is at least `smallest`, else with other rare cells until they have as much.

    Where there is an order, groups are of neighbours. What is left over joins the group before it, or is a small one.
    Groups are numbered as their first cells lie, so that cells that are all alone keep their places.
    """
    frequent = shares >= smallest
    cells = np.arange(len(shares)) if in_order else np.argsort(frequent, kind="stable")
    groups, count = np.empty(len(shares), np.int64), 0
    for run in np.split(cells, np.flatnonzero(np.diff(frequent[cells])) + 1):
        within = _pieces(shares[run], smallest)
        groups[run] = count + within
        count += int(within.max()) + 1
    _, first_cells, found = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first_cells))[found]


def _pieces(shares: Floats, smallest: float) -> Groups:
    """(cells,) the piece of each: one cell after another, in pieces of at least `smallest`, so that a frequent cell is one itself."""
    masses = list(accumulate(shares.tolist(), lambda mass, share: share if mass >= smallest else mass + share))
    is_last = np.array(masses) >= smallest
    pieces: Groups = np.cumsum(is_last) - is_last
    return np.minimum(pieces, max(0, is_last.sum() - 1))
