"""From a checked request to drawn rows, block by block."""

from __future__ import annotations

import functools
import itertools
import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import onnxruntime

from service.base.messages import Message, whole
from service.samples.table.balancing import Balancing
from service.samples.table.base import Array, Columns, SamplingError
from service.samples.table.blocks import (
    Block,
    Chunk,
    Dealt,
    InOrder,
    Part,
    block_by_block,
    chunk_by_chunk,
    sizes_of_blocks,
    until_too_many,
)
from service.samples.table.columns import quoted
from service.samples.table.completing import Completion
from service.samples.table.components import (
    Components,
    components_of_mixture,
    components_of_network,
    in_groups,
    joined_columns,
    picked_evenly,
)
from service.samples.table.conditional import ConditionalRows, Mixture, conditional_rows, refuse_excluded
from service.samples.table.conditions import Conditions, Where
from service.samples.table.dealing import deal, dealt_codes, dealt_noise
from service.samples.table.exclusions import PATIENCE, RAREST, Exclusions, Origin
from service.samples.table.network import Network
from service.samples.table.ranges import GridColumn
from service.samples.table.relations import Relations
from service.samples.table.selections import MOST_PAIRS, CategorySelection, Pairs, Selection, Selections, met_by
from service.samples.table.weighting import Weights, strata_of
from service.samples.table.written import RowColumn, Written, modelled_columns

SURE_ROWS = 100
"""Once so many rows meet a condition, it is common enough."""
WEIGHTED_ROWS = 65_536
"""Rows whose shares are as the weights say, give or take one."""
MOST_WEIGHTED_CELLS = 1 << 32
"""That are drawn for so many rows, rejected ones included; times the cells of all columns, some ten nanoseconds each."""


@dataclass(frozen=True)
class Stratum:
    """A part of a sample that is weighted: its share, and what is asked of its rows."""

    share: float
    request: Request


@dataclass(frozen=True)
class Request:
    """A sample that was asked for: so many rows with this condition, if any, and these values of columns."""

    rows: int
    seeds: np.random.SeedSequence
    given: int | None = None
    wanted: Mapping[int, Selection] = field(default_factory=dict)
    source: ConditionalRows | None = None  # of a mixture that is asked for more than its condition
    strata: Sequence[Stratum] = ()


