"""Fits a mixture of product distributions to noised tables. Post-processing: it sees nothing else.

The squared error of every cell, weighted by the inverse of its noise's variance, by full-batch Adam on the logits of all
components. All two-way tables of a mixture are one product PPᵀ of its cells' probabilities side by side, a row for each cell: sums
over the cells of a column or a group are then sums of rows. A fit followed to its end repeats the noise, so a twin is fitted beside
it that tells when to stop (stopping.py).
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
"""A part ends when it is this many times past its best step, and some looks more."""

BLOCK_CELLS = 96
"""Rows of one product of all cells with each other: of fewer, products are slow; of more, more is computed twice."""

_BETA1, _BETA2, _TINY = 0.9, 0.999, 1e-10
_CPU = torch.device("cpu")

Risk = Callable[[int, Tensor, Tensor], float]
"""Part, (V, V) expected counts of the fit and of its twin -> estimated error."""


@dataclass(frozen=True)
class NoisedTables:
    """What was measured, cells of all free columns side by side: W of them alone, V as two-way tables group them."""

    one_way: Tensor  # (slices, W)
    one_way_precision: Tensor  # (W,) 1/variance
    two_way: Tensor  # (slices, V, V), or (1, V, V) of all rows; symmetric; zero where not measured
    two_way_precision: Tensor  # (V, V) 1/variance; zero where not measured and between cells of one column
    totals: Tensor  # (slices,) estimated rows, positive
    widths: tuple[int, ...]
    groups: tuple[Tensor, ...]  # per column, the group of each cell, counted within the column


@dataclass(frozen=True)
class ExpectedCounts:
    """What a mixture makes of the tables that were measured."""

    one_way: Tensor  # (slices, W)
    two_way: Tensor  # as NoisedTables.two_way, cells of one column included


def expected_counts(logits: Tensor, tables: NoisedTables) -> ExpectedCounts:
    """logits: (slices, components, W)."""
    rows, over_groups = tables.totals.to(logits.dtype) / logits.shape[1], _Sums(_group_of_cell(tables.groups), _CPU)
    one_way, two_way = [], torch.zeros_like(tables.two_way)
    for place, (own, rows_per_component) in enumerate(zip(logits, rows, strict=True)):
        shares = torch.cat([part.softmax(dim=1) for part in torch.split(own, list(tables.widths), dim=1)], dim=1).T
        grouped = over_groups(shares)
        two_way[place if len(two_way) == len(logits) else 0].addmm_(grouped, grouped.T, alpha=rows_per_component)
        one_way.append(shares.sum(dim=1) * rows_per_component)
    return ExpectedCounts(torch.stack(one_way), two_way)


@dataclass(frozen=True)
class TwinFits:
    """A fit and its twin, at the step of least estimated error."""

    tables: NoisedTables
    twin_tables: NoisedTables
    logits: Tensor  # (slices, components, W)
    twin_logits: Tensor


class MixtureFit:
    """The state of one fit: logits (slices, components, W).

    Two-way tables of one slice are fitted by that slice's mixture, those of all rows by all mixtures together. With a twin, what is
    fitted together keeps its logits from the step of least estimated error; without one, from the last.
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
        self._tables, self._twin_tables = tables, None if twin is None else twin[0]
        slices, parts = len(tables.totals), len(tables.two_way)
        spreads = torch.randn(slices, components, sum(tables.widths), generator=randomness)
        self._parts: list[_Part | _Watched] = []
        for place in range(parts):
            own = range(slices) if parts < slices else (place,)
            fit = _Part(tables, place, own, spreads, device)
            if twin is None:
                self._parts.append(fit)
            else:
                self._parts.append(_Watched(fit, _Part(twin[0], place, own, spreads, device), place, twin[1]))

    def run(self, on_step: Callable[[int], None], *, until: int | None = None) -> None:
        """The steps that are left, or those up to `until`, of all parts side by side; `on_step` may raise to stop.

        It hears of the last step even where all parts ended before it.
        """
        last = self.steps if until is None else min(until, self.steps)
        for step in range(self._done + 1, last + 1):
            rate = self.learning_rate * (1.0 - (step - 1) / self.steps)
            going = [one.step(step, rate) for one in self._parts]
            self._done = step
            if not any(going):
                break
            if step < last:
                on_step(step)
        on_step(last)

    def logits(self) -> Tensor:
        return torch.stack([logits for one in self._parts for logits in one.logits]).cpu()

    def with_twin(self) -> TwinFits:
        """Where there is a twin."""
        if self._twin_tables is None:
            raise ValueError("this fit has no twin")
        twins = [logits for one in self._parts if isinstance(one, _Watched) for logits in one.twin_logits]
        return TwinFits(self._tables, self._twin_tables, self.logits(), torch.stack(twins).cpu())

    def error(self) -> float:
        """The estimated error that is left, of all parts together; infinite without a twin, or before the first look."""
        return sum(one.least if isinstance(one, _Watched) else math.inf for one in self._parts)


