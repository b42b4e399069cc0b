"""Rows that the schema says do not exist: they get other values, or are drawn anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from service.base.messages import Listed, Message, whole
from service.samples.table.base import Array, Columns, Mask, SamplingError
from service.samples.table.columns import CategoryColumn
from service.samples.table.network import Network, cells_reached, cumulative_weights, transposed
from service.samples.table.ranges import GridColumn
from service.samples.table.relations import Relations
from service.samples.table.selections import Selection, Selections, everything_of, selection_of

RAREST = 10_000
"""A request that fewer than 1 in this many rows meet is refused,"""
PATIENCE = 200_000
"""once that many rows have been drawn."""
TURNS_OF_EXCLUSIONS = 3
"""In which an excluded row gets another value in one column. Then it is drawn anew:"""
DRAWN_ANEW = 256
"""such rows at least,"""
DRAWS_OF_A_COMPONENT = 20
"""so often from the component that it comes from; then from any,"""
DRAWS_OF_A_CONDITION = 200
"""and, if all of these are excluded, too, under another condition."""


@dataclass(frozen=True)
class Exclusion:
    """What no row has: values that pass all of these masks of columns."""

    masks: Sequence[tuple[int, Mask]]
    selections: Selections
    changed: int  # the column that gets another value: the last that is named, but for the condition
    excluded: Array  # (cells,) of it that meet its own mask as a whole

    def rows(self, columns: Columns) -> Array:
        """(rows,) which of them have it."""
        found: Array = np.logical_and.reduce([mask(columns[index]) for index, mask in self.masks])
        return found


@dataclass(frozen=True)
class Origin:
    """Where drawn rows come from."""

    noise: Array  # (rows, noise dimension)
    condition: Array  # (rows,)
    given: int | None  # the condition that was asked for


class Exclusions:
    """All exclusions of a schema, and how rows that meet one are replaced."""

    def __init__(
        self,
        config: Sequence[Sequence[Mapping[str, Any]]],
        columns: Sequence[CategoryColumn | GridColumn],
        network: Network,
        relations: Relations,
    ) -> None:
        self._columns, self._network, self._relations = columns, network, relations
        self._everything: dict[int, Selection] = {}
        self._exclusions = [self._exclusion(conditions) for conditions in config]

    def _exclusion(self, conditions: Sequence[Mapping[str, Any]]) -> Exclusion:
        names = [column.name for column in self._columns]
        by_place = {names.index(condition["column"]): condition for condition in conditions}
        changed = [place for place in by_place if place != self._network.condition][-1]
        return Exclusion(
            masks=[(place, self._columns[place].meets(condition)) for place, condition in by_place.items()],
            selections={place: selection_of(self._columns[place], each) for place, each in by_place.items()},
            changed=changed,
            excluded=self._columns[changed].cells_of(by_place[changed]),
        )

    @property
    def selections(self) -> list[Selections]:
        """What each excludes."""
        return [exclusion.selections for exclusion in self._exclusions]

    def names_of(self, excluded: Selections) -> str:
        """The columns of an exclusion, in words."""
        return Listed(Message(" and "), [self._columns[index].name for index in excluded])

    def everything_of(self, index: int) -> Selection:
        """All values of a column, the same object each time."""
        if index not in self._everything:
            self._everything[index] = everything_of(self._columns[index])
        return self._everything[index]

    def led_to(self, wanted: Selections) -> set[int]:
        """The columns in which a row may come to be as wanted by the value that it gets where it is excluded."""
        return {
            exclusion.changed
            for exclusion in self._exclusions
            if exclusion.changed in wanted and (wanted[exclusion.changed].chances[~exclusion.excluded] > 0).any()
        }

    def any(self, columns: Columns) -> bool:
        """Whether one of these rows is excluded, or breaks a relation."""
        return bool(self._exclusions or self._relations) and bool(self.excluded(columns).any())

    def replaced(self, columns: Columns, origin: Origin, rng: np.random.Generator) -> Columns:
        """The rows, with other values from the components they come from where they are excluded, or drawn anew as a whole."""
        columns = self._with_other_values(columns, origin, rng)
        self._draw_anew(columns, np.flatnonzero(self.excluded(columns)), origin, rng)
        return columns

    def mended(self, columns: Columns, origin: Origin, rng: np.random.Generator) -> Columns:
        """The rows, with other values where they are excluded, without those that are excluded still."""
        columns = self._with_other_values(columns, origin, rng)
        keep = ~self.excluded(columns)
        return [column[keep] for column in columns]

    def _with_other_values(self, columns: Columns, origin: Origin, rng: np.random.Generator) -> Columns:
        columns = [column.copy() for column in columns]
        for exclusion in self._exclusions * TURNS_OF_EXCLUSIONS:
            rows, changed = np.flatnonzero(exclusion.rows(columns)), exclusion.changed
            if len(rows) and not exclusion.excluded.all():
                first, last = self._network.offsets[changed : changed + 2]
                logits = self._network.logits(origin.noise[rows], origin.condition[rows])[:, first:last]
                logits[:, exclusion.excluded] = -np.inf
                weights = cumulative_weights(transposed(logits))
                codes = cells_reached(weights, rng.random(len(rows), dtype=np.float32))
                columns[changed][rows] = self._columns[changed].fill(codes, rng)
        if self._relations:
            columns = self._relations.mended(columns, origin.condition, self._broken, rng)
        return columns

    def excluded(self, columns: Columns) -> Array:
        """(rows,) which are excluded, or break a relation."""
        found: Array = self._broken(columns) > 0
        return found

    def _broken(self, columns: Columns) -> Array:
        """(rows,) how many exclusions and relations each row breaks."""
        return self._relations.broken(columns) + sum(exclusion.rows(columns) for exclusion in self._exclusions)

    def _draw_anew(self, columns: Columns, places: Array, origin: Origin, rng: np.random.Generator) -> None:
        """Rows at these places that are not excluded: from the same component, else under the same condition, else any."""
        drawn, found, draws_of_each = 0, 0, 0.0
        while len(places):
            asked = np.resize(places, max(len(places), DRAWN_ANEW))
            noise, condition = origin.noise[asked], origin.condition[asked]
            if draws_of_each >= DRAWS_OF_A_COMPONENT:
                noise = rng.standard_normal(noise.shape, dtype=np.float32)
            if draws_of_each >= DRAWS_OF_A_CONDITION and origin.given is None:
                condition = self._network.conditions(rng.random(len(asked)))
            codes = (codes for (codes,) in self._network.codes(noise, condition, rng))
            rows = [column.fill(own, rng) for column, own in zip(self._columns, codes, strict=True)]
            kept = np.flatnonzero(~self.excluded(rows))
            there, first = np.unique(asked[kept], return_index=True)
            for column, anew in zip(columns, rows, strict=True):
                column[there] = anew[kept[first]]
            drawn, found = drawn + len(asked), found + len(kept)
            draws_of_each += len(asked) / len(places)
            places = np.setdiff1d(places, there, assume_unique=True)
            if drawn >= PATIENCE and found * RAREST < drawn:
                raise SamplingError(
                    Message("the schema excludes all but 1 in %(rarest)s of these rows", rarest=whole(RAREST))
                    if origin.given is None
                    else Message(
                        "the schema excludes all but 1 in %(rarest)s of these rows; ask for another condition",
                        rarest=whole(RAREST),
                    )
                )
