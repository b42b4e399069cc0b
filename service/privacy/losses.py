"""The privacy-loss distribution of a list of releases, rounded up throughout. What one of them loses: loss_cells.py.

Source: Koskela et al. 2020 (composition by Fourier transform), Alghamdi et al. 2023 (the tilt). Proofs of the bounds: docs/privacy.md,
"How a list is composed". Nothing here sees data.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from service.base.lazy import lazy
from service.base.work import spend
from service.privacy.loss_cells import TINIEST, UNIT, Cells, LossOfOne, SampledGaussianLoss
from service.privacy.mechanisms import largest_loss

if TYPE_CHECKING:
    import numpy as np
    from scipy import special

    from service.privacy.loss_cells import Floats
    from service.privacy.mechanisms import Counts
else:
    np = lazy("numpy")
    special = lazy("scipy.special")

SLACK = 1e-8
"""Relative: what is claimed as δ exceeds the computed sum by this part, for the rounding of that sum's terms and exponents."""

TAIL = 1e-7
"""Relative: what may be cut off the tails of all steps together, and of their sum. It is added to δ."""

TRANSFORM_ERROR = 8.0
"""A Fourier transform of 2^m points errs in each by at most this times m·UNIT times the sum of absolute values: the
stages of two points each have a product with a rounded factor (√5 and 1 UNIT) and an addition (1), which is 4.24."""

DISCRETISATION = 2e-4
"""The part of ε that the width of the grid may add, by the Gaussian limit of the composed loss."""

LARGEST_GRID = 2**22
LARGEST_STEP = 2**20
"""Points of the grid for a whole list, and cells of one step; where they are too few the grid is wider, and ε larger."""

LARGEST_EXPONENT = 1e6
"""Exponents beyond it would be rounded by more than SLACK covers: no finite ε is claimed."""

_CALL_WORK, _TRANSFORM_WORK, _DELTA_WORK = 50_000, 20, 1
"""For a transform, however short; for one point of the grid: to transform it for one step, and to add it up once."""

_LEAST_POINTS = 1_000
_WORTH_A_STEP = 1e-3
_MOST_TILT_STEPS = 80
"""Steps: how far from its first guess a tilt is looked for."""


