"""Everything that is released of private rows.

Each release takes its event from the plan, then counts, then adds the noise of that event. What leaves here is public.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from service.methods.marginals.order import MarginalsOrder
from service.methods.marginals.price import MARGINALS, ONE_WAY_TABLES, PAIR_SCORES, VALUE_TREES
from workers.encoding.table import ColumnDomain, EncodedTable, TableDomain
from workers.mechanism.marginals import Columns, Counts, TableLayout, count_intervals, count_tables, pair_scores
from workers.mechanism.noise import drawn_std, most_moved, release_counts
from workers.mechanism.secure_random import SecureRandom
from workers.methods.marginals.estimate.denoising import Floats
from workers.methods.marginals.estimate.totals import Units
from workers.methods.marginals.measure.measured import Measured
from workers.methods.marginals.measure.precision import noise_stds_of
from workers.methods.marginals.measure.trees import Count, Places, RangeTree, digits_in_use, grow
from workers.plan import Plan


@dataclass(frozen=True)
class Releases:
    """The private rows of one run, and the plan that every look at them is on."""

    order: MarginalsOrder
    plan: Plan
    table: EncodedTable
    randomness: SecureRandom
    keeps_bins: bool = False
    """Whether open ranges keep equal cells."""

    @property
    def units(self) -> Units:
        table = self.table
        return Units(table.units, float(table.max_rows_per_unit), are_rows=table.unit_starts is None)

    def one_way_tables(self, layouts: Sequence[TableLayout]) -> tuple[Measured, ...]:
        """Every single column in each of these forms. They share the precision of the one Gaussian that is charged."""
        noise_multiplier = self.plan.take_gaussian(ONE_WAY_TABLES) * math.sqrt(len(layouts))
        looks = [self._noisy(layout, _singles(layout), noise_multiplier, times=len(layouts)) for layout in layouts]
        return tuple(table for look in looks for table in look)

    def tables(self, layout: TableLayout, pairs: Sequence[Columns]) -> tuple[Measured, ...]:
        """Every single column and these pairs."""
        return self._noisy(layout, [*_singles(layout), *pairs], self.plan.take_gaussian(MARGINALS))

    def scores(self, layout: TableLayout, expected: Mapping[Columns, Counts]) -> tuple[Floats, float]:
        """How far the table of every pair is from these counts, and the noise_std of that."""
        noise_multiplier = self.plan.take_gaussian(PAIR_SCORES)
        private = pair_scores(
            self.table.codes,
            layout,
            expected,
            unit_starts=self.table.unit_starts,
            max_rows_per_unit=self.table.max_rows_per_unit,
        )
        noise_std = noise_multiplier * private.sensitivities[0]
        (noisy,) = release_counts(
            private, noise_stds=[noise_std], noise_multiplier=noise_multiplier, randomness=self.randomness
        )
        return noisy.numpy().astype(np.float64), drawn_std(noise_std, moved=most_moved(private))

    def trees(self, columns: Mapping[int, ColumnDomain]) -> dict[int, RangeTree]:
        """Trees of where the values of these open ranges lie. Every level of every tree, and every count of digits, shares the one Gaussian equally."""
        grids = {place: column.value_grid for place, column in columns.items() if column.value_grid is not None}
        asks_for_digits = {
            place for place, column in columns.items() if column.type == "number" and column.decimals is None
        }
        levels = sum(grid.tree(len(columns[place].edges or ()) - 1)[0] for place, grid in grids.items())
        times = levels + len(asks_for_digits)
        noise_multiplier = self.plan.take_gaussian(VALUE_TREES) * math.sqrt(times)
        found = {}
        for place, grid in grids.items():
            noisy, noise_std = self._intervals(self.table.places[place], noise_multiplier, times=times)
            found[place] = grow(grid, columns[place], noisy, noise_std=noise_std)
            if place in asks_for_digits:
                own = self.table.places[place].astype(np.int64)
                roundness = np.where(own < grid.size, grid.roundness(own), len(grid.multiples))
                digits, _ = self._intervals(roundness, noise_multiplier, times=times)
                counts = digits(*(np.arange(len(grid.multiples)) + one for one in (0, 1)))
                found[place] = replace(found[place], decimals=digits_in_use(counts, grid, noise_std=noise_std))
        return found

    def encode_anew(self, domain: TableDomain, starts: Mapping[int, NDArray[np.int64]]) -> None:
        """Rows by bins that were found. Nothing is released."""
        for place, own in starts.items():
            self.table.encode_anew(domain.columns[place], place, own)

    def _intervals(self, places: NDArray[np.uint32], noise_multiplier: float, *, times: int) -> tuple[Count, float]:
        """What counts disjoint intervals of these places, with the noise of one of so many levels; and noise_std of each count."""
        most = self.units.most_rows
        noise_std = noise_multiplier * most

        def count(starts: Places, stops: Places) -> Places:
            private = count_intervals(
                places,
                starts,
                stops,
                unit_starts=self.table.unit_starts,
                max_rows_per_unit=self.table.max_rows_per_unit,
            )
            (noisy,) = release_counts(
                private,
                noise_stds=[noise_std],
                noise_multiplier=noise_multiplier,
                randomness=self.randomness,
                times=times,
            )
            return noisy.numpy()

        return count, drawn_std(noise_std, moved=times * most**2)

    def forecast(self, layout: TableLayout, pairs: Sequence[Columns]) -> tuple[float, ...]:
        """The noise_std that each of these pairs will have if just they are measured. Reads no row and takes no event."""
        tables = [*_singles(layout), *pairs]
        sensitivities = (self.units.most_rows,) * len(tables)
        stds = noise_stds_of(self.order, layout, tables, sensitivities, self.plan.upcoming_gaussian(MARGINALS))
        return stds[len(layout.free) :]

    def _noisy(
        self, layout: TableLayout, tables: list[Columns], noise_multiplier: float, *, times: int = 1
    ) -> tuple[Measured, ...]:
        """These tables, jointly one Gaussian of this noise multiplier, which the caller took from the plan.

        times: the number of such Gaussians that share the event.
        """
        private = count_tables(
            self.table.codes,
            layout,
            tables,
            unit_starts=self.table.unit_starts,
            max_rows_per_unit=self.table.max_rows_per_unit,
        )
        noise_stds = noise_stds_of(self.order, layout, tables, private.sensitivities, noise_multiplier)
        noisy = release_counts(
            private,
            noise_stds=noise_stds,
            noise_multiplier=noise_multiplier,
            randomness=self.randomness,
            times=times,
        )
        return tuple(
            Measured(columns, counts.numpy(), drawn_std(std, moved=times * most_moved(private)) ** 2)
            for columns, counts, std in zip(tables, noisy, noise_stds, strict=True)
        )


def _singles(layout: TableLayout) -> list[Columns]:
    return [(column,) for column in layout.free]
