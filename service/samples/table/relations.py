"""Relations that hold in every row. A row that breaks one gets other values, with as little change to the columns as can be.

In this order: other values inside the same cells; a value exchanged with another row, which leaves every column as it is;
what is left is drawn anew (`exclusions.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from service.domain.arithmetic import Tree, columns_of, comparison
from service.samples.table.base import Array, Columns
from service.samples.table.columns import CategoryColumn
from service.samples.table.hierarchies import HierarchyColumn
from service.samples.table.ranges import GridColumn
from service.samples.table.written import KeyTable, Modelled, Written, missing_in, numbers_of

DRAWS_IN_CELLS = 8
EXCHANGES = 64
"""So often, a row that breaks a relation is offered the value of another one, chosen at random."""
TURNS_OF_RELATIONS = 2
"""Mending one relation may break another that was looked at before."""


class Holds:
    """An inequality."""

    def __init__(self, tree: Tree, written: Written) -> None:
        self._tree, self._written = tree, written
        self.names = columns_of(tree)

    def broken(self, drawn: Mapping[str, Array]) -> Array:
        """(rows,) which rows break it; none in which one of its columns is missing."""
        columns = self._written.by_name
        met = comparison(self._tree, lambda name, digits: numbers_of(columns[name], drawn[name], digits))
        broken: Array = ~met & ~missing_in(self._tree, columns, drawn)
        return broken


class Allowed:
    """Combinations of categories."""

    def __init__(self, config: Mapping[str, Any], written: Written) -> None:
        self.names: list[str] = config["columns"]
        self._keys = KeyTable(self.names, config["allowed"], written.by_name)

    def broken(self, drawn: Mapping[str, Array]) -> Array:
        return self._keys.places(drawn) < 0


class Relations:
    """All relations of a schema that drawn rows might break."""

    def __init__(self, config: Sequence[Mapping[str, Any]], written: Written, condition: int | None) -> None:
        self._written = written
        self._relations: list[Holds | Allowed] = [
            Holds(one["holds"], written) if "holds" in one else Allowed(one, written) for one in config
        ]
        self._places = [self._places_of(relation, condition) for relation in self._relations]

    def _places_of(self, relation: Holds | Allowed, condition: int | None) -> list[int]:
        """The modelled columns on which it depends, the last first, without the condition."""
        names = [column.name for column in self._written.modelled]
        of_derived = self._written.sources()
        found = {names.index(one) for name in relation.names for one in of_derived.get(name, [name])}
        return sorted(found - {condition}, reverse=True)

    def __bool__(self) -> bool:
        return bool(self._relations)

    def broken(self, columns: Columns) -> Array:
        """(rows,) how many relations each row breaks."""
        found = np.zeros(len(columns[0]), dtype=np.int64)
        if self._relations:
            drawn = self._written.values(columns)
            for relation in self._relations:
                found += relation.broken(drawn)
        return found

    def mended(
        self, columns: Columns, condition: Array, count: Callable[[Columns], Array], rng: np.random.Generator
    ) -> Columns:
        """The rows, most of those that break a relation with other values. `count`: how many rules rows break, exclusions among them."""
        partners = Partners(condition)
        for relation, places in list(zip(self._relations, self._places, strict=True)) * TURNS_OF_RELATIONS:
            self._draw_in_cells(relation, places, columns, count, rng)
            for turn in range(EXCHANGES if places else 0):
                rows = self._breaking(relation, columns)
                if not len(rows):
                    break
                exchange(columns, places[turn % len(places)], rows, partners.of(rows, rng), count)
        return columns

    def _breaking(self, relation: Holds | Allowed, columns: Columns) -> Array:
        return np.flatnonzero(relation.broken(self._written.values(columns)))

    def _draw_in_cells(
        self, relation: Holds | Allowed, places: list[int], columns: Columns, count: Callable[[Columns], Array], rng: np.random.Generator
    ) -> None:
        if not isinstance(relation, Holds):
            return
        rows = self._breaking(relation, columns)
        for _ in range(DRAWS_IN_CELLS):
            if not len(rows):
                return
            before = [column[rows] for column in columns]
            after = list(before)
            for place in places:
                modelled = self._written.modelled[place]
                if isinstance(modelled, GridColumn):
                    after[place] = modelled.fill(cells_of_values(modelled, before[place]), rng)
            better = count(after) < count(before)
            for place in places:
                columns[place][rows[better]] = after[place][better]
            rows = rows[~better]


class Partners:
    """Rows of the same condition."""

    def __init__(self, condition: Array) -> None:
        self._order = np.argsort(condition, kind="stable")
        in_order = condition[self._order]
        self._first = np.searchsorted(in_order, condition, side="left")
        self._size = np.searchsorted(in_order, condition, side="right") - self._first

    def of(self, rows: Array, rng: np.random.Generator) -> Array:
        """For each of these rows, another one at random."""
        partners: Array = self._order[self._first[rows] + (rng.random(len(rows)) * self._size[rows]).astype(np.int64)]
        return partners


def exchange(columns: Columns, place: int, rows: Array, partners: Array, count: Callable[[Columns], Array]) -> None:
    """Let rows and partners exchange their values of a column where together they then break fewer rules; in place."""
    is_missing = np.ma.getmaskarray(columns[place][partners])
    _, firsts = np.unique(partners, return_index=True)
    usable = np.zeros(len(rows), dtype=bool)
    usable[firsts] = True
    usable &= ~np.isin(partners, rows) & ~is_missing
    rows, partners = rows[usable], partners[usable]
    if not len(rows):
        return
    both = np.concatenate([rows, partners])
    before = [column[both] for column in columns]
    after = list(before)
    after[place] = columns[place][np.concatenate([partners, rows])]
    gains = (count(before) - count(after)).reshape(2, -1).sum(axis=0)
    taken = np.tile(gains > 0, 2)
    columns[place][both[taken]] = after[place][taken]


def cells_of_values(column: Modelled, drawn: Array) -> Array:
    """The cells in which drawn values lie: what the network drew."""
    if isinstance(column, HierarchyColumn):
        return column.coarse_codes(drawn)
    if isinstance(column, CategoryColumn):
        return drawn
    cells = np.searchsorted(column.edges[1:-1], np.ma.getdata(drawn), side="right")
    return np.where(np.ma.getmaskarray(drawn), column.size - 1, cells) if column.missing else cells
