"""Rows of a mixture that meet a condition, however rare: drawn by the rule of Bayes, not by waiting for them.

Given a component, columns are independent. So the chance of a condition is a product over columns, the component of a row
that meets it is drawn by its share times that chance, and each column from what is left of its distribution.

Excluded rows (see exclusions.py) get other values after the draw, so a row may come to meet the condition only then. Rows
are therefore drawn from the union of the condition and of each exclusion, in which the conditions on columns that may yet
change count nothing; a row in k of these sets is kept with chance 1/k (Karp and Luby 1983). What does not meet the
condition in the end is left out. That is exact but for rows that no other value mends, which are left out, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from service.base.messages import Listed, Message
from service.samples.table.base import Array, Columns, SamplingError
from service.samples.table.columns import CategoryColumn
from service.samples.table.components import Components, in_groups, log_chances, picked_evenly, tilt_of
from service.samples.table.dealing import even_thresholds
from service.samples.table.exclusions import Exclusions, Origin
from service.samples.table.network import Network
from service.samples.table.ranges import GridColumn
from service.samples.table.selections import Selection, Selections, everything_of, joined_selections, met_by


class ConditionalRows:
    """Draws rows that meet these selections from a mixture."""

    def __init__(
        self,
        network: Network,
        columns: Sequence[CategoryColumn | GridColumn],
        exclusions: Exclusions,
        components: Components,
        wanted: Selections,
    ) -> None:
        self._network, self._columns, self._exclusions = network, columns, exclusions
        self._components, self._wanted = components, wanted
        refuse_excluded(columns, exclusions, wanted)
        self._sets: list[Selections] = [wanted]
        changing = exclusions.led_to(wanted)
        kept = {index: each for index, each in wanted.items() if index not in changing}
        for excluded in exclusions.selections if changing else ():
            both = joined_selections(kept, excluded)
            if all(selection.chances.any() for selection in both.values()):
                self._sets.append(both)
        chances = log_chances(network, components, self._sets)
        with np.errstate(divide="ignore"):
            chances += np.log(components.shares)
        self.log_chance: float = np.logaddexp.reduce(chances[0])
        """Of the condition, before exclusions."""
        if not np.isfinite(self.log_chance):
            raise SamplingError(Message("no row of this generator meets the condition"))
        self._weights = np.exp(chances - chances.max()).reshape(-1)
        self._tilts = [tilt_of(network, each) for each in self._sets]

    def draw(self, rows: int, rng: np.random.Generator) -> Columns:
        """Those of `rows` drawn ones that meet the condition in the end; all, where nothing is excluded."""
        sets, picked = np.divmod(picked_evenly(self._weights, rows, rng), len(self._components))
        columns = in_groups(sets, lambda number, places: self._drawn_of_set(number, picked[places], rng))
        if len(self._sets) > 1:
            times = np.sum([met_by(each, columns) for each in self._sets], axis=0)
            keep = rng.random(rows) * times < 1.0
            columns, picked = [column[keep] for column in columns], picked[keep]
        if self._exclusions.any(columns):
            origin = Origin(self._components.noise[picked], self._components.condition[picked], None)
            columns = self._exclusions.mended(columns, origin, rng)
        keep = met_by(self._wanted, columns)
        return columns if keep.all() else [column[keep] for column in columns]

    def _drawn_of_set(self, number: int, picked: Array, rng: np.random.Generator) -> Columns:
        """Rows of these components in one of the sets."""
        thresholds = even_thresholds(picked.astype(np.int64), len(self._columns), rng)
        noise, condition = self._components.noise[picked], self._components.condition[picked]
        tilt = self._tilts[number]
        drawn = self._network.codes(noise, condition, rng, thresholds=thresholds, tilt=tilt)
        wanted = self._sets[number]
        return [
            (wanted[index] if index in wanted else self._columns[index]).fill(codes, rng)
            for index, (codes,) in enumerate(drawn)
        ]


def refuse_excluded(
    columns: Sequence[CategoryColumn | GridColumn], exclusions: Exclusions, wanted: Mapping[int, Selection]
) -> None:
    """`SamplingError` where one exclusion holds for all that is wanted."""
    for excluded in exclusions.selections:
        if all(
            (wanted.get(index) or everything_of(columns[index])).is_within(selection)  # type: ignore[arg-type]
            for index, selection in excluded.items()
        ):
            names = Listed(Message(" and "), [columns[index].name for index in excluded])
            raise SamplingError(
                Message("the schema excludes every such row: see its exclusion of values of %(names)s", names=names)
            )
