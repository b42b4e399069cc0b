"""Which rows of a table have what its schema says no row has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from service.base.messages import Listed, Message, plural
from service.domain.field_schema import ValueRange
from service.intake.table.canonical import Problem, declared_values

if TYPE_CHECKING:
    from service.domain.field_schema import Condition, FieldSchema
    from service.domain.table_schema import Exclusion, TableSchema


class ExclusionReader:
    """Looks at a table chunk by chunk and remembers how many rows each exclusion of its schema meets."""

    def __init__(self, schema: TableSchema) -> None:
        self._exclusions = schema.exclusions
        self._masks = [excluded(schema, exclusion).alias(str(at)) for at, exclusion in enumerate(schema.exclusions)]
        self._counts = [0] * len(self._masks)

    def read(self, frame: pl.DataFrame) -> None:
        """Rows in the declared types, as `canonical.ColumnReader` makes them."""
        if self._masks:
            found = frame.select(mask.sum() for mask in self._masks).row(0)
            self._counts = [before + count for before, count in zip(self._counts, found, strict=True)]

    def problems(self) -> list[Problem]:
        """What makes the file unusable."""
        return [
            Problem(next(iter(exclusion)), count, _sentence(number, exclusion, count))
            for number, (exclusion, count) in enumerate(zip(self._exclusions, self._counts, strict=True), start=1)
            if count
        ]


def excluded(schema: TableSchema, exclusion: Exclusion) -> pl.Expr:
    """A mask without nulls of the rows that meet all conditions, in columns of the declared types."""
    fields = {field.name: field for field in schema.fields}
    return pl.all_horizontal(_meets(fields[name], condition) for name, condition in exclusion.items())


def _meets(field: FieldSchema, condition: Condition) -> pl.Expr:
    column = pl.col(field.name)
    if isinstance(condition, ValueRange):
        low, high = field.numbers_of(condition)
        # What lies outside the declared range will be moved to its end.
        return _number(column, field).clip(*field.bounds).is_between(low, high).fill_null(value=False)
    values = declared_values(field, condition)
    met = column.cast(values.dtype).is_in(values.implode()).fill_null(value=False)
    return met | column.is_null() if None in condition else met


def _number(column: pl.Expr, field: FieldSchema) -> pl.Expr:
    """As bounds are: dates in days, datetimes in seconds since 1970-01-01."""
    if field.type == "date":
        column = column.cast(pl.Int32)
    elif field.type == "datetime":
        column = column.cast(pl.Datetime("us")).cast(pl.Int64) / 1e6
    return column.cast(pl.Float64)


def _sentence(number: int, exclusion: Exclusion, count: int) -> str:
    return plural(
        "1 row meets exclusion %(exclusion)s of the schema, on %(where)s: correct the rows or the exclusion",
        "%(count)s rows meet exclusion %(exclusion)s of the schema, on %(where)s: correct the rows or the exclusion",
        count,
        count=count,
        exclusion=number,
        where=Listed(Message(" and "), map(repr, exclusion)),
    )
