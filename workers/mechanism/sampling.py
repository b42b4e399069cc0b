"""Poisson sampling of units, in time proportional to the draw."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from torch import Tensor


class Uniforms(Protocol):
    """A secure source of uniforms on (0, 1)."""

    def uniforms(self, *shape: int) -> Tensor: ...


def poisson_sample(*, units: int, sampling_probability: float, randomness: Uniforms) -> np.ndarray:
    """Indices of the units drawn, each independently with probability q, in increasing order.

    Adjacency:   zero-out one unit; a null unit is drawn like any other and contributes nothing.
    Sensitivity: reads no row; each unit is in the draw with probability sampling_probability (amplification).
    Shapes:      returns (drawn,) int64; the number drawn is private and must not reach anything visible.
    Source:      gaps between Bernoulli successes are geometric: ⌊ln u / ln(1-q)⌋ (Devroye 1986, X.2).
    Edge cases:  an empty draw is a draw; q = 1 returns every unit; no units, no draw.
    """
    if sampling_probability >= 1.0:
        return np.arange(units, dtype=np.int64)
    expected = units * sampling_probability
    log_miss = math.log1p(-sampling_probability)
    drawn: list[np.ndarray] = []
    last = -1
    while last < units:
        count = math.ceil(expected + 6.0 * math.sqrt(expected) + 8.0)
        gaps = np.log(randomness.uniforms(count).numpy()) / log_miss
        # A gap over `units` ends the draw whatever its size; the minimum keeps the cumulative sum small.
        steps = np.minimum(gaps, units).astype(np.int64) + 1
        positions = last + np.cumsum(steps)
        drawn.append(positions)
        last = int(positions[-1])
    indices = np.concatenate(drawn)
    return indices[indices < units]
