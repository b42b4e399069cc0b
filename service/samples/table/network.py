"""The published network: noise and a condition in, the cells of every column out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import onnxruntime

from service.samples.table.base import Array

LOGITS_AT_A_TIME = 2**22
"""Bounds the memory of a draw, without slowing very wide tables down."""
ROWS_AT_A_TIME = (256, 4_096)


class Network:
    """Logits of all columns side by side; a column's cell is a draw from the softmax of its own. Immutable.

    `condition` is the place of the column whose value the network is given, with its `frequencies`; None without one.
    """

    def __init__(
        self,
        session: onnxruntime.InferenceSession,
        *,
        noise_dimension: int,
        widths: Sequence[int],
        condition: int | None,
        frequencies: Array,
    ) -> None:
        self._session = session
        self.noise_dimension = noise_dimension
        self.condition = condition
        self.cumulative_frequencies = np.cumsum(frequencies / frequencies.sum())
        self.offsets: list[int] = np.concatenate([[0], np.cumsum(widths)]).tolist()
        self.rows_at_a_time = int(np.clip(LOGITS_AT_A_TIME // self.offsets[-1], *ROWS_AT_A_TIME))

    def logits(self, noise: Array, condition: Array) -> Array:
        """(rows, total width)."""
        inputs = {"noise": noise} if self.condition is None else {"noise": noise, "condition": condition}
        (logits,) = self._session.run(["logits"], inputs)
        return logits  # type: ignore[no-any-return]

    def conditions(self, uniforms: Array) -> Array:
        """The value of the condition at these uniform numbers, by its frequencies."""
        return np.searchsorted(self.cumulative_frequencies[:-1], uniforms, side="right")

    def codes(
        self,
        noise: Array,
        condition: Array,
        rng: np.random.Generator,
        *,
        thresholds: Array | None = None,
        draws: int = 1,
        tilt: Array | None = None,
    ) -> Iterator[list[Array]]:
        """The codes of one column after the other, `draws` times: first by these thresholds, if any, then by new ones.

        tilt: (total width,) or (rows, total width), added to the logits: the log of what part of a cell is meant.
        """
        logits = self.logits(noise, condition)
        # One vector per cell: every step below runs along the rows.
        by_cell = transposed(logits if tilt is None else logits + tilt)
        for index, (first, last) in enumerate(itertools.pairwise(self.offsets)):
            if index == self.condition:
                yield [condition] * draws
                continue
            weights = cumulative_weights(by_cell[first:last])
            dealt = [] if thresholds is None else [thresholds[index]]
            new = (rng.random(len(noise), dtype=np.float32) for _ in range(draws - len(dealt)))
            yield [cells_reached(weights, own) for own in itertools.chain(dealt, new)]


def transposed(logits: Array) -> Array:
    """A contiguous copy, a few hundred rows at a time: in half the time of one at once."""
    result = np.empty(logits.shape[::-1], dtype=logits.dtype)
    for start in range(0, len(logits), 512):
        result[:, start : start + 512] = logits[start : start + 512].T
    return result


def cumulative_weights(logits: Array) -> Array:
    """Softmax weights (cells, rows), each the sum of a row's weights up to that cell; in place.

    Plain loops over cells, because numpy is slow along a first axis.
    """
    logits -= logits.max(axis=0)
    weights = np.exp(logits, out=logits)
    for cell in range(1, len(weights)):
        weights[cell] += weights[cell - 1]
    return weights


def cells_reached(weights: Array, thresholds: Array) -> Array:
    """The cell of every row (rows,) that its threshold, uniform in [0, 1], comes to in its cumulative weights."""
    # Times a float32 sum of weights, more than this could round to the whole sum: to a cell without weight.
    reach = np.minimum(thresholds, np.float32(1 - 2**-23)) * weights[-1]
    codes: Array = np.zeros(len(reach), dtype=np.uint8 if len(weights) <= 256 else np.uint16)
    passed = np.empty(len(reach), dtype=bool)
    for up_to in weights[:-1]:
        codes += np.less_equal(up_to, reach, out=passed)
    return codes.astype(np.uint16)
