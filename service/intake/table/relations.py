"""Which rows break a relation of the schema, and the modelled columns of those that are read.

The frame holds what `canonical.ColumnReader` makes of the columns that are looked at: of a hierarchy the fine level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from service.base.messages import Listed, Message, plural
from service.domain.arithmetic import Tree, columns_of, comparison, value_of
from service.domain.roles import fine_shares
from service.intake.table.canonical import DeclaredCells, Problem, declared_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from service.domain.field_schema import FieldSchema
    from service.domain.relations import Combinations
    from service.domain.table_schema import TableSchema
    from service.domain.understood import Derived
    from service.intake.table.columns import Column
    from service.intake.table.fingerprint import Blocks

_ENTRY = "__entry__"
_FOLLOWS = "__follows__"


class RelationReader:
    """Looks at a table chunk by chunk and remembers how many rows break each relation."""

    def __init__(self, schema: TableSchema) -> None:
        relations = schema.understood
        fields = {field.name: field for field in relations.read()}
        self._masks: list[tuple[int, str, tuple[str, ...], pl.Expr]] = []
        self._tables: list[tuple[int, str, tuple[str, ...], _Table]] = []
        for one in relations.inequalities:
            self._add(one.number, "breaks", tuple(columns_of(one.tree)), _breaks(one.tree, fields))
        for derived in relations.derived:
            names = (derived.column, *derived.by)
            if derived.tree is None:
                table = _Table(derived.by, [entry[:-1] for entry in derived.entries], fields)
                table.follows(fields[derived.column], [entry[-1] for entry in derived.entries])
                self._tables.append((derived.number, "does not follow", names, table))
            else:
                self._add(derived.number, "does not follow", names, _differs(derived, fields))
        for number, combination in relations.combinations:
            self._tables.append((number, "is not allowed by", combination.columns, _allowed(combination, fields)))
        self._counts = [0] * (len(self._masks) + len(self._tables))

    def _add(self, number: int, what: str, names: tuple[str, ...], mask: pl.Expr) -> None:
        self._masks.append((number, what, names, mask.fill_null(value=False).sum().cast(pl.Int64)))

    def read(self, frame: pl.DataFrame) -> None:
        """Rows in the declared types."""
        found = (
            list(frame.select(mask.alias(str(at)) for at, (*_, mask) in enumerate(self._masks)).row(0))
            if self._masks
            else []
        )
        found += [table.broken(frame) for *_, table in self._tables]
        self._counts = [before + count for before, count in zip(self._counts, found, strict=True)]

    def problems(self) -> Iterator[Problem]:
        """What makes the file unusable."""
        for (number, _what, names, _), count in zip([*self._masks, *self._tables], self._counts, strict=True):
            if count:
                rows = plural("1 row breaks", "%(count)s rows break", count, count=count)
                where = Listed(Message(" and "), map(repr, names))
                yield Problem(
                    names[0],
                    count,
                    Message(
                        "%(rows)s relation %(number)s of the schema, on %(where)s: correct the rows or the relation",
                        rows=rows,
                        number=number,
                        where=where,
                    ),
                )


class UniqueReader:
    """Remembers a keyed 64-bit digest of each row's declared key, and says how many rows repeat one.

    Two different keys share a digest with probability 2^-64: among 10 million rows some do with probability 3 in a million.
    """

    def __init__(self, schema: TableSchema) -> None:
        self._unique = schema.understood.unique
        self.names = {name for _, one in self._unique for name in one.unique}
        self._parts: list[list[np.ndarray[tuple[int], np.dtype[np.uint64]]]] = [[] for _ in self._unique]

    def read(self, columns: Mapping[str, tuple[Blocks, np.ndarray[tuple[int], np.dtype[np.bool_]]]]) -> None:
        """Take in one chunk: each column's blocks (`fingerprint.py`), and which rows have no value."""
        for parts, (_, one) in zip(self._parts, self._unique, strict=True):
            together = np.bitwise_xor.reduce([columns[name][0][:, 0] for name in one.unique])
            missing = np.logical_or.reduce([columns[name][1] for name in one.unique])
            parts.append(together[~missing])

    def problems(self) -> Iterator[Problem]:
        """What makes the file unusable."""
        for parts, (number, one) in zip(self._parts, self._unique, strict=True):
            rows = sum(map(len, parts))
            repeated = rows - len(np.unique(np.concatenate(parts))) if parts else 0
            if repeated:
                have = plural("1 row repeats", "%(count)s rows repeat", repeated, count=repeated)
                where = Listed(Message(" and "), map(repr, one.unique))
                yield Problem(
                    one.unique[0],
                    repeated,
                    Message(
                        "%(have)s what relation %(number)s of the schema says is unique, on %(where)s",
                        have=have,
                        number=number,
                        where=where,
                    ),
                )


