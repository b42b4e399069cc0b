"""Critic batches whose units have different numbers of rows."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from workers.mechanism import CriticBatch


def by_unit(rows: CriticBatch, counts: Sequence[int]) -> CriticBatch:
    """The rows one after the other, counts[u] of them for unit u, filled up with null rows to the most that one has."""
    most = max([1, *counts])
    places = (torch.arange(most) < torch.tensor(counts, dtype=torch.int64).view(-1, 1)).flatten()

    def placed(part: Tensor) -> Tensor:
        grid = part.new_zeros(len(places), *part.shape[1:])
        grid[places] = part
        return grid

    return CriticBatch(placed(rows.real), placed(rows.fake), placed(rows.mix), placed(rows.present), most)


def without_unit(batch: CriticBatch, unit: int) -> CriticBatch:
    """The neighbour as `one_hot_records` makes it: a null record is a zero row that is not present."""
    theirs = torch.arange(len(batch.present)) // batch.rows_per_unit == unit
    real = torch.where(theirs.unsqueeze(1), 0.0, batch.real)
    return CriticBatch(real, batch.fake, batch.mix, batch.present & ~theirs, batch.rows_per_unit)
