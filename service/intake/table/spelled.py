"""What text means in the spelling that its field declares: 1.234,56 €, 17/04/2023, Yes. Expressions on distinct cells only."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from service.base.messages import Message
from service.domain.spellings import DAYS, DIRECTIVES, MONTHS, SPACES, ZONE_HOURS, parts_of, texts_of
from service.domain.zones import Offset, offsets_of
from service.intake.table.cells import DAY_MICROSECONDS, Cells

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from service.domain.field_schema import FieldSchema

_MICROSECONDS = 1_000_000
_NUMBERS = frozenset("YymdjHIMSf")
_WIDTHS = {"j": 3}
_OFFSET = r"([+-])([0-9]{2}):?([0-9]{2})"
_HAS_ZONE = r"[T ].*(?:Z|[+-][0-9]{2}:?[0-9]{2})$"


def in_spelling_of(cells: Cells, field: FieldSchema) -> Cells:
    """The cells, read in the spelling that the field declares."""
    if cells.was_text and field.spells:
        return SpelledCells(cells, field)
    return cells


def spelling_of(field: FieldSchema) -> str:
    """How a cell is to be written, for a refusal; empty where everybody knows."""
    said = {
        "format": field.strptime_pattern,
        "decimalChar": field.decimal_char,
        "groupChar": field.group_char,
        "prefix": field.prefix,
        "suffix": field.suffix,
        "trueValues": field.true_values,
        "falseValues": field.false_values,
    }
    words = [f"{word} {list(v) if isinstance(v, tuple) else v!r}" for word, v in said.items() if v is not None]
    return Message(", as declared by %(words)s", words=", ".join(words)) if words else ""


class SpelledCells(Cells):
    """Text in a declared spelling. Missing markers are compared with the text, or with the number that it means."""

    def __init__(self, cells: Cells, field: FieldSchema) -> None:
        super().__init__(cells.raw)
        self._field = field

    @cached_property
    def number(self) -> pl.Series:
        return self._plain.cast(pl.Float64, strict=False)

    @cached_property
    def exact(self) -> pl.Series:
        return Cells(self._plain).exact

    @property
    def leading_zeros(self) -> pl.Series:
        return Cells(self._plain).leading_zeros

    @cached_property
    def boolean(self) -> pl.Series:
        meanings = {text.strip(" \t"): truth for truth in (False, True) for text in texts_of(self._field, truth=truth)}
        return self.text.replace_strict(meanings, default=None, return_dtype=pl.Boolean)

    @cached_property
    def moment(self) -> pl.Series:
        field, pattern = self._field, self._field.strptime_pattern
        offsets = offsets_of(field.timezone) if field.timezone is not None else ()
        if pattern is not None:
            return _by_pattern(self.text, pattern, field.first_and_last_day[0].year, offsets)
        moment, has_zone = super().moment, self.text.str.contains(_HAS_ZONE)
        return pl.select(pl.when(has_zone).then(moment).otherwise(_of_local(moment, offsets))).to_series()

    @cached_property
    def _plain(self) -> pl.Series:
        """Numbers as everybody writes them; null for what is none in this spelling."""
        field = self._field
        if not field.spells_numbers:
            return self.text
        ends = SPACES + "\t()"
        digits = pl.col("text")
        if not field.bare_number:
            digits = digits.str.extract(_number(field), 1)
        else:
            digits = digits.str.strip_chars_start(ends + "+-").str.strip_prefix((field.prefix or "").strip(SPACES))
            digits = digits.str.strip_chars_end(ends).str.strip_suffix((field.suffix or "").strip(SPACES))
            digits = digits.str.strip_chars_start(ends + "+-").str.strip_chars_end(ends)
        for mark in _group_marks(field):
            digits = digits.str.replace_all(mark, "", literal=True)
        if field.decimal_char is not None:
            digits = digits.str.replace(field.decimal_char, ".", literal=True)
        sign = pl.when(pl.col("text").str.contains("^[^0-9]*[-(]")).then(pl.lit("-")).otherwise(pl.lit(""))
        fits = pl.col("text").str.contains(_pattern_of_numbers(field))
        return self.text.to_frame("text").select(pl.when(fits).then(pl.concat_str(sign, digits))).to_series()


def _group_marks(field: FieldSchema) -> str:
    group = field.group_char or ""
    return SPACES if group and group in SPACES else group


def _number(field: FieldSchema) -> str:
    """Digits, their groups, decimals and exponent, as one group."""
    point, marks = re.escape(field.decimal_char or "."), "".join(map(re.escape, _group_marks(field)))
    whole = rf"(?:[0-9]{{1,3}}(?:[{marks}][0-9]{{3}})+|[0-9]+)" if marks else "[0-9]+"
    return rf"((?:{whole}(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?)"


def _pattern_of_numbers(field: FieldSchema) -> str:
    """What the whole text of a number is: a sign before or after the prefix, or parentheses with or without what is beside."""
    space, number = f"[{SPACES}\t]*", _number(field)
    if not field.bare_number:
        inner = rf"[^0-9()+-]*?{number}[^0-9()]*"
        before = rf"[^0-9()+-]*[+-]?{inner}"
        return rf"^(?:{before}|[^0-9()+-]*\({inner}\)[^0-9()]*)$" if field.negative == "parentheses" else f"^{before}$"
    prefix, suffix = (re.escape((affix or "").strip(SPACES)) for affix in (field.prefix, field.suffix))
    before, after = f"{prefix}{space}", f"{space}{suffix}"
    shapes = [rf"[+-]?{space}{before}{number}{after}", rf"{before}[+-]{space}{number}{after}"]
    if field.negative == "parentheses":
        shapes += [
            rf"\({space}{before}{number}{after}{space}\)",
            rf"{before}\({space}{number}{space}\){after}",
            rf"\({space}{before}{number}{space}\){after}",
            rf"{before}\({space}{number}{after}{space}\)",
        ]
    return rf"^{space}(?:{'|'.join(shapes)}){space}$"


def _by_pattern(text: pl.Series, pattern: str, first_year: int, offsets: Sequence[Offset]) -> pl.Series:
    """Int64 microseconds since 1970-01-01 UTC; null where the text does not follow the pattern or is no moment."""
    directives = [part.directive for part in parts_of(pattern) if part.directive]
    groups = text.to_frame("text").select(pl.col("text").str.extract_groups(_regex_of(pattern))).unnest("text")
    groups.columns = directives
    days = _days(set(directives), first_year)
    time, is_time = _time(set(directives))
    moment = groups.select(pl.when(is_time).then(days * DAY_MICROSECONDS + time)).to_series()
    if "z" in directives:
        ahead = pl.when(pl.col("z").str.to_uppercase() == "Z").then(0).otherwise(_offset("z"))
        return moment - groups.select(ahead).to_series() * _MICROSECONDS
    if "Z" in directives:
        ahead_of = {name: hours * 3_600 for name, hours in ZONE_HOURS.items()} | {o.name: o.seconds for o in offsets}
        named = pl.col("Z").replace_strict(ahead_of, default=None, return_dtype=pl.Int64)
        return moment - groups.select(pl.coalesce(named, _offset("Z"))).to_series() * _MICROSECONDS
    return _of_local(moment, offsets)


def _offset(column: str) -> pl.Expr:
    """Seconds that +01:00 or +0100 is ahead of UTC; null for any other text."""
    parts = pl.col(column).str.extract_groups(f"^{_OFFSET}$")
    sign, hours, minutes = (parts.struct[place] for place in range(3))
    seconds = hours.cast(pl.Int64) * 3_600 + minutes.cast(pl.Int64) * 60
    return pl.when(sign == "-").then(-seconds).otherwise(seconds)


def _regex_of(pattern: str) -> str:
    """One group for each directive, in order. Numbers may lack zeros before them, unless the next number begins at once; a zone may lack its space."""
    parts = parts_of(pattern)
    found = ["(?i)^"]
    for place, part in enumerate(parts):
        if part.directive is None:
            times = "*" if place + 1 < len(parts) and parts[place + 1].directive in {"z", "Z"} else "+"
            found.append(re.sub(r"(?:\\?[ \u00a0\u202f])+", f"[{SPACES}]{times}", re.escape(part.text)))
            continue
        text = DIRECTIVES[part.directive]
        beside = [other.directive for other in parts[max(0, place - 1) : place + 2] if other is not part]
        if "1," in text and not _NUMBERS.isdisjoint(filter(None, beside)) and part.directive != "f":
            text = f"[0-9]{{{_WIDTHS.get(part.directive, 2)}}}"
        found.append(f"({text})")
    return "".join([*found, "$"])


def _days(has: set[str | None], first_year: int) -> pl.Expr:
    """Days since 1970-01-01; null for a day that there is not."""
    year = _count("Y")
    if "y" in has:
        year = first_year + (_count("y") - first_year) % 100
    start = _date(year, pl.lit(1), pl.lit(1))
    if "j" in has:
        day = start.cast(pl.Int32).cast(pl.Int64) + _count("j") - 1
        return pl.when((_count("j") >= 1) & (day.cast(pl.Int32).cast(pl.Date).dt.year() == year)).then(day)
    month = _count("m")
    for letter, length in (("b", 3), ("B", None)):
        if letter in has:
            names = {name[:length].lower(): number for number, name in enumerate(MONTHS, start=1)}
            month = pl.col(letter).str.to_lowercase().replace_strict(names, default=None, return_dtype=pl.Int64)
    date = _date(year, month, _count("d"))
    for letter, length in (("a", 3), ("A", None)):  # a week day that is not the date's is an error in the row
        if letter in has:
            names = {name[:length].lower(): number for number, name in enumerate(DAYS, start=1)}
            said = pl.col(letter).str.to_lowercase().replace_strict(names, default=None, return_dtype=pl.Int64)
            date = pl.when(date.dt.weekday() == said).then(date)
    return date.cast(pl.Int32).cast(pl.Int64)


def _date(year: pl.Expr, month: pl.Expr, day: pl.Expr) -> pl.Expr:
    texts = (part.cast(pl.String).str.zfill(width) for part, width in ((year, 4), (month, 2), (day, 2)))
    return pl.concat_str(*texts, separator="-").str.to_date("%Y-%m-%d", strict=False)


def _time(has: set[str | None]) -> tuple[pl.Expr, pl.Expr]:
    """Microseconds since midnight, and whether there is such a time."""
    hour, is_time = _count("H") if "H" in has else pl.lit(0), pl.lit(value=True)
    if "H" in has:
        is_time &= hour < 24
    if "I" in has:
        is_time &= _count("I").is_between(1, 12)
        hour = _count("I") % 12 + 12 * (pl.col("p").str.to_lowercase() == "pm").cast(pl.Int64)
    minute, second = (_count(letter) if letter in has else pl.lit(0) for letter in "MS")
    is_time &= (minute < 60) & (second < 60)
    fraction = pl.col("f").str.pad_end(6, "0").cast(pl.Int64) if "f" in has else pl.lit(0)
    return ((hour * 60 + minute) * 60 + second).cast(pl.Int64) * _MICROSECONDS + fraction, is_time


def _count(letter: str) -> pl.Expr:
    return pl.col(letter).cast(pl.Int64)


def _of_local(moment: pl.Series, offsets: Sequence[Offset]) -> pl.Series:
    """Moments as the zone's clocks show them to UTC; null for what they skip, the first of what they show twice."""
    if not offsets:
        return moment
    starts, ahead = (
        np.array(column, dtype=np.int64) * _MICROSECONDS for column in list(zip(*offsets, strict=True))[:2]
    )
    starts[0] = np.iinfo(np.int64).min
    local = moment.fill_null(0).to_numpy()
    before = np.searchsorted(starts, local - DAY_MICROSECONDS, side="right") - 1
    after = np.minimum(before + 1, len(starts) - 1)
    first, second = (_shown(local, place, starts, ahead) for place in (before, after))
    found = np.where(first[1], first[0], second[0])
    known = pl.Series(first[1] | second[1]) & moment.is_not_null()
    return pl.select(pl.when(known).then(pl.Series(found))).to_series().alias(moment.name)


def _shown(
    local: NDArray[np.int64], place: NDArray[np.intp], starts: NDArray[np.int64], ahead: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The moment that clocks with this offset show so, and whether they had it then."""
    moment = local - ahead[place]
    ends = np.append(starts[1:], np.iinfo(np.int64).max)
    return moment, (starts[place] <= moment) & (moment < ends[place])
