"""Relations that hold in every row. A row that breaks one gets other values, with as little change to the columns as can be.

In this order: other values inside the same cells; a value exchanged with another row, which leaves every column as it is;
the values of more rows dealt out by rank, which finds a way where there is one; what is left is drawn anew (`exclusions.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from service.domain.arithmetic import Tree, columns_of, comparison, value_of
from service.samples.table.base import Array, Columns
from service.samples.table.columns import CategoryColumn
from service.samples.table.hierarchies import HierarchyColumn
from service.samples.table.ranges import GridColumn
from service.samples.table.written import KeyTable, Modelled, Written, is_missing, missing_in, numbers_of

Count = Callable[[Columns], Array]
"""Rows -> how many rules each of them breaks."""

DRAWS_IN_CELLS = 8
EXCHANGES = 64
"""So often, a row that breaks a relation is offered the value of another one, chosen at random."""
DEALS = 64
"""At most so often, values are dealt out by rank among the rows of a condition."""
TURNS_OF_RELATIONS = 2
"""Mending one relation may break another that was looked at before."""


class Holds:
    """An inequality."""

    def __init__(self, tree: Tree, written: Written) -> None:
        self._tree, self._written = tree, written
        self.names = columns_of(tree)

    def ranked(self, drawn: Mapping[str, Array], name: str) -> tuple[Array, Array] | None:
        """Of rows, what must be in the same order for as few as can be to break it: this column, and the other side; None if it is no side."""
        sides = self._tree[1:]
        own = next((at for at, side in enumerate(sides) if side[:2] == ["column", name]), None)
        if own is None or self._tree[0] == "!=" or name in columns_of(sides[1 - own]):
            return None
        columns = self._written.by_name
        numerator, denominator = value_of(
            sides[1 - own], lambda one, digits: numbers_of(columns[one], drawn[one], digits)
        )
        own_values = numbers_of(columns[name], drawn[name], None)
        return own_values, np.broadcast_to(numerator / denominator, own_values.shape)

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
        self._lists_missing = any(None in one for one in config["allowed"])
        self._columns = [written.by_name[name] for name in self.names]

    def broken(self, drawn: Mapping[str, Array]) -> Array:
        """(rows,) which rows are not listed; none with a missing value, unless such are listed, too."""
        broken: Array = self._keys.places(drawn) < 0
        if not self._lists_missing:
            for column in self._columns:
                broken &= ~is_missing(column, drawn[column.name])
        return broken


class Relations:
    """All relations of a schema that drawn rows might break."""

    def __init__(self, config: Sequence[Mapping[str, Any]], written: Written, condition: int | None) -> None:
        self._written = written
        self._relations = [_Relation(one, written, condition) for one in config]
        self._derived = written.needed(name for one in self._relations for name in one.rule.names)

    def __bool__(self) -> bool:
        return bool(self._relations)

    def broken(self, columns: Columns) -> Array:
        """(rows,) how many relations each row breaks."""
        found = np.zeros(len(columns[0]), dtype=np.int64)
        if self._relations:
            drawn = self._written.values(columns, self._derived)
            for one in self._relations:
                found += one.rule.broken(drawn)
        return found

    def mended(self, columns: Columns, condition: Array, count: Count, rng: np.random.Generator) -> Columns:
        """The rows, most of those that break a relation with other values. `count`: how many rules rows break, exclusions among them."""
        partners = Partners(condition)
        for one in self._relations * TURNS_OF_RELATIONS:
            rows = one.draw_in_cells(columns, np.flatnonzero(one.broken(columns)), count, rng)
            for turn in range(EXCHANGES if one.places else 0):
                if not len(rows):
                    break
                exchange(columns, one.places[turn % len(one.places)], rows, partners.of(rows, rng), count)
                rows = one.still_broken(columns, rows)
            one.deal_by_rank(columns, rows, condition, count, rng)
        return columns


class _Relation:
    """One, and the modelled columns on which it depends: the last first, without the condition."""

    def __init__(self, config: Mapping[str, Any], written: Written, condition: int | None) -> None:
        self.rule = Holds(config["holds"], written) if "holds" in config else Allowed(config, written)
        self._written, self._derived = written, written.needed(self.rule.names)
        names = [column.name for column in written.modelled]
        of_derived = written.sources()
        found = {names.index(one) for name in self.rule.names for one in of_derived.get(name, [name])}
        self.places = sorted(found - {condition}, reverse=True)
        self._ranges = [
            (place, column) for place in self.places if isinstance(column := written.modelled[place], GridColumn)
        ]

    def broken(self, columns: Columns) -> Array:
        return self.rule.broken(self._written.values(columns, self._derived))

    def still_broken(self, columns: Columns, rows: Array) -> Array:
        """Those of these rows that break it."""
        left: Array = rows[self.broken([column[rows] for column in columns])]
        return left

    def known(self, columns: Columns, rows: Array) -> Array:
        """Those of these rows with a value in all of its columns."""
        drawn = self._written.values([column[rows] for column in columns], self._derived)
        by_name = self._written.by_name
        missing = np.logical_or.reduce([is_missing(by_name[name], drawn[name]) for name in self.rule.names])
        found: Array = rows[~missing]
        return found

    def deal_by_rank(
        self, columns: Columns, rows: Array, condition: Array, count: Count, rng: np.random.Generator
    ) -> None:
        """Deal a column's values out anew among rows that break it and ever more others of their condition, both sides in order."""
        names = [self._written.modelled[place].name for place in self.places]
        for own in np.unique(condition[rows]) if isinstance(self.rule, Holds) else ():
            broken = rows[condition[rows] == own]
            others = self.known(columns, np.setdiff1d(np.flatnonzero(condition == own), broken, assume_unique=True))
            taken = len(broken)
            for _ in range(DEALS):
                chosen = rng.permutation(others)[:taken]
                some = np.concatenate([broken, chosen])
                if any(
                    self._is_dealt(columns, place, name, some, count)
                    for place, name in zip(self.places, names, strict=True)
                ):
                    broken = self.still_broken(columns, some)
                    others = self.known(
                        columns, np.setdiff1d(np.flatnonzero(condition == own), broken, assume_unique=True)
                    )
                    taken = len(broken)
                    if not taken:
                        break
                elif taken >= len(others):
                    break
                else:
                    taken *= 2

    def _is_dealt(self, columns: Columns, place: int, name: str, rows: Array, count: Count) -> bool:
        """Whether fewer rules are broken by these rows than before."""
        before = [column[rows] for column in columns]
        ranked = (
            self.rule.ranked(self._written.values(before, self._derived), name)
            if isinstance(self.rule, Holds)
            else None
        )
        if ranked is None:
            return False
        own_order, other_order = (np.argsort(values, kind="stable") for values in ranked)
        after = list(before)
        after[place] = before[place].copy()
        after[place][other_order] = before[place][own_order]
        if count(after).sum() >= count(before).sum():
            return False
        columns[place][rows] = after[place]
        return True

    def draw_in_cells(self, columns: Columns, rows: Array, count: Count, rng: np.random.Generator) -> Array:
        """Other values of the same cells; the rows that break it still."""
        for _ in range(DRAWS_IN_CELLS if self._ranges else 0):
            if not len(rows):
                break
            before = [column[rows] for column in columns]
            after = list(before)
            for place, column in self._ranges:
                after[place] = column.fill(cells_of_values(column, before[place]), rng)
            better = count(after) < count(before)
            for place, _column in self._ranges:
                columns[place][rows[better]] = after[place][better]
            rows = self.still_broken(columns, rows)
        return rows


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


def exchange(columns: Columns, place: int, rows: Array, partners: Array, count: Count) -> None:
    """Let rows and partners exchange their values of a column where together they then break fewer rules; in place."""
    is_missing = np.ma.getmaskarray(columns[place][partners])
    last = np.full(len(columns[place]), -1)
    last[partners] = np.arange(len(rows))  # of rows that found the same partner, one
    last[rows] = -1
    usable = (last[partners] == np.arange(len(rows))) & ~is_missing
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
