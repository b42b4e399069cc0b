"""The classifier by whose errors candidates are compared: multinomial logistic regression on synthetic rows. It reads no private row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from service.methods.choose.work import DRAWN_BATCH, FITTING_STEPS

if TYPE_CHECKING:
    from collections.abc import Callable

    from workers.encoding.table import ColumnDomain, TableDomain
    from workers.generators.released import TableRelease

LEARNING_RATE = 0.1
RIDGE = 1e-4
LARGEST_WEIGHT, SCALE = 1e6, 2.0**20
"""Weights as whole numbers: those of 4,000 columns add up to less than 2^63."""

Codes = NDArray[np.int64]


def drawn_codes(made: TableRelease, domain: TableDomain, rows: int, seed: int) -> Codes:
    """(rows, columns) synthetic rows as codes of this domain; a value lies evenly in the cell that was drawn."""
    coins = torch.Generator().manual_seed(seed)
    cells = torch.cat([_cells(made, min(DRAWN_BATCH, rows - start), coins) for start in range(0, rows, DRAWN_BATCH)])
    places = torch.rand(cells.shape, generator=coins, dtype=torch.float64)
    columns = zip(made.domain.columns, domain.columns, cells.T.numpy(), places.T.numpy(), strict=True)
    return np.stack([_as_code(*each) for each in columns], axis=1)


@torch.no_grad()
def _cells(made: TableRelease, rows: int, coins: torch.Generator) -> Tensor:
    condition = None
    if made.condition_index is not None:
        frequencies = torch.tensor(made.condition_frequencies, dtype=torch.float64).clamp(min=0.0)
        weights = frequencies if frequencies.sum() > 0.0 else torch.ones_like(frequencies)
        condition = torch.multinomial(weights, rows, replacement=True, generator=coins)
    noise = torch.randn(rows, made.noise_dimension, generator=coins)
    logits = made.generator(noise, condition)
    uniforms = torch.rand(logits.shape, generator=coins, dtype=torch.float64).clamp(min=1e-300)
    drawn = logits.double().nan_to_num(0.0) - (-uniforms.log()).log()
    return torch.stack([one.argmax(dim=1) for one in drawn.split(list(made.domain.widths), dim=1)], dim=1)


def _as_code(drawn: ColumnDomain, seen: ColumnDomain, cells: Codes, places: NDArray[np.float64]) -> Codes:
    """The same category of a column of categories; of a range, the bin in which a value of the drawn one lies."""
    if drawn.edges is None or seen.edges is None:
        return cells
    edges, known = np.asarray(drawn.edges), len(drawn.edges) - 1
    within = np.minimum(cells, known - 1)
    numbers = edges[within] + places * (edges[within + 1] - edges[within])
    if drawn.type != "number":
        numbers = np.floor(numbers)
    codes = np.searchsorted(np.asarray(seen.edges)[1:-1], numbers, side="right").astype(np.int64)
    return codes if seen.missing_code is None else np.where(cells >= known, seen.missing_code, codes)


def fitted(codes: Codes, widths: tuple[int, ...], target: int, on_step: Callable[[], None] = lambda: None) -> Tensor:
    """(cells of all columns, classes) weights; those of the target's own cells are the constant term of every row. `on_step` may raise to stop."""
    table, labels = _inputs(codes, widths, target), torch.from_numpy(codes[:, target].copy())
    weights = torch.zeros(sum(widths), widths[target], requires_grad=True)
    adam = torch.optim.Adam([weights], lr=LEARNING_RATE)
    for _ in range(FITTING_STEPS):
        on_step()
        adam.zero_grad()
        loss = F.cross_entropy(F.embedding_bag(table, weights, mode="sum"), labels) + RIDGE * weights.square().sum()
        loss.backward()  # type: ignore[no-untyped-call]
        adam.step()
    return weights.detach()


def wrong(weights: Tensor, codes: Codes, widths: tuple[int, ...], target: int) -> NDArray[np.bool_]:
    """(rows,) where the column is predicted wrong. Of private rows, private.

    In whole numbers: what is found of one row never depends on which rows stand beside it.
    """
    whole = (weights.double().nan_to_num(0.0).clamp(-LARGEST_WEIGHT, LARGEST_WEIGHT) * SCALE).round().long().numpy()
    inputs = _places(codes, widths, target)
    scores = np.zeros((len(codes), widths[target]), dtype=np.int64)
    for column in range(inputs.shape[1]):
        scores += whole[inputs[:, column]]
    found: NDArray[np.bool_] = scores.argmax(axis=1) != codes[:, target]
    return found


def _inputs(codes: Codes, widths: tuple[int, ...], target: int) -> Tensor:
    return torch.from_numpy(_places(codes, widths, target))


def _places(codes: Codes, widths: tuple[int, ...], target: int) -> Codes:
    """Places of the cells of a row side by side; in the target's stands its first cell, whatever the row says."""
    known = np.minimum(codes, np.asarray(widths) - 1)
    known[:, target] = 0
    found: Codes = known + np.concatenate(([0], np.cumsum(widths)[:-1]))
    return found