@dataclass(frozen=True)
class Composed:
    """The loss of a list in one direction: terms[i] at i·width, less what is not positive; `lost` counts as δ.

    error: what is to be added to the loss.
    """

    width: float
    terms: Floats
    lost: float
    error: float

    @cached_property
    def _growth(self) -> Floats:
        """1 - e^-(i·width) for i = 1, 2, ..."""
        growth: Floats = -np.expm1(-self.width * np.arange(1, len(self.terms) + 1))
        return growth

    def _delta_at(self, point: int) -> float:
        """Hockey-stick divergence at a point of the grid: Σ terms·(1 - e^(ε - loss)) over losses above."""
        above = self.terms[point + 1 :]
        spend(_CALL_WORK // 5 + _DELTA_WORK * len(above))
        finite = float((above * self._growth[: len(above)]).sum())
        return (finite + self.lost) * (1.0 + SLACK)

    def delta(self, epsilon: float) -> float:
        """Between points δ is linear in e^ε."""
        below_zero = max(0.0, self.error - epsilon)  # δ(-x) is at most δ(0) + x
        epsilon = max(0.0, epsilon - self.error)
        point = min(math.floor(epsilon / self.width), len(self.terms))
        part = min(1.0, max(0.0, math.expm1(min(self.width, epsilon - point * self.width)) / math.expm1(self.width)))
        left, right = self._delta_at(point), self._delta_at(point + 1)
        return left + part * (right - left) + below_zero if math.isfinite(left) else 1.0

    def epsilon(self, delta: float) -> float:
        """Least ε ≥ 0 with no more than this δ, or infinity."""
        delta *= 1.0 - SLACK
        if self._delta_at(0) <= delta:
            return self.error
        above, below = 0, len(self.terms)  # δ there is above, and not above, the one that is looked for
        if not self._delta_at(below) <= delta:
            return math.inf
        while below - above > 1:
            middle = (above + below) // 2
            above, below = (above, middle) if self._delta_at(middle) <= delta else (middle, below)
        left, right = self._delta_at(above), self._delta_at(below)
        part = (left - delta) / (left - right) if math.isfinite(left) else 1.0
        return above * self.width + math.log1p(part * math.expm1(self.width)) + self.error


Steps = list[tuple[int, Cells]]
"""How often, and what is lost each time."""


class Loss(Protocol):
    """The privacy loss of a whole list, from above."""

    def epsilon(self, delta: float) -> float:
        """Least ε, from above, for which the list is (ε, δ)-DP; infinity where none is known."""

    def delta(self, epsilon: float) -> float:
        """Least δ, from above."""


@dataclass(frozen=True)
class GaussianLoss:
    """Of Gaussian releases alone, which together are one with 1/σ = mu."""

    mu: float

    def epsilon(self, delta: float) -> float:
        return _gaussian_epsilon(self.mu, delta)

    def delta(self, epsilon: float) -> float:
        return _gaussian_delta(self.mu, epsilon)


@dataclass(frozen=True)
class ComposedLoss:
    """Of a list in both directions, and no larger than `largest` in any. No parts: too large to compute."""

    parts: tuple[Composed, ...]
    largest: float

    def epsilon(self, delta: float) -> float:
        return min(self.largest, max((part.epsilon(delta) for part in self.parts), default=math.inf))

    def delta(self, epsilon: float) -> float:
        if epsilon >= self.largest:
            return 0.0
        return min(1.0, max((part.delta(epsilon) for part in self.parts), default=1.0))


@dataclass(frozen=True)
class LargestLoss:
    """Of a list that is one of several, it is not known which."""

    losses: tuple[Loss, ...]

    def epsilon(self, delta: float) -> float:
        return max(loss.epsilon(delta) for loss in self.losses)

    def delta(self, epsilon: float) -> float:
        return max(loss.delta(epsilon) for loss in self.losses)


def loss_from_above(counts: Counts, *, delta: float, epsilon_scale: float) -> Loss:
    """Of so many of each: most exact where δ(ε) is about this δ and ε about this ε; from above everywhere."""
    mu = math.sqrt(math.fsum(count * one.precision for one, count in counts.items())) * (1.0 + 16.0 * UNIT)
    listed = [(count, one.loss()) for one, count in counts.items() if one.precision == 0.0]
    if not listed:
        return GaussianLoss(mu)
    if mu > 0.0:
        listed.append((1, SampledGaussianLoss(1.0, (1.0 - 8.0 * UNIT) / mu)))
    return ComposedLoss(_both_directions(listed, epsilon_scale, delta), largest_loss(counts.items()))


def _log_tail_ratio(tilt: float) -> float:
    """Log of the largest (1 - e^-x)·e^(-tilt·x): δ(ε) is at most this times E[e^(tilt·(loss - ε))]."""
    return tilt * math.log(tilt) - (1.0 + tilt) * math.log1p(tilt)


# -- Gaussian releases alone ------------------------------------------------------------------------------------------


def _gaussian_delta(mu: float, epsilon: float) -> float:
    """Balle and Wang 2018, Theorem 8: Φ(-a) - e^ε·Φ(-b) with a = ε/μ - μ/2, b = ε/μ + μ/2, so that e^ε·φ(b) = φ(a)."""
    if mu == 0.0:
        return 0.0
    a, b = epsilon / mu - mu / 2.0, epsilon / mu + mu / 2.0
    half_density = math.exp(-a * a / 2.0) / 2.0
    first = float(special.ndtr(-a)) if a < 0.0 else half_density * float(special.erfcx(a / math.sqrt(2.0)))
    second = half_density * float(special.erfcx(b / math.sqrt(2.0)))
    rounding = UNIT * (64.0 + 8.0 * (abs(a) + 1.0) * (b + 1.0)) * (first + second)
    return min(1.0, max(0.0, first - second) + rounding)


def _gaussian_epsilon(mu: float, delta: float) -> float:
    if _gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    low, high = 0.0, mu * mu / 2.0 + mu * math.sqrt(-2.0 * math.log(delta))
    while math.isfinite(high) and _gaussian_delta(mu, high) > delta:
        high *= 2.0
    while high - low > 1e-12 * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if _gaussian_delta(mu, middle) <= delta else (middle, high)
    return high


# -- all other lists --------------------------------------------------------------------------------------------------


def _both_directions(listed: list[tuple[int, LossOfOne]], epsilon_scale: float, delta: float) -> tuple[Composed, ...]:
    """The composed loss of zeroing a unit out, and of the way back; none where exponents are too large to be exact."""
    total = sum(count for count, _ in listed)
    tail = TAIL * delta / total
    size = _gaussian_size(epsilon_scale, delta)
    width = min(epsilon_scale / _LEAST_POINTS, _width(size, epsilon_scale, delta, total))
    width = max(width, *(one.span(tail) / LARGEST_STEP for _, one in listed))
    start = math.sqrt(-2.0 * math.log(delta)) / size
    while True:
        pairs = [one.cells(width, tail) for _, one in listed]
        lists = [[(count, pair[way]) for (count, _), pair in zip(listed, pairs, strict=True)] for way in (0, 1)]
        plans = [_plan(steps, width, start, delta) for steps in lists]
        found = [plan for plan in plans if plan is not None]
        if len(found) < len(plans):
            return ()
        points = max(plan.points for plan in found)
        if points <= LARGEST_GRID:
            return tuple(_compose(steps, width, plan) for steps, plan in zip(lists, found, strict=True))
        width *= 2.0 * points / LARGEST_GRID


def _gaussian_size(epsilon: float, delta: float) -> float:
    """μ of one Gaussian of about this (ε, δ): ε = μ²/2 + μ·√(2 ln 1/δ)."""
    quantile = math.sqrt(-2.0 * math.log(delta))
    return 2.0 * epsilon / (quantile + math.sqrt(quantile * quantile + 2.0 * epsilon))


def _width(size: float, epsilon: float, delta: float, steps: int) -> float:
    """A loss that is spread over both ends of its cell gains a variance of width²/6, and a list as much a step in μ²."""
    slope = math.sqrt(-2.0 * math.log(delta)) / size + 1.0  # dε/d(μ²) = slope/2
    return math.sqrt(12.0 * DISCRETISATION * epsilon / (slope * steps))


@dataclass(frozen=True)
class _Plan:
    """Which tilt, and which points of the grid: a power of two of them, from the lowest on."""

    tilt: float
    log_moments: tuple[float, ...]
    lowest: int
    points: int
    lost: float


def _plan(steps: Steps, width: float, start: float, delta: float) -> _Plan | None:
    log_tail = math.log(TAIL * delta)
    known: dict[float, tuple[float, ...]] = {}

    def moments(tilt: float) -> tuple[float, ...]:
        if tilt not in known:
            known[tilt] = tuple(cells.log_moment(tilt, width) for _, cells in steps)
        return known[tilt]

    def whole(tilt: float) -> float:
        return math.fsum(count * one for (count, _), one in zip(steps, moments(tilt), strict=True))

    def highest_loss(other: float) -> float:  # Chernoff: above it there is no more than the tail
        return (whole(other) - log_tail) / other

    def implied_epsilon(other: float) -> float:
        return (whole(other) - math.log(delta) + _log_tail_ratio(other)) / other

    tilt = _least(implied_epsilon, start)
    highest = highest_loss(_least(highest_loss, tilt))

    def least_part(other: float) -> float:  # the same under the tilt: on the other side of it there is next to nothing
        return (whole(other) - whole(tilt) - math.log(TAIL)) / (other - tilt)

    lowest = min(0.0, max(least_part(tilt * part) for part in (0.0, 0.5, 0.75, 0.9)))
    highest = max(highest, min(least_part(tilt * part) for part in (1.05, 1.1, 1.25, 1.5, 2.0)))
    if not tilt * (highest - lowest) + abs(whole(tilt)) < LARGEST_EXPONENT:
        return None
    needed = max((highest - lowest) / width, *(len(cells.masses) for _, cells in steps))
    infinite = math.fsum(count * cells.infinite for count, cells in steps)
    return _Plan(
        tilt,
        moments(tilt),
        lowest=math.floor(lowest / width) - 1,
        points=1 << max(4, math.ceil(math.log2(needed + 4.0))),
        lost=(infinite + math.exp(log_tail)) * (1.0 + 1e-3),
    )


def _least(objective: Callable[[float], float], start: float) -> float:
    """Where the objective is small, in steps that end with a tenth: any tilt gives a bound, a good one a tight one."""
    best, least = start, objective(start)
    for step in (2.0**0.5, 2.0**0.125):
        for ratio in (step, 1.0 / step):
            before = best
            for _ in range(_MOST_TILT_STEPS):
                value = objective(best * ratio)
                # A loss that cannot exceed a bound is bounded the better the larger the tilt, without end.
                if not value < least - (_WORTH_A_STEP * abs(least) if ratio > 1.0 else 0.0):
                    break
                best, least = best * ratio, value
            if best != before:
                break
    return best


def _compose(steps: Steps, width: float, plan: _Plan) -> Composed:
    """The sum of all losses, by Fourier transform under the tilt; what the transforms may have lost is added."""
    spend((len(steps) + 1) * (_CALL_WORK + _TRANSFORM_WORK * plan.points))
    one_way = TRANSFORM_ERROR * math.log2(plan.points) * UNIT
    total, origin = sum(count for count, _ in steps), 0
    angle, log_size, log_bound, error = np.zeros((4, plan.points // 2 + 1))
    for (count, cells), log_moment in zip(steps, plan.log_moments, strict=True):
        tilted = cells.tilted(plan.tilt, log_moment, width)
        transformed = np.fft.rfft(
            tilted, plan.points
        )  # scipy's keeps its factors: 64 MiB once all lengths were asked for
        transform_error = one_way * float(tilted.sum())
        size = np.abs(transformed)
        with np.errstate(divide="ignore"):
            log_size += count * np.log(size)
        angle += count * np.angle(transformed)
        log_bound += count * np.log(size + transform_error)
        error += count * transform_error / (size + transform_error)
        origin += count * cells.first
    product = np.exp(log_size) * (np.cos(angle) + 1j * np.sin(angle))
    sums = np.fft.irfft(product, plan.points)
    sums = np.roll(sums, -((plan.lowest - origin) % plan.points))[-plan.lowest :]  # at 0, width, 2·width, ...

    # Relative to the bound of each product: its factors' transforms, their logarithms, angles and sums, and the way back.
    error += UNIT * ((64.0 + 4.0 * len(steps)) * total + 8.0 * np.minimum(np.abs(log_size), 1e4) + 16.0) + 2.0 * one_way
    paid = 2.0 * float((np.exp(log_bound) * error).sum()) / plan.points + TINIEST
    log_moment = math.fsum(count * one for (count, _), one in zip(steps, plan.log_moments, strict=True))
    with np.errstate(over="ignore"):
        untilted = np.exp(log_moment - plan.tilt * width * np.arange(len(sums)))
    terms = (np.maximum(sums, 0.0) + paid) * untilted
    return Composed(width, terms, plan.lost, math.fsum(count * cells.error for count, cells in steps))
