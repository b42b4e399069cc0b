"""Draws synthetic rows from a published table generator. Needs numpy and onnxruntime, nothing else.

    python sample.py --rows 1000
    python sample.py --rows 1000 --seed 7 --where CLASS:1 --format jsonl -o rows.jsonl

A row: draw noise z ~ N(0, I) and, for a conditional generator, the value of its condition column; the network turns
them into logits, side by side for all columns; each other column is one independent draw from the softmax of its own
logits. A drawn cell is a category, or an interval of a public grid, in which the value is one that many rows share, as often as
config.json says, or uniform. A row that its schema excludes gets other values. Rows are dealt in blocks that share coins (`_Dealt`), and those of a mixture are drawn twice to
choose from (`_balance`), so that tables of a sample vary less than those of independent rows.
"""

from __future__ import annotations

import argparse
import datetime as dt
import functools
import itertools
import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

Array = np.ndarray[Any, Any]
Mask = Callable[[Array], Array]
Columns = list[Array]
InOrder = Callable[[Callable[["_Part"], list[Columns]], Iterable["_Part"]], Iterator[list[Columns]]]
"""As `map`: what to do with a part, and the parts, made as they are asked for -> drawn ones in that order."""

LOGITS_AT_A_TIME = 2**22  # bounds the memory of a draw, without letting very wide tables crawl
ROWS_AT_A_TIME = (256, 4_096)
CHUNKS_OF_A_BLOCK = 8
MOST_SIGNS = 16  # of a noise that says no more: a mixture's, whose rows with the same ones are alike
BALANCED_ROWS = range(32, 1_000_001)  # fewer: most pairs of cells hold a row or none; more: dice matter less
MOST_BALANCED_CELLS = 2_048  # of all columns: a block's two-way tables have their square
TABLES_KEPT = 4  # of a mixture: of all its rows, and of the conditions that were last asked for
LONG = 262_144  # rows of a sample whose balanced blocks begin small
RAREST = 10_000  # a condition that fewer than 1 in this many rows meet is refused
PATIENCE = 200_000  # rows drawn before that is judged
TURNS_OF_EXCLUSIONS = 3  # in which an excluded row gets other values; then it is drawn anew:
DRAWN_ANEW = 256  # such rows at least,
DRAWS_OF_A_COMPONENT = 20  # from the component they come from; then from any,
DRAWS_OF_A_CONDITION = 200  # and if these are excluded, too, under another condition
POINT = 2.0**-40  # of a range: a cell that is narrower holds its first value alone
_TAKING_TURNS = threading.Lock()  # at short array operations: threads side by side in them are slower than in turn


class SamplingError(ValueError):
    """The request cannot be met; the message says why and what to do."""


class CategoryColumn:
    """Declared categories. A drawn column is their codes; null, where allowed, is the last of `values`."""

    def __init__(self, config: Mapping[str, Any], missing_value: str) -> None:
        self.name: str = config["name"]
        self.type: str = config["type"]
        self.size: int = config["size"]
        self.missing: bool = config["values"][-1] is None
        self.values = [float(v) if self.type == "number" and v is not None else v for v in config["values"]]
        plain = [missing_value if v is None else _text(v) for v in self.values]
        self._code_of_text: dict[str, int] = {}
        for code, text in enumerate(plain):
            self._code_of_text.setdefault(text, code)
        self._values = _objects(self.values)
        self._texts = _objects(
            [quoted(text, empty_too=v is not None) for v, text in zip(self.values, plain, strict=True)]
        )
        self._jsons = _objects([json.dumps(v, ensure_ascii=False) for v in self.values])

    def fill(self, codes: Array, _rng: np.random.Generator) -> Array:
        return codes

    def to_values(self, drawn: Array) -> list[Any]:
        return self._values[drawn].tolist()  # type: ignore[no-any-return]

    def to_texts(self, drawn: Array) -> list[str]:
        return self._texts[drawn].tolist()  # type: ignore[no-any-return]

    def to_jsons(self, drawn: Array) -> list[str]:
        return self._jsons[drawn].tolist()  # type: ignore[no-any-return]

    def code_of(self, wanted: Any) -> int:
        """The code of a value, given as itself or as text."""
        if wanted is None and self.missing:
            return self.size - 1
        text = _text(wanted)
        if self.type == "number":
            with suppress(ValueError):
                text = _text(float(text))
        if text not in self._code_of_text:
            some = ", ".join(list(self._code_of_text)[:20])
            raise SamplingError(f"{self.name} has no value {text!r}; its values are: {some}")
        return self._code_of_text[text]

    def where(self, wanted: Any) -> Mask:
        code = self.code_of(wanted)
        return lambda drawn: drawn == code

    def meets(self, condition: Mapping[str, Any]) -> Mask:
        """Of an exclusion: one of these values."""
        cells = self.cells_of(condition)
        return lambda drawn: cells[drawn]

    def cells_of(self, condition: Mapping[str, Any]) -> Array:
        """(size,) which categories meet it."""
        return np.isin(np.arange(self.size), [self.code_of(value) for value in condition["values"]])


