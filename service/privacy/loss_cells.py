"""The loss of one release on a grid, in both directions, every rounding upwards.

Source: Doroshenko et al. 2022 (a loss on a grid). Proofs of the bounds: docs/privacy.md, "How a list is composed". Nothing here sees data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from service.base.lazy import lazy
from service.base.work import spend

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy import special

    Floats = NDArray[np.floating[Any]]
else:
    np = lazy("numpy")
    special = lazy("scipy.special")

UNIT = 2.0**-53
"""Relative error of one rounded operation on doubles."""

_CALL_WORK, CELL_WORK, MOMENT_WORK = 10_000, 60, 4
"""For a few operations on arrays, however short; for one cell: to make it, and to weigh it once. Work is counted in about nanoseconds of a processor (`service.base.work`)."""

TINIEST = 1e-300
_HALF = 0.5
_LARGEST_LOSS = 700.0
"""e to it is a double; a mass against which another weighs more is rounded up to the end of its cell."""


@dataclass(frozen=True)
class Cells:
    """The loss of one step in one direction: mass at (first + i)·width, and at infinity.

    error: what is to be added to every loss, because the edges of cells are rounded.
    """

    first: int
    masses: Floats
    infinite: float
    error: float

    @cached_property
    def log_masses(self) -> Floats:
        with np.errstate(divide="ignore"):
            logs: Floats = np.log(self.masses)
        return logs

    def losses(self, width: float) -> Floats:
        return (self.first + np.arange(len(self.masses), dtype=np.float64)) * width

    def log_moment(self, tilt: float, width: float) -> float:
        """Log of E[e^(tilt·loss)] over finite losses."""
        spend(_CALL_WORK + MOMENT_WORK * len(self.masses))
        exponents = self.log_masses + tilt * self.losses(width)
        largest = float(exponents.max())
        return largest + math.log(float(np.exp(exponents - largest).sum()))

    def tilted(self, tilt: float, log_moment: float, width: float) -> Floats:
        """Doubles that are at least masses·e^(tilt·loss - log_moment)."""
        shift = tilt * self.losses(width)
        logs = np.maximum(self.log_masses, -1e4)
        rounding = UNIT * (16.0 + 4.0 * (np.abs(logs) + np.abs(shift) + abs(log_moment)))
        tilted = np.maximum(np.exp(logs + shift - log_moment) * (1.0 + rounding), TINIEST)
        return np.where(self.masses > 0.0, tilted, 0.0)


class LossOfOne(Protocol):
    """The pair of distributions that one release is accounted as."""

    def span(self, tail: float) -> float:
        """How far apart its least and its largest loss are, but for this mass."""

    def cells(self, width: float, tail: float) -> tuple[Cells, Cells]:
        """Zeroing a unit out, and back."""


@dataclass(frozen=True)
class SampledGaussianLoss:
    """(1 - q)·N(0, σ²) + q·N(1, σ²) against N(0, σ²)."""

    q: float
    noise: float

    def span(self, tail: float) -> float:
        lowest, highest = _reach(self.q, self.noise, tail)
        return _loss(self.q, highest) - _loss(self.q, lowest)

    def cells(self, width: float, tail: float) -> tuple[Cells, Cells]:
        return _cells(self.q, self.noise, width, *_reach(self.q, self.noise, tail))


@dataclass(frozen=True)
class TwoPointLoss:
    """Randomised response: ε with probability e^ε/(1 + e^ε), else -ε. The same pair in both directions."""

    epsilon: float

    def span(self, tail: float) -> float:  # noqa: ARG002  a pure loss has no tail
        return 2.0 * self.epsilon

    def cells(self, width: float, tail: float) -> tuple[Cells, Cells]:  # noqa: ARG002
        grid = _BoundedGrid.of(self.epsilon, width)
        masses = grid.empty()
        grid.add_point(masses, self.epsilon, 1.0 / (1.0 + math.exp(-self.epsilon)))
        grid.add_point(masses, -self.epsilon, math.exp(-self.epsilon) / (1.0 + math.exp(-self.epsilon)))
        return grid.both_ways(masses)


@dataclass(frozen=True)
class LaplaceLoss:
    """Laplace noise of scale 1/ε around 0 against around 1, the same pair in both directions.

    The loss is ε with probability 1/2, -ε with e^-ε/2, and between them has the density e^((loss - ε)/2)/4.
    """

    epsilon: float

    def span(self, tail: float) -> float:  # noqa: ARG002
        return 2.0 * self.epsilon

    def cells(self, width: float, tail: float) -> tuple[Cells, Cells]:  # noqa: ARG002
        grid = _BoundedGrid.of(self.epsilon, width)
        masses = grid.empty()
        left = (grid.first + np.arange(len(masses) - 1, dtype=np.float64)) * width
        # Where in its cell the density begins and ends; wider by what these places may be rounded by.
        begin = np.clip(-self.epsilon - left - grid.error, 0.0, width)
        end = np.clip(self.epsilon - left + grid.error, begin, width)
        at_left = np.exp((left - self.epsilon) / 2.0)
        mass = at_left * np.exp(begin / 2.0) * np.expm1((end - begin) / 2.0) / 2.0
        # ∫ e^((loss - ε)/2)/4·(1 - e^-y) over y from begin to end: no difference of like numbers in it.
        upper = 2.0 * at_left * np.sinh((begin + end) / 4.0) * np.sinh((end - begin) / 4.0) / -math.expm1(-width)
        masses += _spread(mass * (1.0 + grid.rounding), upper * (1.0 + grid.rounding), below=0.0)
        grid.add_point(masses, self.epsilon, 0.5)
        grid.add_point(masses, -self.epsilon, math.exp(-self.epsilon) / 2.0)
        return grid.both_ways(masses)


@dataclass(frozen=True)
class _BoundedGrid:
    """The grid between -ε and ε."""

    first: int
    last: int
    width: float
    error: float
    rounding: float

    @classmethod
    def of(cls, epsilon: float, width: float) -> _BoundedGrid:
        last = math.ceil(epsilon / width) + 1
        return cls(-last, last, width, 8.0 * UNIT * (epsilon + width), UNIT * (64.0 + 8.0 * epsilon))

    def empty(self) -> Floats:
        spend(CELL_WORK * (self.last - self.first + 1))
        return np.zeros(self.last - self.first + 1)

    def add_point(self, masses: Floats, loss: float, mass: float) -> None:
        """A mass at one loss, spread over both ends of its cell so that what it weighs in the other distribution stays."""
        cell = math.floor(loss / self.width)
        above = max(0.0, loss - cell * self.width + self.error)
        mass *= 1.0 + self.rounding
        upper = min(mass, mass * (1.0 + 16.0 * UNIT) * math.expm1(-above) / math.expm1(-self.width))
        masses[cell - self.first] += mass - upper
        masses[cell - self.first + 1] += upper

    def both_ways(self, masses: Floats) -> tuple[Cells, Cells]:
        cells = Cells(self.first, masses * (1.0 + 8.0 * UNIT), 0.0, self.error)
        return cells, cells


def _reach(q: float, noise: float, tail: float) -> tuple[float, float]:
    """Between which log-likelihood ratios y of a drawn unit each distribution has all but this mass at most."""
    far, half = -float(special.ndtri(tail / 2.0)), 1.0 / (2.0 * noise)
    drawn = -float(special.ndtri(min(0.5, tail / (2.0 * q))))
    return (-far - half) / noise, max(far - half, drawn + half) / noise


def _loss(q: float, y: float) -> float:
    """log(1 - q + q·e^y)."""
    return y if q == 1.0 else float(np.logaddexp(math.log1p(-q), math.log(q) + y))


def _cells(q: float, noise: float, width: float, lowest: float, highest: float) -> tuple[Cells, Cells]:
    """The loss of one sampled step, zeroing out and back, each cell's mass spread over its two ends from above.

    (1 - q)·N(0, σ²) + q·N(1, σ²) against N(0, σ²), the base: edges of cells are where log(1 - q + q·e^y) is a multiple of the width.
    """
    first = math.floor(_loss(q, lowest) / width)
    last = max(first + 1, math.ceil(_loss(q, highest) / width))
    spend(15 * _CALL_WORK + 2 * CELL_WORK * (last - first + 1))
    losses = np.arange(first, last + 1, dtype=np.float64) * width
    with np.errstate(divide="ignore", over="ignore"):
        absent = np.minimum(1.0, (1.0 - q) * np.exp(-losses)) if q < 1.0 else np.zeros(len(losses))
        y = losses - math.log(q) + np.log1p(-absent)  # -∞ where no output has so small a loss
    finite_y = np.where(np.isfinite(y), y, 0.0)
    error = 16.0 * UNIT * float((1.0 + np.abs(losses) + (1.0 - absent) * (np.abs(finite_y) - math.log(q))).max())

    half = 1.0 / (2.0 * noise)
    argument = noise * np.abs(finite_y) + half
    base, base_error = _masses(noise * y + half, argument)
    drawn, drawn_error = _masses(noise * y - half, argument)
    base_mass = base * (1.0 + 8.0 * UNIT) + base_error
    mass = (1.0 - q) * base_mass + q * (drawn * (1.0 + 8.0 * UNIT) + drawn_error)
    mass *= 1.0 + 8.0 * UNIT

    # The drawn part q·N(1, σ²) at a loss is the base there times e^loss - (1 - q).
    growing = np.exp(np.minimum(losses, _LARGEST_LOSS))
    excess = np.expm1(np.minimum(losses, _LARGEST_LOSS)) + q if q < _HALF else growing - (1.0 - q)
    excess_error = (
        8.0 * UNIT * (np.abs(excess) + (np.abs(excess - q) if q < _HALF else growing)) + 2.0 * error * growing
    )
    base, base_error, inner = base[1:-1], base_error[1:-1], base_mass[1:-1]
    drawn, drawn_error = q * drawn[1:-1], q * (drawn_error[1:-1] + 8.0 * UNIT * drawn[1:-1])
    rounding = drawn_error + np.abs(excess[:-1]) * base_error + excess_error[:-1] * inner
    upper = (drawn - excess[:-1] * base + rounding) / -math.expm1(-width)
    rounding = drawn_error + np.abs(excess[1:]) * base_error + excess_error[1:] * inner
    lower = (excess[1:] * base - drawn + rounding) / (growing[1:] * -math.expm1(-width))
    # Where nothing is known (0/0 at a loss of -∞, too) all of it moves up.
    lower = np.where((losses[1:] > _LARGEST_LOSS) | np.isnan(lower), np.inf, lower)
    zeroing = _spread(mass[1:-1], upper, below=mass[0])
    back = _spread(inner[::-1], lower[::-1], below=base_mass[-1])
    return Cells(first, zeroing, float(mass[-1]), error), Cells(-last, back, float(base_mass[0]), error)


def _masses(edges: Floats, size: Floats) -> tuple[Floats, Floats]:
    """Standard normal masses below, between and above edges, and by how much they may be wrong.

    Between edges it is a difference of the smaller tails, so small masses are as exact as those tails. size: of the terms that an edge is a sum of.
    """
    below, above = special.ndtr(edges), special.ndtr(-edges)
    finite = np.abs(np.where(np.isfinite(edges), edges, 0.0))
    part = UNIT * (64.0 + 8.0 * finite**2 + 8.0 * (finite + 1.0) * size)
    left = edges[:-1] + edges[1:] < 0.0
    between = np.maximum(0.0, np.where(left, below[1:] - below[:-1], above[:-1] - above[1:]))
    below_error, above_error = part * below, part * above
    between_error = np.where(left, below_error[1:] + below_error[:-1], above_error[1:] + above_error[:-1])
    return (
        np.concatenate((below[:1], between, above[-1:])),
        np.concatenate((below_error[:1], between_error, above_error[-1:])),
    )


def _spread(masses: Floats, upper: Floats, *, below: float) -> Floats:
    """What cells leave at their ends, lowest first: `upper` at the higher one, at most all. below: what is under the lowest end."""
    upper = np.clip(upper * (1.0 + 16.0 * UNIT), 0.0, masses)
    spread = np.zeros(len(masses) + 1)
    spread[0] = below
    spread[:-1] += masses - upper
    spread[1:] += upper
    return spread * (1.0 + 8.0 * UNIT)
