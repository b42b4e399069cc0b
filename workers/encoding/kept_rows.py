"""Which rows of a unit count, and how the others are taken out of an array."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

RandomKeys = Callable[[int], NDArray[np.uint64]]
_BATCH_ROWS = 65_536


def operating_system_keys(count: int) -> NDArray[np.uint64]:
    """Independent uniform 64-bit keys from the operating system's secure source."""
    return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)


def moved_up(array: NDArray[Any], kept: NDArray[np.intp]) -> NDArray[Any]:
    """These rows of an array, in order and in place: they only ever move up."""
    for start in range(0, len(kept), _BATCH_ROWS):
        chosen = kept[start : start + _BATCH_ROWS]
        array[start : start + len(chosen)] = array[chosen]
    return array[: len(kept)]


def choose_rows(unit_of_row: NDArray[np.int64], most: int, random_keys: RandomKeys) -> NDArray[np.intp]:
    """Indices, in order, of a uniformly random subset of at most `most` rows of every unit."""
    counts = np.bincount(unit_of_row) if len(unit_of_row) else np.zeros(0, dtype=np.int64)
    if len(counts) == 0 or counts.max() <= most:
        return np.arange(len(unit_of_row))
    shuffled = np.lexsort((random_keys(len(unit_of_row)), unit_of_row))  # by unit, at random within
    first = np.cumsum(counts) - counts
    rank = np.arange(len(unit_of_row)) - np.repeat(first, counts)
    return np.sort(shuffled[rank < most])
