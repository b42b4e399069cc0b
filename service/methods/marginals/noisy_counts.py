"""How noisy every count of an order of marginals will be: from the resolved order, the events and the declared columns, never from a row.

The worker shares the precision of each event out among its tables by their sizes (`workers.methods.marginals.measure.precision`); this
is the same arithmetic over kinds of tables, so that a table of a thousand columns takes no more of it than one of a hundred.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from service.base.lazy import lazy
from service.domain.shapes import ColumnSort, TableShape
from service.methods.marginals.order import MarginalsOrder
from service.methods.marginals.pair_rules import pair_widths
from service.methods.marginals.precision import ROUNDING_VARIANCE, one_way_weight
from service.methods.marginals.price import MARGINALS, ONE_WAY_TABLES, VALUE_TREES
from service.privacy.events import Events

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
else:
    np = lazy("numpy")

ROWS_BY_NOISE = 1.5
"""A group of rare cells has this many times as many rows as the noise of its column's groups in an average pair (docs/forecast.md)."""

SORTS: tuple[ColumnSort, ...] = ("categories", "values", "cells")

GROUPS = {"categories": (0.95, 2.4, 0.9), "values": (0.73, 0.84, 0.97), "cells": (0.51, 1.07, 0.79)}
"""(part, factor, exponent): where each group must have a share of the rows, a column of this sort has about 1 / √(1/a² + 1/b²) groups.
a = part · cells is what has rows at all, b = factor / share^exponent what the rows fill (docs/forecast.md)."""

PART_CHOSEN = 0.12
"""Of all pairs, where scores choose them: what is typical where any are (docs/forecast.md)."""

SMALLEST_SHARES = tuple(1e-4 * 5_000.0 ** (place / 59) for place in range(60))
FEWEST_GROUPS = 2.0


