"""What noisy tables together say: one-way counts by cell and by group, and denoised two-way counts. Post-processing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from workers.encoding.table import TableDomain
from workers.mechanism.marginals import Columns, TableLayout
from workers.methods.marginals.estimate.denoising import (
    Floats,
    KeptWaves,
    beyond_independence,
    combine,
    onto_simplex,
    rake,
)
from workers.methods.marginals.estimate.implied_pairs import implied_pairs
from workers.methods.marginals.estimate.pair_smoothing import kept_waves
from workers.methods.marginals.estimate.pooled_columns import pooled_counts
from workers.methods.marginals.estimate.smoothing import NoisyColumn, smooth_columns
from workers.methods.marginals.estimate.totals import NOISE_OF_NONE, Units, totals_of
from workers.methods.marginals.fit.mixture_fit import NoisyTables
from workers.methods.marginals.measure.measured import Measured

Denoiser = Callable[[Floats, Floats, Floats, float, KeptWaves], Floats]
"""Two-way counts (slices, a, b), one-way counts (slices, a) and (slices, b), noise_std, what to keep of waves -> (slices, a, b)."""


_Estimates = dict[int, list[tuple[Floats, float]]]
"""Per column: counts and the variance of each, of every table that tells them."""


def slice_by_slice(denoise: Denoiser) -> Denoiser:
    """Of one that looks at a single stratum, whose arguments and result lack the first axis."""

    def denoised(counts: Floats, first: Floats, second: Floats, noise_std: float, kept: KeptWaves) -> Floats:
        own_kept = [[None] * len(counts) if waves is None else list(waves) for waves in kept]
        slices = zip(counts, first, second, *own_kept, strict=True)
        return np.stack([denoise(table, one, other, noise_std, (a, b)) for table, one, other, a, b in slices])

    return denoised


@dataclass(frozen=True)
class TableEstimates:
    """Measurements of one layout, looked at together."""

    measured: tuple[Measured, ...]
    layout: TableLayout
    ordered: frozenset[int]
    """Free columns whose cells have an order."""
    totals: Floats
    """(slices,) rows, positive."""

    def noisy_tables(self, denoise: Denoiser) -> NoisyTables:
        """All measurements side by side, denoised; two of the same table are averaged by their precision."""
        layout, free = self.layout, self.layout.free
        widths = [layout.widths[column] for column in free]
        groups = [layout.pair_widths[column] for column in free]
        cells, grouped = spans_of(free, widths), spans_of(free, groups)
        fine, margins, in_groups = self.one_way()
        kept = self._kept_waves(in_groups)
        precision = torch.zeros(sum(widths))
        two_way = np.zeros((layout.pair_slices, sum(groups), sum(groups)), np.float32)
        two_precision = torch.zeros(sum(groups), sum(groups))
        for m in self.measured:
            if len(m.columns) == 1:
                # Those of all rows are in the estimates, and say nothing of one stratum.
                if len(m.counts) == layout.slices:
                    precision[cells[m.columns[0]]] += 1.0 / m.variance
                continue
            i, j = m.columns
            a, b = grouped[i], grouped[j]
            counts = m.counts.astype(np.float64)
            tables = denoise(counts, in_groups[i], in_groups[j], math.sqrt(m.variance), (kept.get(i), kept.get(j)))
            two_way[:, a, b], two_way[:, b, a] = tables, tables.transpose(0, 2, 1)
            two_precision[a, b] = two_precision[b, a] = 1.0 / m.variance
        self._add_implied_pairs(two_way, two_precision, grouped, in_groups)
        for column, estimates in margins.items():
            if self._are_of_the_same_cells(column):
                precision[cells[column]] += sum(1.0 / variance for _, variance in estimates)
        return NoisyTables(
            one_way=torch.from_numpy(np.concatenate([fine[c] for c in free], axis=1).astype(np.float32)),
            one_way_precision=precision,
            two_way=torch.from_numpy(two_way),
            two_way_precision=two_precision,
            totals=torch.from_numpy(self.totals),
            widths=tuple(widths),
            groups=tuple(torch.from_numpy(layout.groups_of(column)) for column in free),
        )

    def _add_implied_pairs(
        self,
        two_way: NDArray[np.float32],
        precision: torch.Tensor,
        spans: Mapping[int, slice],
        one_way: Mapping[int, Floats],
    ) -> None:
        """What measured pairs make of the others, taken to be as precise as a pair that was measured is at the median."""
        pairs = [m for m in self.measured if len(m.columns) == 2]
        if not pairs:
            return
        found = {m.columns: two_way[:, spans[m.columns[0]], spans[m.columns[1]]].astype(np.float64) for m in pairs}
        typical = 1.0 / float(np.median([m.variance for m in pairs]))
        for (i, j), counts in implied_pairs(found, one_way).items():
            a, b = spans[i], spans[j]
            two_way[:, a, b], two_way[:, b, a] = counts, counts.transpose(0, 2, 1)
            precision[a, b] = precision[b, a] = typical

    def _kept_waves(self, in_groups: dict[int, Floats]) -> dict[int, Floats]:
        """(slices, cells in order) of every ordered column whose relations to all others together are smooth."""
        found = {column: kept_waves(self._relations_of(column, in_groups)) for column in sorted(self.ordered)}
        return {column: kept for column, kept in found.items() if kept is not None}

    def _relations_of(self, column: int, in_groups: dict[int, Floats]) -> Iterator[tuple[Floats, float]]:
        """What each two-way table of a column says beyond independence: (slices, its cells in order, the other's), variance."""
        in_order = self.layout.pair_widths[column] - int(self.layout.has_missing[column])
        for m in self.measured:
            if len(m.columns) == 1 or column not in m.columns:
                continue
            first, second = (in_groups[one] for one in m.columns)
            beyond = [
                beyond_independence(m.counts[place].astype(np.float64), first[place], second[place])[1]
                for place in range(self.layout.pair_slices)
            ]
            lying = beyond if column == m.columns[0] else [table.T for table in beyond]
            yield np.stack(lying)[:, :in_order], m.variance

    def one_way(self) -> tuple[dict[int, Floats], _Estimates, dict[int, Floats]]:
        """Per column: one-way counts (slices, cells), the margins of its two-way tables, and counts (pair_slices, groups)."""
        own, whole, margins = self._by_column()
        pairs_tell_slices = self.layout.pair_slices == self.layout.slices
        by_slice: dict[int, NoisyColumn] = {}
        all_rows: dict[int, NoisyColumn] = {}
        for column in self.layout.free:
            of_slices, of_all_rows = (margins[column], []) if pairs_tell_slices else ([], margins[column])
            sliced = self._with_margins(column, *averaged(own[column]), of_slices)
            summed = sliced.of_all_slices()
            together = averaged([(summed.counts, summed.variance), *whole[column]])
            all_rows[column] = self._with_margins(column, *together, of_all_rows)
            # Strata are known equally well, so what they lack together is shared by them equally.
            lacking = (all_rows[column].counts - summed.counts) / len(sliced.counts)
            by_slice[column] = replace(sliced, counts=sliced.counts + lacking)
        smooth = smooth_columns(list(by_slice.values()), self.totals)
        pooled = pooled_counts(all_rows, float(self.totals.sum()))
        fine, in_groups = {}, {}
        for column, counts in zip(by_slice, smooth, strict=True):
            possible = np.stack([onto_simplex(row, total) for row, total in zip(counts, self.totals, strict=True)])
            # All rows together are better known than any stratum.
            fine[column] = rake(possible, self.totals, pooled[column])
            groups = self.layout.groups_of(column)
            rows = fine[column] if self.layout.pairs_are_sliced else fine[column].sum(axis=0, keepdims=True)
            in_groups[column] = np.stack([np.bincount(groups, weights=row) for row in rows]).astype(np.float64)
        return fine, margins, in_groups

    def without_missing(self) -> tuple[int, ...]:
        """Free columns whose cells that are missing, by all noisy counts of them together, are no more than noise makes of none."""
        own, whole, margins = self._by_column()
        found = []
        for column in self.layout.free:
            if not self.layout.has_missing[column]:
                continue
            told = [  # a missing cell is its own group, so that every table counts it
                (counts[:, -1:].sum(axis=0), variance * len(counts))
                for counts, variance in (*own[column], *whole[column], *margins[column])
            ]
            count, variance = averaged(told)
            if count[0] <= NOISE_OF_NONE * math.sqrt(variance):
                found.append(column)
        return tuple(found)

    def _by_column(self) -> tuple[_Estimates, _Estimates, _Estimates]:
        """One-way tables of every free column by stratum and of all rows, and margins of its two-way tables."""
        own: _Estimates = {column: [] for column in self.layout.free}
        whole: _Estimates = {column: [] for column in self.layout.free}
        margins: _Estimates = {column: [] for column in self.layout.free}
        for m in self.measured:
            counts = m.counts.astype(np.float64)
            if len(m.columns) == 1:
                of_slices = own if len(counts) == self.layout.slices else whole
                of_slices[m.columns[0]].append((counts, m.variance))
            else:
                i, j = m.columns
                margins[i].append((counts.sum(axis=2), m.variance * counts.shape[2]))
                margins[j].append((counts.sum(axis=1), m.variance * counts.shape[1]))
        return own, whole, margins

    def _with_margins(
        self, column: int, counts: Floats, variance: float, margins: list[tuple[Floats, float]]
    ) -> NoisyColumn:
        """One-way counts corrected by margins of as many strata."""
        counts = combine(counts, variance, self.layout.groups_of(column), margins)
        if self._are_of_the_same_cells(column):
            variance = 1.0 / (1.0 / variance + sum(1.0 / of_margin for _, of_margin in margins))
        return NoisyColumn(counts, variance, column in self.ordered, self.layout.has_missing[column])

    def _are_of_the_same_cells(self, column: int) -> bool:
        """Whether margins of two-way tables count what the one-way tables of a column count."""
        layout = self.layout
        return layout.widths[column] == layout.pair_widths[column] and layout.pair_slices == layout.slices


def estimates_of(
    measured: tuple[Measured, ...], layout: TableLayout, domain: TableDomain, units: Units
) -> TableEstimates:
    """What these tables say together, where all of them have this layout."""
    ordered = frozenset(column for column in layout.free if domain.columns[column].kind == "grid")
    return TableEstimates(measured, layout, ordered, totals_of(measured, layout, units))


def averaged(estimates: list[tuple[Floats, float]]) -> tuple[Floats, float]:
    """Counts of the same cells, (counts, variance of each) of every one, by their precision."""
    precision = sum(1.0 / variance for _, variance in estimates)
    return np.sum([counts / variance for counts, variance in estimates], axis=0) / precision, 1.0 / precision


def spans_of(columns: Columns, widths: list[int]) -> dict[int, slice]:
    ends = np.cumsum(widths).tolist()
    return {column: slice(end - width, end) for column, width, end in zip(columns, widths, ends, strict=True)}