def missing_rows(column: Column, missing_values: tuple[str, ...]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Which rows have no value."""
    missing = column.cells.missing(missing_values) | column.cells.usually_missing
    return column.spread(missing).to_numpy()


class Modelled:
    """From columns that are read to those that are stored."""

    def __init__(self, schema: TableSchema) -> None:
        self._is_all = schema.modelled is schema
        self._names = schema.modelled.names
        self._levels = {field.name: _levels(field) for field in schema.fields if field.hierarchy is not None}

    def meant(self, name: str, cells: DeclaredCells) -> DeclaredCells:
        """Cells of a column as the model has them."""
        if name not in self._levels:
            return cells
        coarse = self._levels[name][cells.values.to_physical()]
        return DeclaredCells(coarse, pl.Series([True]).new_from_index(0, len(coarse)), coarse)

    def of(self, frame: pl.DataFrame) -> pl.DataFrame:
        """What is stored of rows."""
        if self._is_all:
            return frame
        columns = [
            self._levels[name][frame[name].to_physical()].alias(name) if name in self._levels else frame[name]
            for name in self._names
        ]
        return pl.DataFrame(columns)


def _levels(field: FieldSchema) -> pl.Series:
    """The coarse category of each fine one, by its code."""
    shares = fine_shares(field.hierarchy or {})
    coarse = [name for name, fine in shares.items() for _ in fine]
    return pl.Series(coarse, dtype=pl.Enum(list(shares)))


class _Table:
    """Combinations of categories that may stand in some columns, and what may follow from each."""

    def __init__(
        self, names: tuple[str, ...], entries: list[tuple[object, ...]], fields: Mapping[str, FieldSchema]
    ) -> None:
        self._names = names
        self._dtypes = {name: declared_values(fields[name], ()).dtype for name in names}
        self._entries = pl.DataFrame(
            {name: _series(fields[name], [entry[at] for entry in entries]) for at, name in enumerate(names)}
        ).with_columns(pl.lit(value=True).alias(_ENTRY))
        self._lists_missing = any(None in entry for entry in entries)
        self._column: str | None = None

    def follows(self, field: FieldSchema, values: list[object]) -> None:
        """Then the column of this field has these values."""
        self._column = field.name
        self._dtypes[field.name] = declared_values(field, ()).dtype
        self._entries = self._entries.with_columns(_series(field, values).alias(_FOLLOWS))

    def broken(self, frame: pl.DataFrame) -> int:
        """How many rows are not among them, or have another value. A missing value says nothing, unless combinations list it."""
        rows = frame.select(pl.col(name).cast(dtype) for name, dtype in self._dtypes.items())
        rows = rows.join(self._entries, on=list(self._names), how="left", nulls_equal=True)
        if self._column is None:
            mask = pl.col(_ENTRY).is_null()
            if not self._lists_missing:
                mask &= pl.all_horizontal(pl.col(name).is_not_null() for name in self._names)
        else:
            known = pl.all_horizontal(pl.col(name).is_not_null() for name in (*self._names, self._column))
            mask = known & pl.col(self._column).ne_missing(pl.col(_FOLLOWS))
        return int(rows.select(mask.sum()).item())


def _allowed(combination: Combinations, fields: Mapping[str, FieldSchema]) -> _Table:
    return _Table(combination.columns, list(combination.allowed), fields)


def _series(field: FieldSchema, values: list[object]) -> pl.Series:
    dtype = declared_values(field, ()).dtype
    texts = values if field.type != "string" else [None if value is None else str(value) for value in values]
    return pl.Series(texts, dtype=dtype, strict=False)


def _breaks(tree: Tree, fields: Mapping[str, FieldSchema]) -> pl.Expr:
    met: pl.Expr = comparison(tree, lambda name, digits: _numbers(fields[name], digits))
    return ~met


def _differs(derived: Derived, fields: Mapping[str, FieldSchema]) -> pl.Expr:
    """Which rows have another value than the expression's, rounded up or down."""
    own = _numbers(fields[derived.column], derived.digits)
    numerator, denominator = value_of(derived.tree or [], lambda name, digits: _numbers(fields[name], digits))
    difference: pl.Expr = own * denominator - numerator * 10**derived.digits
    is_exact = isinstance(denominator, int) and 10**derived.digits % denominator == 0
    differs: pl.Expr = difference != 0 if is_exact else difference.abs() * 2 > denominator
    return differs


def _numbers(field: FieldSchema, digits: int | None) -> pl.Expr:
    """As whole numbers of the last of so many digits, inside the declared range; days, and of a datetime whole seconds."""
    column = pl.col(field.name)
    if field.type == "date":
        column = column.cast(pl.Int32).cast(pl.Int64)
    elif field.type == "datetime":
        column = column.cast(pl.Datetime("us")).cast(pl.Int64) // 1_000_000
    if not field.is_categorical:
        column = column.clip(*field.bounds)
    if digits is None:
        return column.cast(pl.Float64)
    number: pl.Expr = column.cast(pl.Int64) * 10**digits
    return (column * 10.0**digits).round(0).cast(pl.Int64) if field.type == "number" else number
