"""What the text of a cell means: a whole number, a number, a moment, or only text. One grammar for every column.

The meaning does not depend on the declared schema; the schema then says which meaning is wanted (`canonical.py`), and
the fingerprint takes whichever there is (`fingerprint.py`).
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Collection

DAY_MICROSECONDS = 86_400_000_000
_MOMENT = (
    r"^([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?"
    r"(?:(Z)|([+-])([0-9]{2}):?([0-9]{2}))?)?$"
)


class Cells:
    """One column of one chunk. Surrounding spaces are not part of a value."""

    def __init__(self, raw: pl.Series) -> None:
        self.raw = raw
        self.text = raw.str.strip_chars(" \t")

    def missing(self, markers: Collection[str]) -> pl.Series:
        """Boolean mask of the cells without a value. A marker that is a number, like -999, means any spelling of it."""
        absent = self.text.is_null()
        for marker in {marker.strip(" \t") for marker in markers}:
            absent = absent | (self.text == marker).fill_null(value=False)
            number = _finite(marker)
            if number is not None:
                absent = absent | (self.number == number).fill_null(value=False)
        return absent

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
        number = self.number
        return plain.fill_null(
            _where(number.is_finite() & (number == number.floor()), number).cast(pl.Int64, strict=False)
        )

    @cached_property
    def moment(self) -> pl.Series:
        """Int64 microseconds since 1970-01-01 UTC; null where the text is not an ISO 8601 date or datetime."""
        looks = self.text.str.contains(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ]|$)").fill_null(value=False)
        if not looks.any():
            return pl.Series(self.text.name, [None], dtype=pl.Int64).new_from_index(0, len(self.text))
        return _moments(_where(looks, self.text))

    def canonical(self, missing: pl.Series) -> pl.Series:
        """One spelling per meaning, never null: "" missing, digits a whole number, f… a float, t… a moment, s… text.

        Floats are spelled by their IEEE 754 bits, so no library's float formatting is involved. true and false are
        1 and 0, because that is how a boolean may also be written.
        """
        whole = self.whole
        if whole.null_count() == 0:
            spelled = whole.cast(pl.String)
            return _where(~missing, spelled).fill_null("") if missing.any() else spelled
        spelled = whole.cast(pl.String)
        left = whole.is_null() & ~missing
        if left.any():
            number = self.number
            fraction = left & number.is_finite().fill_null(value=False)
            if fraction.any():
                spelled = spelled.fill_null("f" + _where(fraction, _bits(number)).cast(pl.String))
                left = left & ~fraction
        if left.any():
            spelled = spelled.fill_null("t" + self.moment.cast(pl.String))
            spelled = spelled.fill_null(_booleans(self.text).cast(pl.Int8).cast(pl.String))
            spelled = spelled.fill_null("s" + self.text)
        return _where(~missing, spelled).fill_null("")

    @cached_property
    def boolean(self) -> pl.Series:
        """Boolean; true/false in any case, or 1/0."""
        named = _booleans(self.text)
        if named.null_count() == 0:
            return named
        whole = self.whole
        return named.fill_null(_where(whole.is_between(0, 1), whole).cast(pl.Boolean))


def _finite(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _booleans(text: pl.Series) -> pl.Series:
    words = {"true": True, "false": False}
    return text.str.to_lowercase().replace_strict(words, default=None, return_dtype=pl.Boolean)


def _bits(number: pl.Series) -> pl.Series:
    floats = number.fill_null(0.0).to_numpy()
    return pl.Series(number.name, np.ascontiguousarray(floats).view(np.int64))


def _where(mask: pl.Series, values: pl.Series) -> pl.Series:
    """The values where the mask is true, null elsewhere."""
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
