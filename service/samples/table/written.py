"""From the columns that a model draws to those of a synthetic row: derived ones computed, identifiers made, texts put in place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from service.domain.arithmetic import Tree, columns_of, rounded, value_of
from service.samples.table.base import Array, Columns
from service.samples.table.columns import CategoryColumn
from service.samples.table.hierarchies import HierarchyColumn
from service.samples.table.identifiers import IdentifierColumn
from service.samples.table.ranges import GridColumn

Modelled = CategoryColumn | GridColumn
RowColumn = CategoryColumn | GridColumn | IdentifierColumn


class Computed:
    """A column that an expression gives: exact whole numbers of the last digit."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._tree: Tree = config["expression"]
        self.names = columns_of(self._tree)
        self._is_number: bool = config["type"] == "number"
        self._digits: int = config.get("decimals", 0)

    def of(self, columns: Mapping[str, RowColumn], drawn: Mapping[str, Array]) -> Array:
        numbers = rounded(
            value_of(self._tree, lambda name, digits: numbers_of(columns[name], drawn[name], digits)), self._digits
        )
        numbers = numbers / 10.0**self._digits if self._is_number else numbers
        return np.ma.MaskedArray(numbers, mask=missing_in(self._tree, columns, drawn))


class LookedUp:
    """A column of categories that a public table gives."""

    def __init__(self, config: Mapping[str, Any], columns: Mapping[str, RowColumn], own: CategoryColumn) -> None:
        self.names: list[str] = config["by"]
        self._keys = KeyTable(self.names, [entry[:-1] for entry in config["entries"]], columns)
        codes = [own.code_of(entry[-1]) for entry in config["entries"]]
        self._codes = np.array([*codes, own.size - 1])  # what the table does not hold is missing

    def of(self, _columns: Mapping[str, RowColumn], drawn: Mapping[str, Array]) -> Array:
        codes: Array = self._codes[self._keys.places(drawn)]
        return codes


class KeyTable:
    """Combinations of categories, found by their codes."""

    def __init__(
        self, names: Sequence[str], entries: Sequence[Sequence[Any]], columns: Mapping[str, RowColumn]
    ) -> None:
        self._names = names
        self._sizes = [len(_categories(columns[name]).values) for name in names]
        codes = [
            [_categories(columns[name]).code_of(v) for name, v in zip(names, entry, strict=True)] for entry in entries
        ]
        numbers = self._numbers(list(np.array(codes, dtype=np.int64).reshape(-1, len(names)).T))
        self._order = np.argsort(numbers)
        self._sorted = numbers[self._order]

    def places(self, drawn: Mapping[str, Array]) -> Array:
        """Which entry each row has; -1 where none."""
        numbers = self._numbers([drawn[name] for name in self._names])
        if not len(self._sorted):
            return np.full(len(numbers), -1)
        at = np.searchsorted(self._sorted, numbers).clip(max=len(self._sorted) - 1)
        return np.where(self._sorted[at] == numbers, self._order[at], -1)

    def _numbers(self, codes: Sequence[Array]) -> Array:
        numbers: Array = np.zeros(len(codes[0]), dtype=np.int64)
        for size, own in zip(self._sizes, codes, strict=True):
            numbers = numbers * size + own
        return numbers


