"""Poisson sampling of units, in time proportional to the draw; and the draw of one part of many."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from torch import Tensor

from workers.numerics.exact_choice import below

WINDOW = 4.0
"""A gap is drawn at most this many times 1/q long at once."""


class Uniforms(Protocol):
    """A secure source of uniforms on (0, 1)."""

    def uniforms(self, *shape: int) -> Tensor: ...


class Bits(Protocol):
    """A secure source of uniform integers below 2^count."""

    def bits(self, count: int) -> int: ...


def draw_part(*, parts: int, randomness: Bits) -> int:
    """Which one of so many parts is read at a step.

    Adjacency:   zero-out one unit, which is in one part.
    Sensitivity: reads no row; each part is drawn with probability 1/parts, one a step (amplification).
    Shapes:      returns a place from 0 to parts - 1; it is private and must decide nothing but what this one step releases.
    Source:      docs/privacy.md, One part of many.
    Edge cases:  one part is always drawn.
    """
    return below(parts, randomness.bits)


def poisson_sample(*, units: int, sampling_probability: float, randomness: Uniforms) -> np.ndarray:
    """Indices of the units drawn, each independently with probability q, in increasing order.

    Adjacency:   zero-out one unit; a null unit is drawn like any other and contributes nothing.
    Sensitivity: reads no row; each unit is in the draw with probability sampling_probability (amplification).
    Shapes:      returns (drawn,) int64; the number drawn is private and must not reach anything visible.
    Source:      gaps between Bernoulli successes are geometric: ⌊ln u / ln(1-q)⌋ (Devroye 1986, X.2). They have no
                 memory, so a gap of `window` or more moves on by the window and is drawn anew: u is then at least
                 e⁻⁴ wherever it decides, and given all units before it each unit is in with probability q up to
                 1e-14 (53-bit uniforms and the rounding of two logarithms), however large the table.
    Edge cases:  an empty draw is a draw; q = 1 returns every unit; no units, no draw.
    """
    if sampling_probability >= 1.0:
        return np.arange(units, dtype=np.int64)
    log_miss = math.log1p(-sampling_probability)
    window = max(1, min(units, math.ceil(-WINDOW / log_miss)))
    gaps_per_unit = sampling_probability / -math.expm1(-WINDOW)  # windows without a draw take a gap too
    drawn: list[np.ndarray] = []
    last = -1
    while last < units:
        expected = (units - last) * gaps_per_unit
        count = math.ceil(expected + 6.0 * math.sqrt(expected) + 8.0)
        gaps = np.log(randomness.uniforms(count).numpy()) / log_miss
        hit = gaps < window
        positions = last + np.cumsum(np.where(hit, gaps, window - 1).astype(np.int64) + 1)
        drawn.append(positions[hit])
        last = int(positions[-1])
    indices = np.concatenate(drawn) if drawn else np.zeros(0, dtype=np.int64)
    return indices[indices < units]
