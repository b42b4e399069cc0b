"""How likely a published generator makes a given row, and how near synthetic rows come to it: for attacks and reports.

Plain numpy on arrays; `Density` reads the two files of a published ZIP. Not part of the `sample.py` of a ZIP.

    log p(row) = log Σ_components share · Π_columns p(cell | component) + Σ_columns log p(value | cell)

This is exact for a mixture: the sum over all rows that it can draw is 1. A network has no components, so draws of its noise stand for
all of them. Rows that exclusions or relations replace count as they are before that.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnxruntime

from service.samples.table.base import Array, Columns
from service.samples.table.components import components_of_mixture, components_of_network
from service.samples.table.hierarchies import HierarchyColumn
from service.samples.table.network import Network
from service.samples.table.ranges import GridColumn
from service.samples.table.written import Modelled, modelled_columns

NUMBERS_AT_A_TIME = 2**22
"""Of rows and components, or rows and rows: what bounds the memory."""


def log_shares_of_cells(
    logits: Array, widths: Sequence[int], *, condition: int | None = None, given: Array | None = None
) -> Array:
    """(components, total width) the log of the chance of every cell of every column.

    condition: the place of the column whose cell is not drawn but `given`, (components,).
    """
    found = np.empty(logits.shape, dtype=np.float64)
    for place, (first, last) in enumerate(_spans(widths)):
        if place == condition and given is not None:
            found[:, first:last] = np.where(np.arange(last - first) == given[:, None], 0.0, -np.inf)
            continue
        own = logits[:, first:last].astype(np.float64)
        own -= own.max(axis=1, keepdims=True)
        found[:, first:last] = own - np.log(np.exp(own).sum(axis=1, keepdims=True))
    return found


def log_density(cells: Array, log_shares: Array, log_cells: Array, widths: Sequence[int]) -> Array:
    """(rows,) the log of the chance of each row's cells.

    cells: (rows, columns) codes. log_shares: (components,). log_cells: (components, total width).
    """
    cells, back = _distinct(np.asarray(cells, dtype=np.int64), widths)
    by_cell = np.ascontiguousarray(log_cells.T)
    firsts = [first for first, _ in _spans(widths)]
    found = np.empty(len(cells))
    size = max(1, NUMBERS_AT_A_TIME // len(log_shares))
    for start in range(0, len(cells), size):
        some = cells[start : start + size]
        chances = np.tile(log_shares, (len(some), 1))
        for place, first in enumerate(firsts):
            chances += by_cell[first + some[:, place]]
        most = chances.max(axis=1)
        most = np.where(np.isfinite(most), most, 0.0)
        with np.errstate(divide="ignore"):
            found[start : start + size] = most + np.log(np.exp(chances - most[:, None]).sum(axis=1))
    return found[back]


def log_independent_density(cells: Array, log_shares: Array, log_cells: Array, widths: Sequence[int]) -> Array:
    """(rows,) the same if the columns were independent, each as the generator has it: a reference of its own."""
    shares = np.exp(log_shares) @ np.exp(log_cells)
    found = np.zeros(len(cells))
    with np.errstate(divide="ignore"):
        logs = np.log(shares)
    for place, (first, _) in enumerate(_spans(widths)):
        found += logs[first + np.asarray(cells[:, place], dtype=np.int64)]
    return found


def nearest_distances(cells: Array, synthetic: Array, *, is_range: Sequence[bool], widths: Sequence[int]) -> Array:
    """(rows,) Gower distance to the nearest synthetic row.

    The mean over columns of 1 where categories differ, and of the part of the range that lies between the cells of a range.
    """
    scaled = [
        np.asarray(rows, dtype=np.float32) / np.where(is_range, np.maximum(np.asarray(widths) - 1, 1), 1).astype("f4")
        for rows in (cells, np.unique(synthetic, axis=0))
    ]
    found = np.empty(len(cells))
    size = max(1, NUMBERS_AT_A_TIME // len(scaled[1]))
    for start in range(0, len(cells), size):
        apart = np.zeros((len(scaled[0][start : start + size]), len(scaled[1])), dtype=np.float32)
        for place, ranged in enumerate(is_range):
            difference = np.abs(scaled[0][start : start + size, place, None] - scaled[1][None, :, place])
            apart += difference if ranged else difference > 0
        found[start : start + size] = apart.min(axis=1) / len(widths)
    return found


class Density:
    """The distribution that the files of a published ZIP hold."""

    def __init__(self, config: Mapping[str, Any], onnx_bytes: bytes) -> None:
        self.columns: tuple[Modelled, ...] = modelled_columns(config)
        self.widths = [column.size for column in self.columns]
        condition, frequencies = None, np.ones(1)
        if config["condition"] is not None:
            condition = [column.name for column in self.columns].index(config["condition"]["column"])
            frequencies = np.array(config["condition"]["frequencies"], dtype=np.float64)
        network = Network(
            onnxruntime.InferenceSession(onnx_bytes, providers=["CPUExecutionProvider"]),
            noise_dimension=config["noise_dimension"],
            widths=self.widths,
            condition=condition,
            frequencies=frequencies,
        )
        self.is_exact = config.get("generator") == "mixture"
        """Whether log densities are: those of a network are estimates."""
        components = (components_of_mixture if self.is_exact else components_of_network)(network)
        logits = np.concatenate(
            [
                network.logits(components.noise[start : start + 4_096], components.condition[start : start + 4_096])
                for start in range(0, len(components), 4_096)
            ]
        )
        self.log_cells = log_shares_of_cells(logits, self.widths, condition=condition, given=components.condition)
        with np.errstate(divide="ignore"):
            self.log_shares = np.log(components.shares)

    def of_cells(self, cells: Array) -> Array:
        """(rows,) log of the chance of the cells of each row."""
        return log_density(cells, self.log_shares, self.log_cells, self.widths)

    def of_independent_cells(self, cells: Array) -> Array:
        """(rows,) the same if its columns were independent."""
        return log_independent_density(cells, self.log_shares, self.log_cells, self.widths)

    def within_cells(self, drawn: Columns) -> Array:
        """(rows,) log of the chance of each row's values, given its cells. drawn: as the columns of a sampler draw them."""
        return np.sum([log_within_cell(column, own) for column, own in zip(self.columns, drawn, strict=True)], axis=0)  # type: ignore[no-any-return]


