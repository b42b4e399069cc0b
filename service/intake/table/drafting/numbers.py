"""Numbers as people write them: `1.234,56`, `$1,234.50`, `12.5 %`, `(5.00)`; what they say exactly, never through a float."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from service.base.messages import Message
from service.intake.table.cells import values_where

if TYPE_CHECKING:
    from collections.abc import Sequence

_MARKS = r"[$€£¥₹₽₺₩฿]|(?:US|A|C|NZ|HK)\$|USD|EUR|GBP|CHF|JPY|SEK|NOK|DKK|PLN|CZK|HUF|INR|CNY|AUD|CAD|BRL|Fr\.|zł|kr\.?"
_UNITS = r"%|‰|kg|g|mg|µg|ng|km|m|cm|mm|l|ml|dl|°C|°F|mmHg|bpm|min|h|s|ms|kWh|kW|MW|ha|m²|GB|MB"
"""What may stand before or after a number. Other letters before digits are codes, like P001."""

_SPACE = " \u00a0\u202f"
_SHAPE = re.compile(
    rf"(?P<open>\()?(?P<sign>[+-]?)(?P<prefix>(?:(?:{_MARKS})[{_SPACE}]?)?)(?P<inner>[+-]?)(?P<body>[0-9][0-9.,'\u2019{_SPACE}]*?|\.[0-9]+)"
    rf"(?P<suffix>(?:[{_SPACE}]?(?:{_MARKS}|{_UNITS}))?)(?P<close>\)?)"
)
_SEPARATORS = (
    (None, "."),
    (",", "."),
    (".", ","),
    (" ", ","),
    ("\u00a0", ","),
    ("\u202f", ","),
    (" ", "."),
    ("'", "."),
    ("\u2019", "."),
    ("'", ","),
)
"""Marks between thousands and before decimals. Of several that read as many cells the first is taken."""

_MOST_READ = 2
"""A spelling is looked at if it reads one cell in so many."""


@dataclass(frozen=True, slots=True)
class NumberSpelling:
    """How the numbers of a column are written. The plain one is what every reader reads."""

    group: str | None = None
    decimal: str = "."
    prefix: str = ""
    suffix: str = ""
    parentheses: bool = False

    @property
    def is_plain(self) -> bool:
        return self == NumberSpelling()

    def words(self) -> dict[str, Any]:
        """The words of the field."""
        said = {
            "decimalChar": self.decimal if self.decimal != "." else None,
            "groupChar": self.group,
            "prefix": self.prefix or None,
        }
        said |= {"suffix": self.suffix or None, "negative": "parentheses" if self.parentheses else None}
        return {word: value for word, value in said.items() if value is not None}

    def plain(self, text: pl.Series) -> pl.Series:
        """The same numbers in the plain spelling; null where a cell is no number."""
        if self.is_plain:
            finite = text.cast(pl.Float64, strict=False).is_finite().fill_null(value=False)
            return values_where(finite, text)
        parts = text.to_frame("t").select(pl.col("t").str.extract_groups(self._pattern)).unnest("t")
        parts.columns = ["open", "sign", "inner", "whole", "fraction", "close"]
        minus = (pl.col("open") == "(") | pl.concat_str("sign", "inner", ignore_nulls=True).str.contains(
            "-", literal=True
        )
        is_one = pl.col("whole").is_not_null() & (pl.col("open").is_null() == pl.col("close").is_null())
        whole = pl.col("whole").str.replace_all("[^0-9]", "")
        number = pl.concat_str(
            pl.when(minus).then(pl.lit("-")).otherwise(pl.lit("")),
            whole,
            pl.when(pl.col("fraction").is_not_null()).then(pl.lit(".") + pl.col("fraction")).otherwise(pl.lit("")),
        )
        return parts.select(pl.when(is_one).then(number)).to_series().alias(text.name)

    @property
    def _pattern(self) -> str:
        group = "" if self.group is None else f"[{_SPACE}]" if self.group in _SPACE else re.escape(self.group)
        whole = rf"[0-9]{{1,3}}(?:{group}[0-9]{{3}})+|[0-9]+" if group else "[0-9]+"
        prefix, suffix = re.escape(self.prefix), re.escape(self.suffix)
        return rf"^(\()?([+-])?{prefix}([+-])?({whole})(?:{re.escape(self.decimal)}([0-9]+))?{suffix}(\))?$"


PLAIN = NumberSpelling()


def guess(texts: Sequence[str]) -> NumberSpelling | None:
    """The spelling that reads most of some cells; None where it would be the plain one, or reads too few."""
    found = [match for text in texts if (match := _SHAPE.fullmatch(text))]
    if _MOST_READ * len(found) < len(texts) or not found:
        return None
    (prefix, suffix), _ = Counter((match["prefix"], match["suffix"]) for match in found).most_common(1)[0]
    cells = pl.Series([match.group() for match in found], dtype=pl.String)
    spellings = [NumberSpelling(group, decimal, prefix, suffix) for group, decimal in _SEPARATORS]
    best = max(spellings, key=lambda one: int(one.plain(cells).is_not_null().sum()))  # of several, the first
    read = [match for match, plain in zip(found, best.plain(cells).to_list(), strict=True) if plain is not None]
    if _MOST_READ * len(read) < len(texts):
        return None
    spelling = _as_used(best, read)
    return None if spelling.is_plain else spelling


def _as_used(best: NumberSpelling, read: Sequence[re.Match[str]]) -> NumberSpelling:
    """The spelling with the marks alone that occur."""
    alike = _SPACE if best.group is not None and best.group in _SPACE else best.group or ""  # spaces are read alike
    groups = Counter(mark for match in read for mark in match["body"] if mark in alike)
    has_decimal = any(best.decimal in match["body"] for match in read)
    return NumberSpelling(
        group=groups.most_common(1)[0][0] if groups else None,
        decimal=best.decimal if has_decimal else ".",
        prefix=best.prefix,
        suffix=best.suffix,
        parentheses=any(match["open"] and match["close"] for match in read),
    )


def doubt_of(spelling: NumberSpelling, texts: Sequence[str]) -> str:
    """The doubt where one mark alone, before three digits each time, could be the decimal or the thousands mark."""
    mark = "." if spelling.is_plain else spelling.group
    marked = [text for text in texts if mark is not None and mark in text]
    if mark not in {".", ","} or not marked or spelling.decimal not in {".", mark}:
        return ""
    if not all(re.fullmatch(rf"[^0-9]*[1-9][0-9]{{0,2}}{re.escape(mark)}[0-9]{{3}}[^0-9]*", text) for text in marked):
        return ""
    if spelling.is_plain:
        return Message(
            'each "." of it stands before three digits and is read as decimal; where it parts thousands, write `groupChar`: "."'
        )
    return Message(
        'each "%(mark)s" of it stands before three digits and is read as parting thousands; where it is decimal, write '
        '`decimalChar`: "%(mark)s"',
        mark=mark,
    )