class _SharedValues:
    """Values of a range that many rows share: increasing pairs of one and of the part of its cell's rows that have it."""

    def __init__(self, config: Sequence[Sequence[float]], edges: Array) -> None:
        self.values, shares = np.array(config, dtype=np.float64).T
        self.cells = cells = np.searchsorted(edges[1:-1], self.values, side="right")
        all_of_cell = np.bincount(cells, weights=shares, minlength=len(edges) - 1)
        before = np.concatenate([[0.0], np.cumsum(all_of_cell)])
        self._all_of_cell = np.minimum(all_of_cell, 1.0)
        self._up_to = cells + np.minimum(np.cumsum(shares) - before[cells], 1.0)

    def draw(self, cells: Array, uniforms: Array) -> tuple[Array, Array]:
        """A value that rows of its cell share for each row, or NaN; and for these uniform numbers again."""
        found = np.searchsorted(self._up_to, cells + uniforms, side="right").clip(max=len(self.values) - 1)
        of_cell = self._all_of_cell[cells]
        is_shared = uniforms < of_cell
        left = np.where(is_shared, 0.0, (uniforms - of_cell) / np.maximum(1.0 - of_cell, 2.0**-53))
        left = np.minimum(left, 1.0 - 2.0**-53)  # quotients round
        return np.where(is_shared & (self.cells[found] == cells), self.values[found], np.nan), left


class GridColumn:
    """A range cut into cells. A drawn column is a masked array of numbers; masked is missing.

    Values are whole multiples of a step: 1 for integers, days and seconds, or the declared resolution's seconds; for numbers the declared decimals, or
    the power of ten that cuts the cell into at least a thousand, so that they are written shortly. Cells are [low, high), and the last cell of a
    number column includes its end. A cell next to nothing beside the range holds one value: zero, which many rows may share.
    """

    def __init__(self, config: Mapping[str, Any], missing_value: str) -> None:
        self.name: str = config["name"]
        self.type: str = config["type"]
        self.size: int = config["size"]
        self.missing: bool = config["missing"]
        self.edges = np.array(config["edges"], dtype=np.float64)
        self._missing_value = missing_value
        self._missing_text = quoted(missing_value, empty_too=False)
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
        self._low, self._high, self._first, self._steps_per_one = low, high, first, steps_per_one
        self._steps = np.maximum(last - first + 1, 1)  # a cell too narrow for a step holds its end
        self._steps[np.diff(self.edges) < POINT * (self.edges[-1] - self.edges[0])] = 1
        self._smallest, self._largest = (
            np.clip(ends / steps_per_one * self._step, low, high) for ends in (first, first + self._steps - 1)
        )
        self._shared = None
        if config.get("shared_values"):
            self._shared = _SharedValues(config["shared_values"], self.edges)
            np.minimum.at(self._smallest, self._shared.cells, self._shared.values)
            np.maximum.at(self._largest, self._shared.cells, self._shared.values)

    def fill(self, codes: Array, rng: np.random.Generator) -> Array:
        """A value inside each drawn cell: one that many rows share, or a uniform one."""
        cells = np.minimum(codes, len(self._steps) - 1)
        uniforms = rng.random(len(cells))
        shared = None
        if self._shared is not None:
            shared, uniforms = self._shared.draw(cells, uniforms)
        numbers = self._first[cells] + np.floor(uniforms * self._steps[cells])
        if self.type == "number":
            numbers = np.clip(numbers / self._steps_per_one[cells], self._low[cells], self._high[cells])
        else:
            numbers *= self._step
        if shared is not None:
            numbers = np.where(np.isnan(shared), numbers, shared)
        if self.type != "number":
            numbers = numbers.astype(np.int64)
        return np.ma.MaskedArray(numbers, mask=codes == self.size - 1 if self.missing else np.ma.nomask)

    def to_values(self, drawn: Array) -> list[Any]:
        values: list[Any]
        if self.type == "date":
            values = np.datetime_as_string(np.ma.getdata(drawn).astype("datetime64[D]")).tolist()
        elif self.type == "datetime":
            values = np.datetime_as_string(np.ma.getdata(drawn).astype("datetime64[s]")).tolist()
        else:
            values = np.ma.getdata(drawn).tolist()
        return self._with_missing(values, drawn, None)

    def to_texts(self, drawn: Array) -> list[str]:
        return self._with_missing(list(map(str, self.to_values(drawn))), drawn, self._missing_text)

    def to_jsons(self, drawn: Array) -> list[str]:
        pattern = "%s" if self.type in {"integer", "number"} else '"%s"'
        return self._with_missing([pattern % value for value in self.to_values(drawn)], drawn, "null")

    def _with_missing(self, values: list[Any], drawn: Array, missing: Any) -> list[Any]:
        if self.missing:
            for index in np.flatnonzero(np.ma.getmaskarray(drawn)).tolist():
                values[index] = missing
        return values

    def where(self, wanted: Any) -> Mask:
        if self.missing and (wanted is None or wanted == self._missing_value):
            return np.ma.getmaskarray
        if self.type not in {"integer", "date"}:
            raise SamplingError(
                f"{self.name}: a {self.type} cannot be a condition; take a category, an integer or a date"
            )
        try:
            number = int(_text(wanted)) if self.type == "integer" else _days(_text(wanted))
        except ValueError:
            raise SamplingError(f"{self.name}: {wanted!r} is not a value of a column of type {self.type}") from None
        if not self.edges[0] <= number < self.edges[-1]:
            raise SamplingError(f"{self.name}: {wanted!r} is outside its declared range")
        return lambda drawn: np.ma.filled(drawn == number, fill_value=False)

    def meets(self, condition: Mapping[str, Any]) -> Mask:
        """Of an exclusion: a number in this range, ends included; or, of `values`, which can only be [None], a missing one."""
        if "values" in condition:
            return np.ma.getmaskarray
        low, high = condition["low"], condition["high"]
        return lambda drawn: np.ma.filled((drawn >= low) & (drawn <= high), fill_value=False)

    def cells_of(self, condition: Mapping[str, Any]) -> Array:
        """(size,) the cells all of whose values meet it."""
        met = np.zeros(self.size, dtype=bool)
        if "values" in condition:
            met[-1] = True
        else:
            met[: len(self._low)] = (self._smallest >= condition["low"]) & (self._largest <= condition["high"])
        return met


