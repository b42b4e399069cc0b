"""Cells to the declared type, counting what does not fit. Nothing is taken from the data but counts for the owner."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from service.base.errors import InvalidFile
from service.base.messages import Listed, Message, Text, plural
from service.domain.field_schema import SECONDS_OF
from service.intake.table import notices_of_cells
from service.intake.table.cells import DAY_MICROSECONDS, Cells
from service.intake.table.first_rows import FirstRows
from service.intake.table.spelled import in_spelling_of, spelling_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from service.domain.field_schema import FieldSchema, Scalar
    from service.intake.table.columns import Column

DTYPES: dict[str, pl.DataType] = {
    "integer": pl.Int64(),
    "number": pl.Float64(),
    "boolean": pl.Boolean(),
    "date": pl.Date(),
    "datetime": pl.Datetime("us"),
}
_SPELLED = {
    "integer": Message(", spelled like 42"),
    "number": Message(", spelled like 12.5"),
    "boolean": Message(", spelled true or false"),
    "date": Message(", spelled like 2024-02-29"),
    "datetime": Message(", spelled like 2024-02-29T12:30:00"),
    "string": Message(", text"),
}
_PROBLEMS_SHOWN = 20


def declared_values(field: FieldSchema, values: Iterable[Scalar | None]) -> pl.Series:
    """Some declared values as a column of the field holds them (categories as text), less a missing one."""
    known = [value for value in values if value is not None]
    return pl.Series(known, dtype=DTYPES.get(field.type, pl.String()), strict=False)


class DeclaredCells(NamedTuple):
    """The distinct cells of a chunk's column as the declaration makes them."""

    values: pl.Series
    """In the declared type; null for missing and for what was counted as unusable."""
    altered: pl.Series
    """Mask of the cells that mean something else than they say: declared missing, undeclared, or out of range."""
    meant: pl.Series
    """What the altered cells mean: null, or the end of the declared range."""
    is_spelled: bool = False
    """Whether the declaration says how the column's text is to be read, so that another file may spell its values otherwise."""