class TableSampler:
    """A generator and the domain of its columns. Immutable: threads may share one."""

    def __init__(self, config: Mapping[str, Any], session: onnxruntime.InferenceSession) -> None:
        if config.get("format") != 1 or config.get("kind") != "table":
            raise SamplingError(
                Message("config.json is not of a kind this sampler knows; use the sample.py of the same ZIP")
            )
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
        self._is_mixture = config.get("generator") == "mixture"
        self._balancing = Balancing(self._network, is_mixture=self._is_mixture)
        relations = Relations(config.get("relations", []), self._written, condition)
        self._exclusions = Exclusions(config.get("exclusions", []), self._modelled, self._network, relations)
        self._conditions = Conditions(self.columns)
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

    @functools.cached_property
    def components(self) -> Components:
        """Of the mixture; of a network, draws of its noise that stand for all."""
        return (components_of_mixture if self._is_mixture else components_of_network)(self._network)

    def draws(
        self,
        rows: int,
        *,
        seed: int | None = None,
        where: Where | None = None,
        weights: Weights | None = None,
        each: InOrder = map,
    ) -> Iterator[Columns]:
        """Chunks of drawn columns (see the column classes), `rows` rows in all, memory bounded.

        The request is checked at once, before the first chunk is asked for. The same seed, number of rows, condition
        and weights give the same rows. `where` is what `conditions.py` reads; `weights` says how often each value of a
        column shall come (`weighting.py`). `each` is `map`, or what gives the same but draws some parts side by side.
        """
        if rows < 0 or (seed is not None and seed < 0):
            raise SamplingError(Message("rows and seed must not be negative"))
        self._written.check_rows(rows)
        seeds = np.random.SeedSequence(seed)
        wanted = self._conditions.selections(where)
        if not weights:
            (request,) = self._requests(rows, seeds, [wanted], Pairs())
            return self._numbered(self._draws(request, each), seeds)
        pairs = Pairs(most_ranges=MOST_PAIRS)
        shares, parts = zip(*strata_of(self._conditions, self.columns, weights, wanted, pairs), strict=True)
        strata = list(map(Stratum, shares, self._requests(0, seeds, parts, pairs)))
        return self._numbered(self._weighted_draws(Request(rows, seeds, strata=strata), each), seeds)

    def _numbered(self, chunks: Iterator[Columns], seeds: np.random.SeedSequence) -> Iterator[Columns]:
        """With identifiers, which go by the number of a row in the whole sample."""
        first = 0
        for columns in chunks:
            yield self._written.numbered(columns, first, seeds)
            first += len(columns[0])

    def completed(
        self, rows: Sequence[Mapping[str, Any]], *, seed: int | None = None, as_spelled: bool = False
    ) -> Iterator[Columns]:
        """Chunks of drawn columns: these rows, with values where they have none (`completing.py`).

        `as_spelled`: rows are those of a text file, so texts are read as the schema spells them before all else.
        """
        self._written.check_rows(len(rows))
        seeds = np.random.SeedSequence(seed)
        completion = Completion(self._network, self._modelled, self._exclusions, self.components)
        chunks = completion.chunks(completion.known(rows, self._written.unasked, as_spelled=as_spelled), seeds)
        return self._numbered(map(self._written.made, chunks), seeds)

    def complete(self, rows: Sequence[Mapping[str, Any]], *, seed: int | None = None) -> list[dict[str, Any]]:
        """These rows with all columns. A column that a row lacks is drawn given what it has; None is drawn, too, but not as missing.

        Times are clock times of the declared zone, as they are read. One draw a row, from what the generator says; rows that it says cannot be raise `SamplingError` with their number.
        """
        found: list[dict[str, Any]] = []
        for drawn in self.completed(rows, seed=seed):
            values = [
                column.to_values(column.on_clocks(own) if isinstance(column, GridColumn) else own)
                for column, own in zip(self.columns, drawn, strict=True)
            ]
            found += [dict(zip(self.names, row, strict=True)) for row in zip(*values, strict=True)]
        return found

    def chunks(self, rows: int, **asked: Any) -> Iterator[dict[str, list[Any]]]:
        """The same rows as plain values by column name: str, int, float, bool, ISO dates as str, None for missing.

        Keywords as those of `draws`.
        """
        for drawn in self.draws(rows, **asked):
            yield {c.name: c.to_values(d) for c, d in zip(self.columns, drawn, strict=True)}

    def csv(self, rows: int, **asked: Any) -> Iterator[str]:
        """CSV (RFC 4180) in pieces, header first."""
        return self.csv_of(self.draws(rows, **asked))

    def jsonl(self, rows: int, **asked: Any) -> Iterator[str]:
        """One JSON object per line, in pieces."""
        return self.jsonl_of(self.draws(rows, **asked))

    def csv_of(self, draws: Iterable[Columns]) -> Iterator[str]:
        """CSV of drawn columns."""
        yield ",".join(quoted(name, empty_too=True) for name in self.names) + "\n"
        for drawn in draws:
            texts = [c.to_texts(d) for c, d in zip(self.columns, drawn, strict=True)]
            if len(texts) == 1:  # an empty line would be no row at all
                texts = [[text or '""' for text in texts[0]]]
            yield "\n".join(map(",".join, zip(*texts, strict=True))) + "\n"

    def jsonl_of(self, draws: Iterable[Columns]) -> Iterator[str]:
        """JSON lines of drawn columns."""
        names = [json.dumps(name, ensure_ascii=False).replace("%", "%%") for name in self.names]
        line = "{" + ",".join(name + ":%s" for name in names) + "}\n"
        for drawn in draws:
            jsons = [c.to_jsons(d) for c, d in zip(self.columns, drawn, strict=True)]
            yield "".join(map(line.__mod__, zip(*jsons, strict=True)))

    def _requests(
        self, rows: int, seeds: np.random.SeedSequence, each_wanted: Sequence[Selections], pairs: Pairs
    ) -> list[Request]:
        """How rows with these values are drawn, of each of these; `SamplingError` where there are none."""
        requests: list[Request] = []
        of_source: dict[int, Selections] = {}
        for number, wanted in enumerate(each_wanted):
            modelled = {
                self._written.place_of[place]: each for place, each in wanted.items() if place in self._written.place_of
            }
            refuse_excluded(self._exclusions, modelled, pairs)
            condition = -1 if self._network.condition is None else self._network.condition
            given, others, of_condition = None, dict(wanted), modelled.get(condition)
            if isinstance(of_condition, CategorySelection) and of_condition.cell is not None:
                given = of_condition.cell
                del others[next(place for place, own in self._written.place_of.items() if own == condition)]
            if not self._is_mixture or not set(modelled) - (set() if given is None else {condition}):
                requests.append(Request(rows, seeds, given, others))
            else:
                requests.append(Request(rows, seeds, None, wanted))
                of_source[number] = modelled
        if of_source:
            mixture = Mixture(self._network, self._modelled, self._exclusions, self.components)
            sources = conditional_rows(mixture, list(of_source.values()), pairs)
            for number, source in zip(of_source, sources, strict=True):
                requests[number] = replace(requests[number], source=source)
        return requests

    def _draws(self, request: Request, each: InOrder) -> Iterator[Columns]:
        """Chunks of rows as requested; the first comes when it is known that enough rows meet the condition."""
        kept_rows, ahead, is_sure = 0, [], not request.wanted
        size = self.rows_at_a_time if request.source is None else self._conditional_size(request)
        chunks = self._drawn_chunks if request.source is None else self._conditional_chunks
        for number, columns in enumerate(chunks(request, each), start=1):
            kept = [column[: request.rows - kept_rows] for column in columns]
            kept_rows += len(kept[0])
            if len(kept[0]):
                ahead.append(kept)
            if not is_sure and number * size >= PATIENCE and kept_rows * RAREST < number * size:
                raise SamplingError(
                    Message(
                        "fewer than 1 in %(rarest)s rows meet the condition, and this generator cannot be asked for so rare "
                        "ones; ask for more common values, or for fewer at once",
                        rarest=whole(RAREST),
                    )
                )
            is_sure = is_sure or kept_rows >= min(SURE_ROWS, request.rows) or number * size >= PATIENCE
            if is_sure:
                yield from ahead
                ahead.clear()
            if kept_rows == request.rows:
                return

    def _weighted_draws(self, request: Request, each: InOrder) -> Iterator[Columns]:
        """As many rows of each stratum as its share says, in random order, a block at a time."""
        shares = np.array([stratum.share for stratum in request.strata])
        in_order = until_too_many(
            each, MOST_WEIGHTED_CELLS // self._network.offsets[-1]
        )  # in the first block: a stream that has begun is not broken off
        for number, start in enumerate(range(0, request.rows, WEIGHTED_ROWS)):
            seeds = np.random.SeedSequence(request.seeds.entropy, spawn_key=(number,))
            rows, rng = min(WEIGHTED_ROWS, request.rows - start), np.random.Generator(np.random.PCG64(seeds))

            def drawn(place: int, places: Array, number: int = number, in_order: InOrder = in_order) -> Columns:
                own = np.random.SeedSequence(request.seeds.entropy, spawn_key=(number, place))
                asked = replace(request.strata[place].request, rows=len(places), seeds=own)
                # Rows of a source meet the condition as they are drawn.
                return joined_columns(list(self._draws(asked, in_order if asked.source is None else each)))

            columns = in_groups(picked_evenly(shares, rows, rng), drawn)
            in_order = each
            for first in range(0, rows, self.rows_at_a_time):
                yield [column[first : first + self.rows_at_a_time] for column in columns]

    def _conditional_size(self, request: Request) -> int:
        """Rows of a chunk: as many as are wanted, where all of them meet the condition; many, where some columns are asked only afterwards."""
        is_sifted = not request.wanted.keys() <= self._written.place_of.keys()
        return self.rows_at_a_time if is_sifted else max(1, min(self.rows_at_a_time, request.rows))

    def _conditional_chunks(self, request: Request, each: InOrder) -> Iterator[Columns]:
        """From a mixture, rows that meet the condition."""
        size, source = self._conditional_size(request), request.source
        assert source is not None  # noqa: S101 - it is asked for only then

        def draw(part: Part) -> list[Columns]:
            return [drawn(np.random.Generator(np.random.PCG64(chunk.block.seeds))) for chunk in part]

        def drawn(rng: np.random.Generator) -> Columns:
            columns = self._written.made(source.draw(size, rng))
            keep = met_by(request.wanted, columns)  # columns that follow from others are asked only now
            return columns if keep.all() else [column[keep] for column in columns]

        seeds = (
            np.random.SeedSequence(request.seeds.entropy, spawn_key=(*request.seeds.spawn_key, number))
            for number in itertools.count()
        )
        parts = ([Chunk(Block(size, own), slice(0, size))] for own in seeds)
        yield from itertools.chain.from_iterable(each(draw, parts))

    def _drawn_chunks(self, request: Request, each: InOrder) -> Iterator[Columns]:
        """What the condition leaves of each chunk: rejection sampling."""
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
            if request.wanted:
                keep = met_by(request.wanted, columns)
                columns = [column[keep] for column in columns]
            return columns

        own = request.seeds.spawn_key  # of a part of a sample
        seeds = (
            np.random.SeedSequence(request.seeds.entropy, spawn_key=(*own, number)) for number in itertools.count()
        )
        sizes = sizes_of_blocks(
            request.rows, self.rows_at_a_time, is_balanced=is_balanced, are_rejected=bool(request.wanted)
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
