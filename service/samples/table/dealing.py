"""Random numbers dealt evenly over the rows of a block: conditions, signs of the noise, thresholds."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from service.samples.table.base import Array
from service.samples.table.blocks import Dealt
from service.samples.table.network import Network

MOST_SIGNS = 16
"""Of a noise that is nothing but signs: a mixture's, whose rows with the same signs are alike."""


def deal(network: Network, rows: int, rng: np.random.Generator, given: int | None) -> Dealt:
    """What `rows` rows are dealt; `given` fixes the condition."""
    places = rng.permutation(rows)
    if given is None:
        shares = (places + rng.random()) / rows
        condition = np.searchsorted(network.cumulative_frequencies, shares, side="right")
        condition = np.minimum(condition, len(network.cumulative_frequencies) - 1).astype(np.int64)
    else:
        condition = np.full(rows, given, dtype=np.int64)
    # The bits of a place, lowest first, take turns along any stretch of places: a van der Corput sequence.
    sign_count = min(network.noise_dimension, (rows - 1).bit_length())
    signs = (places ^ int(rng.integers(1 << sign_count))) & ((1 << sign_count) - 1)
    thresholds = None
    if network.noise_dimension <= MOST_SIGNS:
        thresholds = even_thresholds(condition << sign_count | signs, len(network.offsets) - 1, rng)
    return Dealt(condition, signs, sign_count, thresholds)


def dealt_noise(network: Network, dealt: Dealt, rows: slice, rng: np.random.Generator) -> Array:
    """(rows, noise dimension) with the signs dealt."""
    signs = dealt.signs[rows]
    noise = rng.standard_normal((len(signs), network.noise_dimension), dtype=np.float32)
    minus = (signs[:, None] >> np.arange(dealt.sign_count) & 1).astype(bool)
    leading = noise[:, : dealt.sign_count]
    np.copysign(leading, np.where(minus, np.float32(-1), np.float32(1)), out=leading)
    return noise


def dealt_codes(
    network: Network, dealt: Dealt, rows: slice, rng: np.random.Generator, *, draws: int = 1
) -> Iterator[list[Array]]:
    """The codes of one column after the other, `draws` times: first by the thresholds dealt, if any, then by new ones."""
    thresholds = None if dealt.thresholds is None else dealt.thresholds[:, rows]
    noise = dealt_noise(network, dealt, rows, rng)
    return network.codes(noise, dealt.condition[rows], rng, thresholds=thresholds, draws=draws)


def even_thresholds(groups: Array, columns: int, rng: np.random.Generator) -> Array:
    """(columns, rows) float32 in [0, 1]: each uniform and independent of the row's others, and even over a group's rows.

    Along one column the k rows of a group (groups (rows,) int64, not negative) have thresholds 1/k apart, dealt in random
    order.
    """
    rows = len(groups)
    place_bits = max(1, (rows - 1).bit_length())
    random_bits = 63 - place_bits - int(groups.max()).bit_length()
    keys = groups << (random_bits + place_bits) | np.arange(rows)
    in_order = np.sort(groups)
    sizes = np.diff(np.flatnonzero(np.diff(in_order, prepend=-1)), append=rows)
    before = np.arange(rows) - np.repeat(np.cumsum(sizes) - sizes, sizes)  # rows of the same group
    lowest = (before / np.repeat(sizes, sizes)).astype(np.float32)
    thresholds = np.empty((columns, rows), dtype=np.float32)
    for of_column in thresholds:
        shuffle = rng.bit_generator.random_raw(rows).view(np.int64) & ((1 << random_bits) - 1) << place_bits
        # One sort of whole numbers that end in their place is five times as fast as an argsort.
        shuffled = np.sort(keys | shuffle) & ((1 << place_bits) - 1)
        of_column[shuffled] = lowest + np.repeat((rng.random(len(sizes)) / sizes).astype(np.float32), sizes)
    return thresholds
