"""Fits a mixture of product distributions to noised tables. Post-processing: it sees nothing else.

The squared error of every cell, weighted by the inverse of its noise's variance, by full-batch Adam on the logits of all
components. All two-way tables of a mixture are one product PᵀP of its cell probabilities side by side.
Relatives: RAP (Aydore et al. 2021), GEM (Liu et al. 2021), PrivSyn (Zhang et al. 2021).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

SMALLEST_LOGIT = -6.0
"""Where a noised one-way count is not positive, components start with this logit relative to the whole column."""

_BETA1, _BETA2, _TINY = 0.9, 0.999, 1e-10


@dataclass(frozen=True)
class NoisedTables:
    """What was measured, cells of all free columns side by side: W of them alone, V as two-way tables group them."""

    one_way: Tensor  # (slices, W)
    one_way_precision: Tensor  # (W,) 1/variance
    two_way: Tensor  # (slices, V, V), symmetric; zero where not measured
    two_way_precision: Tensor  # (V, V) 1/variance; zero where not measured and between cells of one column
    totals: Tensor  # (slices,) estimated rows, positive
    widths: tuple[int, ...]
    groups: tuple[Tensor, ...]  # per column, the group of each cell, counted within the column


class MixtureFit:
    """The state of one fit: logits (slices, components, W)."""

    def __init__(
        self,
        tables: NoisedTables,
        *,
        components: int,
        steps: int,
        learning_rate: float,
        randomness: torch.Generator,
        device: torch.device,
    ) -> None:
        self.steps, self.learning_rate, self.components = steps, learning_rate, components
        self._slices = [
            _Slice(tables, place, components=components, randomness=randomness, device=device)
            for place in range(len(tables.totals))
        ]

    def run(self, on_step: Callable[[int], None]) -> None:
        """All steps of all slices side by side; `on_step` may raise to stop."""
        for step in range(1, self.steps + 1):
            rate = self.learning_rate * (1.0 - (step - 1) / self.steps)
            for one in self._slices:
                one.step(step, rate)
            on_step(step)

    def logits(self) -> Tensor:
        return torch.stack([one.logits for one in self._slices]).cpu()


class _Slice:
    """The mixture of one value of the condition."""

    def __init__(
        self, tables: NoisedTables, place: int, *, components: int, randomness: torch.Generator, device: torch.device
    ) -> None:
        widths = tables.widths
        self._column_of_cell = _block_of(widths).to(device)  # (W, columns) 0/1
        grouped = any(len(group) > int(group.max()) + 1 for group in tables.groups)
        self._group_of_cell = _group_of(tables.groups).to(device) if grouped else None
        self._one_way = tables.one_way[place].to(device)
        self._one_way_precision = tables.one_way_precision.to(device)
        self._two_way = tables.two_way[place].to(device)
        self._two_way_precision = tables.two_way_precision.to(device)
        self._rows_per_component = float(tables.totals[place]) / components
        cells = float((self._two_way_precision > 0).sum()) / 2.0 + float((self._one_way_precision > 0).sum())
        self._scale = 2.0 * self._rows_per_component / max(1.0, cells)
        self.logits = torch.randn(components, sum(widths), generator=randomness).to(device)
        self.logits += self._start(tables, place).to(device)
        self._mean = torch.zeros_like(self.logits)
        self._square = torch.zeros_like(self.logits)

    def _start(self, tables: NoisedTables, place: int) -> Tensor:
        shares = tables.one_way[place].clamp(min=1e-4 * float(tables.totals[place]))
        shares = torch.cat([part / part.sum() for part in torch.split(shares, list(tables.widths))])
        return shares.log_().clamp_(min=SMALLEST_LOGIT)

    def step(self, number: int, rate: float) -> None:
        """One step of Adam on the mean squared error of this slice, in units of its noise."""
        columns, groups = self._column_of_cell, self._group_of_cell
        weights = self.logits.exp()  # logits stay far below 88, where float32 would overflow
        probabilities = weights / ((weights @ columns) @ columns.T)  # (R, W)
        grouped = probabilities if groups is None else probabilities @ groups  # (R, V)
        residual = torch.addmm(self._two_way, grouped.T, grouped, beta=-1.0, alpha=self._rows_per_component)
        gradient = grouped @ residual.mul_(self._two_way_precision)
        if groups is not None:
            gradient = gradient @ groups.T
        alone = probabilities.sum(dim=0) * self._rows_per_component - self._one_way
        gradient += alone * self._one_way_precision
        gradient *= probabilities
        gradient -= probabilities * ((gradient @ columns) @ columns.T)
        gradient *= self._scale
        self._mean.lerp_(gradient, 1.0 - _BETA1)
        self._square.mul_(_BETA2).addcmul_(gradient, gradient, value=1.0 - _BETA2)
        root = (self._square / (1.0 - _BETA2**number)).sqrt_().add_(_TINY)
        self.logits.addcdiv_(self._mean, root, value=-rate / (1.0 - _BETA1**number))
        self.logits.clamp_(-60.0, 60.0)


def _block_of(widths: Sequence[int]) -> Tensor:
    """(cells, columns): 1 where a cell belongs to a column."""
    column_of_cell = torch.arange(len(widths)).repeat_interleave(torch.tensor(widths))
    return F.one_hot(column_of_cell, len(widths)).float()


def _group_of(groups: Sequence[Tensor]) -> Tensor:
    """(W, V): 1 where a cell belongs to a group of its column."""
    sizes = torch.tensor([int(group.max()) + 1 for group in groups])
    firsts = sizes.cumsum(0) - sizes
    group_of_cell = torch.cat([group + first for group, first in zip(groups, firsts, strict=True)])
    return F.one_hot(group_of_cell, int(sizes.sum())).float()
