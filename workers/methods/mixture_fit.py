"""Fits a mixture of product distributions to noised tables. Post-processing: it sees nothing else.

The squared error of every cell, weighted by the inverse of its noise's variance, by full-batch Adam on the logits of all
components. All two-way tables of a mixture are one product PᵀP of its cell probabilities side by side. A fit followed to its end
repeats the noise, so a twin is fitted beside it that tells when to stop (stopping.py).
Relatives: RAP (Aydore et al. 2021), GEM (Liu et al. 2021), PrivSyn (Zhang et al. 2021).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

SMALLEST_LOGIT = -6.0
"""Where a noised one-way count is not positive, components start with this logit relative to the whole column."""

LOOK_EVERY = 10
"""Steps from one estimate of the error to the next."""

PATIENCE = 1.5
"""A slice ends when it is this many times past its best step, and some looks more."""

_BETA1, _BETA2, _TINY = 0.9, 0.999, 1e-10

Risk = Callable[[int, Tensor, Tensor], float]
"""Slice, (V, V) expected counts of the fit and of its twin -> estimated error."""


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
    """The state of one fit: logits (slices, components, W).

    With a twin, each slice keeps its logits from the step of least estimated error; without one, from the last.
    """

    def __init__(
        self,
        tables: NoisedTables,
        twin: tuple[NoisedTables, Risk] | None = None,
        *,
        components: int,
        steps: int,
        learning_rate: float,
        randomness: torch.Generator,
        device: torch.device,
    ) -> None:
        self.steps, self.learning_rate, self._done = steps, learning_rate, 0
        spreads = torch.randn(len(tables.totals), components, sum(tables.widths), generator=randomness)
        self._slices: list[_Slice | _Watched] = []
        for place, spread in enumerate(spreads):
            fit = _Slice(tables, place, spread=spread, device=device)
            if twin is None:
                self._slices.append(fit)
            else:
                self._slices.append(_Watched(fit, _Slice(twin[0], place, spread=spread, device=device), place, twin[1]))

    def run(self, on_step: Callable[[int], None], *, until: int | None = None) -> None:
        """The steps that are left, or those up to `until`, of all slices side by side; `on_step` may raise to stop.

        It hears of the last step even where all slices ended before it.
        """
        last = self.steps if until is None else min(until, self.steps)
        for step in range(self._done + 1, last + 1):
            rate = self.learning_rate * (1.0 - (step - 1) / self.steps)
            going = [one.step(step, rate) for one in self._slices]
            self._done = step
            if not any(going):
                break
            if step < last:
                on_step(step)
        on_step(last)

    def logits(self) -> Tensor:
        return torch.stack([one.logits for one in self._slices]).cpu()

    def error(self) -> float:
        """The estimated error that is left, of all slices together; infinite without a twin, or before the first look."""
        return sum(one.least if isinstance(one, _Watched) else math.inf for one in self._slices)


class _Watched:
    """A slice beside its twin: the logits of least estimated error."""

    def __init__(self, fit: _Slice, twin: _Slice, place: int, risk: Risk) -> None:
        self._fit, self._twin, self._place, self._risk = fit, twin, place, risk
        self.least, self._best_step, self._ended = math.inf, 0, False
        self.logits = fit.logits.clone()

    def step(self, number: int, rate: float) -> bool:
        """Whether it goes on."""
        if self._ended:
            return False
        self._fit.step(number, rate)
        self._twin.step(number, rate)
        if number % LOOK_EVERY == 0:
            error = self._risk(self._place, self._fit.expected(), self._twin.expected())
            if error < self.least:
                self.least, self._best_step = error, number
                self.logits.copy_(self._fit.logits)
            self._ended = number > PATIENCE * self._best_step + 5 * LOOK_EVERY
        return not self._ended


class _Slice:
    """The mixture of one value of the condition."""

    def __init__(self, tables: NoisedTables, place: int, *, spread: Tensor, device: torch.device) -> None:
        components = len(spread)
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
        self.logits = (spread + self._start(tables, place)).to(device)
        self._mean = torch.zeros_like(self.logits)
        self._square = torch.zeros_like(self.logits)

    def _start(self, tables: NoisedTables, place: int) -> Tensor:
        shares = tables.one_way[place].clamp(min=1e-4 * float(tables.totals[place]))
        shares = torch.cat([part / part.sum() for part in torch.split(shares, list(tables.widths))])
        return shares.log_().clamp_(min=SMALLEST_LOGIT)

    def expected(self) -> Tensor:
        """(V, V) expected counts of all pairs of cells."""
        grouped = self._grouped(self._probabilities())
        return (grouped.T @ grouped).mul_(self._rows_per_component)

    def _probabilities(self) -> Tensor:
        weights = self.logits.exp()  # logits stay far below 88, where float32 would overflow
        return weights.div_((weights @ self._column_of_cell) @ self._column_of_cell.T)  # (R, W)

    def _grouped(self, probabilities: Tensor) -> Tensor:
        return probabilities if self._group_of_cell is None else probabilities @ self._group_of_cell  # (R, V)

    def step(self, number: int, rate: float) -> bool:
        """One step of Adam on the mean squared error of this slice, in units of its noise; never the last of itself."""
        columns, groups = self._column_of_cell, self._group_of_cell
        probabilities = self._probabilities()
        grouped = self._grouped(probabilities)
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
        return True


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