class _Watched:
    """A part beside its twin: the logits of both at the least estimated error."""

    def __init__(self, fit: _Part, twin: _Part, place: int, risk: Risk) -> None:
        self._fit, self._twin, self._place, self._risk = fit, twin, place, risk
        self.least, self._best_step, self._ended = math.inf, 0, False
        self.logits = [logits.clone() for logits in fit.logits]
        self.twin_logits = [logits.clone() for logits in twin.logits]

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
                of_both = (*self._fit.logits, *self._twin.logits)
                for kept, logits in zip((*self.logits, *self.twin_logits), of_both, strict=True):
                    kept.copy_(logits)
            self._ended = number > PATIENCE * self._best_step + 5 * LOOK_EVERY
        return not self._ended


class _Part:
    """Two-way tables and the slices whose mixtures make them: one, or all."""

    def __init__(
        self, tables: NoisedTables, place: int, slices: Sequence[int], spreads: Tensor, device: torch.device
    ) -> None:
        self._two_way = tables.two_way[place].to(device)
        self._two_way_precision = tables.two_way_precision.to(device)
        self._slices = [_Slice(tables, own, spread=spreads[own], device=device) for own in slices]

    @property
    def logits(self) -> list[Tensor]:
        return [one.logits for one in self._slices]

    def expected(self) -> Tensor:
        """(V, V) expected counts of all pairs of cells."""
        return self._products(torch.zeros_like(self._two_way), [one.cells() for one in self._slices], beta=1.0)

    def _products(self, added: Tensor, cells: Sequence[_CellShares], *, beta: float) -> Tensor:
        """beta·added and the expected counts: (V, V)."""
        for one, own in zip(self._slices, cells, strict=True):
            added = _with_square(added, own.grouped, beta=beta, alpha=one.rows_per_component)
            beta = 1.0
        return added

    def step(self, number: int, rate: float) -> bool:
        """One step of Adam on the squared error, in units of the noise; never the last of itself."""
        cells = [one.cells() for one in self._slices]
        residual = self._products(self._two_way, cells, beta=-1.0).mul_(self._two_way_precision)
        for one, own in zip(self._slices, cells, strict=True):
            one.step(own, residual, number, rate)
        return True


@dataclass(frozen=True)
class _CellShares:
    """Of every component: (W, components) of cells, (V, components) as two-way tables group them."""

    alone: Tensor
    grouped: Tensor


