"""The discrete Gaussian on the integers, exactly: P(k) ∝ exp(-(k - f)²/2v) for every integer k, with no end and no float in what decides.

A word of 63 random bits falls into a bucket of the table. Every integer k of a bucket has been given at least
scale·exp(-(k - f)²/2v) of the 2⁶³ positions; a position p within the bucket keeps k if p + U is below that number, U uniform on
[0, 1). This is rejection sampling, so whatever is kept has exactly the distribution above. Three comparisons decide, in turn:

1. p < `sure`: below a lower bound of that number for all of the bucket. One word, one look-up; 99 in 100 draws.
2. In float64, where the distance of p from the number is more than float64's error (GUARD).
3. In decimal arithmetic of as many digits as it takes, with further random bits for U (`settle`): once in 10¹² draws.
   The tails beyond the table are there as well: a geometric distribution of blocks, thinned.

So the tables in float64 bound probabilities and never are probabilities.

Source: Canonne, Kamath, Steinke 2020 (the distribution, and sampling it exactly); Devroye 1986, II.3 (rejection, squeezes).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

WORD_BITS = 63
GUIDE_BITS = 11
"""The first bits of a word say at which bucket to begin looking."""

REACH = 9.0
"""Standard deviations on either side that the table covers; the tails beyond have 10⁻¹⁸ of the probability."""

BUCKETS_PER_STD = 128
"""At most so many, and half of it at least where a standard deviation has as many integers."""

GUARD = 2.0**-40
"""Relative; float64 computes scale·exp(-x²/2v) to 2⁻⁴⁶ where x²/2v ≤ 41, as everywhere in the table."""

RandomBits = Callable[[int], int]
"""How many bits -> a uniform integer below two to that power."""

KEEP, DRAW_AGAIN, UNDECIDED = range(3)


@dataclass(frozen=True, eq=False)
class Table:
    """Buckets of 2^block_bits neighbouring integers from `first` on, then the left tail, then the right one."""

    variance: float
    is_centred: bool
    """Whether f is 0; otherwise f may be any number of [-½, ½]."""
    scale: int
    first: int
    block_bits: int
    buckets: int
    left_weight: int
    right_weight: int
    cumulative: Tensor  # (buckets + 3,) int64: where each bucket begins; the tails; where both have ended
    sure: Tensor  # (buckets,) int64
    guide: Tensor  # (2^GUIDE_BITS,) int32

    @property
    def block(self) -> int:
        return 1 << self.block_bits

    def to(self, device: torch.device) -> Table:
        """The same with its tensors there."""
        return self if device.type == "cpu" else _on_device(self, device)


@lru_cache(maxsize=256)
def table_for(variance: float, *, is_centred: bool, reach: float = REACH) -> Table:
    """The table of this variance; a smaller reach makes tails that a test can see."""
    std = math.sqrt(variance)
    block_bits = max(0, math.ceil(math.log2(std / BUCKETS_PER_STD))) if is_centred else 0
    block = 1 << block_bits
    half = max(1, math.ceil(reach * std / block))
    edge = half * block  # the table covers -edge ≤ k < edge
    starts = np.arange(-half, half, dtype=np.int64) * block
    spread = 0.0 if is_centred else 0.5
    lowest = starts - spread  # of k - f
    highest = starts + (block - 1) + spread
    near = np.where((lowest <= 0.0) & (highest >= 0.0), 0.0, np.minimum(np.abs(lowest), np.abs(highest)))
    far = np.maximum(np.abs(lowest), np.abs(highest))
    most, least = (np.exp(-((x / std) ** 2) / 2.0) for x in (near, far))
    # Where a tail begins, |k - f| is at least this.
    right_edge, left_edge = edge - spread, edge + 1 - spread
    right, left = (
        math.exp(-((x / std) ** 2) / 2.0) / -math.expm1(-x * block / variance) for x in (right_edge, left_edge)
    )
    scale = math.floor(
        (2**WORD_BITS - 4 * len(starts) - 8) / ((float(most.sum()) + left + right) * (1.0 + 4.0 * GUARD))
    )
    weights = np.ceil(most * (scale * (1.0 + GUARD))).astype(np.int64) + 1
    tails = [math.ceil(x * scale * (1.0 + GUARD)) + 1 for x in (left, right)]
    cumulative = np.cumsum([0, *weights.tolist(), *tails], dtype=np.int64)
    if not 0 < int(weights.astype(object).sum()) + sum(tails) < 2**WORD_BITS:
        raise ValueError("no table of this variance")
    sure = np.maximum(np.floor(least * (scale * (1.0 - GUARD))).astype(np.int64) - 1, 0)
    cells = np.arange(1 << GUIDE_BITS, dtype=np.int64) << (WORD_BITS - GUIDE_BITS)
    guide = np.minimum(np.searchsorted(cumulative[1:], cells, side="right"), len(starts)).astype(np.int32)
    return Table(
        variance=variance,
        is_centred=is_centred,
        scale=scale,
        first=-edge,
        block_bits=block_bits,
        buckets=len(starts),
        left_weight=tails[0],
        right_weight=tails[1],
        cumulative=torch.from_numpy(cumulative),
        sure=torch.from_numpy(sure),
        guide=torch.from_numpy(guide),
    )


def attempt(table: Table, words: Tensor, offsets: Tensor | None, fractions: Tensor | None) -> tuple[Tensor, Tensor]:
    """Values (n,) int64 that the words (n,) int64 propose, and KEEP, DRAW_AGAIN or UNDECIDED (n,) for each.

    offsets: more words, where blocks have more than one integer; fractions: f (n,) float64 of each, None for 0.
    """
    position = words & (2**WORD_BITS - 1)
    bucket = torch.searchsorted(table.cumulative[1:], position, right=True)
    inside = bucket < table.buckets
    own = bucket.clamp(max=table.buckets - 1)
    place = position - table.cumulative[own]
    values = table.first + (own << table.block_bits)
    if offsets is not None:
        values += offsets & (table.block - 1)
    distance = values.double() if fractions is None else values.double() - fractions
    allowed = torch.exp(distance.square() * (-0.5 / table.variance)) * float(table.scale)
    place_ = place.double()
    verdicts = torch.full_like(bucket, UNDECIDED)
    verdicts[place_ > allowed * (1.0 + GUARD) + 1.0] = DRAW_AGAIN
    verdicts[(place < table.sure[own]) | (place_ < allowed * (1.0 - GUARD) - 1.0)] = KEEP
    verdicts[~inside] = UNDECIDED
    verdicts[bucket > table.buckets + 1] = DRAW_AGAIN
    return values, verdicts


def settle(table: Table, word: int, offset: int, fraction: float, bits: RandomBits) -> int | None:
    """The value that a word stands for, decided exactly; None where it is to be drawn again."""
    position = word & (2**WORD_BITS - 1)
    bucket = int(torch.searchsorted(table.cumulative[1:], position, right=True))
    centre, double_variance = Fraction(fraction), 2 * Fraction(table.variance)
    if bucket < table.buckets:
        value = table.first + (bucket << table.block_bits) + (offset & (table.block - 1))
        place = position - int(table.cumulative[bucket])
        exponent = (value - centre) ** 2 / double_variance

        def excess(digits: int) -> tuple[Fraction, Fraction]:
            low, high = _exponential(exponent, digits)
            return table.scale * low - place, table.scale * high - place

        return value if _uniform_is_below(excess, bits) else None
    if bucket > table.buckets + 1:
        return None
    return _tail(table, offset, centre, double_variance, bits, on_the_left=bucket == table.buckets)


def _tail(
    table: Table, offset: int, centre: Fraction, double_variance: Fraction, bits: RandomBits, *, on_the_left: bool
) -> int | None:
    """Blocks beyond the table: of geometric number b, kept with what is left of exp(-x²/2v) of it.

    With x₀ = |k - f| where the tail begins and r = exp(-x₀·block/v): block b is proposed with probability (1 - r)·rᵇ.
    """
    outermost = table.first - 1 if on_the_left else -table.first
    start = abs(outermost - centre)
    step = 2 * start * table.block / double_variance

    def another(digits: int) -> tuple[Fraction, Fraction]:
        return _exponential(step, digits)

    number = 0
    while _uniform_is_below(another, bits):
        number += 1
    within = number * table.block + (offset & (table.block - 1))
    distance = start + within
    exponent = (distance**2 - 2 * start * number * table.block) / double_variance
    weight = table.left_weight if on_the_left else table.right_weight

    def kept(digits: int) -> tuple[Fraction, Fraction]:
        low, high = _exponential(exponent, digits)
        least, most = _exponential(step, digits)
        return table.scale * low / (weight * (1 - least)), table.scale * high / (weight * (1 - most))

    if not _uniform_is_below(kept, bits):
        return None
    return outermost - within if on_the_left else outermost + within


def _uniform_is_below(bounds: Callable[[int], tuple[Fraction, Fraction]], bits: RandomBits) -> bool:
    """Whether a fresh uniform number of [0, 1) is below one that is known to any number of digits."""
    drawn, length, digits = bits(64), 64, 40
    while True:
        low, high = bounds(digits)
        if drawn + 1 <= low * 2**length:
            return True
        if drawn >= high * 2**length:
            return False
        drawn, length, digits = drawn << 64 | bits(64), length + 64, 2 * digits


def _exponential(exponent: Fraction, digits: int) -> tuple[Fraction, Fraction]:
    """Bounds of exp(-exponent), for an exponent that is not negative.

    The quotient and the exponential are each rounded correctly to so many digits; `-quotient` would round to 28.
    """
    if not exponent:
        return Fraction(1), Fraction(1)
    context = Context(prec=digits, Emin=-(10**15), Emax=10**15)
    quotient = context.divide(Decimal(exponent.numerator), Decimal(exponent.denominator))
    rounded = Fraction(context.exp(quotient.copy_negate()))
    error = (4 * exponent + 4) / 10 ** (digits - 1)
    return max(Fraction(0), rounded * (1 - error)), rounded * (1 + error)


@lru_cache(maxsize=64)
def _on_device(table: Table, device: torch.device) -> Table:
    moved = {name: getattr(table, name).to(device) for name in ("cumulative", "sure", "guide")}
    return Table(**{**vars(table), **moved})
