"""A sample in blocks of rows that share random numbers, and what a thread draws at a time."""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from service.base.messages import Message
from service.samples.table.base import Array, Columns, SamplingError

CHUNKS_OF_A_BLOCK = 8
LONG = 262_144
"""Rows of a sample whose balanced blocks begin small."""


@dataclass(frozen=True)
class Dealt:
    """What the rows of a block have been dealt together. Each row alone has fair and independent random numbers.

    Conditions come by systematic sampling, the signs of the noise (a mixture's components) evenly within each condition.
    Rows of a mixture alike in both are dealt each column's thresholds evenly over (0, 1), in an order of that column's own:
    a Latin hypercube (McKay, Beckman and Conover 1979). So less of the difference to the generator is chance.
    """

    condition: Array  # (rows,) int64
    signs: Array  # (rows,) int64: bit d tells the sign of coordinate d of the noise
    sign_count: int
    thresholds: Array | None  # (columns, rows) float32; None where no two rows are alike
    codes: Array | None = None  # (columns, rows) where rows were balanced: already drawn


class Block:
    """Rows that share random numbers. They are dealt by the first thread that asks for them."""

    def __init__(self, rows: int, seeds: np.random.SeedSequence) -> None:
        self.rows, self.seeds = rows, seeds
        self._dealt: Dealt | None = None
        self._lock = threading.Lock()

    def dealt(self, deal: Callable[[Block, np.random.Generator], Dealt]) -> Dealt:
        """What it has been dealt."""
        with self._lock:
            if self._dealt is None:
                self._dealt = deal(self, np.random.Generator(np.random.PCG64(self.seeds)))
            return self._dealt

    def rng_at(self, row: int, *, of_balanced: bool = False) -> np.random.Generator:
        """The random numbers of the rows from `row` on: of their cells and values, or of a balanced block's cells alone."""
        place = self.rows + row if of_balanced else row
        own = np.random.SeedSequence(self.seeds.entropy, spawn_key=(*self.seeds.spawn_key, place))
        return np.random.Generator(np.random.PCG64(own))


@dataclass(frozen=True)
class Chunk:
    """Rows of a block that are drawn at a time; with no row at all, the block is dealt, ahead of its chunks."""

    block: Block
    rows: slice


Part = list[Chunk]
"""What one thread draws before it begins anything else."""
InOrder = Callable[[Callable[[Part], list[Columns]], Iterable[Part]], Iterator[list[Columns]]]
"""As `map`: what to do with a part, and the parts, made as they are asked for -> drawn ones in that order."""


def chunks_of(block: Block, rows: int) -> Iterator[Chunk]:
    """So many rows at a time."""
    for start in range(0, block.rows, rows):
        yield Chunk(block, slice(start, min(start + rows, block.rows)))


def block_by_block(blocks: Iterator[Block], rows: int) -> Iterator[Part]:
    """All chunks of a block in one part."""
    return (list(chunks_of(block, rows)) for block in blocks)


def chunk_by_chunk(blocks: Iterator[Block], rows: int) -> Iterator[Part]:
    """A part for each chunk; after a block's first one, the next block to be dealt."""
    block = next(blocks, None)
    while block is not None:
        following = next(blocks, None)
        for number, chunk in enumerate(chunks_of(block, rows)):
            yield [chunk]
            if number == 0 and following is not None:
                yield [Chunk(following, slice(0))]
        block = following


def sizes_of_blocks(rows: int, rows_at_a_time: int, *, is_balanced: bool, are_rejected: bool) -> Iterator[int]:
    """As many blocks as needed, of equal size. Where rows are rejected, how many is not known: then all are the largest."""
    largest = CHUNKS_OF_A_BLOCK * rows_at_a_time
    if is_balanced and rows > LONG:
        # A balanced block is ready as a whole: those of a long sample begin small, so that its first rows come soon.
        for doubled in range(CHUNKS_OF_A_BLOCK.bit_length() - 1):
            yield rows_at_a_time << doubled
            rows -= rows_at_a_time << doubled
    blocks = -(-rows // largest)
    if are_rejected and rows:
        yield from itertools.repeat(largest)
    yield from itertools.repeat(-(-rows // max(blocks, 1)), blocks)


def until_too_many(each: InOrder, rows: int) -> InOrder:
    """The same, until more rows than these have come back: then it is refused. Called several times, they are counted together."""
    left = rows

    def counted(draw: Callable[[Part], list[Columns]], parts: Iterable[Part]) -> Iterator[list[Columns]]:
        nonlocal left
        sizes = deque[int]()

        def measured() -> Iterator[Part]:
            for part in parts:
                sizes.append(sum(chunk.rows.stop - (chunk.rows.start or 0) for chunk in part))
                yield part

        # What came back, not what threads have begun ahead: how many they are is the machine's affair.
        for drawn in each(draw, measured()):
            left -= sizes.popleft()
            if left < 0:
                raise SamplingError(
                    Message(
                        "weights: some values are so rare that too many rows would be drawn and left out; give weights "
                        "to more common values, or ask for fewer rows"
                    )
                )
            yield drawn

    return counted