class Written:
    """The columns of a synthetic row, in the order of the schema, and how they come from the modelled ones."""

    def __init__(self, config: Mapping[str, Any], modelled: Sequence[Modelled], missing_value: str) -> None:
        self.modelled = modelled
        self._is_plain = "written" not in config
        by_name: dict[str, RowColumn] = {column.name: column for column in modelled}
        entries: dict[str, Mapping[str, Any]] = {entry["name"]: entry for entry in config.get("written", [])}
        for name, entry in entries.items():
            if name not in by_name:
                by_name[name] = _column(entry, missing_value)
        self._made: dict[str, Computed | LookedUp] = {}
        for name in config.get("derived", []):
            entry, own = entries[name], by_name[name]
            self._made[name] = LookedUp(entry, by_name, own) if isinstance(own, CategoryColumn) else Computed(entry)
        self.by_name = by_name
        self.columns: tuple[RowColumn, ...] = tuple(modelled if self._is_plain else (by_name[name] for name in entries))
        places = {column.name: place for place, column in enumerate(modelled)}
        self.place_of = {at: places[column.name] for at, column in enumerate(self.columns) if column.name in places}
        """Of the columns of a row that are modelled: which of those each is."""
        self.unasked = {column.name for column in self.columns if column.name not in places}
        """The others: they follow from those, or are made anew."""
        self._identifiers = [
            (place, column) for place, column in enumerate(self.columns) if isinstance(column, IdentifierColumn)
        ]

    def check_rows(self, rows: int) -> None:
        """Refuse a sample of more rows than there are identifiers."""
        for _, column in self._identifiers:
            column.check_rows(rows)

    def values(self, columns: Columns, derived: Iterable[str]) -> dict[str, Array]:
        """Modelled columns and these that follow from them, by name."""
        drawn = {column.name: own for column, own in zip(self.modelled, columns, strict=True)}
        for name in derived:
            drawn[name] = self._made[name].of(self.by_name, drawn)
        return drawn

    def needed(self, names: Iterable[str]) -> list[str]:
        """The derived columns among these, and those that they follow from, in the order in which they are computed."""
        wanted = set(names)
        for name, made in reversed(self._made.items()):
            if name in wanted:
                wanted |= set(made.names)
        return [name for name in self._made if name in wanted]

    def sources(self) -> dict[str, list[str]]:
        """Of each derived column, the modelled ones that it follows from."""
        found: dict[str, list[str]] = {}
        for name, made in self._made.items():
            found[name] = list(dict.fromkeys(one for by in made.names for one in found.get(by, [by])))
        return found

    def made(self, columns: Columns) -> Columns:
        """From modelled columns to those of rows; identifiers come later, when it is known which rows are kept."""
        if self._is_plain:
            return columns
        drawn = self.values(columns, self._made)
        nothing = np.zeros(len(columns[0]), dtype=np.int64)
        return [drawn.get(column.name, nothing) for column in self.columns]

    def numbered(self, columns: Columns, first: int, seeds: np.random.SeedSequence) -> Columns:
        """With identifiers: these are the sample's rows from `first` on."""
        columns = list(columns)
        for place, column in self._identifiers:
            columns[place] = column.numbered(first, len(columns[place]), seeds, place)
        return columns


def modelled_columns(config: Mapping[str, Any]) -> tuple[Modelled, ...]:
    """What the network draws."""
    missing_value = config["missing_value"]
    fine = {entry["name"]: entry["fine"] for entry in config.get("written", []) if "fine" in entry}
    return tuple(
        HierarchyColumn(c, fine[c["name"]], missing_value)
        if c["name"] in fine
        else CategoryColumn(c, missing_value)
        if "values" in c
        else GridColumn(c, missing_value)
        for c in config["columns"]
    )


def numbers_of(column: RowColumn, drawn: Array, digits: int | None) -> Array:
    """As whole numbers of the last of so many digits, or as they are; anything where a value is missing."""
    if isinstance(column, CategoryColumn):
        numbers = np.array([0 if value is None else value for value in column.values])[drawn]
    else:
        numbers = np.ma.getdata(drawn)
    found: Array
    if digits is None:
        found = numbers.astype(np.float64)
    elif numbers.dtype.kind == "f":
        found = np.rint(numbers * 10.0**digits).astype(np.int64)
    else:
        found = numbers.astype(np.int64) * 10**digits
    return found


def missing_in(tree: Tree, columns: Mapping[str, RowColumn], drawn: Mapping[str, Array]) -> Array:
    """(rows,) where a column of the expression has no value."""
    missing: Array = np.logical_or.reduce([is_missing(columns[name], drawn[name]) for name in columns_of(tree)])
    return missing


def is_missing(column: RowColumn, drawn: Array) -> Array:
    """(rows,) where there is no value."""
    missing: Array = np.ma.getmaskarray(drawn)
    if isinstance(column, CategoryColumn):
        missing = drawn == (len(column.values) - 1 if column.missing else -1)
    return missing


def _column(config: Mapping[str, Any], missing_value: str) -> RowColumn:
    if "identifier" in config:
        return IdentifierColumn(config)
    if "text" in config:
        return CategoryColumn({**config, "size": 1, "values": [config["text"]]}, missing_value)
    return CategoryColumn(config, missing_value) if "values" in config else GridColumn(config, missing_value)


def _categories(column: RowColumn) -> CategoryColumn:
    if not isinstance(column, CategoryColumn):
        raise TypeError(f"{column.name} has no categories")
    return column
