"""Fits a mixture of product distributions to noisy tables. Post-processing: it sees nothing else.

The squared error of every cell, weighted by the inverse of its noise's variance, by full-batch Adam on the logits of all
components. All two-way tables of a mixture are one product PPᵀ of its cells' probabilities side by side, a row for each cell: sums
over the cells of a column or a group are then sums of rows. A fit followed to its end repeats the noise, so a twin is fitted beside
it that tells when to stop (stopping.py). Strata with pairs of their own begin together, as one mixture that each moves (docs/decisions/0051).
Relatives: RAP (Aydore et al. 2021), GEM (Liu et al. 2021), PrivSyn (Zhang et al. 2021).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

SMALLEST_LOGIT = -6.0
"""Where a noisy one-way count is not positive, components start with this logit relative to the whole column."""

LARGEST_LOGIT = 60.0
"""Either way; far below 88, where float32 would overflow."""

LOOK_EVERY = 10
"""Steps from one estimate of the error to the next."""

PATIENCE = 1.5
"""A fit ends when it is this many times past its best step, and some looks more."""

BLOCK_CELLS = 96
"""Rows of one product of all cells with each other: of fewer, products are slow; of more, more is computed twice."""

STEPS_TOGETHER = 50
"""In which strata with two-way tables of their own differ by what single columns say alone (docs/decisions/0051)."""

_BETA1, _BETA2, _ADAM_EPS = 0.9, 0.999, 1e-10
_CPU = torch.device("cpu")

Risk = Callable[[int, Tensor, Tensor], float]
"""Place in NoisyTables.two_way, (V, V) expected counts of the fit and of its twin -> estimated error."""


@dataclass(frozen=True)
class NoisyTables:
    """What was measured, cells of all free columns side by side: W of them alone, V as two-way tables group them."""

    one_way: Tensor  # (strata, W)
    one_way_precision: Tensor  # (W,) 1/variance
    two_way: Tensor  # (strata, V, V), or (1, V, V) of all rows; symmetric; zero where not measured
    two_way_precision: Tensor  # (V, V) 1/variance; zero where not measured and between cells of one column
    totals: Tensor  # (strata,) estimated rows, positive
    widths: tuple[int, ...]
    groups: tuple[Tensor, ...]  # per column, the group of each cell, counted within the column


@dataclass(frozen=True)
class ExpectedCounts:
    """What a mixture makes of the tables that were measured."""

    one_way: Tensor  # (strata, W)
    two_way: Tensor  # as NoisyTables.two_way, cells of one column included


def expected_counts(logits: Tensor, tables: NoisyTables) -> ExpectedCounts:
    """logits: (strata, components, W)."""
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

    tables: NoisyTables
    twin_tables: NoisyTables
    logits: Tensor  # (strata, components, W)
    twin_logits: Tensor


class MixtureFit:
    """The state of one fit: logits (strata, components, W).

    Two-way tables of one stratum are fitted by that stratum's mixture, those of all rows by all mixtures together. With a twin, what
    makes a table keeps its logits from the step of least estimated error; without one, from the last.
    """

    def __init__(
        self,
        tables: NoisyTables,
        twin: tuple[NoisyTables, Risk] | None = None,
        *,
        components: int,
        steps: int,
        learning_rate: float,
        randomness: torch.Generator,
        device: torch.device,
    ) -> None:
        self.steps, self.learning_rate, self._done = steps, learning_rate, 0
        self._tables, self._twin_tables = tables, None if twin is None else twin[0]
        spreads = torch.randn(len(tables.totals), components, sum(tables.widths), generator=randomness)
        fit = _Mixtures(tables, spreads, device)
        self._fit = fit if twin is None else _Watched(fit, _Mixtures(twin[0], spreads, device), twin[1])

    def run(self, on_step: Callable[[int], None], *, until: int | None = None) -> None:
        """The steps that are left, or those up to `until`; `on_step` may raise to stop.

        It hears of the last step even where the fit ended before it.
        """
        last = self.steps if until is None else min(until, self.steps)
        for step in range(self._done + 1, last + 1):
            self._fit.step(step, self.learning_rate * (1.0 - (step - 1) / self.steps))
            self._done = step
            if self._fit.is_over:
                break
            if step < last:
                on_step(step)
        on_step(last)

    def logits(self) -> Tensor:
        return torch.stack(self._fit.logits).cpu()

    def with_twin(self) -> TwinFits:
        """The fit and its twin; `ValueError` where there is no twin."""
        if self._twin_tables is None or not isinstance(self._fit, _Watched):
            raise ValueError("this fit has no twin")
        return TwinFits(self._tables, self._twin_tables, self.logits(), torch.stack(self._fit.twin_logits).cpu())


class _Watched:
    """A fit beside its twin: the logits of both at the least estimated error of each table they make."""

    def __init__(self, fit: _Mixtures, twin: _Mixtures, risk: Risk) -> None:
        self._fit, self._twin, self._risk = fit, twin, risk
        self._active: Sequence[int] = fit.tables
        self._least, self._best_step = [math.inf for _ in fit.tables], [0 for _ in fit.tables]
        self.logits = [logits.clone() for logits in fit.logits]
        self.twin_logits = [logits.clone() for logits in twin.logits]

    @property
    def is_over(self) -> bool:
        return not self._active

    @property
    def least(self) -> float:
        """The least estimated error of all tables together."""
        return sum(self._least)

    def step(self, number: int, rate: float) -> None:
        for both in (self._fit, self._twin):
            both.step(number, rate, self._active)
        if number % LOOK_EVERY:
            return
        errors = {at: self._risk(at, self._fit.expected(at), self._twin.expected(at)) for at in self._active}
        better: Sequence[int] = [at for at, error in errors.items() if error < self._least[at]]
        if self._fit.are_together(number):
            better = self._active if sum(errors.values()) < self.least else []
        for at in better:
            self._least[at], self._best_step[at] = errors[at], number
            for place in self._fit.places_of(at):
                self.logits[place].copy_(self._fit.logits[place])
                self.twin_logits[place].copy_(self._twin.logits[place])
        self._active = [at for at in self._active if number <= PATIENCE * self._best_step[at] + 5 * LOOK_EVERY]


class _Mixtures:
    """The mixtures of all strata, and the two-way tables that each of them makes, or all together."""

    is_over = False
    """Nothing but a look at a twin ends a fit before its last step."""

    def __init__(self, tables: NoisyTables, spreads: Tensor, device: torch.device) -> None:
        self._two_way = tables.two_way.to(device)
        self._precision = tables.two_way_precision.to(device)
        self._strata = [_Stratum(tables, own, spread=spread, device=device) for own, spread in enumerate(spreads)]
        have_their_own = 1 < len(self._two_way) == len(self._strata)
        self._together = _Together(self._strata, tables, spreads[0], device) if have_their_own else None
        self.tables: Sequence[int] = range(len(self._two_way))
        """Places of all of them."""

    @property
    def logits(self) -> list[Tensor]:
        return [one.logits for one in self._strata]

    def places_of(self, at: int) -> range:
        """The strata that make a two-way table."""
        return range(len(self._strata)) if len(self._two_way) == 1 else range(at, at + 1)

    def are_together(self, number: int) -> bool:
        """Whether strata with tables of their own share their components at this step."""
        return self._together is not None and number <= STEPS_TOGETHER

    def expected(self, at: int) -> Tensor:
        """(V, V) expected counts of all pairs of cells."""
        strata = [self._strata[place] for place in self.places_of(at)]
        return _products(torch.zeros_like(self._precision), strata, [one.cells() for one in strata], beta=1.0)

    def step(self, number: int, rate: float, active: Sequence[int] | None = None) -> None:
        """One step of Adam on the squared error, in units of the noise; of the tables that are still fitted, or of all."""
        gradients = self._gradients(self.tables if active is None else active)
        if self._together is not None and self.are_together(number):
            self._together.step(gradients, number, rate)
            return
        alone_since = 0 if self._together is None else STEPS_TOGETHER
        for one, gradient in gradients:
            one.step(gradient, number - alone_since, rate)

    def _gradients(self, active: Sequence[int]) -> Iterator[tuple[_Stratum, Tensor]]:
        """Of the squared error, of each stratum in turn, which may move before the next is asked for."""
        for at in active:
            strata = [self._strata[place] for place in self.places_of(at)]
            cells = [one.cells() for one in strata]
            residual = _products(self._two_way[at], strata, cells, beta=-1.0).mul_(self._precision)
            for one, own in zip(strata, cells, strict=True):
                yield one, one.gradient(own, residual)


def _products(added: Tensor, strata: Sequence[_Stratum], cells: Sequence[_CellShares], *, beta: float) -> Tensor:
    """beta·added and the expected counts of these strata: (V, V)."""
    for one, own in zip(strata, cells, strict=True):
        added = _with_square(added, own.grouped, beta=beta, alpha=one.rows_per_component)
        beta = 1.0
    return added


class _Together:
    """Strata whose components have the same logits, but for what every stratum adds to those of a cell in all of its components.

    What strata say of pairs is told by their single columns then; what they say beyond that is followed afterwards, and in a
    fit that is stopped in time repeats less of the noise of each.
    """

    def __init__(self, strata: list[_Stratum], tables: NoisyTables, spread: Tensor, device: torch.device) -> None:
        self._strata = strata
        shared = _start(tables.one_way.sum(dim=0), float(tables.totals.sum()), tables.widths)
        self._logits = (spread + shared).T.contiguous().to(device)
        every = zip(tables.one_way, tables.totals.tolist(), strict=True)
        of_strata = [_start(one_way, rows, tables.widths) - shared for one_way, rows in every]
        self._offsets = torch.stack(of_strata, dim=1).to(device)  # (W, strata)
        self._adam_eps = sum(one.adam_eps * one.rows_per_component for one in strata)
        self._adams = _Adam(self._logits), _Adam(self._offsets)
        self._pass_on()

    def step(self, gradients: Iterable[tuple[_Stratum, Tensor]], number: int, rate: float) -> None:
        shared, added = torch.zeros_like(self._logits), torch.zeros_like(self._offsets)
        for one, gradient in gradients:
            shared.add_(gradient, alpha=one.rows_per_component)
            added[:, self._strata.index(one)] = gradient.sum(dim=1) * one.rows_per_component
        for adam, gradient in zip(self._adams, (shared, added), strict=True):
            adam.step(gradient, number, rate, eps=self._adam_eps)
        self._pass_on()

    def _pass_on(self) -> None:
        for place, one in enumerate(self._strata):
            one.set_logits(self._logits + self._offsets[:, place, None])


@dataclass(frozen=True)
class _CellShares:
    """Of every component: (W, components) of cells, (V, components) as two-way tables group them."""

    alone: Tensor
    grouped: Tensor


class _Stratum:
    """The mixture of one value of the condition. Inside, cells are rows and components columns."""

    def __init__(self, tables: NoisyTables, place: int, *, spread: Tensor, device: torch.device) -> None:
        components = len(spread)
        self._by_column = _Sums(_column_of_cell(tables.widths), device)
        are_grouped = len(tables.two_way_precision) < sum(tables.widths)
        self._by_group = _Sums(_group_of_cell(tables.groups), device) if are_grouped else None
        self._one_way = tables.one_way[place].to(device)
        self._one_way_precision = tables.one_way_precision.to(device)
        self.rows_per_component = float(tables.totals[place]) / components
        cells = float((tables.two_way_precision > 0).sum()) / 2.0 + float((self._one_way_precision > 0).sum())
        # Adam's steps have no scale: instead of the mean over cells, their sum, and what keeps from dividing by nothing times as much.
        self.adam_eps = _ADAM_EPS * max(1.0, cells) / (2.0 * self.rows_per_component)
        start = _start(tables.one_way[place], float(tables.totals[place]), tables.widths)
        self._logits = (spread + start).T.contiguous().to(device)
        self._adam = _Adam(self._logits)

    @property
    def logits(self) -> Tensor:
        """(components, W)."""
        return self._logits.T

    def set_logits(self, logits: Tensor) -> None:
        """(W, components) from elsewhere."""
        self._logits.copy_(logits).clamp_(-LARGEST_LOGIT, LARGEST_LOGIT)

    def cells(self) -> _CellShares:
        weights = self._logits.exp()
        shares = weights.div_(self._over_columns(weights))
        return _CellShares(shares, shares if self._by_group is None else self._by_group(shares))

    def _over_columns(self, of_cells: Tensor) -> Tensor:
        """(W, components): at every cell the sum over all cells of its column."""
        return self._by_column(of_cells).index_select(0, self._by_column.places)

    def gradient(self, cells: _CellShares, residual: Tensor) -> Tensor:
        """(W, components) of the logits, divided by the rows of a component.

        residual: (V, V) by how much two-way tables are too large, times their precision; symmetric.
        """
        shares, gradient = cells.alone, residual @ cells.grouped
        if self._by_group is not None:
            gradient = gradient.index_select(0, self._by_group.places)
        alone = shares.sum(dim=1) * self.rows_per_component - self._one_way
        gradient += (alone * self._one_way_precision)[:, None]
        gradient *= shares
        return gradient.addcmul_(shares, self._over_columns(gradient), value=-1.0)

    def step(self, gradient: Tensor, number: int, rate: float) -> None:
        self._adam.step(gradient, number, rate, eps=self.adam_eps)


class _Adam:
    """Of some logits, which it changes in place."""

    def __init__(self, logits: Tensor) -> None:
        self._logits, self._mean, self._square = logits, torch.zeros_like(logits), torch.zeros_like(logits)

    def step(self, gradient: Tensor, number: int, rate: float, *, eps: float) -> None:
        self._mean.lerp_(gradient, 1.0 - _BETA1)
        self._square.mul_(_BETA2).addcmul_(gradient, gradient, value=1.0 - _BETA2)
        root = self._square.sqrt().add_(eps)
        self._logits.addcdiv_(self._mean, root, value=-rate * math.sqrt(1.0 - _BETA2**number) / (1.0 - _BETA1**number))
        self._logits.clamp_(-LARGEST_LOGIT, LARGEST_LOGIT)


def _start(one_way: Tensor, rows: float, widths: Sequence[int]) -> Tensor:
    """(W,) logits of single columns with these counts, of so many rows."""
    shares = one_way.clamp(min=1e-4 * rows)
    shares = torch.cat([part / part.sum() for part in torch.split(shares, list(widths))])
    return shares.log_().clamp_(min=SMALLEST_LOGIT)


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
        # A GPU's index_add adds in no fixed order, and there a product with zeros and ones costs next to nothing.
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