@dataclass(frozen=True)
class _Dealt:
    """What rows that share coins have been dealt. Each row for itself has fair and independent ones.

    Conditions come by systematic sampling, the signs of the noise (a mixture's components) evenly within each condition.
    Rows of a mixture alike in both are dealt each column's thresholds evenly over (0, 1), in an order of that column's own:
    a Latin hypercube (McKay, Beckman and Conover 1979). So fewer of the differences to the generator are chance.
    """

    condition: Array  # (rows,) int64
    signs: Array  # (rows,) int64: bit d tells the sign of coordinate d of the noise
    sign_count: int
    thresholds: Array | None  # (columns, rows) float32; None where no two rows are alike
    codes: Array | None = None  # (columns, rows) where rows were balanced: already drawn


class _Block:
    """Rows that share coins. They are dealt by the first thread that asks for them."""

    def __init__(self, rows: int, coins: np.random.SeedSequence) -> None:
        self.rows, self.coins = rows, coins
        self._dealt: _Dealt | None = None
        self._lock = threading.Lock()

    def dealt(self, deal: Callable[[_Block, np.random.Generator], _Dealt]) -> _Dealt:
        """What it has been dealt."""
        with self._lock:
            if self._dealt is None:
                self._dealt = deal(self, np.random.Generator(np.random.PCG64(self.coins)))
            return self._dealt

    def coins_of(self, rows: slice) -> np.random.Generator:
        """Coins of some rows' own, by their place in the block."""
        own = np.random.SeedSequence(self.coins.entropy, spawn_key=(*self.coins.spawn_key, rows.start))
        return np.random.Generator(np.random.PCG64(own))


@dataclass(frozen=True)
class _Chunk:
    """Rows of a block that are drawn at a time; with no row at all, the block is dealt, ahead of its chunks."""

    block: _Block
    rows: slice


_Part = list[_Chunk]
"""What one thread draws before it takes up anything else."""


@dataclass(frozen=True)
class _Request:
    """A sample that was asked for: so many rows with this condition, if any, that pass these masks of columns."""

    rows: int
    coins: np.random.SeedSequence
    given: int | None
    masks: Sequence[tuple[int, Mask]]


@dataclass(frozen=True)
class _Exclusion:
    """What no row has: values that pass all of these masks of columns."""

    masks: Sequence[tuple[int, Mask]]
    changed: int  # the column that gives way: the last that is named, but for the condition
    excluded: Array  # (cells,) of it that meet its own mask as a whole

    def rows(self, columns: Columns) -> Array:
        """(rows,) which of them have it."""
        found: Array = np.logical_and.reduce([mask(columns[index]) for index, mask in self.masks])
        return found


