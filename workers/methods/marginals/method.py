"""Measured marginals: noisy tables of columns and of pairs of columns, and a mixture fitted to them.

    grow trees -> look at single columns -> choose pairs -> measure -> fit

Which of the first four there are, and in which order, is on the plan (its one source is `marginals_events`). Only
`measure/releases.py` reads private rows; everything else is post-processing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace

import torch

from service.methods.marginals.order import MarginalsOrder
from service.methods.marginals.price import MARGINALS, ONE_WAY_TABLES, PAIR_SCORES, VALUE_TREES, marginals_events
from workers.checkpoints import Checkpoint
from workers.encoding.table import EncodedTable, TableDomain
from workers.mechanism.marginals import TableLayout
from workers.mechanism.secure_random import SecureRandom
from workers.methods.marginals import checkpoint as checkpoints
from workers.methods.marginals.choose.by_scores import choose
from workers.methods.marginals.estimate.table_estimates import TableEstimates, estimates_of
from workers.methods.marginals.estimate.within_bins import with_shared_values
from workers.methods.marginals.fit.generator import components_in, fitted_generator, generator_of_single_columns
from workers.methods.marginals.measure.bins import grow_trees, with_trees
from workers.methods.marginals.measure.first_look import look_at_single_columns
from workers.methods.marginals.measure.measured import Measured
from workers.methods.marginals.measure.measurements import Measurements
from workers.methods.marginals.measure.releases import Releases
from workers.networks.mixture import MixtureGenerator
from workers.plan import Plan


def measure_tables(releases: Releases, known: Measurements) -> Measurements:
    """Single columns, and the pairs that were chosen."""
    return replace(known, tables=(*known.tables, *releases.tables(known.layout, known.pairs)))


MOVES: Mapping[str, Callable[[Releases, Measurements], Measurements]] = {
    VALUE_TREES: grow_trees,
    ONE_WAY_TABLES: look_at_single_columns,
    PAIR_SCORES: choose,
    MARGINALS: measure_tables,
}
"""What is done for the event of each purpose."""


class Marginals:
    """One run: what it may release, and what it knows."""

    def __init__(
        self,
        order: MarginalsOrder,
        plan: Plan,
        table: EncodedTable,
        domain: TableDomain,
        randomness: SecureRandom,
        device: torch.device,
        *,
        keeps_bins: bool = False,
    ) -> None:
        """keeps_bins: open ranges keep equal cells, whatever trees say: networks were made for them."""
        self.order, self.plan, self.randomness, self.device = order, plan, randomness, device
        self.releases = Releases(order, plan, table, randomness, keeps_bins=keeps_bins)
        self.known = Measurements.nothing(order, domain, is_private=randomness.is_private)

    def measure(self) -> None:
        """Every release that is on the plan, in its order. A plan that is not this order's is refused before the first."""
        self.plan.expect(marginals_events(self.order, noise_multiplier=1.0))
        known = self.known
        while (purpose := self.plan.upcoming()) is not None:
            known = MOVES[purpose](self.releases, known)
        self.known = known

    def fit(self, on_step: Callable[[int], None]) -> MixtureGenerator:
        """A mixture that says what was measured. Reads no row; `on_step` hears of each step and may raise to stop."""
        if all(len(m.columns) == 1 for m in self.measured):
            on_step(self.order.steps)
            return generator_of_single_columns(self.known, self._estimates)
        return fitted_generator(
            self.known,
            self.order,
            self.releases.units,
            seed=int(self.randomness.uniforms(1).item() * 2**53),
            device=self.device,
            on_step=on_step,
        )

    def checkpoint(self) -> Checkpoint:
        """What was measured."""
        return checkpoints.kept(self.known, self.plan)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Take up the measurement of an earlier attempt; the fit begins again."""
        with_own = functools.partial(with_trees, self.releases)
        self.known = checkpoints.taken_up(checkpoint, self.known, self.plan, with_own)

    # -- what is known

    @property
    def is_private(self) -> bool:
        return self.known.is_private

    @property
    def layout(self) -> TableLayout:
        return self.known.layout

    @property
    def measured(self) -> tuple[Measured, ...]:
        return self.known.tables

    @property
    def domain(self) -> TableDomain:
        """The columns, with the bins that were counted."""
        return self.known.domain

    @property
    def domain_of_rows(self) -> TableDomain:
        """The columns as synthetic rows have them: with the values that many rows share."""
        trees = self.known.trees
        return with_shared_values(self.domain, trees, self._estimates.one_way()) if trees else self.domain

    @property
    def condition_index(self) -> int | None:
        return self.layout.label

    @property
    def condition_frequencies(self) -> tuple[float, ...] | None:
        if self.condition_index is None:
            return None
        totals = self._estimates.totals
        return tuple((totals / totals.sum()).tolist())

    @property
    def rows_per_unit(self) -> float | None:
        """Mean rows of a unit, charged with the tables; None where a unit is a row."""
        units = self.releases.units
        return None if units.are_rows else float(self._estimates.totals.sum() / max(1, units.count))

    @property
    def components(self) -> int:
        """The number of components of the mixture in each stratum."""
        return components_in(self.layout, self.order, self.domain, self.releases.units)

    @property
    def _estimates(self) -> TableEstimates:
        return estimates_of(self.measured, self.layout, self.domain, self.releases.units)
