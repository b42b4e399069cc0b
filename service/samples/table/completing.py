"""Rows of the caller's own with values drawn where they have none, given the values that they have.

The component of a row is drawn by its share times the chance of what is known, and what is not known from that component.
Of a network, which has no components, thousands of draws of its noise stand for all: what it says is then approximate.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from service.base.messages import Listed, Message, fault_of
from service.samples.table.base import Array, Columns, SamplingError
from service.samples.table.columns import CategoryColumn, no_such_column, refused
from service.samples.table.components import Components, each_log_softmax
from service.samples.table.exclusions import Exclusions
from service.samples.table.hierarchies import HierarchyColumn
from service.samples.table.network import Network
from service.samples.table.ranges import GridColumn
from service.samples.table.selections import met_by

CHANCES_AT_A_TIME = 2**23
"""Of rows and components: what bounds the memory."""
ROWS_COMPLETED_AT_A_TIME = (16, 4_096)
MOST_TURNS = 200
"""In which a row that is excluded is completed anew."""


@dataclass(frozen=True)
class Known:
    """What rows have: drawn columns, of which only the known cells mean anything."""

    columns: Columns
    codes: Array  # (columns, rows) int64, -1 where it is not known
    imputed: Array  # (columns, rows) bool: drawn, but not as missing

    def part(self, rows: Any) -> Known:
        """Some of the rows."""
        return Known([column[rows] for column in self.columns], self.codes[:, rows], self.imputed[:, rows])


class TooManyCells(SamplingError):
    """More than are read at once."""


@dataclass(frozen=True)
class Most:
    """How many rows, and cells of all of them together, are read at once."""

    rows: int
    cells: int


class _Counted:
    """Counts as it is read, so that no more than the limit is ever held."""

    def __init__(self, most: Most | None) -> None:
        self._most, self._rows, self._cells = most, 0, 0

    def row(self, cells: int) -> None:
        self._rows += 1
        if self._most is not None and self._rows > self._most.rows:
            raise TooManyCells(
                Message("more than %(most)s rows; so many may be completed at once", most=self._most.rows)
            )
        self.cells(cells)

    def cells(self, cells: int) -> None:
        self._cells += cells
        if self._most is not None and self._cells > self._most.cells:
            raise TooManyCells(
                Message("too many cells: %(most)s may be completed at once; send fewer rows", most=self._most.cells)
            )


class Completion:
    """Completes rows from a generator."""

    def __init__(
        self,
        network: Network,
        columns: Sequence[CategoryColumn | GridColumn],
        exclusions: Exclusions,
        components: Components,
    ) -> None:
        self._network, self._columns, self._exclusions, self._components = network, columns, exclusions, components
        self.rows_at_a_time = int(np.clip(CHANCES_AT_A_TIME // len(components), *ROWS_COMPLETED_AT_A_TIME))

    def known(
        self, rows: Sequence[Mapping[str, Any]], unasked: Collection[str] = (), *, as_spelled: bool = False
    ) -> Known:
        """What these rows have; `SamplingError` with the number of the first row that cannot be read.

        `unasked`: columns of a synthetic row that are made without the generator; what rows have in them is not read.
        `as_spelled`: texts are first read as the schema spells them, then as ISO and plain numbers.
        """
        names = [column.name for column in self._columns]
        places = {name: place for place, name in enumerate(names)}
        codes = np.full((len(names), len(rows)), -1, dtype=np.int64)
        imputed = np.zeros(codes.shape, dtype=bool)
        numbers: list[list[Any]] = [[0] * len(rows) for _ in names]
        for number, row in enumerate(rows):
            for name, value in row.items():
                place = places.get(name)
                if place is None and name in unasked:
                    continue
                if place is None:
                    raise no_such_column(name, names)
                column = self._columns[place]
                if _is_missing(column, value):
                    imputed[place, number] = True
                    continue
                try:
                    codes[place, number], numbers[place][number] = _cell(column, value, as_spelled=as_spelled)
                except SamplingError as error:
                    raise _of_row(number, fault_of(error)) from None
        return Known(
            [
                self._drawn(column, own, codes[place])
                for place, (column, own) in enumerate(zip(self._columns, numbers, strict=True))
            ],
            codes,
            imputed,
        )

    def chunks(self, known: Known, seeds: np.random.SeedSequence) -> Iterator[Columns]:
        """The rows, completed; `SamplingError` with the number of a row that the generator cannot make."""
        rng = np.random.Generator(np.random.PCG64(seeds))
        for start in range(0, known.codes.shape[1], self.rows_at_a_time):
            yield self._completed(known.part(slice(start, start + self.rows_at_a_time)), start, rng)

    def _completed(self, known: Known, start: int, rng: np.random.Generator) -> Columns:
        chances = self._chances(known)
        impossible = np.flatnonzero(~np.isfinite(chances.max(axis=1)))
        if len(impossible):
            raise _of_row(int(start + impossible[0]), Message("the generator makes no row with these values"))
        chances -= chances.max(axis=1, keepdims=True)
        cumulative = np.cumsum(np.exp(chances, out=chances), axis=1, out=chances)
        columns = self._drawn_rows(known, cumulative, rng)
        for turn in range(MOST_TURNS + 1):
            for excluded in self._exclusions.selections:
                met = met_by(excluded, columns) & (known.codes[list(excluded)] >= 0).all(axis=0)
                if met.any():
                    names = Listed(Message(" and "), [self._columns[index].name for index in excluded])
                    raise _of_row(
                        int(start + met.argmax()), Message("the schema excludes its values of %(names)s", names=names)
                    )
            again = np.flatnonzero(self._exclusions.excluded(columns))
            if not len(again):
                break
            if turn == MOST_TURNS:
                raise _of_row(
                    int(start + again[0]),
                    Message(
                        "the schema excludes all rows that were found with these values, or they break its relations"
                    ),
                )
            anew = self._drawn_rows(known.part(again), cumulative[again], rng)
            for column, own in zip(columns, anew, strict=True):
                column[again] = own
        return columns

    def _chances(self, known: Known) -> Array:
        """(rows, components) log of the share of each component among rows that have what is known."""
        components = self._components
        with np.errstate(divide="ignore"):
            chances = np.tile(np.log(components.shares), (known.codes.shape[1], 1))
        asked = [
            place for place in range(len(self._columns)) if ((known.codes[place] >= 0) | known.imputed[place]).any()
        ]
        for first in range(0, len(components), self._network.rows_at_a_time):
            some = slice(first, min(first + self._network.rows_at_a_time, len(components)))
            for place, own in each_log_softmax(self._network, components, some, asked):
                rows = np.flatnonzero(known.codes[place] >= 0)
                chances[rows, some] += own.T[known.codes[place, rows]]
                rows = np.flatnonzero(known.imputed[place])
                if len(rows) and self._columns[place].missing:
                    with np.errstate(divide="ignore"):
                        chances[rows, some] += np.log1p(-np.exp(own[:, -1]))
        return chances

    def _drawn_rows(self, known: Known, cumulative: Array, rng: np.random.Generator) -> Columns:
        """A draw of each row, by the cumulative chances of its components."""
        reach = rng.random(len(cumulative)) * cumulative[:, -1]
        picked = np.minimum((cumulative <= reach[:, None]).sum(axis=1), len(self._components) - 1)
        offsets = self._network.offsets
        tilt = np.zeros((len(picked), offsets[-1]), dtype=np.float32)
        for place, column in enumerate(self._columns):
            if column.missing:
                tilt[known.imputed[place], offsets[place + 1] - 1] = -np.inf
        drawn = self._network.codes(self._components.noise[picked], self._components.condition[picked], rng, tilt=tilt)
        columns = []
        for place, (codes,) in enumerate(drawn):
            own, has = self._columns[place].fill(codes, rng).copy(), known.codes[place] >= 0
            own[has] = known.columns[place][has]
            columns.append(own)
        return columns

    def _drawn(self, column: CategoryColumn | GridColumn, numbers: list[Any], codes: Array) -> Array:
        if isinstance(column, HierarchyColumn):
            return np.array(numbers)
        if isinstance(column, CategoryColumn):
            return codes.clip(min=0).astype(np.uint16)
        return column.drawn_of(np.array(numbers, dtype=np.float64 if column.type == "number" else np.int64), codes)


def _is_missing(column: CategoryColumn | GridColumn, value: Any) -> bool:
    """Whether this value stands for one to be drawn."""
    if isinstance(column, CategoryColumn):
        return value is None or (column.missing and value == column.missing_value and value not in column.values)
    return value is None or value == column.missing_value


def _cell(column: CategoryColumn | GridColumn, value: Any, *, as_spelled: bool) -> tuple[int, Any]:
    """The code of a value, and the number that it is."""
    if isinstance(column, CategoryColumn):
        written = column.code_of_written.get(value) if as_spelled and isinstance(value, str) else None
        fine = column.code_of(value) if written is None else written
    if isinstance(column, HierarchyColumn):
        return int(column.coarse_codes(np.array(fine))), fine
    if isinstance(column, CategoryColumn):
        return fine, 0
    try:
        number = column.number_of(value, as_spelled=as_spelled)
    except (TypeError, ValueError):
        raise _not_of_type(column, value) from None
    if column.type != "number" and not float(number).is_integer():
        raise _not_of_type(column, value)
    if not column.holds(number):
        raise refused(column, Message("%(value)s is outside its declared range", value=repr(value)))
    return int(column.code_of(np.ma.array([number]))[0]), number


def _not_of_type(column: GridColumn, value: Any) -> SamplingError:
    return refused(column, Message("%(value)s is not of type %(type)s", value=repr(value), type=column.type))


def _of_row(number: int, fault: str) -> SamplingError:
    """Of the row of this number, counted from 0 here and from 1 for people."""
    return SamplingError(Message("row %(number)s: %(fault)s", number=number + 1, fault=fault))


def rows_of_csv(content: bytes, most: Most | None = None) -> list[dict[str, Any]]:
    """The rows of a CSV file in UTF-8, with a header; an empty cell is one to be drawn."""
    try:
        lines = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        header = next(lines, [])
        if len(set(header)) < len(header):
            raise SamplingError(Message("the header names a column twice"))
        rows: list[dict[str, Any]] = []
        counted = _Counted(most)
        counted.cells(len(header))
        for line in lines:
            if not line:
                continue
            counted.row(len(line))
            if len(line) != len(header):
                raise SamplingError(
                    Message(
                        "row %(number)s has %(cells)s cells, the header has %(named)s",
                        number=len(rows) + 1,
                        cells=len(line),
                        named=len(header),
                    )
                )
            rows.append({name: text or None for name, text in zip(header, line, strict=True)})
    except UnicodeDecodeError:
        raise SamplingError(Message("the rows are not UTF-8 text")) from None
    except csv.Error as error:
        raise SamplingError(Message("the rows are not CSV: %(fault)s", fault=str(error))) from None
    return rows


def rows_of_jsonl(content: bytes, most: Most | None = None) -> list[dict[str, Any]]:
    """The rows of JSON lines; null is a cell to be drawn."""
    rows: list[dict[str, Any]] = []
    counted = _Counted(most)
    for line in io.BytesIO(content):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise SamplingError(Message("row %(number)s is not a JSON object in one line", number=len(rows) + 1))
        counted.row(len(row))
        rows.append(row)
    return rows
