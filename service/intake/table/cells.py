"""What the text of a cell means: a whole number, a number, a moment, or only text. One grammar for every column.

The meaning does not depend on the declared schema; the schema then says which meaning is wanted (`canonical.py`), and
the fingerprint takes whichever there is (`fingerprint.py`). Columns that a Parquet file already holds as numbers or
moments mean what their text would mean, without being written out and read again.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Collection

DAY_MICROSECONDS = 86_400_000_000
EXACT = 2**53
"""Whole numbers up to it, and their negatives, are exact as floats."""
USUALLY_MISSING = frozenset({"", "?", "na", "n/a", "nan", "null"})
"""Spellings (any case) of a missing value that are one for the fingerprint, whatever the schema declares. May never change."""
MARKERS = ("", "?", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None", "-", "NaT", "<NA>")
"""What a draft takes for a missing value, whatever else is in the column."""
MARKERS_IN_WORDS = (
    *("k.A.", "k.a.", "K.A.", "k. A.", "k. a.", "K. A.", "k.A", "n.v.", "n. v.", "n.a.", "N.A.", "n. a."),
    *("keine Angabe", "Keine Angabe", "keine Angaben", "Keine Angaben", "ohne Angabe", "Ohne Angabe"),
    *("nicht verfügbar", "Nicht verfügbar", "nicht zutreffend", "Nicht zutreffend", "entfällt", "Entfällt"),
    *("n.d.", "N.D.", "n/d", "N/D", "s/d", "S/D"),
    *("non renseigné", "Non renseigné", "non disponible", "Non disponible", "sans objet", "Sans objet"),
    *("sin dato", "Sin dato", "sin datos", "Sin datos", "no consta", "No consta", "no disponible", "No disponible"),
)
"""German, French and Spanish for "not stated", "not available" and "does not apply". What may be an answer (`unbekannt`, `keine`) is none."""
MARKERS_OF_DRAFTS = (*MARKERS, ".", "..", ":", *MARKERS_IN_WORDS)
"""Also those of Stata and SAS, of the World Bank and of Eurostat."""
MARKERS_ANY_CASE = USUALLY_MISSING | {marker.lower() for marker in MARKERS}
"""Of a first line, of the cells below it, and of ids: what says nothing, however it is spelled."""

_TICKS = {"day": Fraction(DAY_MICROSECONDS), "ms": Fraction(1_000), "us": Fraction(1), "ns": Fraction(1, 1_000)}
_FOUR_DIGIT_YEARS = (-62_135_596_800_000_000, 253_402_300_799_999_999)
"""Microseconds of the years 1 to 9999, first and last."""

_MOMENT = (
    r"^([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?"
    r"(?:(Z)|([+-])([0-9]{2}):?([0-9]{2}))?)?$"
)


class Cells:
    """Cells of one column, as text. Surrounding spaces are not part of a value."""

    def __init__(self, raw: pl.Series, *, was_text: bool = True) -> None:
        self._raw = raw
        self.was_text = was_text
        """Whether the file holds text here, so that a declared spelling applies."""

    @cached_property
    def raw(self) -> pl.Series:
        """The text as it came; null where there is no value."""
        return self._raw.cast(pl.String)

    @cached_property
    def text(self) -> pl.Series:
        return self.raw.str.strip_chars(" \t")

    def head(self, count: int) -> Cells:
        """The first of them."""
        return type(self)(self._raw.head(count))

    def missing(self, markers: Collection[str]) -> pl.Series:
        """Boolean mask of the cells without a value. A marker that is a number, like -999, means any spelling of it."""
        absent = self._raw.is_null()
        for marker in {marker.strip(" \t") for marker in markers}:
            absent = absent | self._spelled(marker)
            number = _finite(marker)
            if number is not None:
                absent = absent | self._is_number(marker, number)
        return absent

    def _is_number(self, marker: str, number: float) -> pl.Series:
        """Mask of the cells that mean this number; whole ones are compared as such, for floats are alike beyond 2^53."""
        if abs(number) <= EXACT:
            return (self.number == number).fill_null(value=False)
        whole = pl.Series([marker]).cast(pl.Int64, strict=False)[0]
        return ((self.number == number) if whole is None else (self.exact == whole)).fill_null(value=False)

    @property
    def usually_missing(self) -> pl.Series:
        """Boolean mask of the cells that everybody would call missing."""
        return self.empty_or(USUALLY_MISSING)

    def empty_or(self, words: Collection[str]) -> pl.Series:
        """Boolean mask of the cells that are null or one of these words (lower case here), in any case."""
        return self.text.str.to_lowercase().is_in(list(words)).fill_null(value=True)

    @cached_property
    def number(self) -> pl.Series:
        """Float64; null where the text is not a number. May hold NaN and infinities."""
        return self.text.cast(pl.Float64, strict=False)

    @cached_property
    def whole(self) -> pl.Series:
        """Int64; null where the text is not a whole number of 64 bits. 3, 3.0, 3e0 and +3 are the same."""
        plain = self.text.cast(pl.Int64, strict=False)
        if plain.null_count() == self.text.null_count():
            return plain
        return plain.fill_null(_whole(self.number))

    @cached_property
    def exact(self) -> pl.Series:
        """Int64, as `whole`, but null for what has passed through a float beyond 2^53, where one float stands for several numbers."""
        plain = self.text.cast(pl.Int64, strict=False)
        if plain.null_count() == self.text.null_count():
            return plain
        digits = self.text.str.extract(r"^\+?(-?[0-9]+)(?:\.0*)?$").cast(pl.Int64, strict=False)
        return plain.fill_null(digits).fill_null(_whole(values_where(self.number.abs() <= EXACT, self.number)))

    @property
    def leading_zeros(self) -> pl.Series:
        """Boolean mask of the cells with a zero before other digits, as codes have; a number would lose it."""
        if not self.was_text:
            return _nothing(self._raw, pl.Boolean()).fill_null(value=False)
        return self.text.str.contains(r"^[+-]?0[0-9]").fill_null(value=False)

    @cached_property
    def moment(self) -> pl.Series:
        """Int64 microseconds since 1970-01-01 UTC; null where the text is not an ISO 8601 date or datetime."""
        looks = self.text.str.contains(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ]|$)").fill_null(value=False)
        if not looks.any():
            return _nothing(self.text, pl.Int64())
        return _moments(values_where(looks, self.text))

    @cached_property
    def nanoseconds(self) -> pl.Series:
        """Int64; of a moment, what its whole microseconds leave out. 0 for every other cell."""
        digits = self.text.str.extract(r"\.[0-9]{6}([0-9]{1,3})")
        return digits.str.pad_end(3, "0").cast(pl.Int64, strict=False).fill_null(0)

    @cached_property
    def boolean(self) -> pl.Series:
        """Boolean; true/false in any case, or 1/0."""
        named = self.word
        if named.null_count() == 0:
            return named
        whole = self.whole
        return named.fill_null(values_where(whole.is_between(0, 1), whole).cast(pl.Boolean))

    @cached_property
    def word(self) -> pl.Series:
        """Boolean; true/false in any case, and nothing else."""
        words = {"true": True, "false": False}
        return self.text.str.to_lowercase().replace_strict(words, default=None, return_dtype=pl.Boolean)

    def _spelled(self, marker: str) -> pl.Series:
        return (self.text == marker).fill_null(value=False)


class _TypedCells(Cells):
    """Cells that are not text. Their text is made only where a column of text is wanted."""

    def __init__(self, raw: pl.Series) -> None:
        super().__init__(raw, was_text=False)

    def empty_or(self, words: Collection[str]) -> pl.Series:  # noqa: ARG002 - no number and no moment is a word
        return self._raw.is_null()

    @cached_property
    def word(self) -> pl.Series:
        return _nothing(self._raw, pl.Boolean())

    @cached_property
    def moment(self) -> pl.Series:
        return _nothing(self._raw, pl.Int64())

    def _spelled(self, marker: str) -> pl.Series:  # noqa: ARG002 - a marker that is a number is compared as one
        return _nothing(self._raw, pl.Boolean()).fill_null(value=False)


class WholeCells(_TypedCells):
    """Integers of at most 64 bits with sign."""

    @cached_property
    def number(self) -> pl.Series:
        return self._raw.cast(pl.Float64)

    @cached_property
    def whole(self) -> pl.Series:
        return self._raw.cast(pl.Int64)

    @cached_property
    def exact(self) -> pl.Series:
        return self.whole


class NumberCells(_TypedCells):
    """Float64, all finite: others have words for a text, and markers may be among them."""

    @cached_property
    def number(self) -> pl.Series:
        return self._raw

    @cached_property
    def whole(self) -> pl.Series:
        return _whole(self._raw)

    @cached_property
    def exact(self) -> pl.Series:
        return _whole(values_where(self._raw.abs() <= EXACT, self._raw))


class MomentCells(_TypedCells):
    """Dates and datetimes without a zone. Years of other than four digits are no moment: ISO 8601 cannot spell them."""

    def __init__(self, raw: pl.Series) -> None:
        super().__init__(raw)
        tick = _TICKS[str(getattr(raw.dtype, "time_unit", "day"))]  # in microseconds
        first, last = (min(max(int(moment / tick), -(2**63)), 2**63 - 1) for moment in _FOUR_DIGIT_YEARS)
        self._ticks = raw.cast(pl.Int64)
        self._fits = self._ticks.is_between(first, last).fill_null(value=False)
        fitting = values_where(self._fits, self._ticks)  # before they are scaled, which could overflow
        self._moment = fitting * tick.numerator // tick.denominator
        self._nanoseconds = (fitting % tick.denominator).fill_null(0)

    @cached_property
    def raw(self) -> pl.Series:
        return values_where(self._fits, self._raw).cast(pl.String).fill_null(self._ticks.cast(pl.String))

    @cached_property
    def number(self) -> pl.Series:
        return _nothing(self._raw, pl.Float64())

    @cached_property
    def whole(self) -> pl.Series:
        return _nothing(self._raw, pl.Int64())

    @cached_property
    def exact(self) -> pl.Series:
        return self.whole

    @cached_property
    def moment(self) -> pl.Series:
        return self._moment

    @cached_property
    def nanoseconds(self) -> pl.Series:
        return self._nanoseconds

    def _spelled(self, marker: str) -> pl.Series:
        if not marker:
            return super()._spelled(marker)
        return (self.text == marker).fill_null(value=False)


def _finite(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _whole(number: pl.Series) -> pl.Series:
    return values_where(number.is_finite() & (number == number.floor()), number).cast(pl.Int64, strict=False)


def _nothing(like: pl.Series, dtype: pl.DataType) -> pl.Series:
    return pl.Series(like.name, [None], dtype=dtype).new_from_index(0, len(like))


def values_where(mask: pl.Series, values: pl.Series) -> pl.Series:
    """The values where the mask is true; null where it is false or null."""
    return values.to_frame("v").select(pl.when(mask.alias("m")).then(pl.col("v"))).to_series().alias(values.name)


def _moments(text: pl.Series) -> pl.Series:
    parts = text.to_frame("text").select(pl.col("text").str.extract_groups(_MOMENT)).unnest("text")
    parts.columns = ["date", "hour", "minute", "second", "fraction", "zulu", "sign", "zone_hour", "zone_minute"]

    def count(name: str) -> pl.Expr:
        return pl.col(name).cast(pl.Int64).fill_null(0)

    days = pl.col("date").str.to_date("%Y-%m-%d", strict=False).cast(pl.Int32).cast(pl.Int64)
    seconds = (count("hour") * 60 + count("minute")) * 60 + count("second")
    zone = (count("zone_hour") * 60 + count("zone_minute")) * 60
    zone = pl.when(pl.col("sign") == "-").then(-zone).otherwise(zone)
    microseconds = pl.col("fraction").str.pad_end(9, "0").str.slice(0, 6).cast(pl.Int64).fill_null(0)
    valid = (
        (count("hour") < 24)
        & (count("minute") < 60)
        & (count("second") < 60)
        & (count("zone_hour") < 24)
        & (count("zone_minute") < 60)
    )
    moment = days * DAY_MICROSECONDS + (seconds - zone) * 1_000_000 + microseconds
    return parts.select(pl.when(valid).then(moment)).to_series().alias(text.name)
