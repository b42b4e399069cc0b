"""Rows of a mixture, each chosen between two draws, so that the tables of a sample vary less around the mixture's."""

from __future__ import annotations

import functools
import itertools
import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from service.samples.table.base import Array
from service.samples.table.blocks import Block, Dealt
from service.samples.table.dealing import dealt_codes
from service.samples.table.network import Network

BALANCED_ROWS = range(32, 1_000_001)
"""With fewer rows most pairs of cells hold a row or none; with more, chance matters less."""
MOST_BALANCED_CELLS = 2_048
"""Of all columns: a block's two-way tables have the square of it."""
TABLES_KEPT = 4
"""Of a mixture: of all its rows, and of the conditions that were last asked for."""
TABLES_KEPT_BYTES = 1 << 25
"""Of a mixture of many cells fewer are kept, one at least."""
TAKING_TURNS = threading.Lock()
"""At short array operations: threads side by side in them are slower than in turn."""


class Balancing:
    """Chooses the rows of whole blocks for the tables that they make together."""

    def __init__(self, network: Network, *, is_mixture: bool) -> None:
        self._network = network
        self._is_mixture = is_mixture
        width = network.offsets[-1] if is_mixture else 0
        table_bytes = 4 * width * (width + 1) if width <= MOST_BALANCED_CELLS else 0
        kept = max(1, min(TABLES_KEPT, TABLES_KEPT_BYTES // max(1, table_bytes)))
        self.most_kept_bytes = int(kept * table_bytes)
        self._expected_tables = functools.lru_cache(kept)(self._tables_of_all_components)

    def applies(self, rows: int) -> bool:
        """To samples of a mixture: its two-way tables are soon computed. A network's would have to be drawn."""
        return self._is_mixture and self._network.offsets[-1] <= MOST_BALANCED_CELLS and rows in BALANCED_ROWS

    def choose(
        self, block: Block, dealt: Dealt, given: int | None, *, sample_rows: int, is_wanted: Callable[[], bool]
    ) -> Dealt:
        """The block with its codes drawn and chosen; given up when it is not wanted any more."""
        network = self._network
        firsts = np.array(network.offsets[:-1])[:, None]
        cells, others = draws = np.empty((2, len(firsts), block.rows), dtype=np.int64)
        for start in range(0, block.rows, network.rows_at_a_time):
            if not is_wanted():
                return dealt
            rows = slice(start, min(start + network.rows_at_a_time, block.rows))
            rng = block.rng_at(start, of_balanced=True)
            for column, codes in enumerate(dealt_codes(network, dealt, rows, rng, draws=2)):
                draws[:, column, rows] = codes
        draws += firsts
        with TAKING_TURNS:
            if not is_wanted():
                return dealt
            expected = self._expected_tables(given) * np.float32(block.rows)
            balance(cells, others, expected, rows_choosing_at_once(sample_rows, block.rows))
        return replace(dealt, thresholds=None, codes=(cells - firsts).astype(np.uint16))

    def _tables_of_all_components(self, given: int | None) -> Array:
        """Of one row of a mixture: (cells, cells + 1) chances of each two cells, and of each alone."""
        network = self._network
        components = 1 << network.noise_dimension
        width = network.offsets[-1]
        tables = np.zeros((width, width + 1), dtype=np.float32)
        for condition, frequency in enumerate(np.diff(network.cumulative_frequencies, prepend=0.0)):
            weight = frequency if given is None else float(condition == given)
            for start in range(0, components if weight else 0, network.rows_at_a_time):
                signs = np.arange(start, min(start + network.rows_at_a_time, components))
                chances = self._chances_of_cells(signs, condition)
                share = np.float32(weight / components)
                tables[:, :-1] += chances.T @ chances * share
                tables[:, -1] += chances.sum(axis=0) * share
        return tables

    def _chances_of_cells(self, signs: Array, condition: int) -> Array:
        """(components, cells) of the components with these signs of the noise."""
        network = self._network
        noise = np.where(signs[:, None] >> np.arange(network.noise_dimension) & 1, np.float32(-1), np.float32(1))
        chances = network.logits(noise, np.full(len(signs), condition))
        for index, (first, last) in enumerate(itertools.pairwise(network.offsets)):
            own = chances[:, first:last]
            if index == network.condition:
                own[:] = np.arange(last - first) == condition
                continue
            np.exp(own - own.max(axis=1, keepdims=True), out=own)
            own /= own.sum(axis=1, keepdims=True)
        return chances


def rows_choosing_at_once(rows: int, rows_of_block: int) -> int:
    """In one column: few in a small block, more in a long sample, of which a block is a smaller part."""
    return max(1, min(rows_of_block // 512, 4 + rows // 16_384, 24))


def balance(cells: Array, others: Array, expected: Array, at_a_time: int) -> None:
    """Let each row take, column by column, the one of two draws that brings one- and two-way tables closer to the expected.

    cells, others: (columns, rows) int64, cells of all columns numbered through; `cells` is changed in place.
    expected: (total, total + 1) float32 rows in each two cells, and in each alone.
    at_a_time: so many rows choose in a column at once; the fewer, the closer.
    A row is as likely to hold a value as before, as long as a table is as often too full there as too empty. That fails
    where a cell expects less than one row. So a difference of less than a row does not count; such cells still lose
    up to a tenth of their rows.
    """
    columns, rows = cells.shape
    excess = excess_of(cells, expected)
    side, table = len(excess), excess.reshape(-1)
    alone = side - 1  # where a cell would stand beside itself, it is counted alone
    every, of_cells, of_others = np.arange(rows), cells.reshape(-1), others.reshape(-1)
    # The cell a row would leave counts it already, the one it would enter does not: half a row makes them comparable.
    itself = np.array([[[-0.5]], [[0.5]]], dtype=np.float32)
    for turn in range(columns):
        asked = (every + turn) % columns  # each row in another column than the one before
        places = asked * rows + every
        draws = np.stack([of_cells.take(places), of_others.take(places)])
        differ = np.flatnonzero(draws[0] != draws[1])
        for start in range(0, len(differ), columns * at_a_time):
            some = differ[start : start + columns * at_a_time]
            own = asked.take(some) * len(some) + every[: len(some)]
            beside = cells.take(some, axis=1)
            beside.reshape(-1)[own] = alone
            both = draws.take(some, axis=1)
            counted = without_small(table.take(both[:, None] * side + beside) + itself)
            # A cell alone weighs as much as all its pairs.
            worth = counted.sum(axis=1) + np.float32(max(1, columns - 2)) * counted.reshape(2, -1).take(own, axis=1)
            moved = np.flatnonzero(worth[0] > worth[1])
            beside, (now, then) = beside.take(moved, axis=1), both.take(moved, axis=1)
            for change, cell in ((np.float32(-1), now), (np.float32(1), then)):
                np.add.at(table, (cell * side + beside).reshape(-1), change)
                np.add.at(table, (beside * side + cell).reshape(-1), change)
            of_cells[places[some[moved]]] = then


def excess_of(cells: Array, expected: Array) -> Array:
    """(total + 1, total + 1) float32: how many rows more than expected are in each two cells and, in the last column, in each alone.

    Two cells of one column, and the last row, are never read.
    """
    side = expected.shape[1]
    excess = np.zeros((side, side), dtype=np.float32)
    for column, own in enumerate(cells):
        np.add.at(excess.reshape(-1), (own * side + cells[column + 1 :]).reshape(-1), np.float32(1))
    excess += excess.T
    excess[:-1, -1] = np.bincount(cells.reshape(-1), minlength=side - 1)
    # In sixteenths sums are exact, whatever their order.
    excess[:-1] -= np.rint(expected * np.float32(16)) / np.float32(16)
    return excess


def without_small(excess: Array) -> Array:
    """Zero where it is less than a row; in place."""
    excess *= np.abs(excess) > 1
    return excess