def log_within_cell(column: Modelled, drawn: Array) -> Array:
    """(rows,) log of the chance of a value, given its cell; of a number without declared decimals, as the sampler rounds it."""
    if not isinstance(column, GridColumn):
        return _log_of_fine(column, drawn) if isinstance(column, HierarchyColumn) else np.zeros(len(drawn))
    codes = np.minimum(column.code_of(drawn), len(column.steps) - 1)
    chances = 1.0 / column.steps[codes]
    if column.shared is not None:
        chances = chances * (1.0 - column.shared.all_of_cell[codes])
        numbers = np.ma.getdata(drawn)
        places = np.searchsorted(column.shared.values, numbers).clip(max=len(column.shared.values) - 1)
        chances = chances + np.where(column.shared.values[places] == numbers, column.shared.shares[places], 0.0)
    with np.errstate(divide="ignore"):
        return np.where(np.ma.getmaskarray(drawn), 0.0, np.log(chances))


def _log_of_fine(column: HierarchyColumn, drawn: Array) -> Array:
    """Shares of fine categories are declared."""
    fine, back = np.unique(np.asarray(drawn, dtype=np.int64), return_inverse=True)
    every = np.arange(len(column.values))
    coarse = column.coarse_codes(fine)
    shares = [column.chances_of(every == code)[cell] for code, cell in zip(fine, coarse, strict=True)]
    return np.log(np.array(shares))[back.reshape(-1)]  # type: ignore[no-any-return]


def _distinct(cells: Array, widths: Sequence[int]) -> tuple[Array, Array]:
    """Different rows, and the place of each row among them. By one number a row, where that is enough: much faster."""
    if math.prod(widths) >= 2**62:
        rows, back = np.unique(cells, axis=0, return_inverse=True)
        return rows, back.reshape(-1)
    numbers = np.ravel_multi_index(tuple(cells.T), tuple(widths))
    _, first, back = np.unique(numbers, return_index=True, return_inverse=True)
    return cells[first], back


def _spans(widths: Sequence[int]) -> list[tuple[int, int]]:
    return list(itertools.pairwise([0, *itertools.accumulate(widths)]))