@dataclass(frozen=True)
class NoisyCounts:
    """The tables that will be counted, by kinds of columns, and the noise on a count of each."""

    order: MarginalsOrder
    units: int
    strata: int
    pair_strata: int
    cells: Floats
    """(kinds,) of a column besides the condition, as declared."""
    kinds: Floats
    """(kinds,) how many columns are alike."""
    caps: Floats
    """(widths,) cells of a column in two-way tables, at most."""
    sorts: NDArray[np.int64]
    """(widths,) the place in SORTS of the columns that have these."""
    columns: Floats
    """(widths,) how many columns there are of each."""
    width_of_kind: NDArray[np.int64]
    """(kinds,) the place of each kind's width and sort."""
    stds: Mapping[str, float]
    """By purpose: the standard deviation of a count, were its table the only one of its event."""
    tree_levels: int
    """Of the trees of all open ranges, which share their event equally."""

    @classmethod
    def of(cls, order: MarginalsOrder, events: Events, shape: TableShape, units: int) -> NoisyCounts:
        alone = len(shape.cells) == 1  # then there is nothing to split
        condition = None if alone else order.condition_on
        free = [name for name in shape.cells if name != condition]
        cells = [shape.cells[name] for name in free]
        sorts = [_sort(name, order, shape) for name in free]
        alike = Counter(zip(cells, pair_widths(cells, pair_cells=order.pair_cells), sorts, strict=True))
        strata = 1 if condition is None else shape.cells.get(condition, 1)
        wide, narrow, sort = zip(*alike, strict=True)
        kinds = np.array(list(alike.values()), np.float64)
        widths, width_of_kind = np.unique(np.array([narrow, sort]), axis=1, return_inverse=True)
        caps = widths[0].astype(np.float64)
        return cls(
            order,
            max(1, units),
            strata,
            1 if order.pairs_within == "table" else strata,
            np.array(wide, np.float64),
            kinds,
            caps,
            widths[1],
            np.asarray(np.bincount(width_of_kind, weights=kinds), np.float64),
            width_of_kind.ravel(),
            {
                event.purpose: event.quoted_noise_multiplier * shape.max_rows_per_unit
                for event in events
                if event.quoted_noise_multiplier is not None
            },
            shape.tree_levels,
        )

    @property
    def free(self) -> int:
        """Columns besides the condition."""
        return int(self.columns.sum())

    @property
    def all_pairs(self) -> int:
        return math.comb(self.free, 2)

    @property
    def measured_pairs(self) -> int:
        """Pairs that share the precision: all, where it is not known before; a typical part, where they are chosen."""
        if self.order.pairs == "none" or not self.all_pairs:
            return 0
        return max(1, round(PART_CHOSEN * self.all_pairs)) if self.order.pairs == "chosen" else self.all_pairs

    @property
    def in_trees(self) -> float | None:
        """Standard deviation of a count of a part of an open range; None where none is counted. Bins found by it are about as many as equal cells."""
        std = self.stds.get(VALUE_TREES)
        return None if std is None else math.sqrt(std**2 * self.tree_levels + ROUNDING_VARIANCE)

    @cached_property
    def groups(self) -> Floats:
        """(widths,) cells of a column in two-way tables.

        Where rare ones are grouped by counts, as many as stand out from noise if rows lie as they usually do.
        """
        if self.order.pair_groups != "counted" or not self.measured_pairs:
            return self.caps
        rows, pairs = self.units / self.pair_strata, self._pairs_of_widths()
        total = functools.partial(self._total_weight, measured_pairs=self.all_pairs)  # before any is chosen

        def is_lost(place: int) -> bool:
            groups = self._groups_at(place)
            larger = np.maximum(groups[:, None], groups[None, :])
            noise = float((pairs * self._stds_of_pairs(groups, total(groups)) * np.sqrt(larger)).sum() / pairs.sum())
            return bool(SMALLEST_SHARES[place] * rows < ROWS_BY_NOISE * noise)

        low, high = 0, len(SMALLEST_SHARES) - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if is_lost(middle) else (low, middle)
        return self._groups_at(low)

    def by_sort(self, values: Mapping[str, float]) -> Floats:
        """(kinds,) the value of each kind's sort."""
        return np.array([values[sort] for sort in SORTS])[self.sorts[self.width_of_kind]]

    @cached_property
    def within_strata(self) -> Floats:
        """(kinds,) standard deviation of a count of one cell within one value of the condition: of a column beside the condition."""
        return self._of_single_columns(self._total_weight(self.groups), self.stds[MARGINALS], self.strata)

    @cached_property
    def one_way(self) -> Floats:
        """(kinds,) the same of a count in all rows, by all that is told of it."""
        precision = 1.0 / (self.within_strata**2 * self.strata)
        for std, strata in self._looks():
            total = float((self.kinds * (strata * self.cells) ** self.order.precision_exponent).sum())
            precision += 1.0 / (self._of_single_columns(total, std, strata, weight=1.0) ** 2 * strata)
        variances = 1.0 / precision
        if self.measured_pairs:
            variances = self._with_margins(variances)
        return np.asarray(np.sqrt(variances), np.float64)

    @cached_property
    def two_way(self) -> tuple[Floats, Floats, Floats]:
        """(sizes,) each: cells of a pair's table, how many such pairs there are, and the standard deviation of a count in all rows."""
        kept = np.triu(self._pairs_of_widths())
        kept[np.diag_indices(len(kept))] /= 2.0
        some = kept > 0.0
        stds = self._stds_of_pairs(self.groups) * math.sqrt(self.pair_strata)
        return np.outer(self.groups, self.groups)[some], kept[some], stds[some]

    # -- the worker's sharing out

    def _looks(self) -> list[tuple[float, int]]:
        """One-way tables before all others: the noise of each look and its strata (`workers.methods.marginals.measure.layouts.looks_of`)."""
        std = self.stds.get(ONE_WAY_TABLES)
        if std is None:
            return []
        if self.strata == 1 or self.order.pairs_within == "table" or self.order.pairs == "none":
            return [(std, 1)]
        if self.order.pairs == "chosen":
            return [(std, self.strata)]
        return [(std * math.sqrt(2.0), 1), (std * math.sqrt(2.0), self.strata)]

    def _of_single_columns(self, total: float, std: float, strata: int, *, weight: float | None = None) -> Floats:
        factor = one_way_weight(self.order) if weight is None else weight
        weights = factor * (strata * self.cells) ** self.order.precision_exponent
        return np.asarray(np.sqrt(std**2 * total / weights + ROUNDING_VARIANCE), np.float64)

    def _total_weight(self, groups: Floats, *, measured_pairs: float | None = None) -> float:
        """Of all tables of the main event."""
        exponent = self.order.precision_exponent
        single = one_way_weight(self.order) * float((self.kinds * (self.strata * self.cells) ** exponent).sum())
        pairs = self.measured_pairs if measured_pairs is None else measured_pairs
        if not pairs:
            return single
        powers = groups**exponent
        of_all = float(((self.columns * powers).sum() ** 2 - (self.columns * powers**2).sum()) / 2.0)
        return float(single + self.pair_strata**exponent * of_all * pairs / self.all_pairs)

    def _stds_of_pairs(self, groups: Floats, total: float | None = None) -> Floats:
        """(widths, widths) of a count in a two-way table, within a stratum where pairs have strata."""
        total = self._total_weight(groups) if total is None else total
        weights = (self.pair_strata * np.outer(groups, groups)) ** self.order.precision_exponent
        variances = self.stds[MARGINALS] ** 2 * total / weights + ROUNDING_VARIANCE
        return np.asarray(np.sqrt(variances), np.float64)

    def _groups_at(self, place: int) -> Floats:
        part, factor, exponent = np.array([GROUPS[sort] for sort in SORTS])[self.sorts].T
        filled = factor * SMALLEST_SHARES[place] ** -exponent
        groups = 1.0 / np.hypot(1.0 / (part * self.caps), 1.0 / filled)
        return np.asarray(np.clip(groups, np.minimum(FEWEST_GROUPS, self.caps), self.caps), np.float64)

    def _pairs_of_widths(self) -> Floats:
        """(widths, widths) ordered pairs of columns."""
        return np.asarray(np.outer(self.columns, self.columns) - np.diag(self.columns), np.float64)

    def _with_margins(self, variances: Floats) -> Floats:
        """Two-way tables tell the total of each group of a column's cells, too; of its cells' contrasts nothing."""
        others = self.measured_pairs / self.all_pairs * (self.columns - np.eye(len(self.columns)))
        of_margins = self._stds_of_pairs(self.groups) ** 2 * self.pair_strata * self.groups[None, :]
        precision = (others / of_margins).sum(axis=1)[self.width_of_kind]
        in_a_group = self.cells / self.groups[self.width_of_kind]
        of_totals = 1.0 / (1.0 / (variances * in_a_group) + precision)
        return np.asarray((variances * (in_a_group - 1.0) + of_totals / in_a_group) / in_a_group, np.float64)


def _sort(name: str, order: MarginalsOrder, shape: TableShape) -> int:
    """A range whose values no tree counts has cells."""
    sort = shape.sorts.get(name, "categories")
    return SORTS.index("cells" if sort == "values" and not order.counts_values else sort)