class ColumnReader:
    """Turns one declared column, chunk by chunk, into its type, and remembers how many cells did not fit."""

    def __init__(self, field: FieldSchema, missing_values: Sequence[str]) -> None:
        self.field = field
        self._missing_values = tuple(missing_values)
        self._low, self._high = _range(field)
        self._spellings = _spellings(field)
        self._is_open_text = field.type == "string" and field.infer is not None
        self._dtype = DTYPES.get(field.type) or _text_type(field)
        self.missing = 0
        self.marked = 0
        self.leading_zeros = 0
        self.wrong_type = 0
        self.not_finite = 0
        self.undeclared = 0
        self.run_on = 0
        self.out_of_range = 0
        self.between_steps = 0
        self._rows = FirstRows()

    @property
    def _spelled(self) -> str:
        zone = self.field.timezone
        said = [spelling_of(self.field) or _SPELLED[self.field.type]]
        if zone not in {None, "UTC"}:
            said.append(Message(", or lie in an hour that clocks skip in %(zone)s", zone=zone))
        return Listed("", said)

    def read(self, column: Column) -> pl.Series:
        """The chunk's rows in the declared type; null for missing and for what was counted as unusable.

        Text becomes an Enum of the declared categories; it stays text where these are to be bought, and nothing is counted but line ends.
        """
        return self.spread(column, self.read_cells(column))

    def spread(self, column: Column, cells: DeclaredCells) -> pl.Series:
        """Values of cells to values of rows."""
        return column.spread(cells.values).alias(self.field.name)

    def read_cells(self, column: Column) -> DeclaredCells:
        """The chunk's cells, counted by the rows that hold them."""
        cells = in_spelling_of(column.cells, self.field)
        absent = cells.missing(self._missing_values)
        self.missing += column.count(absent)
        if absent.any():
            self.marked += column.count(absent & ~cells.empty_or(("",)))
        if self.field.constraints.required:
            self._rows.note("missing", column, absent)
        values, usable = self._meaning(cells, absent)
        refused = ~usable & ~absent
        if refused.any():
            not_finite = self._not_finite(column, cells, refused)
            self.not_finite += not_finite
            self.wrong_type += column.count(refused) - not_finite
            self._rows.note("refused", column, refused)
        values = _null_where(values, absent | refused)
        if self.field.type == "datetime":
            self.between_steps += column.count(_between(values, cells.nanoseconds, self.field.step))
        if self.field.constraints.enum is not None:
            values = self._declared_only(column, values, absent | refused)
        elif self._is_open_text:
            values = self._without_spaces(column, values)
        altered = values.is_null() & ~cells.usually_missing
        is_spelled = cells is not column.cells
        if is_spelled:  # another file may spell the same values otherwise
            altered |= values.is_not_null()
        if self.field.type in {"integer", "number"}:
            self.leading_zeros += column.count(cells.leading_zeros & ~absent)
        if self._low is not None and self._high is not None:
            outside = ((values < self._low) | (values > self._high)).fill_null(value=False)
            self.out_of_range += column.count(outside)
            altered |= outside
            meant = values.filter(altered).clip(self._low, self._high)
        else:
            meant = values.filter(altered)
        self._rows.go_on(column)
        return DeclaredCells(values.cast(self._dtype), altered, meant.cast(self._dtype), is_spelled)

    def problems(self) -> list[Problem]:
        """What makes the file unusable."""
        name, required, rows = self.field.name, self.field.constraints.required, self._rows.said
        found = [
            Problem(name, self.wrong_type, self._of_wrong_type(rows("refused"))),
            Problem(
                name,
                self.not_finite,
                plural(
                    "1 cell is NaN or infinite; leave a missing value empty%(rows)s",
                    "%(count)s cells are NaN or infinite; leave a missing value empty%(rows)s",
                    self.not_finite,
                    count=self.not_finite,
                    rows=rows("refused"),
                ),
            ),
        ]
        if self.run_on:
            found.append(run_on(name, self.run_on, rows("undeclared")))
        if required:
            found += [
                Problem(
                    name,
                    self.missing,
                    plural(
                        "1 cell is missing, but the column is required%(rows)s",
                        "%(count)s cells are missing, but the column is required%(rows)s",
                        self.missing,
                        count=self.missing,
                        rows=rows("missing"),
                    ),
                ),
                Problem(
                    name,
                    self.undeclared,
                    plural(
                        "1 cell is not among the enum's values, and the column is required%(rows)s",
                        "%(count)s cells are not among the enum's values, and the column is required%(rows)s",
                        self.undeclared,
                        count=self.undeclared,
                        rows=rows("undeclared"),
                    ),
                ),
            ]
        return [problem for problem in found if problem.count]

    def _of_wrong_type(self, rows: str) -> str:
        return plural(
            "1 cell is not of type %(type)s%(spelled)s%(rows)s",
            "%(count)s cells are not of type %(type)s%(spelled)s%(rows)s",
            self.wrong_type,
            count=self.wrong_type,
            type=Text(self.field.type),
            spelled=self._spelled,
            rows=rows,
        )

    def notices(self) -> list[str]:
        """What the owner should know and no other person may."""
        field = self.field
        undeclared = 0 if field.constraints.required else self.undeclared
        counted: list[tuple[int, Callable[[str, int], str]]] = [
            (self.marked, notices_of_cells.marked),
            (self.leading_zeros, notices_of_cells.leading_zeros),
            (self.out_of_range, partial(notices_of_cells.clamped, is_declared=field.infer is None)),
            (self.between_steps, partial(notices_of_cells.between_steps, unit=_unit_of(field))),
            (undeclared, notices_of_cells.undeclared),
        ]
        return [said(repr(field.name), count) for count, said in counted if count]

    def _meaning(self, cells: Cells, absent: pl.Series) -> tuple[pl.Series, pl.Series]:
        """Values in the field's physical form (dates: days, datetimes: microseconds), and which cells have one."""
        kind = self.field.type
        if kind == "string":
            return cells.raw, ~absent  # undeclared text is counted later
        if kind == "integer":
            return cells.exact, cells.exact.is_not_null()
        if kind == "number":
            return cells.number, cells.number.is_finite().fill_null(value=False)
        if kind == "boolean":
            return cells.boolean, cells.boolean.is_not_null()
        moment = cells.moment
        if kind == "datetime":
            return moment, moment.is_not_null()
        return moment // DAY_MICROSECONDS, (moment % DAY_MICROSECONDS == 0).fill_null(value=False)

    def _not_finite(self, column: Column, cells: Cells, refused: pl.Series) -> int:
        if self.field.type not in {"integer", "number"}:
            return 0
        number = cells.number
        return column.count(refused & ~number.is_finite().fill_null(value=True))

    def _without_spaces(self, column: Column, values: pl.Series) -> pl.Series:
        """Text whose categories are still to be bought."""
        broken = holding_line_ends(values)
        self.run_on += column.count(broken)
        self._rows.note("undeclared", column, broken)
        return values.str.strip_chars(" \t")

    def _declared_only(self, column: Column, values: pl.Series, absent: pl.Series) -> pl.Series:
        if self.field.type == "string":
            declared = values.replace_strict(self._spellings, default=None, return_dtype=pl.String)
            if declared.null_count() > int(absent.sum()):
                stripped = values.str.strip_chars(" \t")
                declared = declared.fill_null(
                    stripped.replace_strict(self._spellings, default=None, return_dtype=pl.String)
                )
        else:
            known = values.is_in(list(self._spellings.values())).fill_null(value=True)
            declared = _null_where(values, ~known)
        undeclared = declared.is_null() & ~absent
        self.undeclared += column.count(undeclared)
        self._rows.note("undeclared", column, undeclared)
        if self.field.type == "string":
            self.run_on += column.count(undeclared & holding_line_ends(values))
        return declared


