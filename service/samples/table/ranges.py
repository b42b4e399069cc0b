"""Columns of numbers, dates and times: a declared range cut into bins, and values that many rows share."""

from __future__ import annotations

import datetime as dt
import functools
import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from service.base.messages import Figure, Message, OnThePage
from service.samples.table.base import Array, Mask
from service.samples.table.columns import quoted, text_of
from service.samples.table.reading import ClockTimes, range_read
from service.samples.table.spelling import is_json_number, range_written

POINT = 2.0**-40
"""Of the range: a bin that is narrower holds its first value alone."""


class SharedValues:
    """Values of a range that many rows share: increasing pairs of a value and the part of its bin's rows that have it."""

    def __init__(self, config: Sequence[Sequence[float]], edges: Array) -> None:
        self.values, shares = np.array(config, dtype=np.float64).T
        self.cells = cells = np.searchsorted(edges[1:-1], self.values, side="right")
        all_of_cell = np.bincount(cells, weights=shares, minlength=len(edges) - 1)
        before = np.concatenate([[0.0], np.cumsum(all_of_cell)])
        self.all_of_cell = np.minimum(all_of_cell, 1.0)
        within = np.minimum(np.cumsum(shares) - before[cells], 1.0)
        self._up_to = cells + within
        is_first = np.diff(cells, prepend=-1) > 0
        self.shares = np.where(is_first, within, np.diff(within, prepend=0.0))

    def draw(self, cells: Array, uniforms: Array) -> tuple[Array, Array]:
        """A shared value of its bin for each row, or NaN; and uniform numbers that may be used again."""
        found = np.searchsorted(self._up_to, cells + uniforms, side="right").clip(max=len(self.values) - 1)
        of_cell = self.all_of_cell[cells]
        is_shared = uniforms < of_cell
        left = np.where(is_shared, 0.0, (uniforms - of_cell) / np.maximum(1.0 - of_cell, 2.0**-53))
        left = np.minimum(left, 1.0 - 2.0**-53)  # quotients round
        return np.where(is_shared & (self.cells[found] == cells), self.values[found], np.nan), left


def _fill_empty_bins(first: Array, last: Array, low: Array, high: Array, steps_per_one: Array) -> None:
    """Of numbers with declared decimals, in place: a bin without such a number has that next to its middle, if the range has one."""
    smallest, largest = np.ceil(low[0] * steps_per_one), np.floor(high[-1] * steps_per_one)
    empty = (last < first) & (smallest <= largest)
    nearest = np.clip(np.rint((low + high) / 2 * steps_per_one), smallest, largest)[empty]
    first[empty] = last[empty] = nearest
    low[empty] = high[empty] = nearest / steps_per_one[empty]


