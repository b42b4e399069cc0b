"""Measured marginals: noised one-way tables within each value of the condition, two-way ones there or of all rows, and a mixture fitted to them.

Private rows are read by `measure` only, which takes its events from the plan; everything after it is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from service.methods.marginals.order import COMPONENTS, MarginalsOrder
from service.methods.marginals.pair_rules import pair_widths
from service.privacy.events import MARGINALS, ONE_WAY_TABLES, PAIR_SCORES, SHARED_VALUES
from workers.checkpoints import Checkpoint
from workers.encoding.table import EncodedTable, TableDomain
from workers.mechanism.marginals import Columns, TableLayout, count_tables, count_values, pair_scores
from workers.mechanism.noise import count_noise_stds, drawn_std, most_moved, release_counts
from workers.mechanism.secure_random import SecureRandom
from workers.methods.marginals.choose.pair_choice import choose_pairs, expected_counts, few_pairs, stand_out
from workers.methods.marginals.estimate.denoising import (
    Floats,
    by_ratios,
    by_shared_relations,
    by_singular_values,
    onto_simplex,
)
from workers.methods.marginals.estimate.table_estimates import (
    Denoiser,
    TableEstimates,
    averaged,
    slice_by_slice,
    spans_of,
)
from workers.methods.marginals.fit.mixture_fit import MixtureFit
from workers.methods.marginals.fit.raking import rake_where_nearer
from workers.methods.marginals.fit.stopping import EstimatedRisk, Measured, shifted
from workers.methods.marginals.measure.open_ranges import Cells, cells_by_counts, share_of_a_part
from workers.methods.marginals.measure.pair_groups import group_by_counts
from workers.methods.marginals.measure.shared_values import (
    StandingOut,
    digits_in_use,
    shares_of_cells,
    standing_out,
)
from workers.networks.mixture import MixtureGenerator
from workers.networks.table import CONDITION_LOGIT
from workers.plan import Plan, StepNotOnPlan

MOST_LOGITS = 32_000_000
"""Logits of all components together (128 MB as float32); more conditions or cells mean fewer components each."""

UNITS_OF_A_COMPONENT, FEWEST_COMPONENTS = 2, 512
"""A mixture has no more components than every second unit of its value of the condition, on average, and always so many, if the order does.

