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
from dataclasses import dataclass

import numpy as np

from service.base.messages import Message
from service.samples.table.base import Array, Columns, SamplingError
from service.samples.table.columns import CategoryColumn
from service.samples.table.components import Components, in_groups, log_chances, picked_evenly, tilt_of
from service.samples.table.dealing import even_thresholds
from service.samples.table.exclusions import Exclusions, Origin
from service.samples.table.network import Network
from service.samples.table.ranges import GridColumn
from service.samples.table.selections import Pairs, Selection, Selections, met_by

MOST_CHANCES = 1 << 23
"""Of components, for all that one sample asks of them: 8 bytes each."""


@dataclass(frozen=True)
class Mixture:
    """Where rows that meet a condition come from."""

    network: Network
    columns: Sequence[CategoryColumn | GridColumn]
    exclusions: Exclusions
    components: Components


class ConditionalRows:
    """Draws rows that meet these selections from a mixture."""

    def __init__(self, source: Mixture, sets: Sequence[Selections], chances: Array) -> None:
        """sets: what is wanted, and the other sets of the union; chances: (sets, components) logs, its own from now on."""
        self._source, self._sets, self._wanted = source, sets, sets[0]
        self.log_chance: float = np.logaddexp.reduce(chances[0])
        """Of the condition, before exclusions."""
        if not np.isfinite(self.log_chance):
            raise SamplingError(Message("no row of this generator meets the condition"))
        chances -= chances.max()
        self._weights = np.exp(chances, out=chances).reshape(-1)

    def draw(self, rows: int, rng: np.random.Generator) -> Columns:
        """Those of `rows` drawn ones that meet the condition in the end; all, where nothing is excluded."""
        sets, picked = np.divmod(picked_evenly(self._weights, rows, rng), len(self._source.components))
        columns = in_groups(sets, lambda number, places: self._drawn_of_set(number, picked[places], rng))
        if len(self._sets) > 1:
            times = np.sum([met_by(each, columns) for each in self._sets], axis=0)
            keep = rng.random(rows) * times < 1.0
            columns, picked = [column[keep] for column in columns], picked[keep]
        if self._source.exclusions.any(columns):
            origin = Origin(self._source.components.noise[picked], self._source.components.condition[picked], None)
            columns = self._source.exclusions.mended(columns, origin, rng)
        keep = met_by(self._wanted, columns)
        return columns if keep.all() else [column[keep] for column in columns]

    def _drawn_of_set(self, number: int, picked: Array, rng: np.random.Generator) -> Columns:
        """Rows of these components in one of the sets."""
        thresholds = even_thresholds(picked.astype(np.int64), len(self._source.columns), rng)
        noise, condition = self._source.components.noise[picked], self._source.components.condition[picked]
        tilt = tilt_of(self._source.network, self._sets[number])
        drawn = self._source.network.codes(noise, condition, rng, thresholds=thresholds, tilt=tilt)
        wanted = self._sets[number]
        return [
            (wanted[index] if index in wanted else self._source.columns[index]).fill(codes, rng)
            for index, (codes,) in enumerate(drawn)
        ]


def conditional_rows(source: Mixture, each_wanted: Sequence[Selections], pairs: Pairs) -> list[ConditionalRows]:
    """Of each of these conditions; the network is asked once for all of them."""
    sets = [_sets_of(source.exclusions, wanted, pairs) for wanted in each_wanted]
    most, count = max(1, MOST_CHANCES // len(source.components)), sum(map(len, sets))
    if len(sets) > 1 and count > most:
        raise SamplingError(
            Message(
                "weights: their combinations of values, with what the schema excludes, ask %(count)s times for the %(components)s "
                "components of this generator; %(most)s times are the most: weight fewer columns or values",
                count=count,
                components=len(source.components),
                most=most,
            )
        )
    chances = log_chances(source.network, source.components, [each for own in sets for each in own])
    with np.errstate(divide="ignore"):
        chances += np.log(source.components.shares)
    starts = np.cumsum([0, *map(len, sets)]).tolist()
    return [ConditionalRows(source, own, chances[at : at + len(own)]) for own, at in zip(sets, starts, strict=False)]


def _sets_of(exclusions: Exclusions, wanted: Selections, pairs: Pairs) -> list[Selections]:
    """What is wanted, and, of each exclusion that may lead to it, what leads there."""
    sets = [wanted]
    changing = exclusions.led_to(wanted)
    kept = {index: each for index, each in wanted.items() if index not in changing}
    for excluded in exclusions.selections if changing else ():
        both = pairs.joined(kept, excluded)
        if all(both[index].chances.any() for index in excluded):
            sets.append(both)
    return sets


def refuse_excluded(exclusions: Exclusions, wanted: Mapping[int, Selection], pairs: Pairs) -> None:
    """`SamplingError` where one exclusion holds for all that is wanted."""
    for excluded in exclusions.selections:
        if all(
            pairs.is_within(wanted.get(index) or exclusions.everything_of(index), selection)
            for index, selection in excluded.items()
        ):
            raise SamplingError(
                Message(
                    "the schema excludes every such row: see its exclusion of values of %(names)s",
                    names=exclusions.names_of(excluded),
                )
            )
