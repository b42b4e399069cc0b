"""The components of a generator: given one, the columns of a row are independent, and so is all that is asked of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from service.base.messages import Message
from service.samples.table.base import Array, Columns, SamplingError
from service.samples.table.dealing import MOST_SIGNS
from service.samples.table.network import Network
from service.samples.table.selections import Selection

POOL = 16_384
"""Of a network, which has no components, so many draws of its noise stand for all of them."""
POOL_SEED = 0


class Components:
    """Where rows come from: a noise and a condition each, with the part of all rows that comes from it."""

    def __init__(self, noise: Array, condition: Array, shares: Array) -> None:
        self.noise, self.condition, self.shares = noise, condition, shares

    def __len__(self) -> int:
        return len(self.shares)


def components_of_mixture(network: Network) -> Components:
    """All of them, exactly: the signs of the noise, under each condition."""
    if network.noise_dimension > MOST_SIGNS:
        raise SamplingError(Message("this generator has too many components to be asked for conditions"))
    count, frequencies = 1 << network.noise_dimension, np.diff(network.cumulative_frequencies, prepend=0.0)
    numbers = np.arange(count)
    noise = np.where(numbers[:, None] >> np.arange(network.noise_dimension) & 1, np.float32(-1), np.float32(1))
    return Components(
        np.tile(noise, (len(frequencies), 1)),
        np.repeat(np.arange(len(frequencies)), count),
        np.repeat(frequencies / count, count),
    )


def components_of_network(network: Network) -> Components:
    """Many draws of the noise, always the same, in the place of all."""
    rng = np.random.Generator(np.random.PCG64(POOL_SEED))
    noise = rng.standard_normal((POOL, network.noise_dimension), dtype=np.float32)
    return Components(noise, network.conditions(rng.random(POOL)), np.full(POOL, 1 / POOL))


def tilt_of(network: Network, selections: Mapping[int, Selection]) -> Array:
    """(total width,) float32: the log of the part of each cell that is meant."""
    tilt = np.zeros(network.offsets[-1], dtype=np.float32)
    for index, selection in selections.items():
        first, last = network.offsets[index : index + 2]
        with np.errstate(divide="ignore"):
            tilt[first:last] = np.log(selection.chances)
    return tilt


def each_log_softmax(
    network: Network, components: Components, rows: slice, indices: Sequence[int]
) -> list[tuple[int, Array]]:
    """The log chances of the cells of these columns, given each of some components."""
    condition = components.condition[rows]
    logits = network.logits(components.noise[rows], condition)
    found = []
    for index in indices:
        first, last = network.offsets[index : index + 2]
        if index == network.condition:
            own = np.where(np.arange(last - first) == condition[:, None], 0.0, -np.inf)
        else:
            own = logits[:, first:last].astype(np.float64)
            own -= own.max(axis=1, keepdims=True)
            own -= np.log(np.exp(own).sum(axis=1, keepdims=True))
        found.append((index, own))
    return found


def log_chances(network: Network, components: Components, asked: Sequence[Mapping[int, Selection]]) -> Array:
    """(asked, components) the log of the chance that a row of a component is as asked."""
    found = np.zeros((len(asked), len(components)))
    indices = sorted({index for selections in asked for index in selections})
    for start in range(0, len(components), network.rows_at_a_time):
        rows = slice(start, min(start + network.rows_at_a_time, len(components)))
        for index, own in each_log_softmax(network, components, rows, indices):
            cells = np.exp(own)
            of_selection: dict[Selection, Array] = {}  # many that are asked share one
            for place, selections in enumerate(asked):
                selection = selections.get(index)
                if selection is None:
                    continue
                if selection not in of_selection:
                    with np.errstate(divide="ignore"):
                        of_selection[selection] = np.log(cells @ selection.chances)
                found[place, rows] += of_selection[selection]
    return found


def picked_evenly(weights: Array, rows: int, rng: np.random.Generator) -> Array:
    """(rows,) places in the weights, each as often as its weight says, give or take one, in random order."""
    cumulative = np.cumsum(weights)
    shares = (rng.permutation(rows) + rng.random()) / rows * cumulative[-1]
    places = np.searchsorted(cumulative, shares, side="right")
    # Sums round: never the last ones, if they have no weight.
    return np.minimum(places, np.flatnonzero(weights)[-1])  # type: ignore[no-any-return]


def in_groups(groups: Array, draw: Callable[[int, Array], Columns]) -> Columns:
    """Columns drawn for the rows of each group, put back in the rows' order."""
    order = np.argsort(groups, kind="stable")
    present, starts = np.unique(groups[order], return_index=True)
    parts = [
        draw(int(group), order[first:last])
        for group, (first, last) in zip(present, itertools.pairwise([*starts, len(groups)]), strict=True)
    ]
    back = np.argsort(order, kind="stable")
    return [column[back] for column in joined_columns(parts)]


def joined_columns(parts: Sequence[Columns]) -> Columns:
    """The rows of one part after those of the other."""
    return [_masked(own) if np.ma.isMaskedArray(own[0]) else np.concatenate(own) for own in zip(*parts, strict=True)]


def _masked(parts: Sequence[Array]) -> Array:
    joined: Array = np.ma.concatenate(parts)  # type: ignore[no-untyped-call]
    return joined