More are no nearer, farther where noise is small, and take longer (docs/log.md).
"""

ONE_WAY_WEIGHT_BESIDE_CHOSEN, ONE_WAY_WEIGHT_BESIDE_GROUPED = 20.0, 5.0
"""Pairs are chosen where noise is large, and classifiers and most pairs live on single columns; of cells in one group they are all there is (docs/log.md)."""

SMALLEST_SHARE = 1e-4
"""Of a cell whose noised count is next to nothing, where nothing is fitted."""

DENOISERS: tuple[Denoiser, ...] = (slice_by_slice(by_singular_values), slice_by_slice(by_ratios))
"""A mixture is fitted after each; the one of least estimated error after its first steps goes on."""

FEWEST_SLICES_THAT_SHARE = 3
"""From so many on, a mixture is also fitted after what they share was told apart; of two it was never the nearest by much (docs/decisions/0022)."""

FIRST_STEPS = 100
"""Of 800, after which no two fits were seen to change places: docs/log.md."""


class Marginals:
    """The state of one run and its two moves: measure, fit."""

    def __init__(
        self,
        order: MarginalsOrder,
        plan: Plan,
        table: EncodedTable,
        domain: TableDomain,
        randomness: SecureRandom,
        device: torch.device,
    ) -> None:
        self.order, self.plan, self.table, self.domain = order, plan, table, domain
        self.randomness, self.device = randomness, device
        self.is_private = randomness.is_private
        # A column that is alone is measured as it is: there is nothing to slice by it.
        condition = order.condition_on if len(domain.columns) > 1 else None
        self.condition_index = None if condition is None else domain.index(condition)
        self.layout = self._layout(domain)
        self.measured: tuple[Measured, ...] = ()
        self.standing_out: dict[int, StandingOut] = {}
        """Of columns whose values were counted."""

    def _layout(self, domain: TableDomain) -> TableLayout:
        """All tables of these columns, before cells are grouped."""
        free = [column for column in range(len(domain.columns)) if column != self.condition_index]
        widths = pair_widths([domain.widths[column] for column in free], pair_cells=self.order.pair_cells)
        grouped = dict(zip(free, widths, strict=True))
        return TableLayout(
            widths=domain.widths,
            pair_widths=tuple(grouped.get(column, width) for column, width in enumerate(domain.widths)),
            has_missing=tuple(column.missing for column in domain.columns),
            label=self.condition_index,
            pairs_are_sliced=self.order.pairs_within != "table",
        )

    # -- private

    def measure(self) -> None:
        """All private releases of the order, from the next events of the plan."""
        singles: list[Columns] = [(column,) for column in self.layout.free]
        pairs: list[Columns] = [] if self.order.pairs == "none" else list(combinations(self.layout.free, 2))
        first: tuple[Measured, ...] = ()
        if self.order.looks_at_single_columns_first:
            first = self._in_cells_by_counts(self._look_at_single_columns(singles))
        declared = self.layout
        self.layout = self._grouped(declared, first, pairs)
        if self.order.pairs == "chosen":
            pairs = self._choose(first, pairs)
        elif self.order.pairs == "few_or_all" and (few := self._few(first, pairs)) is not None:
            pairs, self.layout = few, self._layout_of_few(declared, first, few)
        self.measured = (*first, *self._noised([*singles, *pairs], self.layout, self.plan.take_gaussian(MARGINALS)))
        if self.order.values_precision_share:
            self.standing_out = self._look_at_values(self.plan.take_gaussian(SHARED_VALUES))

    def _look_at_single_columns(self, singles: list[Columns]) -> tuple[Measured, ...]:
        """One-way tables before all others. Two layouts share the precision of the one Gaussian that is charged."""
        noise_multiplier = self.plan.take_gaussian(ONE_WAY_TABLES) * math.sqrt(len(self._first_layouts))
        times = len(self._first_layouts)
        looks = [self._noised(singles, layout, noise_multiplier, times=times) for layout in self._first_layouts]
        return tuple(m for look in looks for m in look)

    def _look_at_values(self, noise_multiplier: float) -> dict[int, StandingOut]:
        """Of every column whose values are counted those that stand out: one Gaussian release for each, of equal precision.

        One after the other, since a column may have millions.
        """
        grids = self.domain.value_grids
        noise_multiplier *= math.sqrt(len(grids))
        found = {}
        for column, grid in grids.items():
            private = count_values(
                self.table.places[column],
                size=grid.size,
                unit_starts=self.table.unit_starts,
                max_rows_per_unit=self.table.max_rows_per_unit,
            )
            noise_std = noise_multiplier * private.sensitivities[0]
            (noised,) = release_counts(
                private,
                noise_stds=[noise_std],
                noise_multiplier=noise_multiplier,
                randomness=self.randomness,
                times=len(grids),
            )
            found[column] = standing_out(
                noised.numpy(), grid, noise_std=drawn_std(noise_std, moved=len(grids) * most_moved(private))
            )
        return found

    def _noised(
        self, tables: list[Columns], layout: TableLayout, noise_multiplier: float, *, times: int = 1
    ) -> tuple[Measured, ...]:
        """Counts of these tables, jointly one Gaussian release of this noise multiplier, which the caller took from the plan.

        times: into how many such releases the event of the plan is divided.
        """
        private = count_tables(
            self.table.codes,
            layout,
            tables,
            unit_starts=self.table.unit_starts,
            max_rows_per_unit=self.table.max_rows_per_unit,
        )
        noise_stds = self._noise_stds(layout, tables, private.sensitivities, noise_multiplier)
        noised = release_counts(
            private,
            noise_stds=noise_stds,
            noise_multiplier=noise_multiplier,
            randomness=self.randomness,
            times=times,
        )
        return tuple(
            Measured(columns, counts.numpy(), drawn_std(std, moved=times * most_moved(private)) ** 2)
            for columns, counts, std in zip(tables, noised, noise_stds, strict=True)
        )

    def _choose(self, first: tuple[Measured, ...], pairs: list[Columns]) -> list[Columns]:
        """The pairs whose noised distance from independence is worth the noise of measuring them.

        Pairs of all rows are chosen where noise is so much that it may be the strongest scores: then none are.
        """
        expected = self._expected(first, pairs)
        scores, noise_std = self._release_scores(expected)
        if not self.layout.pairs_are_sliced and not stand_out(expected, scores, score_noise_std=noise_std):
            return []
        return choose_pairs(self.layout, expected, scores, self._forecast)

    def _few(self, first: tuple[Measured, ...], pairs: list[Columns]) -> list[Columns] | None:
        """Few pairs that explain nearly all others, if noised scores say that there are such."""
        expected = self._expected(first, pairs)
        scores, noise_std = self._release_scores(expected)
        return few_pairs(self.layout, expected, scores, self._forecast, score_noise_std=noise_std)

    def _expected(self, first: tuple[Measured, ...], pairs: list[Columns]) -> dict[Columns, NDArray[np.int64]]:
        """Counts of pairs of independent columns, for scores to compare with."""
        layout = self._first_layouts[-1]
        counts = {m.columns: m.counts for m in first if len(m.counts) == layout.slices}
        return expected_counts(layout, counts, self._totals(first, layout), pairs)

    def _release_scores(self, expected: dict[Columns, NDArray[np.int64]]) -> tuple[Floats, float]:
        """How far every pair is from these counts, and the noise_std of that."""
        private = pair_scores(
            self.table.codes,
            self.layout,
            expected,
            unit_starts=self.table.unit_starts,
            max_rows_per_unit=self.table.max_rows_per_unit,
        )
        noise_multiplier = self.plan.take_gaussian(PAIR_SCORES)
        noise_std = noise_multiplier * private.sensitivities[0]
        (noised,) = release_counts(
            private, noise_stds=[noise_std], noise_multiplier=noise_multiplier, randomness=self.randomness
        )
        return noised.numpy().astype(np.float64), drawn_std(noise_std, moved=most_moved(private))

    # -- post-processing

    def _in_cells_by_counts(self, first: tuple[Measured, ...]) -> tuple[Measured, ...]:
        """From here on open ranges have the cells in which noised one-way tables say that rows are; these tables by such cells."""
        equal = {
            place: np.searchsorted(column.equal_edges, (column.edges or ())[:-1], side="right")
            for place, column in enumerate(self.domain.columns)
            if column.equal_edges is not None
        }
        if not equal:
            return first
        rows = float(self._totals(first, self._first_layouts[-1]).sum())
        fewest_rows = rows * share_of_a_part(self._noise_of_pairs(self._layout(self.domain.merged(equal)), rows))
        cells = {}
        for column, equal_cells in equal.items():
            looks = [(m.counts.sum(axis=0), m.variance * len(m.counts)) for m in first if m.columns == (column,)]
            counts, variance = averaged(looks)
            cells[column] = cells_by_counts(
                counts, noise_std=math.sqrt(variance), fewest_rows=fewest_rows, equal_cells=equal_cells
            )
        self._use_cells(cells)
        return tuple(_summed(m, cells[m.columns[0]]) if m.columns[0] in cells else m for m in first)

    def _noise_of_pairs(self, layout: TableLayout, rows: float) -> float:
        """What noise alone moves an average two-way table of this layout, were all measured, in total variation."""
        pairs: list[Columns] = list(combinations(layout.free, 2))
        if not pairs:
            return 0.0
        cells = [layout.size(pair) for pair in pairs]
        return float(np.mean(np.multiply(self._forecast(layout, pairs), cells))) / (math.sqrt(2.0 * math.pi) * rows)

    def _use_cells(self, cells: Mapping[int, Cells]) -> None:
        """cells: (codes,) the cell of each code that rows have in these columns."""
        self.domain = self.domain.merged(cells)
        of_codes = tuple(tuple(cells[c].tolist()) if c in cells else None for c in range(len(self.domain.columns)))
        self.layout = replace(self._layout(self.domain), cells=of_codes)

    @property
    def _first_layouts(self) -> tuple[TableLayout, ...]:
        """Single columns are looked at first in all rows, by slice where pairs are chosen in slices, and in both where all of slices may be."""
        of_all_rows = self.layout.of_all_rows()
        if self.layout.slices == 1 or not self.layout.pairs_are_sliced or self.order.pairs == "none":
            return (of_all_rows,)
        return (self.layout,) if self.order.pairs == "chosen" else (of_all_rows, self.layout)

    def _estimates(self, measured: tuple[Measured, ...], layout: TableLayout | None = None) -> TableEstimates:
        """Of what the order measures, or in another layout."""
        layout = layout or self.layout
        ordered = frozenset(column for column in layout.free if self.domain.columns[column].kind == "grid")
        return TableEstimates(measured, layout, ordered, self._totals(measured, layout))

    def _layout_of_few(self, declared: TableLayout, first: tuple[Measured, ...], few: list[Columns]) -> TableLayout:
        """Few pairs are measured in all rows together, unless the order says otherwise, and stand out in more groups than all do."""
        layout = declared.with_pairs_of_all_rows() if self.order.pairs_within is None else declared
        return self._grouped(layout, first, few)

    def _grouped(self, layout: TableLayout, first: tuple[Measured, ...], pairs: list[Columns]) -> TableLayout:
        """The layout, with cells that the noised one-way tables call rare counted together if the order says so."""
        if self.order.pair_groups != "counted" or not pairs:
            return layout
        looked = self._estimates(first, self._first_layouts[-1])
        rows, (fine, _, _) = float(looked.totals.sum()), looked.one_way()

        def noise(layout: TableLayout) -> float:
            stds = self._forecast(layout, pairs)
            cells = [math.sqrt(max(layout.pair_widths[i], layout.pair_widths[j])) for i, j in pairs]
            return float(np.mean(np.multiply(stds, cells)))

        return group_by_counts(
            layout,
            {column: counts.sum(axis=0) / rows for column, counts in fine.items()},
            rows=rows / layout.pair_slices,
            in_order={column: column in looked.ordered for column in layout.free},
            noise=noise,
        )

    def _forecast(self, layout: TableLayout, pairs: list[Columns]) -> tuple[float, ...]:
        """The noise_std of each of these pairs, if just they are measured; what is charged is taken from the plan by the release itself."""
        tables: list[Columns] = [*((column,) for column in layout.free), *pairs]
        sensitivities = (self.rows_per_unit_bound,) * len(tables)
        stds = self._noise_stds(layout, tables, sensitivities, self.plan.upcoming_gaussian(MARGINALS))
        return stds[len(layout.free) :]

    def _noise_stds(
        self, layout: TableLayout, tables: list[Columns], sensitivities: tuple[float, ...], noise_multiplier: float
    ) -> tuple[float, ...]:
        """More precision to larger tables; one-way tables count as if they were larger by the order's weight."""
        exponent, weight = self.order.precision_exponent, self.order.one_way_weight
        if weight is None:
            beside_all = ONE_WAY_WEIGHT_BESIDE_GROUPED if self.order.pair_groups == "counted" else 1.0
            weight = ONE_WAY_WEIGHT_BESIDE_CHOSEN if self.order.pairs == "chosen" else beside_all
        weights = [layout.size(columns) ** exponent * (weight if len(columns) == 1 else 1.0) for columns in tables]
        return count_noise_stds(sensitivities, weights, noise_multiplier=noise_multiplier, exponent=1.0)

    @property
    def rows_per_unit_bound(self) -> float:
        return float(self.table.max_rows_per_unit)

    def _totals(self, measured: tuple[Measured, ...], layout: TableLayout) -> Floats:
        """Rows in each slice, from the noised tables; where a row is a unit they add up to the public n."""
        sliced = [m for m in measured if len(m.counts) == layout.slices]
        precision = np.array([1.0 / (m.variance * math.prod(m.counts.shape[1:])) for m in sliced])
        sums = np.array([m.counts.reshape(layout.slices, -1).sum(axis=1) for m in sliced])  # (tables, slices)
        totals = precision @ sums / precision.sum()
        rows, most = float(self.table.units), self.table.units * self.rows_per_unit_bound
        if self.table.unit_starts is not None:
            rows = float(np.clip(totals.sum(), 1.0, most))
        positive = np.maximum(onto_simplex(totals, rows), 1e-3)
        scaled: Floats = positive * (rows / positive.sum())
        return scaled

    @property
    def condition_frequencies(self) -> tuple[float, ...] | None:
        if self.condition_index is None:
            return None
        totals = self._totals(self.measured, self.layout)
        return tuple((totals / totals.sum()).tolist())

    @property
    def rows_per_unit(self) -> float | None:
        """Mean rows of a unit, bought with the tables; None where a unit is a row."""
        if self.table.unit_starts is None:
            return None
        return float(self._totals(self.measured, self.layout).sum() / max(1, self.table.units))

    @property
    def domain_of_rows(self) -> TableDomain:
        """The columns as synthetic rows have them: cells, and within them the values that many rows share."""
        if not self.standing_out:
            return self.domain
        rows, _, _ = self._estimates(self.measured).one_way()
        columns = list(self.domain.columns)
        for place, grid in self.domain.value_grids.items():
            column, found = columns[place], self.standing_out[place]
            edges = np.asarray(column.edges, dtype=np.float64)
            in_cells = rows[place].sum(axis=0)[: len(edges) - 1]
            if column.type == "number" and column.decimals is None:
                column = replace(column, decimals=digits_in_use(found, grid, rows=float(in_cells.sum())))
            drawn_from = grid if column.decimals is None else grid.with_decimals(column.decimals)
            shared = shares_of_cells(found, grid, drawn_from=drawn_from, edges=edges, rows=in_cells)
            columns[place] = replace(column, shared_values=shared)
        return replace(self.domain, columns=tuple(columns))

    @property
    def components(self) -> int:
        """The order's, halved until all logits together fit in memory, and where a value of the condition has few units."""
        components = self.order.components or COMPONENTS
        while components > 2 and components * self.layout.slices * self.domain.total_width > MOST_LOGITS:
            components //= 2
        while components > max(FEWEST_COMPONENTS, self.table.units / self.layout.slices / UNITS_OF_A_COMPONENT):
            components //= 2
        return components

    @property
    def _denoisers(self) -> tuple[Denoiser, ...]:
        if self.layout.pair_slices < FEWEST_SLICES_THAT_SHARE:
            return DENOISERS
        return (*DENOISERS, by_shared_relations)

    def fit(self, on_step: Callable[[int], None]) -> MixtureGenerator:
        """A mixture fitted to what was measured; nothing has to be fitted where that is single columns alone."""
        if all(len(m.columns) == 1 for m in self.measured):
            on_step(self.order.steps)
            return MixtureGenerator(self._with_condition(self._logits_of_single_columns())).eval()
        seed = int(self.randomness.uniforms(1).item() * 2**53)
        twin = shifted(self.measured, seed=seed)
        spans = spans_of(self.layout.free, [self.layout.pair_widths[column] for column in self.layout.free])
        cells = spans_of(self.layout.free, [self.layout.widths[column] for column in self.layout.free])
        risk = EstimatedRisk(self.measured, twin, spans, cells)
        fits = [
            MixtureFit(
                self._estimates(self.measured).noised_tables(denoise),
                (self._estimates(twin).noised_tables(denoise), risk),
                components=self.components,
                steps=self.order.steps,
                learning_rate=self.order.learning_rate,
                randomness=torch.Generator().manual_seed(seed),
                device=self.device,
            )
            for denoise in self._denoisers
        ]
        first_steps = min(FIRST_STEPS, self.order.steps)
        for place, fit in enumerate(fits):
            fit.run(_taking_turns(on_step, before=place * first_steps, fits=len(fits)), until=first_steps)
        # One for all slices: where two differ in how they were denoised, a classifier would take that for the label's doing.
        best = min(fits, key=MixtureFit.error)
        del fits, fit  # the others' memory
        best.run(on_step)
        logits = rake_where_nearer(best.with_twin(), risk)
        return MixtureGenerator(self._with_condition(logits)).eval()

    def _logits_of_single_columns(self) -> Tensor:
        """(slices, 2, width of all free columns): two components alike, the fewest there can be."""
        estimates = self._estimates(self.measured)
        fine, _, _ = estimates.one_way()
        shares = np.concatenate([fine[column] / estimates.totals[:, None] for column in self.layout.free], axis=1)
        logits = np.log(np.maximum(shares, SMALLEST_SHARE)).astype(np.float32)
        return torch.from_numpy(logits)[:, None, :].repeat(1, 2, 1)

    def _with_condition(self, logits: Tensor) -> Tensor:
        """The label's own logits beside the others: (slices, components, total_width)."""
        label = self.condition_index
        if label is None:
            return logits
        slices, components, _ = logits.shape
        given = CONDITION_LOGIT * torch.eye(slices)[:, None, :].expand(-1, components, -1)
        before = sum(self.domain.widths[:label])
        return torch.cat((logits[..., :before], given, logits[..., before:]), dim=2)

    def checkpoint(self) -> Checkpoint:
        """What was measured: with it, no crash makes a run measure twice. Noised, so no secret from the store."""
        tensors = {f"counts.{place}": torch.from_numpy(m.counts) for place, m in enumerate(self.measured)}
        values = {
            "plan": self.plan.digest(),
            "position": self.plan.position,
            "columns": [m.columns for m in self.measured],
            "variances": [m.variance for m in self.measured],
            "cells": self.layout.cells,
            "grouping": self.layout.grouping,
            "pairs_are_sliced": self.layout.pairs_are_sliced,
            "is_private": self.is_private,
            "standing_out": {str(column): found.to_json() for column, found in self.standing_out.items()},
        }
        return Checkpoint(tensors, values)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Take up the measurement of an earlier attempt; the fit begins again."""
        values = checkpoint.values
        if values["plan"] != self.plan.digest():
            raise StepNotOnPlan("this checkpoint belongs to another price list; start the release again")
        self.plan.resume(values["position"])
        self.is_private = self.is_private and values["is_private"]
        if values["cells"] is not None:
            self._use_cells(_by_column(values["cells"]))
        if values["grouping"] is not None:
            groups = _by_column(values["grouping"])
            self.layout = self.layout.with_groups(groups)
        if not values["pairs_are_sliced"]:
            self.layout = self.layout.with_pairs_of_all_rows()
        kept = values.get("standing_out", {})  # checkpoints of earlier versions have none
        self.standing_out = {int(column): StandingOut.from_json(found) for column, found in kept.items()}
        self.measured = tuple(
            Measured(tuple(columns), checkpoint.tensors[f"counts.{place}"].numpy(), variance)
            for place, (columns, variance) in enumerate(zip(values["columns"], values["variances"], strict=True))
        )


def _by_column(kept: Sequence[Sequence[int] | None]) -> dict[int, Cells]:
    return {column: np.array(cells) for column, cells in enumerate(kept) if cells is not None}


def _summed(m: Measured, cells: Cells) -> Measured:
    """A one-way table by cells instead of codes. Those of several codes have more noise; all get what an average one has."""
    counts = np.stack([np.bincount(cells, weights=row) for row in m.counts]).round().astype(np.int64)
    return Measured(m.columns, counts, m.variance * len(cells) / counts.shape[1])


def _taking_turns(on_step: Callable[[int], None], *, before: int, fits: int) -> Callable[[int], None]:
    """First steps of one of several fits, of which others took `before`, as first steps of them all."""
    return lambda step: on_step(math.ceil((before + step) / fits))
