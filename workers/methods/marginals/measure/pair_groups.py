"""Which cells of a column two-way tables count together, by its noisy one-way counts. Post-processing.

Public cells are of equal width, or as a schema lists them, and rows are not: a column of expenses has most of its rows in its first
cells, one of countries most of them in one. A pair of cells that next to no row is in costs as much precision as any other, so cells
that are rare share a group: neighbours where a column has an order, any where it has none.

Relatives: PrivSyn (Zhang et al. 2021) and AIM as its authors run it count rare cells of one-way tables together.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from workers.mechanism.marginals import TableLayout
from workers.methods.marginals.estimate.denoising import Floats

ROWS_BY_NOISE = 1.5
"""A group has this many times as many rows as the noise of all its cells in an average pair, in L2 (docs/log.md)."""

SHARE_OF_A_CATEGORY = 0.3
"""Categories share a group below this part of what ordered cells do: those beside each other in a list need not be alike."""

SMALLEST_SHARES = np.geomspace(1e-4, 0.5, 60)
COARSER = 1.25

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
        groups = {
            column: _groups(
                part,
                float(SMALLEST_SHARES[place]),
                in_order=in_order[column],
                has_missing=layout.has_missing[column],
                most=layout.pair_widths[column],
            )
            for column, part in shares.items()
        }
        return layout.with_groups(groups)

    places = range(len(SMALLEST_SHARES) - 1)
    found = bisect_left(
        places, True, key=lambda p: bool(SMALLEST_SHARES[p] * rows >= ROWS_BY_NOISE * noise(grouped(p)))
    )
    return grouped(found)


def _groups(shares: Floats, smallest: float, *, in_order: bool, has_missing: bool, most: int) -> Groups:
    """(cells,) the group of each; a missing cell is the last and alone."""
    if has_missing:
        present = _groups(shares[:-1], smallest, in_order=in_order, has_missing=False, most=most - 1)
        return np.append(present, present.max() + 1)
    smallest *= 1.0 if in_order else SHARE_OF_A_CATEGORY
    while (groups := rare_together(shares, smallest, in_order=in_order)).max() >= most:
        smallest *= COARSER
    return groups


def rare_together(shares: Floats, smallest: float, *, in_order: bool) -> Groups:
    """(cells,) the group of each: alone if its share is at least `smallest`, else with other rare cells until they have as much.

    Where there is an order, groups are of neighbours. What is left over joins the group before it, or is a small one.
    Groups are numbered as their first cells lie, so that cells that are all alone keep their places.
    """
    groups, count = np.empty(len(shares), np.int64), 0
    for is_frequent, cells in _runs(shares >= smallest, in_order):
        within = np.arange(len(cells)) if is_frequent else _pieces(shares[cells], smallest)
        groups[cells] = count + within
        count += int(within.max()) + 1
    _, first_cells, found = np.unique(groups, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first_cells))[found]


def _runs(frequent: NDArray[np.bool_], in_order: bool) -> Iterator[tuple[bool, Groups]]:
    """(whether they are frequent, their cells), of cells that lie together; without an order all rare ones do."""
    cells = np.arange(len(frequent))
    if in_order:
        for is_frequent, run in groupby(cells, key=lambda cell: bool(frequent[cell])):
            yield is_frequent, np.fromiter(run, np.int64)
        return
    for is_frequent in (False, True):
        if (frequent == is_frequent).any():
            yield is_frequent, cells[frequent == is_frequent]


def _pieces(shares: Floats, smallest: float) -> Groups:
    """One rare cell after another, in pieces of at least `smallest`."""
    pieces, piece, mass = np.empty(len(shares), np.int64), 0, 0.0
    for cell, share in enumerate(shares.tolist()):
        pieces[cell] = piece
        mass += share
        if mass >= smallest:
            piece, mass = piece + 1, 0.0
    return np.minimum(pieces, max(0, piece - 1))