class _Slice:
    """The mixture of one value of the condition. Inside, cells are rows and components columns."""

    def __init__(self, tables: NoisedTables, place: int, *, spread: Tensor, device: torch.device) -> None:
        components = len(spread)
        self._by_column = _Sums(_column_of_cell(tables.widths), device)
        are_grouped = len(tables.two_way_precision) < sum(tables.widths)
        self._by_group = _Sums(_group_of_cell(tables.groups), device) if are_grouped else None
        self._one_way = tables.one_way[place].to(device)
        self._one_way_precision = tables.one_way_precision.to(device)
        self.rows_per_component = float(tables.totals[place]) / components
        cells = float((tables.two_way_precision > 0).sum()) / 2.0 + float((self._one_way_precision > 0).sum())
        # Adam's steps have no scale: instead of the mean over cells, their sum, and what keeps from dividing by nothing times as much.
        self._tiny = _TINY * max(1.0, cells) / (2.0 * self.rows_per_component)
        self._logits = (spread + self._start(tables, place)).T.contiguous().to(device)
        self._mean = torch.zeros_like(self._logits)
        self._square = torch.zeros_like(self._logits)

    @property
    def logits(self) -> Tensor:
        """(components, W)."""
        return self._logits.T

    def _start(self, tables: NoisedTables, place: int) -> Tensor:
        shares = tables.one_way[place].clamp(min=1e-4 * float(tables.totals[place]))
        shares = torch.cat([part / part.sum() for part in torch.split(shares, list(tables.widths))])
        return shares.log_().clamp_(min=SMALLEST_LOGIT)

    def cells(self) -> _CellShares:
        weights = self._logits.exp()  # logits stay far below 88, where float32 would overflow
        shares = weights.div_(self._over_columns(weights))
        return _CellShares(shares, shares if self._by_group is None else self._by_group(shares))

    def _over_columns(self, of_cells: Tensor) -> Tensor:
        """(W, components): at every cell the sum over all cells of its column."""
        return self._by_column(of_cells).index_select(0, self._by_column.places)

    def step(self, cells: _CellShares, residual: Tensor, number: int, rate: float) -> None:
        """residual: (V, V) by how much two-way tables are too large, times their precision; symmetric."""
        shares, gradient = cells.alone, residual @ cells.grouped
        if self._by_group is not None:
            gradient = gradient.index_select(0, self._by_group.places)
        alone = shares.sum(dim=1) * self.rows_per_component - self._one_way
        gradient += (alone * self._one_way_precision)[:, None]
        gradient *= shares
        gradient.addcmul_(shares, self._over_columns(gradient), value=-1.0)
        self._mean.lerp_(gradient, 1.0 - _BETA1)
        self._square.mul_(_BETA2).addcmul_(gradient, gradient, value=1.0 - _BETA2)
        root = self._square.sqrt().add_(self._tiny)
        self._logits.addcdiv_(self._mean, root, value=-rate * math.sqrt(1.0 - _BETA2**number) / (1.0 - _BETA1**number))
        self._logits.clamp_(-60.0, 60.0)


def _with_square(added: Tensor, rows: Tensor, *, beta: float, alpha: float) -> Tensor:
    """beta·added + alpha·rows rowsᵀ of a symmetric added (V, V): what lies below the diagonal is turned over, where that is less work."""
    count = len(rows)
    if rows.device.type != "cpu" or count <= BLOCK_CELLS:
        return torch.addmm(added, rows, rows.T, beta=beta, alpha=alpha)
    made = torch.empty_like(added)
    for start in range(0, count, BLOCK_CELLS):
        block, rest = slice(start, start + BLOCK_CELLS), slice(start + BLOCK_CELLS, count)
        torch.addmm(added[block, start:], rows[block], rows[start:].T, beta=beta, alpha=alpha, out=made[block, start:])
        made[rest, block] = made[block, rest].T
    return made


class _Sums:
    """Adds up rows (W, ·) that have the same of these places (W,): (count, ·)."""

    def __init__(self, places: Tensor, device: torch.device) -> None:
        self.places, self._count = places.to(device), int(places.max()) + 1
        # A GPU's index_add adds in no fixed order, and there a product with noughts and ones costs next to nothing.
        self._members = None if device.type == "cpu" else F.one_hot(places).T.float().to(device)

    def __call__(self, rows: Tensor) -> Tensor:
        if self._members is not None:
            return self._members @ rows
        return rows.new_zeros(self._count, rows.shape[1]).index_add_(0, self.places, rows)


def _column_of_cell(widths: Sequence[int]) -> Tensor:
    """(W,) the column of each cell."""
    return torch.arange(len(widths)).repeat_interleave(torch.tensor(widths))


def _group_of_cell(groups: Sequence[Tensor]) -> Tensor:
    """(W,) the group of each cell, of all columns' groups side by side."""
    sizes = torch.tensor([int(group.max()) + 1 for group in groups])
    firsts = sizes.cumsum(0) - sizes
    return torch.cat([group + first for group, first in zip(groups, firsts, strict=True)])
