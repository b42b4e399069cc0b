"""Draft a Table Schema from the owner's local file, and say in it that it comes from the data.

This runs on the owner's machine and nothing of it is uploaded. A draft is not a declaration: categories and bounds
that are read from private rows leak them, so the owner must replace them by what is publicly known (docs/privacy.md, What is visible).
"""

from __future__ import annotations

import datetime as dt
import math
from typing import TYPE_CHECKING, Any

from service.base.errors import InvalidFile
from service.domain.table_schema import MAX_CATEGORIES, SECONDS_OF
from service.intake.limits import IngestLimits
from service.intake.room import Room
from service.intake.sealed import SealedFile
from service.intake.table.cells import DAY_MICROSECONDS
from service.intake.table.reading import check_unique, propose_table

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl

    from service.intake.table.columns import Column
    from service.intake.table.reading import Table

_MARKERS = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL")
_FEW_NUMBERS = 20
_ROWS_OF_A_FRACTION = 20
"""Few numbers with digits after the point are categories only if rows share them: so many for each."""

_MOST_DECIMALS = 4
_FEW_TEXTS = 100
_LARGEST = 2**53
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

_ABOUT = (
    "DRAFT, made by reading the private data. Categories, bounds and types below were read from the rows, and so were `required` and"
    " `missingValues`: publishing under them as they are would leak them, and no privacy budget pays for that. That an upload is accepted"
    " says that every row meets its schema, so keep `required` only where the form allows no missing value. Check every field, replace"
    " what was read by what is publicly known about the column (a codebook, a form, the law of the field), and then remove this notice."
)
_ALSO_DECIMALS = " So were the decimals."
_ALSO_RESOLUTION = " So was the resolution."
_ALSO_REQUIRED = " That no cell is missing (`required`) was read from the rows."
_CHECK_ENUM = "DRAFT: these categories were read from the data. Declare the categories that are publicly known instead."
_CHECK_RANGE = (
    "DRAFT: these bounds were read from the data and rounded outwards. Declare publicly known bounds instead."
)
LEFT_OUT = "Left out"
_CHECK_TYPE = "DRAFT: the type was guessed from the data."


def draft_schema(path: Path, limits: IngestLimits | None = None) -> dict[str, Any]:
    """A schema that the file fits, for the owner to correct. `InvalidFile` if the file cannot be read as a table."""
    limits = limits or IngestLimits()
    with SealedFile.in_the_clear(path) as file, Room.of_its_own(limits.unpacked_limit(file.size)) as room:
        table, dialect = propose_table(file, limits, room)
        drafted = _drafted(table)
    return drafted if dialect is None else drafted | {"dialect": dialect.as_json()}


def _drafted(table: Table) -> dict[str, Any]:
    check_unique(table.names)
    columns = {name: _Observed(name) for name in table.names}
    rows = 0
    for chunk in table.chunks():
        found = [make() for make in chunk.columns.values()]
        rows += found[0].rows
        for column in found:
            columns[column.name].add(column)
    fields, left_out = [], {}
    for observed in columns.values():
        field = observed.field(rows)
        if isinstance(field, dict):
            fields.append(field)
        else:
            left_out[observed.name] = field
    if not fields:
        raise InvalidFile("No column of the file looks like categories, numbers or dates; write the schema by hand.")
    markers = sorted({marker for observed in columns.values() for marker in observed.markers} | {""})
    return {"description": _about(left_out), "fields": fields, "missingValues": markers}