class TableSampler:
    """A generator and the domain of its columns. Immutable: threads may share one."""

    def __init__(self, config: Mapping[str, Any], session: onnxruntime.InferenceSession) -> None:
        if config.get("format") != 1 or config.get("kind") != "table":
            raise SamplingError("config.json is not of a kind this sampler knows; use the sample.py of the same ZIP")
        missing_value = config["missing_value"]
        self.missing_value: str = missing_value
        self.columns: tuple[CategoryColumn | GridColumn, ...] = tuple(
            CategoryColumn(c, missing_value) if "values" in c else GridColumn(c, missing_value)
            for c in config["columns"]
        )
        self._session = session
        self._is_mixture = config.get("generator") == "mixture"  # not said by earlier bundles: they draw as they did
        self._noise_dimension: int = config["noise_dimension"]
        self._condition: int | None = None
        frequencies = np.ones(1)
        if config["condition"] is not None:
            self._condition = self.names.index(config["condition"]["column"])
            frequencies = np.array(config["condition"]["frequencies"], dtype=np.float64)
        self._cumulative_frequencies = np.cumsum(frequencies / frequencies.sum())
        self._exclusions = [self._exclusion(conditions) for conditions in config.get("exclusions", [])]
        widths = [column.size for column in self.columns]
        self._offsets = np.concatenate([[0], np.cumsum(widths)]).tolist()
        self._expected_tables = functools.lru_cache(TABLES_KEPT)(self._tables_of_all_components)
        self.rows_at_a_time = int(np.clip(LOGITS_AT_A_TIME // self._offsets[-1], *ROWS_AT_A_TIME))

    def _exclusion(self, conditions: Sequence[Mapping[str, Any]]) -> _Exclusion:
        by_place = {self.names.index(condition["column"]): condition for condition in conditions}
        changed = [place for place in by_place if place != self._condition][-1]
        return _Exclusion(
            masks=[(place, self.columns[place].meets(condition)) for place, condition in by_place.items()],
            changed=changed,
            excluded=self.columns[changed].cells_of(by_place[changed]),
        )

    @classmethod
    def from_files(cls, config: Mapping[str, Any], onnx_bytes: bytes, *, threads: int = 1) -> TableSampler:
        """From the contents of config.json and generator.onnx; `threads` run the network (one is fastest here)."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        return cls(config, onnxruntime.InferenceSession(onnx_bytes, options, providers=["CPUExecutionProvider"]))

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def parse_where(self, text: str) -> dict[str, str]:
        """`COLUMN:VALUE` as a condition; the name may itself hold colons."""
        for at in (i for i, character in enumerate(text) if character == ":"):
            if text[:at] in self.names:
                return {text[:at]: text[at + 1 :]}
        raise SamplingError(f"{text!r} is not COLUMN:VALUE with one of the columns {', '.join(self.names)}")

    def draws(
        self,
        rows: int,
        *,
        seed: int | None = None,
        where: Mapping[str, Any] | None = None,
        each: InOrder = map,
    ) -> Iterator[Columns]:
        """Chunks of drawn columns (see the column classes), `rows` rows in all, memory bounded.

        The request is checked at once, before the first chunk is asked for. The same seed, number of rows and condition
        give the same rows. `each` is `map`, or what gives the same but draws some parts side by side.
        """
        if rows < 0 or (seed is not None and seed < 0):
            raise SamplingError("rows and seed must not be negative")
        given: int | None = None
        masks: list[tuple[int, Mask]] = []
        for name, wanted in (where or {}).items():
            if name not in self.names:
                raise SamplingError(f"there is no column {name!r}; the columns are {', '.join(self.names)}")
            index = self.names.index(name)
            column = self.columns[index]
            if index == self._condition and isinstance(column, CategoryColumn):
                given = column.code_of(wanted)
            else:
                masks.append((index, column.where(wanted)))
        return self._draws(_Request(rows, np.random.SeedSequence(seed), given, masks), each)

    def chunks(
        self, rows: int, *, seed: int | None = None, where: Mapping[str, Any] | None = None
    ) -> Iterator[dict[str, list[Any]]]:
        """The same rows as plain values by column name: str, int, float, bool, ISO dates as str, None for missing."""
        for drawn in self.draws(rows, seed=seed, where=where):
            yield {c.name: c.to_values(d) for c, d in zip(self.columns, drawn, strict=True)}

    def _draws(self, request: _Request, each: InOrder) -> Iterator[Columns]:
        kept_rows = 0
        for drawn, columns in enumerate(self._drawn_chunks(request, each), start=1):
            kept = [column[: request.rows - kept_rows] for column in columns]
            kept_rows += len(kept[0])
            if drawn * self.rows_at_a_time >= PATIENCE and kept_rows * RAREST < drawn * self.rows_at_a_time:
                raise SamplingError(f"fewer than 1 in {RAREST:,} rows meet the condition; ask for a more common value")
            if len(kept[0]):
                yield kept
            if kept_rows == request.rows:
                return

    def _drawn_chunks(self, request: _Request, each: InOrder) -> Iterator[Columns]:
        """What is left of each chunk by the masks: rejection sampling."""
        is_balanced, is_over = self._is_balanced(request.rows), threading.Event()

        def deal(block: _Block, rng: np.random.Generator) -> _Dealt:
            dealt = self._deal(block.rows, rng, request.given)
            if not is_balanced:
                return dealt
            return self._balanced(block, dealt, request, is_wanted=lambda: not is_over.is_set())

        def draw(part: _Part) -> list[Columns]:
            return [columns for chunk in part if (columns := draw_chunk(chunk))]

        def draw_chunk(chunk: _Chunk) -> Columns:
            dealt = chunk.block.dealt(deal)
            if chunk.rows.stop == 0 or is_over.is_set():
                return []
            columns = self._draw(chunk, dealt, request.given)
            for index, mask in request.masks:
                keep = mask(columns[index])
                columns = [column[keep] for column in columns]
            return columns

        seeds = (np.random.SeedSequence(request.coins.entropy, spawn_key=(number,)) for number in itertools.count())
        every_block = map(_Block, self._sizes_of_blocks(request.rows, are_rejected=bool(request.masks)), seeds)
        # What takes long is the chunks, or, of balanced rows, the block.
        in_parts = _block_by_block if is_balanced else _chunk_by_chunk
        try:
            yield from itertools.chain.from_iterable(each(draw, in_parts(every_block, self.rows_at_a_time)))
        finally:
            is_over.set()  # blocks that were begun ahead need not be finished

    def _sizes_of_blocks(self, rows: int, *, are_rejected: bool) -> Iterator[int]:
        """As many as need be, as large as each other; where rows are rejected nobody knows how many, and the largest serve best."""
        largest = CHUNKS_OF_A_BLOCK * self.rows_at_a_time
        if self._is_balanced(rows) and rows > LONG:
            # Balanced blocks are there all at once: those of a long sample begin small, so that nobody waits for the first.
            for doubled in range(CHUNKS_OF_A_BLOCK.bit_length() - 1):
                yield self.rows_at_a_time << doubled
                rows -= self.rows_at_a_time << doubled
        blocks = -(-rows // largest)
        if are_rejected and rows:
            yield from itertools.repeat(largest)
        yield from itertools.repeat(-(-rows // max(blocks, 1)), blocks)

    def _deal(self, rows: int, rng: np.random.Generator, given: int | None) -> _Dealt:
        """`given` fixes the condition."""
        places = rng.permutation(rows)
        if given is None:
            shares = (places + rng.random()) / rows
            condition = np.searchsorted(self._cumulative_frequencies, shares, side="right")
            condition = np.minimum(condition, len(self._cumulative_frequencies) - 1).astype(np.int64)
        else:
            condition = np.full(rows, given, dtype=np.int64)
        # The bits of a place, lowest first, take turns along any stretch of places: a van der Corput sequence.
        sign_count = min(self._noise_dimension, (rows - 1).bit_length())
        signs = (places ^ int(rng.integers(1 << sign_count))) & ((1 << sign_count) - 1)
        thresholds = None
        if self._noise_dimension <= MOST_SIGNS:
            thresholds = _thresholds(condition << sign_count | signs, len(self.columns), rng)
        return _Dealt(condition, signs, sign_count, thresholds)

    def _is_balanced(self, rows: int) -> bool:
        """Of a mixture, whose two-way tables are soon known; a network's would have to be drawn themselves."""
        return self._is_mixture and self._offsets[-1] <= MOST_BALANCED_CELLS and rows in BALANCED_ROWS

    def _balanced(self, block: _Block, dealt: _Dealt, request: _Request, *, is_wanted: Callable[[], bool]) -> _Dealt:
        """The block drawn, its rows chosen between two draws for the tables they make together; given up once nobody wants it."""
        firsts = np.array(self._offsets[:-1])[:, None]
        cells, others = draws = np.empty((2, len(self.columns), block.rows), dtype=np.int64)
        for start in range(0, block.rows, self.rows_at_a_time):
            if not is_wanted():
                return dealt
            rows = slice(start, min(start + self.rows_at_a_time, block.rows))
            coins = block.coins_of(self._place_of_coins(block, start, are_balanced=True))
            for column, codes in enumerate(self._draw_cells(dealt, rows, coins, draws=2)):
                draws[:, column, rows] = codes
        draws += firsts
        with _TAKING_TURNS:
            if not is_wanted():
                return dealt
            expected = self._expected_tables(request.given) * np.float32(block.rows)
            _balance(cells, others, expected, _at_a_time(request.rows, block.rows))
        return replace(dealt, thresholds=None, codes=(cells - firsts).astype(np.uint16))

    @staticmethod
    def _place_of_coins(block: _Block, start: int, are_balanced: bool) -> slice:
        """Whose coins draw the cells of rows from here on: of balanced rows at another place than the chunk's, whose fill them."""
        return slice(block.rows + start if are_balanced else start, None)

    def _tables_of_all_components(self, given: int | None) -> Array:
        """Of one row of a mixture: (cells, cells + 1) chances of each two cells, and of each alone."""
        components = 1 << self._noise_dimension
        frequencies = np.diff(self._cumulative_frequencies, prepend=0.0)
        tables = np.zeros((self._offsets[-1], self._offsets[-1] + 1), dtype=np.float32)
        for condition, frequency in enumerate(frequencies):
            weight = frequency if given is None else float(condition == given)
            for start in range(0, components if weight else 0, self.rows_at_a_time):
                signs = np.arange(start, min(start + self.rows_at_a_time, components))
                noise = np.where(signs[:, None] >> np.arange(self._noise_dimension) & 1, np.float32(-1), np.float32(1))
                chances = self._logits(noise, np.full(len(signs), condition))
                for index, (first, last) in enumerate(itertools.pairwise(self._offsets)):
                    own = chances[:, first:last]
                    if index == self._condition:
                        own[:] = np.arange(last - first) == condition
                        continue
                    np.exp(own - own.max(axis=1, keepdims=True), out=own)
                    own /= own.sum(axis=1, keepdims=True)
                share = np.float32(weight / components)
                tables[:, :-1] += chances.T @ chances * share
                tables[:, -1] += chances.sum(axis=0) * share
        return tables

    def _draw(self, chunk: _Chunk, dealt: _Dealt, given: int | None) -> Columns:
        """Rows with values inside their cells from coins of the chunk's own."""
        rng = chunk.block.coins_of(chunk.rows)
        if dealt.codes is not None:
            drawn = [codes[chunk.rows] for codes in dealt.codes]
        else:
            drawn = [codes for (codes,) in self._draw_cells(dealt, chunk.rows, rng)]
        columns = [column.fill(codes, rng) for column, codes in zip(self.columns, drawn, strict=True)]
        return self._without_excluded(columns, chunk, dealt, given, rng) if self._exclusions else columns

    def _without_excluded(
        self, columns: Columns, chunk: _Chunk, dealt: _Dealt, given: int | None, rng: np.random.Generator
    ) -> Columns:
        """Rows that the schema excludes get other values from the components they come from, or are drawn anew as a whole."""
        if not self._excluded(columns).any():
            return columns
        columns = [column.copy() for column in columns]
        # The coins of these rows' noise once more.
        coins = chunk.block.coins_of(self._place_of_coins(chunk.block, chunk.rows.start, dealt.codes is not None))
        noise, condition = self._noise(dealt, chunk.rows, coins), dealt.condition[chunk.rows]
        for exclusion in self._exclusions * TURNS_OF_EXCLUSIONS:
            rows, (first, last) = np.flatnonzero(exclusion.rows(columns)), self._offsets[exclusion.changed :][:2]
            if len(rows) and not exclusion.excluded.all():
                logits = self._logits(noise[rows], condition[rows])[:, first:last]
                logits[:, exclusion.excluded] = -np.inf
                codes = _reached(_cumulative(_transposed(logits)), rng.random(len(rows), dtype=np.float32))
                columns[exclusion.changed][rows] = self.columns[exclusion.changed].fill(codes, rng)
        self._draw_anew(columns, np.flatnonzero(self._excluded(columns)), noise, condition, given, rng)
        return columns

    def _excluded(self, columns: Columns) -> Array:
        """Which rows are such as the schema says there are none of."""
        found: Array = np.logical_or.reduce([exclusion.rows(columns) for exclusion in self._exclusions])
        return found

    def _draw_anew(
        self,
        columns: Columns,
        places: Array,
        noise: Array,
        condition: Array,
        given: int | None,
        rng: np.random.Generator,
    ) -> None:
        """Rows at these places that are not excluded: from the same component, or else under the same condition, or else any."""
        drawn, found, draws_of_each = 0, 0, 0.0
        while len(places):
            asked = np.resize(places, max(len(places), DRAWN_ANEW))
            of_rows, under = noise[asked], condition[asked]
            if draws_of_each >= DRAWS_OF_A_COMPONENT:
                of_rows = rng.standard_normal(of_rows.shape, dtype=np.float32)
            if draws_of_each >= DRAWS_OF_A_CONDITION and given is None:
                under = np.searchsorted(self._cumulative_frequencies[:-1], rng.random(len(asked)), side="right")
            codes = (codes for (codes,) in self._cells(of_rows, under, rng))
            rows = [column.fill(own, rng) for column, own in zip(self.columns, codes, strict=True)]
            kept = np.flatnonzero(~self._excluded(rows))
            there, first = np.unique(asked[kept], return_index=True)
            for column, anew in zip(columns, rows, strict=True):
                column[there] = anew[kept[first]]
            drawn, found = drawn + len(asked), found + len(kept)
            draws_of_each += len(asked) / len(places)
            places = np.setdiff1d(places, there, assume_unique=True)
            if drawn >= PATIENCE and found * RAREST < drawn:
                under_it = "" if given is None else "; ask for another condition"
                raise SamplingError(f"the schema excludes all but 1 in {RAREST:,} of these rows{under_it}")

    def _draw_cells(
        self, dealt: _Dealt, rows: slice, rng: np.random.Generator, *, draws: int = 1
    ) -> Iterator[list[Array]]:
        """The codes of one column after the other, in each draw: by the thresholds dealt, where they are, then by new ones."""
        thresholds = None if dealt.thresholds is None else dealt.thresholds[:, rows]
        return self._cells(
            self._noise(dealt, rows, rng), dealt.condition[rows], rng, thresholds=thresholds, draws=draws
        )

    def _noise(self, dealt: _Dealt, rows: slice, rng: np.random.Generator) -> Array:
        """(rows, noise dimension) with the signs dealt."""
        signs = dealt.signs[rows]
        noise = rng.standard_normal((len(signs), self._noise_dimension), dtype=np.float32)
        minus = (signs[:, None] >> np.arange(dealt.sign_count) & 1).astype(bool)
        leading = noise[:, : dealt.sign_count]
        np.copysign(leading, np.where(minus, np.float32(-1), np.float32(1)), out=leading)
        return noise

    def _cells(
        self,
        noise: Array,
        condition: Array,
        rng: np.random.Generator,
        *,
        thresholds: Array | None = None,
        draws: int = 1,
    ) -> Iterator[list[Array]]:
        """The codes of one column after the other, in each draw: by these thresholds, where there are any, then by new ones."""
        # One vector per cell: every step below runs along the rows.
        by_cell = _transposed(self._logits(noise, condition))
        for index, (first, last) in enumerate(itertools.pairwise(self._offsets)):
            if index == self._condition:
                yield [condition] * draws
                continue
            cumulative = _cumulative(by_cell[first:last])
            dealt = [] if thresholds is None else [thresholds[index]]
            new = (rng.random(len(noise), dtype=np.float32) for _ in range(draws - len(dealt)))
            yield [_reached(cumulative, own) for own in itertools.chain(dealt, new)]

    def _logits(self, noise: Array, condition: Array) -> Array:
        """Of the network: (rows, total width)."""
        inputs = {"noise": noise} if self._condition is None else {"noise": noise, "condition": condition}
        (logits,) = self._session.run(["logits"], inputs)
        return logits  # type: ignore[no-any-return]

    def csv(self, rows: int, *, seed: int | None = None, where: Mapping[str, Any] | None = None) -> Iterator[str]:
        """CSV (RFC 4180) in pieces, header first."""
        draws = self.draws(rows, seed=seed, where=where)
        yield ",".join(quoted(name, empty_too=True) for name in self.names) + "\n"
        for drawn in draws:
            texts = [c.to_texts(d) for c, d in zip(self.columns, drawn, strict=True)]
            if len(texts) == 1:  # an empty line would be no row at all
                texts = [[text or '""' for text in texts[0]]]
            yield "\n".join(map(",".join, zip(*texts, strict=True))) + "\n"

    def jsonl(self, rows: int, *, seed: int | None = None, where: Mapping[str, Any] | None = None) -> Iterator[str]:
        """One JSON object per line, in pieces."""
        names = [json.dumps(name, ensure_ascii=False).replace("%", "%%") for name in self.names]
        line = "{" + ",".join(name + ":%s" for name in names) + "}\n"
        for drawn in self.draws(rows, seed=seed, where=where):
            jsons = [c.to_jsons(d) for c, d in zip(self.columns, drawn, strict=True)]
            yield "".join(map(line.__mod__, zip(*jsons, strict=True)))


def _chunks_of(block: _Block, rows: int) -> Iterator[_Chunk]:
    """So many rows at a time."""
    for start in range(0, block.rows, rows):
        yield _Chunk(block, slice(start, min(start + rows, block.rows)))


def _block_by_block(blocks: Iterator[_Block], rows: int) -> Iterator[_Part]:
    """All chunks of a block."""
    return (list(_chunks_of(block, rows)) for block in blocks)


def _chunk_by_chunk(blocks: Iterator[_Block], rows: int) -> Iterator[_Part]:
    """Each chunk for itself; after a block's first one, the next block to be dealt."""
    block = next(blocks, None)
    while block is not None:
        following = next(blocks, None)
        for number, chunk in enumerate(_chunks_of(block, rows)):
            yield [chunk]
            if number == 0 and following is not None:
                yield [_Chunk(following, slice(0))]
        block = following


def _thresholds(groups: Array, columns: int, rng: np.random.Generator) -> Array:
    """(columns, rows) float32 in [0, 1]: each uniform and independent of the row's others, and even over a group's rows.

    Along one column the k rows of a group (groups (rows,) int64, not negative) have thresholds 1/k apart, dealt in random
    order.
    """
    rows = len(groups)
    place_bits = max(1, (rows - 1).bit_length())
    coin_bits = 63 - place_bits - int(groups.max()).bit_length()
    keys = groups << (coin_bits + place_bits) | np.arange(rows)
    in_order = np.sort(groups)
    sizes = np.diff(np.flatnonzero(np.diff(in_order, prepend=-1)), append=rows)
    before = np.arange(rows) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # rows of the same group
    lowest = (before / np.repeat(sizes, sizes)).astype(np.float32)
    thresholds = np.empty((columns, rows), dtype=np.float32)
    for dealt in thresholds:
        coins = rng.bit_generator.random_raw(rows).view(np.int64) & ((1 << coin_bits) - 1) << place_bits
        # One sort of whole numbers that end in their place is five times as fast as an argsort.
        shuffled = np.sort(keys | coins) & ((1 << place_bits) - 1)
        dealt[shuffled] = lowest + np.repeat((rng.random(len(sizes)) / sizes).astype(np.float32), sizes)
    return thresholds


def _transposed(logits: Array) -> Array:
    """A contiguous copy, a few hundred rows at a time: in half the time of one at once."""
    transposed = np.empty(logits.shape[::-1], dtype=logits.dtype)
    for start in range(0, len(logits), 512):
        transposed[:, start : start + 512] = logits[start : start + 512].T
    return transposed


def _cumulative(logits: Array) -> Array:
    """Sums of softmax weights (cells, rows), each column of them up to that cell; in place.

    Plain loops over cells, because numpy is slow along a first axis.
    """
    logits -= logits.max(axis=0)
    cumulative = np.exp(logits, out=logits)
    for cell in range(1, len(cumulative)):
        cumulative[cell] += cumulative[cell - 1]
    return cumulative


def _reached(cumulative: Array, thresholds: Array) -> Array:
    """The cell of every row (rows,) that its threshold, uniform in [0, 1], comes to."""
    # Times a float32 sum of weights, more than this could round to the whole sum: to a cell without weight.
    reach = np.minimum(thresholds, np.float32(1 - 2**-23)) * cumulative[-1]
    codes: Array = np.zeros(len(reach), dtype=np.uint8 if len(cumulative) <= 256 else np.uint16)
    passed = np.empty(len(reach), dtype=bool)
    for reached in cumulative[:-1]:
        codes += np.less_equal(reached, reach, out=passed)
    return codes.astype(np.uint16)


def _at_a_time(rows: int, rows_of_block: int) -> int:
    """How many rows choose in a column at once: few in a small block, more in a long sample, of which a block is less."""
    return max(1, min(rows_of_block // 512, 4 + rows // 16_384, 24))


def _balance(cells: Array, others: Array, expected: Array, at_a_time: int) -> None:
    """Let each row take, column by column, the one of two draws that brings one- and two-way tables nearer to the expected.

    cells, others: (columns, rows) int64, cells of all columns numbered through; `cells` is changed in place.
    expected: (total, total + 1) float32 rows in each two cells, and in each alone.
    at_a_time: so many rows choose in a column at once; the fewer, the nearer.
    A row is as likely to hold a value as before, as long as a table is as often too full there as too empty. It is not where a cell
    expects less than a row: what is less than a row off is let be, and such cells still lose up to a tenth of their rows.
    """
    columns, rows = cells.shape
    excess = _excess(cells, expected)
    side, table = len(excess), excess.reshape(-1)
    alone = side - 1  # where a cell would stand beside itself, it is counted alone
    every, of_cells, of_others = np.arange(rows), cells.reshape(-1), others.reshape(-1)
    # The cell a row would leave has it already, the one it would enter has not: in between, neither has the better case.
    itself = np.array([[[-0.5]], [[0.5]]], dtype=np.float32)
    for turn in range(columns):
        asked = (every + turn) % columns  # each row in another column than the one before
        places = asked * rows + every
        draws = np.stack([of_cells.take(places), of_others.take(places)])
        differ = np.flatnonzero(draws[0] != draws[1])
        for start in range(0, len(differ), columns * at_a_time):
            some = differ[start : start + columns * at_a_time]
            own = asked.take(some) * len(some) + every[: len(some)]
            beside = cells.take(some, axis=1)
            beside.reshape(-1)[own] = alone
            both = draws.take(some, axis=1)
            felt = _felt(table.take(both[:, None] * side + beside) + itself)
            # A cell alone weighs as much as all its pairs.
            worth = felt.sum(axis=1) + np.float32(max(1, columns - 2)) * felt.reshape(2, -1).take(own, axis=1)
            moved = np.flatnonzero(worth[0] > worth[1])
            beside, (now, then) = beside.take(moved, axis=1), both.take(moved, axis=1)
            for change, cell in ((np.float32(-1), now), (np.float32(1), then)):
                np.add.at(table, (cell * side + beside).reshape(-1), change)
                np.add.at(table, (beside * side + cell).reshape(-1), change)
            of_cells[places[some[moved]]] = then


def _excess(cells: Array, expected: Array) -> Array:
    """(total + 1, total + 1) float32: how many rows more than expected are in each two cells and, in the last column, in each alone.

    Nobody looks at two cells of one column, nor at the last row.
    """
    side = expected.shape[1]
    excess = np.zeros((side, side), dtype=np.float32)
    for column, own in enumerate(cells):
        np.add.at(excess.reshape(-1), (own * side + cells[column + 1 :]).reshape(-1), np.float32(1))
    excess += excess.T
    excess[:-1, -1] = np.bincount(cells.reshape(-1), minlength=side - 1)
    # In sixteenths sums are exact, whatever their order.
    excess[:-1] -= np.rint(expected * np.float32(16)) / np.float32(16)
    return excess


def _felt(excess: Array) -> Array:
    """Nothing of less than a row."""
    excess *= np.abs(excess) > 1
    return excess


def _objects(items: Sequence[Any]) -> Array:
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _days(text: str) -> int:
    return (dt.date.fromisoformat(text) - dt.date(1970, 1, 1)).days


def quoted(text: str, *, empty_too: bool) -> str:
    """A CSV field; an empty category is quoted to tell it from a missing value."""
    if (empty_too and not text) or any(character in text for character in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw synthetic rows from the generator beside this file.")
    parser.add_argument("--rows", type=int, default=1_000, help="how many rows (default 1000)")
    parser.add_argument("--seed", type=int, help="makes the draw repeatable; without it every draw is new")
    parser.add_argument(
        "--where", action="append", default=[], metavar="COLUMN:VALUE", help="only rows with this value"
    )
    parser.add_argument("--format", choices=["csv", "jsonl"], default="csv")
    parser.add_argument("-o", "--output", type=Path, help="file to write (default: standard output)")
    arguments = parser.parse_args()
    folder = Path(__file__).resolve().parent
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    sampler = TableSampler.from_files(config, (folder / "generator.onnx").read_bytes())
    try:
        where: dict[str, str] = {}
        for text in arguments.where:
            where.update(sampler.parse_where(text))
        draw = sampler.csv if arguments.format == "csv" else sampler.jsonl
        pieces = draw(arguments.rows, seed=arguments.seed, where=where)
        if arguments.output:
            with arguments.output.open("w", encoding="utf-8", newline="") as file:
                file.writelines(pieces)
        else:
            for piece in pieces:
                sys.stdout.buffer.write(piece.encode())
            sys.stdout.flush()
    except SamplingError as error:
        parser.error(str(error))
    except BrokenPipeError:  # the reader has seen enough, as in `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
