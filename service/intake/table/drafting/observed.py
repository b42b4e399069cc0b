"""What one column of the file holds, in memory that does not grow with its rows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import polars as pl

from service.domain.field_schema import MAX_CATEGORIES
from service.intake.table.cells import MARKERS_OF_DRAFTS
from service.intake.table.drafting import moments, numbers
from service.intake.table.drafting.looks import counts_by_look
from service.intake.table.drafting.readings import MomentReading, NumberReading

if TYPE_CHECKING:
    from service.intake.table.columns import Column

_SAMPLE = 500
"""Different cells by which spellings are looked for."""


class Observed:
    """Distinct cells up to a limit, and what each reading makes of them."""

    def __init__(self, name: str, *, is_index: bool = False, is_unnamed: bool = False) -> None:
        self.name = name
        self.is_index = is_index
        """Whether the file itself says that the column was an index of pandas."""
        self.is_unnamed = is_unnamed
        """Whether the file gives the column no name, and the draft made one."""
        self.markers: Counter[str] = Counter()
        self.texts: Counter[str] | None = Counter()
        """Rows by cell; None once there are more different cells than a schema may list."""
        self.cells = self.missing = self.rows = 0
        self.words = 0
        self.looks: Counter[str] = Counter()
        self.characters = self.spaces = 0
        self.numbers: list[NumberReading] = []
        self.moments: list[MomentReading] = []
        self.sample: list[str] = []
        self.first_cell: str | None = None
        self._counts_from: int | None = None
        self.counts_rows = True
        """Whether the cells are 0, 1, 2, … or 1, 2, 3, … in the order of the rows."""

    def add(self, column: Column) -> None:
        """One more chunk."""
        cells = column.cells
        times = (
            pl.Series(column.times)
            if column.times is not None
            else pl.repeat(1, len(cells.raw), dtype=pl.Int64, eager=True)
        )
        if not self.rows and column.rows:
            self.first_cell = cells.text[0 if column.codes is None else int(column.codes[0])]
        missing = cells.missing(MARKERS_OF_DRAFTS)
        self._count_rows(column)
        for marker, count in _counted(cells.text.fill_null("").filter(missing), times.filter(missing)).items():
            self.markers[marker] += count
        kept = ~missing
        text, known = cells.text.filter(kept), times.filter(kept)
        self.rows += column.rows
        self.cells += int(known.sum())
        self.missing += column.rows - int(known.sum())
        if not len(text):
            return
        self._count_texts(text, known)
        self.words += int(known.filter(cells.word.filter(kept).is_not_null()).sum())
        self.looks.update(counts_by_look(text, known))
        self.characters += int((text.str.len_chars() * known).sum())
        self.spaces += int((text.str.count_matches(r"\s+") * known).sum())
        if not self.numbers:
            self._choose_readings(text)
        for number in self.numbers:
            number.add(text, known, was_text=cells.was_text)
        for moment in self.moments:
            moment.add(cells, text, kept, known)

    @property
    def number(self) -> NumberReading:
        """The reading that reads most cells as numbers; of several, the plain one."""
        return max(self.numbers, key=lambda one: one.count)

    @property
    def moment(self) -> MomentReading:
        """The reading that reads most cells as moments; of several, ISO 8601, or the one with the day first."""
        return max(self.moments, key=lambda one: one.count)

    @property
    def singles(self) -> list[str]:
        """Cells that occur once."""
        return [] if self.texts is None else [text for text, count in self.texts.items() if count == 1]

    def _choose_readings(self, text: pl.Series) -> None:
        self.sample = text.unique(maintain_order=True).head(_SAMPLE).to_list()
        self.numbers = [NumberReading(numbers.PLAIN)]
        local = numbers.guess(self.sample)
        if local is not None:
            self.numbers.append(NumberReading(local))
        self.moments = [MomentReading(None), *map(MomentReading, moments.guess(self.sample))]

    def _count_texts(self, text: pl.Series, times: pl.Series) -> None:
        if self.texts is None:
            return
        if text.n_unique() <= MAX_CATEGORIES:
            self.texts.update(_counted(text, times))
        if text.n_unique() > MAX_CATEGORIES or len(self.texts) > MAX_CATEGORIES:
            self.texts = None

    def _count_rows(self, column: Column) -> None:
        if not self.counts_rows or not column.rows:
            return
        whole = column.spread(column.cells.whole)
        if self._counts_from is None:
            first = whole[0]
            self._counts_from = first if first in {0, 1} else None
        start = self._counts_from
        expected = (
            None if start is None else pl.int_range(start + self.rows, start + self.rows + column.rows, eager=True)
        )
        self.counts_rows = expected is not None and bool((whole == expected).fill_null(value=False).all())


def _counted(text: pl.Series, times: pl.Series) -> dict[str, int]:
    grouped = pl.DataFrame({"t": text, "n": times}).group_by("t", maintain_order=True).sum()
    return dict(zip(grouped["t"].to_list(), grouped["n"].to_list(), strict=True))
