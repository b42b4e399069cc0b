"""From a checked request to drawn rows, block by block."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime

from service.samples.table.balancing import Balancing
from service.samples.table.base import Columns, Mask, SamplingError
from service.samples.table.blocks import (
    Block,
    Chunk,
    Dealt,
    InOrder,
    Part,
    block_by_block,
    chunk_by_chunk,
    sizes_of_blocks,
)
from service.samples.table.columns import CategoryColumn, quoted
from service.samples.table.dealing import deal, dealt_codes, dealt_noise
from service.samples.table.exclusions import PATIENCE, RAREST, Exclusions, Origin
from service.samples.table.hierarchies import HierarchyColumn
from service.samples.table.network import Network
from service.samples.table.relations import Relations
from service.samples.table.written import RowColumn, Written, modelled_columns


@dataclass(frozen=True)
class Request:
    """A sample that was asked for: so many rows with this condition, if any, that pass these masks of columns."""

    rows: int
    seeds: np.random.SeedSequence
    given: int | None
    masks: Sequence[tuple[int, Mask]]


class TableSampler:
    """A generator and the domain of its columns. Immutable: threads may share one."""

    def __init__(self, config: Mapping[str, Any], session: onnxruntime.InferenceSession) -> None:
        if config.get("format") != 1 or config.get("kind") != "table":
            raise SamplingError("config.json is not of a kind this sampler knows; use the sample.py of the same ZIP")
        missing_value = config["missing_value"]
        self.missing_value: str = missing_value
        self._modelled = modelled_columns(config)
        self._written = Written(config, self._modelled, missing_value)
        self.columns: tuple[RowColumn, ...] = self._written.columns
        condition, frequencies = None, np.ones(1)
        if config["condition"] is not None:
            condition = [column.name for column in self._modelled].index(config["condition"]["column"])
            frequencies = np.array(config["condition"]["frequencies"], dtype=np.float64)
        self._network = Network(
            session,
            noise_dimension=config["noise_dimension"],
            widths=[column.size for column in self._modelled],
            condition=condition,
            frequencies=frequencies,
        )
        # Earlier bundles do not say what generator they hold: they draw as they did.
        self._balancing = Balancing(self._network, is_mixture=config.get("generator") == "mixture")
        relations = Relations(config.get("relations", []), self._written, condition)
        self._exclusions = Exclusions(config.get("exclusions", []), self._modelled, self._network, relations)
        self._condition = None if condition is None else self._modelled[condition].name
        self.rows_at_a_time = self._network.rows_at_a_time

    @classmethod
    def from_files(cls, config: Mapping[str, Any], onnx_bytes: bytes, *, threads: int = 1) -> TableSampler:
        """From the contents of config.json and generator.onnx; `threads` run the network (one is fastest here)."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        return cls(config, onnxruntime.InferenceSession(onnx_bytes, options, providers=["CPUExecutionProvider"]))

    @property
    def most_kept_bytes(self) -> int:
        """Of what is computed for samples and kept for the next."""
        return self._balancing.most_kept_bytes

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
        self._written.check_rows(rows)
        given: int | None = None
        masks: list[tuple[int, Mask]] = []
        for name, wanted in (where or {}).items():
            if name not in self.names:
                raise SamplingError(f"there is no column {name!r}; the columns are {', '.join(self.names)}")
            index = self.names.index(name)
            column = self.columns[index]
            is_given = name == self._condition and not isinstance(column, HierarchyColumn)
            if is_given and isinstance(column, CategoryColumn):
                given = column.code_of(wanted)
            else:
                masks.append((index, column.where(wanted)))
        return self._draws(Request(rows, np.random.SeedSequence(seed), given, masks), each)

    def chunks(
        self, rows: int, *, seed: int | None = None, where: Mapping[str, Any] | None = None
    ) -> Iterator[dict[str, list[Any]]]:
        """The same rows as plain values by column name: str, int, float, bool, ISO dates as str, None for missing."""
        for drawn in self.draws(rows, seed=seed, where=where):
            yield {c.name: c.to_values(d) for c, d in zip(self.columns, drawn, strict=True)}

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

    def _draws(self, request: Request, each: InOrder) -> Iterator[Columns]:
        kept_rows = 0
        for number, columns in enumerate(self._drawn_chunks(request, each), start=1):
            drawn_rows = number * self.rows_at_a_time
            kept = [column[: request.rows - kept_rows] for column in columns]
            kept_rows += len(kept[0])
            if drawn_rows >= PATIENCE and kept_rows * RAREST < drawn_rows:
                raise SamplingError(f"fewer than 1 in {RAREST:,} rows meet the condition; ask for a more common value")
            if len(kept[0]):
                yield self._written.numbered(kept, kept_rows - len(kept[0]), request.seeds)
            if kept_rows == request.rows:
                return

    def _drawn_chunks(self, request: Request, each: InOrder) -> Iterator[Columns]:
        """What the masks leave of each chunk: rejection sampling."""
        is_balanced, is_over = self._balancing.applies(request.rows), threading.Event()

        def deal_block(block: Block, rng: np.random.Generator) -> Dealt:
            dealt = deal(self._network, block.rows, rng, request.given)
            if not is_balanced:
                return dealt
            return self._balancing.choose(
                block, dealt, request.given, sample_rows=request.rows, is_wanted=lambda: not is_over.is_set()
            )

        def draw(part: Part) -> list[Columns]:
            return [columns for chunk in part if (columns := draw_chunk(chunk))]

        def draw_chunk(chunk: Chunk) -> Columns:
            dealt = chunk.block.dealt(deal_block)
            if chunk.rows.stop == 0 or is_over.is_set():
                return []
            columns = self._written.made(self._draw(chunk, dealt, request.given))
            for index, mask in request.masks:
                keep = mask(columns[index])
                columns = [column[keep] for column in columns]
            return columns

        seeds = (np.random.SeedSequence(request.seeds.entropy, spawn_key=(number,)) for number in itertools.count())
        sizes = sizes_of_blocks(
            request.rows, self.rows_at_a_time, is_balanced=is_balanced, are_rejected=bool(request.masks)
        )
        # What takes long is the chunks, or, of balanced rows, the block.
        in_parts = block_by_block if is_balanced else chunk_by_chunk
        try:
            parts = in_parts(map(Block, sizes, seeds), self.rows_at_a_time)
            yield from itertools.chain.from_iterable(each(draw, parts))
        finally:
            is_over.set()  # blocks that were begun ahead need not be finished

    def _draw(self, chunk: Chunk, dealt: Dealt, given: int | None) -> Columns:
        """Rows with values inside their cells, by random numbers of the chunk's own."""
        rng = chunk.block.rng_at(chunk.rows.start)
        if dealt.codes is not None:
            drawn = [codes[chunk.rows] for codes in dealt.codes]
        else:
            drawn = [codes for (codes,) in dealt_codes(self._network, dealt, chunk.rows, rng)]
        columns = [column.fill(codes, rng) for column, codes in zip(self._modelled, drawn, strict=True)]
        if not self._exclusions.any(columns):
            return columns
        # The random numbers of these rows' noise once more.
        again = chunk.block.rng_at(chunk.rows.start, of_balanced=dealt.codes is not None)
        noise = dealt_noise(self._network, dealt, chunk.rows, again)
        return self._exclusions.replaced(columns, Origin(noise, dealt.condition[chunk.rows], given), rng)
