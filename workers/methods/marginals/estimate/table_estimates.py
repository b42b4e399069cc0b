"""What noisy tables together say: one-way counts by cell and by group, and denoised two-way counts. Post-processing."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from workers.encoding.table import TableDomain
from workers.mechanism.marginals import Columns, TableLayout
from workers.methods.marginals.estimate.denoising import (
    STANDS_OUT,
    Estimate,
    Floats,
    averaged,
    by_singular_values,
    corrected,
    in_groups,
    rake,
)
from workers.methods.marginals.estimate.pooled_columns import pooled_counts
from workers.methods.marginals.estimate.smoothing import NoisyColumn, smooth_columns
from workers.methods.marginals.estimate.totals import Units, totals_of
from workers.methods.marginals.fit.mixture_fit import NoisyTables
from workers.methods.marginals.measure.measured import Measured

_Told = defaultdict[tuple[int, bool, bool], list[Estimate]]
"""What tables tell of single columns: by column, whether strata are apart, and whether cells share groups as in two-way tables."""


@dataclass(frozen=True)
class TableEstimates:
    """Measurements of one layout, looked at together."""

    measured: tuple[Measured, ...]
    layout: TableLayout
    ordered: frozenset[int]
    """Free columns whose cells have an order."""
    totals: Floats
    """(strata,) rows, positive."""

    def noisy_tables(self) -> NoisyTables:
        """All measurements side by side, denoised."""
        layout, free, fine = self.layout, self.layout.free, self.one_way()
        widths = [layout.widths[column] for column in free]
        groups = {column: layout.groups_of(column) for column in free}
        spans = spans_of(free, [layout.pair_widths[column] for column in free])
        of_pairs = {c: counts if layout.pairs_are_sliced else counts.sum(axis=0)[None] for c, counts in fine.items()}
        margins = {column: in_groups(counts, groups[column]) for column, counts in of_pairs.items()}
        width = sum(layout.pair_widths[column] for column in free)
        two_way, precision = np.zeros((layout.pair_slices, width, width), np.float32), torch.zeros(width, width)
        for m in self.measured:
            if len(m.columns) == 2:
                i, j = m.columns
                a, b = spans[i], spans[j]
                every = zip(m.counts, margins[i], margins[j], strict=True)
                tables = np.stack([by_singular_values(*one, math.sqrt(m.variance)) for one in every])
                two_way[:, a, b], two_way[:, b, a] = tables, tables.transpose(0, 2, 1)
                precision[a, b] = precision[b, a] = 1.0 / m.variance
        by_stratum, _ = self._columns
        return NoisyTables(
            one_way=torch.from_numpy(np.concatenate([fine[c] for c in free], axis=1)).float(),
            one_way_precision=torch.from_numpy(np.repeat([1.0 / c.variance for c in by_stratum], widths)).float(),
            two_way=torch.from_numpy(two_way),
            two_way_precision=precision,
            totals=torch.from_numpy(self.totals),
            widths=tuple(widths),
            groups=tuple(torch.from_numpy(groups[column]) for column in free),
        )

    def one_way(self) -> dict[int, Floats]:
        """Counts (strata, cells) of every free column, not negative: all rows together are better known than any stratum."""
        by_stratum, together = self._columns
        smooth, pooled = smooth_columns(by_stratum, self.totals), pooled_counts(together, float(self.totals.sum()))
        every = zip(self.layout.free, smooth, pooled, strict=True)
        return {column: rake(counts, self.totals, of_all_rows) for column, counts, of_all_rows in every}

    def empty_cells(self) -> dict[int, NDArray[np.bool_]]:
        """(cells,) of every free column: missing cells that are no more than noise makes of none, and categories of a noisy count of none."""
        found = {}
        for column in self.layout.free:
            groups = self.layout.groups_of(column)
            alone = np.bincount(groups)[groups] == 1  # so that two-way tables count this cell, too
            told = [one for by_stratum in (True, False) for one in self._told[column, by_stratum, False]]
            for counts, variance in self._told[column, self.layout.pair_slices == self.layout.slices, True]:
                told.append((counts[:, groups], np.where(alone, variance, np.inf)))
            rows, variance = averaged([(counts.sum(axis=0), variance * len(counts)) for counts, variance in told])
            empty = (rows <= 0.0) & (column not in self.ordered)
            if self.layout.has_missing[column]:
                empty[-1] = (rows <= STANDS_OUT * np.sqrt(variance))[-1]
            empty[np.argmax(rows)] = False
            found[column] = empty
        return found

    @cached_property
    def _told(self) -> _Told:
        told = _Told(list)
        for m in self.measured:
            counts, by_stratum = m.counts.astype(np.float64), len(m.counts) == self.layout.slices
            if len(m.columns) == 1:
                told[m.columns[0], by_stratum, False].append((counts, m.variance))
            else:
                for column, other in zip(m.columns, (2, 1), strict=True):
                    margin = counts.sum(axis=other), m.variance * counts.shape[other]
                    told[column, by_stratum, True].append(margin)
        return told

    @cached_property
    def _columns(self) -> tuple[list[NoisyColumn], list[NoisyColumn]]:
        """Every free column by stratum, and of all rows together."""
        by_stratum, together = [], []
        for column in self.layout.free:
            own = self._best(column, [], by_stratum=True)
            summed = own.of_all_slices()
            whole = self._best(column, [(summed.counts, summed.variance)], by_stratum=False)
            # Strata are known equally well, so what they lack together is shared by them equally.
            lacking = (whole.counts - summed.counts) / len(own.counts)
            by_stratum.append(replace(own, counts=own.counts + lacking))
            together.append(whole)
        return by_stratum, together

    def _best(self, column: int, known: list[Estimate], *, by_stratum: bool) -> NoisyColumn:
        """By what is known already, and by all tables that tell strata apart, or by all that do not."""
        layout, margins = self.layout, self._told[column, by_stratum, True]
        counts, variance = averaged([*known, *self._told[column, by_stratum, False]])
        counts = corrected(counts, variance, layout.groups_of(column), margins)
        if by_stratum and layout.widths[column] == layout.pair_widths[column]:
            _, variance = averaged([(counts, variance), *margins])
        return NoisyColumn(counts, variance, column in self.ordered, layout.has_missing[column])


def estimates_of(
    measured: tuple[Measured, ...], layout: TableLayout, domain: TableDomain, units: Units
) -> TableEstimates:
    """What these tables say together, where all of them have this layout."""
    ordered = frozenset(column for column in layout.free if domain.columns[column].kind == "grid")
    return TableEstimates(measured, layout, ordered, totals_of(measured, layout, units))


def spans_of(columns: Columns, widths: list[int]) -> dict[int, slice]:
    """Where the cells of each column lie when those of all columns are side by side."""
    ends = np.cumsum(widths).tolist()
    return {column: slice(end - width, end) for column, width, end in zip(columns, widths, ends, strict=True)}