def holding_line_ends(text: pl.Series) -> pl.Series:
    """Mask of cells with a line end. An unclosed quote swallows rows into one such cell; they must not vanish unseen."""
    return text.str.contains(r"[\r\n]").fill_null(value=False)


@dataclass(frozen=True, slots=True)
class Problem:
    """A reason to refuse the file, in counts only."""

    column: str
    count: int
    what: str


def run_on(column: str, count: int, rows: str = "") -> Problem:
    """The problem of cells that hold a line end."""
    what = plural(
        "1 cell is longer than a line: a quoted field may not be closed%(rows)s",
        "%(count)s cells are longer than a line: a quoted field may not be closed%(rows)s",
        count,
        count=count,
        rows=rows,
    )
    return Problem(column, count, what)


def refuse(problems: Sequence[Problem]) -> None:
    """Raise `InvalidFile` for the first problem, listing the others."""
    if not problems:
        return
    first, others = problems[0], len(problems) - 1
    raise InvalidFile(
        Message(
            "Column %(column)s: %(what)s.%(others)s",
            column=repr(first.column),
            what=first.what,
            others=Message(" %(count)s more problems.", count=others) if others else "",
        ),
        column=first.column,
        count=first.count,
        problems=[
            {"column": problem.column, "count": problem.count, "what": problem.what}
            for problem in problems[:_PROBLEMS_SHOWN]
        ],
    )


def _spellings(field: FieldSchema) -> dict[str, str] | dict[str, float] | dict[str, int]:
    """Text (exact, and without surrounding spaces) to declared value; for numbers only the values matter."""
    enum = field.constraints.enum or ()
    if field.type == "string":
        texts = [str(value) for value in enum]
        return {text.strip(" \t"): text for text in texts} | {text: text for text in texts}
    convert = int if field.type == "integer" else float
    return {str(value): convert(value) for value in enum}


def _between(moments: pl.Series, nanoseconds: pl.Series, step: int) -> pl.Series:
    """Mask of the moments between two that synthetic rows have."""
    return ((moments % (step * 1_000_000) != 0) | (nanoseconds != 0)).fill_null(value=False)


def _unit_of(field: FieldSchema) -> str:
    return next(unit for unit, seconds in SECONDS_OF.items() if seconds == field.step)


def _text_type(field: FieldSchema) -> pl.DataType:
    return pl.String() if field.infer is not None else pl.Enum([str(value) for value in field.categories or ()])


def _range(field: FieldSchema) -> tuple[float | None, float | None]:
    if field.is_categorical:
        return None, None
    low, high = field.bounds
    if field.type == "datetime":
        return low * 1_000_000, high * 1_000_000
    return low, high


def _null_where(values: pl.Series, mask: pl.Series) -> pl.Series:
    if not mask.any():
        return values
    return values.to_frame("v").select(pl.when(~mask.alias("m")).then(pl.col("v"))).to_series()