class _Observed:
    """What one column held, in constant memory: distinct texts up to a limit, and the extent of each meaning."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.markers: set[str] = set()
        self._texts: set[str] | None = set()
        self._cells = self._missing = 0
        self._whole = self._number = self._date = self._moment = self._word = 0
        self._number_extent: tuple[float, float] | None = None
        self._decimals = 0
        self._moment_extent: tuple[int, int] | None = None
        self._resolution = "hour"
        self._has_leading_zeros = False

    def add(self, column: Column) -> None:
        cells = column.cells
        missing = cells.missing(_MARKERS)
        kept = ~missing
        self.markers.update(cells.text.filter(missing).drop_nulls().unique().to_list())
        self._cells += column.count(kept)
        self._missing += column.count(missing)
        if self._texts is not None:
            self._texts.update(cells.text.filter(kept).unique().to_list())
            if len(self._texts) > MAX_CATEGORIES:
                self._texts = None
        is_number = kept & cells.number.is_finite().fill_null(value=False)
        is_moment = kept & cells.moment.is_not_null()
        self._whole += column.count(kept & cells.whole.is_not_null())
        self._number += column.count(is_number)
        self._moment += column.count(is_moment)
        self._date += column.count(is_moment & (cells.moment % DAY_MICROSECONDS == 0).fill_null(value=False))
        self._word += column.count(kept & cells.word.is_not_null())
        number, moment = cells.number.filter(is_number), cells.moment.filter(is_moment)
        if len(number):
            self._number_extent = _widen(self._number_extent, float(number.min()), float(number.max()))  # type: ignore[arg-type]  # not empty
            texts = cells.text.filter(is_number)
            self._decimals = max(self._decimals, _decimals(texts))
            self._has_leading_zeros |= bool(texts.str.contains("^-?0[0-9]").any())
        if len(moment):
            self._moment_extent = _widen(self._moment_extent, int(moment.min()), int(moment.max()))  # type: ignore[arg-type]  # not empty
            for resolution in ("hour", "minute"):
                if self._resolution == resolution and (moment % (SECONDS_OF[resolution] * 1_000_000) != 0).any():
                    self._resolution = "minute" if resolution == "hour" else "second"

    def field(self, rows: int) -> dict[str, Any] | str:
        """The drafted field, or why no closed domain can be guessed."""
        if not self.name:
            return "it has no name, as row numbers have where R and pandas wrote the file"
        kind, constraints, about = self._domain(rows)
        if kind is None:
            return about
        if self._missing == 0:
            constraints["required"] = True
        field: dict[str, Any] = {"name": self.name, "type": kind, "description": about, "constraints": constraints}
        if kind == "number" and "enum" not in constraints and self._decimals <= _MOST_DECIMALS:
            field |= {"description": about + _ALSO_DECIMALS, "decimals": self._decimals}
        if kind == "datetime" and self._resolution != "second":
            field |= {"description": about + _ALSO_RESOLUTION, "resolution": self._resolution}
        if "required" in constraints:
            field["description"] += _ALSO_REQUIRED
        return field

    def _domain(self, rows: int) -> tuple[str | None, dict[str, Any], str]:
        """Type, constraints and a description; without a type, the reason."""
        if self._cells == 0:
            return None, {}, "it is empty"
        if self._word == self._cells:
            return "boolean", {}, _CHECK_TYPE
        if self._number == self._cells and self._number_extent is not None:
            looks_like = self._identifier(*self._number_extent, rows)
            return (None, {}, looks_like) if looks_like else self._numeric_domain(*self._number_extent, rows)
        if self._moment == self._cells and self._moment_extent is not None:
            return self._moment_domain(*self._moment_extent)
        mostly = self._mostly()
        if self._texts is None or len(self._texts) > max(_FEW_TEXTS, rows // 2):
            return None, {}, mostly or "it looks like names, identifiers or free text"
        return (
            "string",
            {"enum": sorted(self._texts)},
            f"{_CHECK_ENUM} {mostly[:1].upper()}{mostly[1:]}.".removesuffix(" ."),
        )

    def _identifier(self, low: float, high: float, rows: int) -> str:
        """What says that these numbers are names of rows or people."""
        if self._has_leading_zeros:
            return "its numbers have leading zeros, as identifiers have"
        is_numbered = rows > _FEW_TEXTS and self._whole == rows == high - low + 1
        if is_numbered and (self._texts is None or len(self._texts) == rows):
            return "it numbers the rows"
        return ""

    def _mostly(self) -> str:
        """Where a few cells alone keep a column from being numbers or dates: they may be mistakes, or mean that nothing is known."""
        for some, what in ((self._number, "finite numbers"), (self._moment, "dates")):
            if self._cells <= 2 * some:
                return f"{some} of its {self._cells} cells are {what}, so look at the others"
        return ""

    def _numeric_domain(self, low: float, high: float, rows: int) -> tuple[str | None, dict[str, Any], str]:
        kind = "integer" if self._whole == self._cells else "number"
        convert = int if kind == "integer" else float
        if self._texts is not None:
            values = sorted({convert(float(text)) for text in self._texts})
            are_shared = kind == "integer" or rows >= _ROWS_OF_A_FRACTION * len(values)
            if len(values) == 1 or (are_shared and len(values) <= _FEW_NUMBERS):
                return kind, {"enum": values}, _CHECK_ENUM
        low, high = _round_outwards(low, high)
        if max(-low, high) > _LARGEST:
            return None, {}, "its numbers are beyond 2^53"
        return kind, {"minimum": convert(low), "maximum": convert(high)}, _CHECK_RANGE

    def _moment_domain(self, low: int, high: int) -> tuple[str | None, dict[str, Any], str]:
        """Whole years: from the first day of the first to the last day of the last."""
        first = (_EPOCH + dt.timedelta(microseconds=low)).year
        last = (_EPOCH + dt.timedelta(microseconds=high)).year
        if self._date == self._cells:
            return "date", {"minimum": f"{first:04}-01-01", "maximum": f"{last:04}-12-31"}, _CHECK_RANGE
        bounds = {"minimum": f"{first:04}-01-01T00:00:00", "maximum": f"{last:04}-12-31T23:59:59"}
        return "datetime", bounds, _CHECK_RANGE


def _about(left_out: dict[str, str]) -> str:
    if not left_out:
        return _ABOUT
    columns = "; ".join(f"{name!r} ({why})" for name, why in left_out.items())
    return f"{_ABOUT} {LEFT_OUT}: {columns}. Remove these columns from the file, declare them by hand, or name one of them as the privacy unit."


def _widen(extent: tuple[Any, Any] | None, low: Any, high: Any) -> tuple[Any, Any]:
    return (low, high) if extent is None else (min(extent[0], low), max(extent[1], high))


def _decimals(numbers: pl.Series) -> int:
    """The most digits after the point, as they are written; those with an exponent have too many to declare."""
    most = int(numbers.str.extract(r"\.([0-9]*)$").str.len_bytes().max() or 0)  # type: ignore[arg-type]  # lengths
    return _MOST_DECIMALS + 1 if numbers.str.contains("[eE]").any() else most


def _round_outwards(low: float, high: float) -> tuple[float, float]:
    """Bounds on multiples of the power of ten below their distance, so that they are not one person's value."""
    exponent = math.floor(math.log10(max(high - low, 1e-9)))
    lowest, highest = math.floor(low / 10.0**exponent), math.ceil(high / 10.0**exponent)
    # Built from decimal text so that 3 tenths is 0.3.
    return float(f"{lowest}e{exponent}"), float(f"{highest}e{exponent}")
