"""One way to read a column's cells, as numbers or as moments: how many it reads, how far they reach, which it does not."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl

from service.domain.field_schema import SECONDS_OF
from service.intake.table.cells import DAY_MICROSECONDS
from service.intake.table.drafting import sentinels
from service.intake.table.drafting.moments import iso_words, shapes_of_iso, zones_of_iso

if TYPE_CHECKING:
    from service.intake.table.cells import Cells
    from service.intake.table.drafting.moments import MomentSpelling
    from service.intake.table.drafting.numbers import NumberSpelling

_UNREAD_KEPT = 20
"""Different cells that a reading keeps of those it does not read."""


class _Reading:
    """Counts, and some of the cells that are not read."""

    def __init__(self) -> None:
        self.count = 0
        self.unread: Counter[str] = Counter()
        self.reads_others = False
        """Whether there are more unread cells than are kept."""

    def _count(self, text: pl.Series, is_read: pl.Series, times: pl.Series) -> None:
        self.count += int(times.filter(is_read).sum())
        others = text.filter(~is_read)
        for cell, count in zip(
            others.head(_UNREAD_KEPT).to_list(), times.filter(~is_read).head(_UNREAD_KEPT).to_list(), strict=True
        ):
            if cell in self.unread or len(self.unread) < _UNREAD_KEPT:
                self.unread[cell] += count
        self.reads_others |= len(others) > _UNREAD_KEPT or len(self.unread) == _UNREAD_KEPT


class NumberReading(_Reading):
    """Extents are exact decimals of the text, less what may be sentinels (`sentinels.NUMBERS`), which are counted."""

    def __init__(self, spelling: NumberSpelling) -> None:
        super().__init__()
        self.spelling = spelling
        self.low: Decimal | None = None
        self.high: Decimal | None = None
        self.candidates: Counter[Decimal] = Counter()
        self.written: dict[Decimal, str] = {}
        """How a candidate is written in the file."""
        self.whole = 0
        self.decimals = 0
        self.fewest_decimals: int | None = None
        self.was_text = False
        """Columns with a type of their own have no spelling."""
        self.ends_in_zero = False
        """Whether a cell, as text, has a zero as its last decimal."""
        self.has_exponent = False
        self.has_leading_zeros = False
        self.lengths: set[int] = set()

    def add(self, text: pl.Series, times: pl.Series, *, was_text: bool = True) -> None:
        plain = self.spelling.plain(text)
        is_read = plain.is_not_null()
        self._count(text, is_read, times)
        plain, text, times = plain.filter(is_read), text.filter(is_read), times.filter(is_read)
        if not len(plain):
            return
        number = plain.cast(pl.Float64)
        self.whole += int(times.filter(number == number.floor()).sum())
        fewest, most = _fewest_and_most(plain.str.extract(r"\.([0-9]*)$").str.len_bytes().fill_null(0))
        self.decimals = max(self.decimals, most)
        self.fewest_decimals = fewest if self.fewest_decimals is None else min(self.fewest_decimals, fewest)
        self.was_text |= was_text
        self.ends_in_zero |= was_text and bool(plain.str.contains(r"\.[0-9]*0$").any())
        self.has_exponent |= bool(plain.str.contains("[eE]").any())
        self.has_leading_zeros |= bool(plain.str.contains("^[+-]?0[0-9]").any())
        self.lengths.update(plain.str.len_bytes().unique().to_list())
        may_be_sentinel = number.is_in([float(one) for one in sentinels.NUMBERS])
        for cell, as_written, count in zip(
            *(one.filter(may_be_sentinel).to_list() for one in (plain, text, times)), strict=True
        ):
            self.candidates[Decimal(cell)] += count
            self.written.setdefault(Decimal(cell), as_written)
        rest, number = plain.filter(~may_be_sentinel), number.filter(~may_be_sentinel)
        if len(rest):
            lowest = min(map(Decimal, rest.filter(number == number.min()).unique().to_list()))
            highest = max(map(Decimal, rest.filter(number == number.max()).unique().to_list()))
            self.widen(lowest, highest)

    def widen(self, low: Decimal, high: Decimal) -> None:
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)


def _fewest_and_most(lengths: pl.Series) -> tuple[int, int]:
    return int(lengths.min()), int(lengths.max())  # type: ignore[arg-type]  # lengths, and not empty


class MomentReading(_Reading):
    """Extents in microseconds, less what may be sentinels (`sentinels.DAYS`), which are counted. Without a spelling: ISO 8601."""

    def __init__(self, spelling: MomentSpelling | None) -> None:
        super().__init__()
        self.spelling = spelling
        self.low: int | None = None
        self.high: int | None = None
        self.candidates: Counter[int] = Counter()
        """Days since 1970-01-01."""
        self.written: dict[int, set[str]] = {}
        self.dates = 0
        self.zones: set[str] = set()
        self.shapes: set[str] = set()
        """Of ISO 8601, the patterns that its cells follow, without their zones."""
        self.cases: set[str] = set()
        self.bare: set[str] = set()
        self.padded: set[str] = set()
        """Directives of which a number has one digit alone, and of which one has a zero before it."""
        self.resolution = "hour"
        self.between_seconds = 0
        """Rows whose moment has parts of a second."""

    def add(self, cells: Cells, text: pl.Series, kept: pl.Series, times: pl.Series) -> None:
        moment = cells.moment.filter(kept) if self.spelling is None else self.spelling.read(text)
        is_read = moment.is_not_null()
        self._count(text, is_read, times)
        if self.spelling is None:
            self._note_shapes(cells, text.filter(is_read))
        else:
            self.zones |= self.spelling.zones(text.filter(is_read))
            self.cases |= self.spelling.cases(text.filter(is_read))
            for directive, number in self.spelling.numbers(text.filter(is_read)).items():
                if number.str.contains("^[0-9]$").any():
                    self.bare.add(directive)
                if number.str.starts_with("0").any():
                    self.padded.add(directive)
        finer = cells.nanoseconds.filter(kept).filter(is_read) != 0
        moment, text, times = moment.filter(is_read), text.filter(is_read), times.filter(is_read)
        if not len(moment):
            return
        self.between_seconds += int(times.filter((moment % 1_000_000 != 0) | finer).sum())
        self.dates += int(times.filter(moment % DAY_MICROSECONDS == 0).sum())
        for resolution in ("hour", "minute"):
            if self.resolution == resolution and (moment % (SECONDS_OF[resolution] * 1_000_000) != 0).any():
                self.resolution = "minute" if resolution == "hour" else "second"
        day = moment // DAY_MICROSECONDS
        may_be_sentinel = day.is_in(list(sentinels.DAYS))
        for one, as_written, count in zip(
            *(column.filter(may_be_sentinel).to_list() for column in (day, text, times)), strict=True
        ):
            self.candidates[one] += count
            self.written.setdefault(one, set()).add(as_written)
        moment = moment.filter(~may_be_sentinel)
        if len(moment):
            self.widen(int(moment.min()), int(moment.max()))  # type: ignore[arg-type]  # not empty

    def widen(self, low: int, high: int) -> None:
        self.low = low if self.low is None else min(self.low, low)
        self.high = high if self.high is None else max(self.high, high)

    def words(self) -> dict[str, Any]:
        if self.spelling is None:
            return iso_words(self.shapes, self.zones)
        case = next(iter(self.cases)) if len(self.cases) == 1 else ""
        return self.spelling.words(self.zones, sorted(self.bare - self.padded), case)

    def _note_shapes(self, cells: Cells, text: pl.Series) -> None:
        """How ISO 8601 is written here. Columns with a type of their own have no spelling."""
        if cells.was_text:
            self.zones |= zones_of_iso(text)
            self.shapes |= shapes_of_iso(text)