class GridColumn:
    """A range cut into bins. A drawn column is a masked array of numbers; masked is missing.

    Values are whole multiples of a step. For integers, days and seconds the step is 1, or the declared resolution in
    seconds. For numbers it has the declared decimals; without them it is the power of ten that cuts the bin into at
    least a thousand parts, so that values are short. Bins are [low, high); the last bin of a number column includes
    its end. A bin narrower than `POINT` holds one value: zero, which many rows may share.
    """

    def __init__(self, config: Mapping[str, Any], missing_value: str) -> None:
        self.name: str = config["name"]
        self.type: str = config["type"]
        self.size: int = config["size"]
        self.missing: bool = config["missing"]
        self.edges = np.array(config["edges"], dtype=np.float64)
        self.missing_value: str = config.get("missing_value", missing_value)
        self._missing_text = quoted(self.missing_value, empty_too=self.missing_value != missing_value)
        self._write = range_written(config)
        self.is_spelled = self._write is not None
        self.is_json_number = is_json_number(config)
        self._read = range_read(config)
        self.spelling: Mapping[str, Any] = config.get("spelling") or {}
        self._clocks = ClockTimes(self.spelling)
        low, high = self.edges[:-1], np.nextafter(self.edges[1:], self.edges[:-1])  # the last value inside
        steps_per_one = np.ones_like(low)
        if self.type == "number":
            high[-1] = self.edges[-1]
            most_decimals = np.floor(np.log10(2**53 / np.maximum(np.abs(low), np.abs(high)).clip(1e-290)))
            decimals = np.ceil(3 - np.log10(np.diff(self.edges))).clip(0)
            if "decimals" in config:  # declared, as for money
                decimals = np.full_like(decimals, config["decimals"])
            steps_per_one = 10.0 ** np.minimum(decimals, most_decimals)
        self._step: int = config.get("step", 1)
        first, last = np.ceil(low * steps_per_one / self._step), np.floor(high * steps_per_one / self._step)
        first += first / steps_per_one * self._step < low  # products round
        last -= last / steps_per_one * self._step > high
        if "decimals" in config:
            _fill_empty_bins(first, last, low, high, steps_per_one)
        self._low, self._high, self._first, self._steps_per_one = low, high, first, steps_per_one
        self.steps = np.maximum(last - first + 1, 1)  # a bin too narrow for a step holds its end
        self.steps[np.diff(self.edges) < POINT * (self.edges[-1] - self.edges[0])] = 1
        self._smallest, self._largest = (
            np.clip(ends / steps_per_one * self._step, low, high) for ends in (first, first + self.steps - 1)
        )
        self.shared = None
        if config.get("shared_values"):
            self.shared = SharedValues(config["shared_values"], self.edges)
            np.minimum.at(self._smallest, self.shared.cells, self.shared.values)
            np.maximum.at(self._largest, self.shared.cells, self.shared.values)

    def fill(self, codes: Array, rng: np.random.Generator) -> Array:
        """A value inside each drawn bin: one that many rows share, or a uniform one."""
        cells = np.minimum(codes, len(self.steps) - 1)
        uniforms = rng.random(len(cells))
        shared = None
        if self.shared is not None:
            shared, uniforms = self.shared.draw(cells, uniforms)
        numbers = self.number_at(cells, np.floor(uniforms * self.steps[cells]))
        if shared is not None:
            numbers = np.where(np.isnan(shared), numbers, shared)
        return self.drawn_of(numbers, codes)

    def number_at(self, cells: Array, steps: Array) -> Array:
        """The numbers so many steps after the first of their bins."""
        numbers: Array = self._first[cells] + steps
        if self.type == "number":
            return np.clip(numbers / self._steps_per_one[cells], self._low[cells], self._high[cells])
        return numbers * self._step

    @functools.cached_property
    def ends_so_far(self) -> tuple[Array, Array]:
        """(bins,) the largest number that is drawn in a bin or one before it, and the smallest in it or one after it."""
        bins = np.arange(len(self.steps))
        firsts, lasts = self.number_at(bins, np.zeros(len(bins))), self.number_at(bins, self.steps - 1.0)
        return np.maximum.accumulate(lasts), np.minimum.accumulate(firsts[::-1])[::-1]

    def drawn_of(self, numbers: Array, codes: Array) -> Array:
        """A drawn column of these numbers, missing where the code says so."""
        if self.type != "number":
            numbers = numbers.astype(np.int64)
        return np.ma.MaskedArray(numbers, mask=codes == self.size - 1 if self.missing else np.ma.nomask)

    def code_of(self, drawn: Array) -> Array:
        """The bins of a drawn column, and the last code where it is missing."""
        bins = np.searchsorted(self.edges[1:-1], np.ma.getdata(drawn), side="right")
        return np.where(np.ma.getmaskarray(drawn), self.size - 1, bins)

    def number_of(self, value: Any, *, as_spelled: bool = False) -> float:
        """A number, a date or a time, as a drawn column holds it; `ValueError` where it is none.

        Given as itself, as ISO text or plain digits, or as the schema spells it. Texts that could be read both ways
        (1.234) are meant `as_spelled` or not.
        """
        if self._read is None or not isinstance(value, str):
            return self._plain_number_of(value)
        first, second = (self._read, self._plain_number_of) if as_spelled else (self._plain_number_of, self._read)
        with suppress(ValueError):
            return first(value)
        return second(value)

    def _plain_number_of(self, value: Any) -> float:
        text = text_of(value).strip()
        if self.type == "date":
            return days_of(text)
        if self.type == "datetime":
            return self._clocks.seconds_of(text)
        number = float(text)
        if math.isnan(number):
            raise ValueError
        return int(text) if self.type == "integer" and number.is_integer() and text.lstrip("+-").isdigit() else number

    def holds(self, number: float) -> bool:
        """Whether it is in the declared range."""
        return bool(self._smallest.min() <= number <= self._largest.max() or self.edges[0] <= number < self.edges[-1])

    @property
    def described(self) -> str:
        """What the column holds, in words."""
        ends = self.drawn_of(np.array([self._smallest.min(), self._largest.max()]), np.zeros(2, dtype=np.int64))
        first, last = map(str, self.to_values(self.on_clocks(ends)))
        if self.is_spelled:
            first, last = map(OnThePage, (first, last), self.spelled(ends))
        elif self.type in {"integer", "number"}:
            first, last = Figure(first), Figure(last)
        return {
            "integer": Message("it holds whole numbers from %(first)s to %(last)s", first=first, last=last),
            "number": Message("it holds numbers from %(first)s to %(last)s", first=first, last=last),
            "date": Message("it holds dates from %(first)s to %(last)s", first=first, last=last),
            "datetime": Message("it holds times from %(first)s to %(last)s", first=first, last=last),
        }[self.type]

    @property
    def example(self) -> str:
        """The last value of its range, as the schema spells it."""
        return self.spelled(self.drawn_of(np.array([self._largest.max()]), np.zeros(1, dtype=np.int64)))[0]

    def on_clocks(self, drawn: Array) -> Array:
        """Of times, what clocks of the declared zone show; others as they are."""
        if self.type != "datetime":
            return drawn
        shown = [self._clocks.local_of(second) for second in np.ma.getdata(drawn).tolist()]
        return np.ma.MaskedArray(np.array(shown, dtype=np.int64), mask=np.ma.getmask(drawn))

    def to_values(self, drawn: Array) -> list[Any]:
        """Numbers, or ISO texts of dates and times; None for missing."""
        values: list[Any]
        if self.type == "date":
            values = np.datetime_as_string(np.ma.getdata(drawn).astype("datetime64[D]")).tolist()
        elif self.type == "datetime":
            values = np.datetime_as_string(np.ma.getdata(drawn).astype("datetime64[s]")).tolist()
        else:
            values = np.ma.getdata(drawn).tolist()
        return self._with_missing(values, drawn, None)

    def spelled(self, drawn: Array) -> list[str]:
        """As the schema spells them, before quotes; what stands where a value is missing means nothing."""
        return list(map(str, self.to_values(drawn))) if self._write is None else list(self._write(np.ma.getdata(drawn)))

    def to_texts(self, drawn: Array) -> list[str]:
        texts = (
            [quoted(text, empty_too=False) for text in self.spelled(drawn)] if self.is_spelled else self.spelled(drawn)
        )
        return self._with_missing(texts, drawn, self._missing_text)

    def to_jsons(self, drawn: Array) -> list[str]:
        if self.is_spelled and self.type in {"date", "datetime"}:
            texts = [json.dumps(text, ensure_ascii=False) for text in self.spelled(drawn)]
            return self._with_missing(texts, drawn, "null")
        if self.is_json_number:
            return self._with_missing(self.spelled(drawn), drawn, "null")
        pattern = "%s" if self.type in {"integer", "number"} else '"%s"'
        return self._with_missing([pattern % value for value in self.to_values(drawn)], drawn, "null")

    def _with_missing(self, values: list[Any], drawn: Array, missing: Any) -> list[Any]:
        if self.missing:
            for index in np.flatnonzero(np.ma.getmaskarray(drawn)).tolist():
                values[index] = missing
        return values

    def meets(self, condition: Mapping[str, Any]) -> Mask:
        """Rows that meet this part of an exclusion: a number in this range, ends included; or missing (`values` is [None])."""
        if "values" in condition:
            return np.ma.getmaskarray
        low, high = condition["low"], condition["high"]
        return lambda drawn: np.ma.filled((drawn >= low) & (drawn <= high), fill_value=False)

    def cells_of(self, condition: Mapping[str, Any]) -> Array:
        """(size,) which bins meet this part of an exclusion with all their values."""
        met = np.zeros(self.size, dtype=bool)
        if "values" in condition:
            met[-1] = True
        else:
            met[: len(self._low)] = (self._smallest >= condition["low"]) & (self._largest <= condition["high"])
        return met


def days_of(text: str) -> int:
    """An ISO date as days since 1970-01-01."""
    return (dt.date.fromisoformat(text) - dt.date(1970, 1, 1)).days
