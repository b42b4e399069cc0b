"""What one occurrence of an event is accounted as: a pair of distributions without a name or a purpose.

Equal ones are pooled, since order does not matter to composition. Adjacency: zero-out one unit. Sources and proofs: docs/privacy.md, "Other events".
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from typing import TYPE_CHECKING, Protocol

from service.base.errors import Unpriceable
from service.base.lazy import lazy
from service.base.work import spend
from service.privacy.loss_cells import UNIT, LaplaceLoss, LossOfOne, SampledGaussianLoss, TwoPointLoss
from service.privacy.renyi import CONVERSION_ORDERS, renyi_delta

if TYPE_CHECKING:
    import dp_accounting
    from dp_accounting import rdp
else:
    dp_accounting = lazy("dp_accounting")
    rdp = lazy("dp_accounting.rdp")

FLOAT_SLACK = 4e-15
"""Added to ρ(α) for every composition, so that rounding in doubles never lowers a cost.

dp_accounting's sums of doubles were up to 2e-16 a step below the true divergence (against 60 digits, α to 4096): over a
million steps that is a nano-share.
"""

MOST_WAYS = 64
"""Combinations of parts for which the loss of a whole list is computed; where there are more, its Rényi divergences are used."""

_UPWARDS = 1.0 + 64.0 * UNIT
"""For formulas without a difference of like numbers."""

_DIVERGENCE_WORK = 3_500
"""That of a sampled Gaussian is a sum of as many terms as its order; in about nanoseconds (`service.base.work`)."""

_LARGEST_EXPONENT = 700.0


class Mechanism(Protocol):
    """Frozen and hashable."""

    @property
    def precision(self) -> float:
        """1/σ² of a Gaussian release computed from all units; 0 of anything else."""

    @property
    def size(self) -> float:
        """About 1/σ² of the Gaussian that many of it add up to: only where a search for noise begins."""

    @property
    def largest_loss(self) -> float:
        """ε where it is ε-DP, else infinity."""

    @property
    def compositions(self) -> int:
        """How many roundings of the Rényi divergence are to be paid for."""

    def divergences(self, orders: Sequence[int]) -> list[float]:
        """Rényi divergence of one occurrence at whole orders, the larger of both directions."""

    def loss(self) -> LossOfOne:
        """The privacy loss of one occurrence, or `Unpriceable` where none is known."""

    def ways(self, count: int) -> list[Counts] | None:
        """What `count` occurrences may be to one unit. They cost the largest of these. None: too many, or no loss is known."""

    def dp_event(self) -> dp_accounting.DpEvent:
        """In dp_accounting's vocabulary."""


Counts = Counter[Mechanism]
"""How often, in the order in which each was met first."""


@dataclass(frozen=True, slots=True)
class _Alone:
    """It is the same mechanism to every unit."""

    @property
    def precision(self) -> float:
        return 0.0

    @property
    def largest_loss(self) -> float:
        return math.inf

    @property
    def compositions(self) -> int:
        return 1

    def ways(self: Mechanism, count: int) -> list[Counts] | None:
        return [Counter({self: count})]


@dataclass(frozen=True, slots=True)
class SampledGaussian(_Alone):
    """A Gaussian release from a Poisson draw; probability 1: from all units."""

    sampling_probability: float
    noise_multiplier: float

    @property
    def precision(self) -> float:
        return self.noise_multiplier**-2 if self.sampling_probability == 1.0 else 0.0

    @property
    def size(self) -> float:
        inverse, q = self.noise_multiplier**-2, self.sampling_probability
        return inverse if q == 1.0 or inverse > 50.0 else min(inverse, q * q * math.expm1(inverse))

    def divergences(self, orders: Sequence[int]) -> list[float]:
        if self.sampling_probability < 1.0:
            spend(_DIVERGENCE_WORK * sum(orders))
        accountant = rdp.RdpAccountant(list(orders), dp_accounting.NeighboringRelation.REPLACE_SPECIAL)
        accountant.compose(self.dp_event())
        return [float(value) for value in accountant.rdp]

    def loss(self) -> LossOfOne:
        # A noise multiplier is computed from two, and rounded.
        return SampledGaussianLoss(self.sampling_probability, self.noise_multiplier * (1.0 - 8.0 * UNIT))

    def dp_event(self) -> dp_accounting.DpEvent:
        gaussian, sampling_probability = dp_accounting.GaussianDpEvent(self.noise_multiplier), self.sampling_probability
        if sampling_probability == 1.0:
            return gaussian
        return dp_accounting.PoissonSampledDpEvent(sampling_probability, gaussian)


@dataclass(frozen=True, slots=True)
class _OfEpsilon(_Alone):
    """It is ε-DP."""

    epsilon: float

    @property
    def largest_loss(self) -> float:
        return self.epsilon

    def divergences(self, orders: Sequence[int]) -> list[float]:
        return [self._divergence(order) * _UPWARDS for order in orders]

    def _divergence(self, order: int) -> float:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Pure(_OfEpsilon):
    """Any ε-DP mechanism: randomised response with this ε dominates it (Kairouz, Oh, Viswanath 2015)."""

    @property
    def size(self) -> float:
        return 2.0 * self.epsilon * math.tanh(self.epsilon / 2.0)  # the mean of a Gaussian's loss is 1/(2σ²)

    def _divergence(self, order: int) -> float:
        """ln[(e^((α-1)ε) + e^(-αε)) / (1 + e^-ε)] / (α - 1), written so that nothing cancels."""
        less, epsilon = order - 1, self.epsilon
        if order * epsilon > _LARGEST_EXPONENT:
            shrink = math.log1p(math.exp(-(less + order) * epsilon)) - math.log1p(math.exp(-epsilon))
            return epsilon + shrink / less
        excess = math.expm1(less * epsilon) * -math.expm1(-order * epsilon) / (1.0 + math.exp(-epsilon))
        return math.log1p(excess) / less

    def loss(self) -> LossOfOne:
        return TwoPointLoss(self.epsilon)

    def dp_event(self) -> dp_accounting.DpEvent:
        return dp_accounting.dp_event.DiscreteLaplaceDpEvent(self.epsilon, 1)


@dataclass(frozen=True, slots=True)
class BoundedRange(Pure):
    """An ε-DP mechanism whose losses lie within an interval of length ε, like the exponential mechanism's."""

    def divergences(self, orders: Sequence[int]) -> list[float]:
        """Cesar and Rogers 2021: αε²/8, where that is less."""
        return [min(self._divergence(order), order * self.epsilon * self.epsilon / 8.0) * _UPWARDS for order in orders]

    def dp_event(self) -> dp_accounting.DpEvent:
        raise Unpriceable("dp_accounting has no event for an exponential mechanism under zero-out adjacency")


@dataclass(frozen=True, slots=True)
class Laplace(_OfEpsilon):
    """Laplace noise of scale 1/ε on numbers that one unit moves by 1 in L1, all together."""

    @property
    def size(self) -> float:
        return 2.0 * (self.epsilon + math.expm1(-self.epsilon))

    def _divergence(self, order: int) -> float:
        """Mironov 2017, Prop. 6: ln[(α·e^((α-1)ε) + (α-1)·e^(-αε)) / (2α - 1)] / (α - 1)."""
        less, epsilon = order - 1, self.epsilon
        if order * epsilon > _LARGEST_EXPONENT:
            rest = math.log1p(less / order * math.exp(-(less + order) * epsilon))
            return epsilon + (math.log(order / (less + order)) + rest) / less
        growing, falling = order * math.expm1(less * epsilon), less * math.expm1(-order * epsilon)
        excess = (growing + falling + 16.0 * UNIT * (growing - falling)) / (less + order)  # they have opposite signs
        return math.log1p(excess) / less

    def loss(self) -> LossOfOne:
        return LaplaceLoss(self.epsilon)

    def dp_event(self) -> dp_accounting.DpEvent:
        return dp_accounting.dp_event.LaplaceDpEvent(1.0 / self.epsilon)


Part = tuple[tuple[Mechanism, int], ...]
"""What a list is accounted as, frozen."""


@dataclass(frozen=True, slots=True)
class Parallel(_Alone):
    """One list for each part of a split of the units that reads none of their data. A unit is in one part.

    follows_outputs: which one may depend on earlier outputs.
    """

    parts: tuple[Part, ...]
    follows_outputs: bool

    @property
    def size(self) -> float:
        return max(sum(count * one.size for one, count in part) for part in self.parts)

    @property
    def largest_loss(self) -> float:
        return max(largest_loss(part) for part in self.parts)

    @property
    def compositions(self) -> int:
        return max(sum(count * one.compositions for one, count in part) for part in self.parts)

    def divergences(self, orders: Sequence[int]) -> list[float]:
        of_parts = [composed_divergences(part, orders) for part in dict.fromkeys(self.parts)]
        return [max(at_order) for at_order in zip(*of_parts, strict=True)]

    def loss(self) -> LossOfOne:
        raise Unpriceable("a release in parts is priced once for each part")

    def ways(self, count: int) -> list[Counts] | None:
        """A unit may be in another part every time: all combinations, each once.

        Where an output decides between unlike parts, no combination need cost as much as what happens: the loss of one is added where
        earlier losses are small, that of another where they are large. A Rényi divergence bounds every part after every output.
        """
        alternatives: dict[frozenset[tuple[Mechanism, int]], Counts] = {}
        for part in self.parts:
            found = every_way(part)
            if found is None:
                return None
            alternatives |= {frozenset(way.items()): way for way in found}
        if len(alternatives) == 1:
            (only,) = alternatives.values()
            return [Counter({one: each * count for one, each in only.items()})]
        if self.follows_outputs or math.comb(len(alternatives) + count - 1, count) > MOST_WAYS:
            return None
        return [_added(chosen) for chosen in combinations_with_replacement(alternatives.values(), count)]

    def dp_event(self) -> dp_accounting.DpEvent:
        raise Unpriceable("dp_accounting has no event for a release in parts")


@dataclass(frozen=True, slots=True)
class RepeatAndSelect(_Alone):
    """A list run a random number K of times, of which the run with the best score is released (Papernot and Steinke 2022).

    K has this mean. shape: η of a truncated negative binomial (1: geometric, 0: logarithmic); None: Poisson.
    """

    base: Part
    mean: float
    shape: float | None

    @property
    def size(self) -> float:
        return (2.0 + (self.shape or 0.0)) * sum(count * one.size for one, count in self.base)

    @property
    def largest_loss(self) -> float:
        """Theorem 2 with orders that grow without end; Theorem 6 has no such limit."""
        return math.inf if self.shape is None else (2.0 + self.shape) * largest_loss(self.base)

    def divergences(self, orders: Sequence[int]) -> list[float]:
        grid = sorted({*CONVERSION_ORDERS, *orders})
        slack = FLOAT_SLACK * sum(count * one.compositions for one, count in self.base)
        base = {
            order: divergence + slack
            for order, divergence in zip(grid, composed_divergences(self.base, grid), strict=True)
        }
        at_order = self._by_poisson(base) if self.shape is None else self._by_negative_binomial(base, self.shape)
        # A divergence grows with its order: what holds at a larger one holds here.
        return [min(at_order[other] for other in grid if other >= order) * _UPWARDS for order in orders]

    def _by_poisson(self, base: Mapping[int, float]) -> dict[int, float]:
        """Theorem 6: ρ(λ) + μ·δ + ln μ/(λ - 1), where a run is (ln(1 + 1/(λ - 1)), δ)-DP."""
        extended = {}
        for order, divergence in base.items():
            epsilon = math.log1p(1.0 / (order - 1.0)) * (1.0 - 4.0 * UNIT)
            delta = min(renyi_delta(other, epsilon, place) for place, other in base.items()) * (1.0 + 1e-9)
            extended[order] = divergence + self.mean * delta + math.log(self.mean) / (order - 1.0)
        return extended

    def _by_negative_binomial(self, base: Mapping[int, float], shape: float) -> dict[int, float]:
        """Theorem 2: ρ(λ) + (1 + η)(1 - 1/λ')ρ(λ') + (1 + η)·ln(1/gamma)/λ' + ln μ/(λ - 1), for the best λ'."""
        log_inverse = log_inverse_gamma(self.mean, shape)
        selecting = min((1.0 - 1.0 / order) * divergence + log_inverse / order for order, divergence in base.items())
        constant = (1.0 + shape) * selecting
        return {
            order: divergence + constant + math.log(self.mean) / (order - 1.0) for order, divergence in base.items()
        }

    def loss(self) -> LossOfOne:
        raise Unpriceable("a selection of one of several runs has no loss distribution")

    def ways(self, count: int) -> list[Counts] | None:  # noqa: ARG002
        return None

    def dp_event(self) -> dp_accounting.DpEvent:
        base = composed_dp_event(self.base)
        return dp_accounting.dp_event.RepeatAndSelectDpEvent(
            base, self.mean, math.inf if self.shape is None else self.shape
        )


def pooled(listed: Iterable[tuple[Mechanism, int]]) -> Counts:
    """Equal mechanisms together."""
    counts: Counts = Counter()
    for mechanism, count in listed:
        counts[mechanism] += count
    return counts


def composed_divergences(listed: Iterable[tuple[Mechanism, int]], orders: Sequence[int]) -> list[float]:
    """Σ count·ρ(α), without what is added for rounding."""
    totals = [0.0] * len(orders)
    for mechanism, count in listed:
        of_one = mechanism.divergences(orders)
        totals = [total + count * one for total, one in zip(totals, of_one, strict=True)]
    return totals


def largest_loss(listed: Iterable[tuple[Mechanism, int]]) -> float:
    """Of a whole list, rounded up: infinity if there is anything in it that is not ε-DP."""
    return math.fsum(count * one.largest_loss for one, count in listed) * _UPWARDS


def composed_dp_event(listed: Iterable[tuple[Mechanism, int]]) -> dp_accounting.DpEvent:
    return dp_accounting.ComposedDpEvent(
        [dp_accounting.SelfComposedDpEvent(mechanism.dp_event(), count) for mechanism, count in listed]
    )


def every_way(listed: Iterable[tuple[Mechanism, int]]) -> list[Counts] | None:
    """What a list may be to one unit: a choice of parts wherever it has some. None: too many, or no loss is known."""
    of_each = [mechanism.ways(count) for mechanism, count in listed]
    known = [ways for ways in of_each if ways is not None]
    if len(known) < len(of_each) or math.prod(len(ways) for ways in known) > MOST_WAYS:
        return None
    return [_added(chosen) for chosen in product(*known)]


def _added(chosen: Iterable[Counts]) -> Counts:
    return pooled(item for counts in chosen for item in counts.items())


def log_inverse_gamma(mean: float, shape: float) -> float:
    """ln(1/gamma), from above, of the truncated negative binomial of this mean and shape."""

    def mean_at(log_inverse: float) -> float:
        growth = math.expm1(log_inverse)
        return growth / log_inverse if shape == 0.0 else shape * growth / -math.expm1(-shape * log_inverse)

    low, high = 0.0, 1.0
    while mean_at(high) < mean:
        low, high = high, 2.0 * high
    for _ in range(200):
        middle = (low + high) / 2.0
        if middle in {low, high}:
            break
        low, high = (middle, high) if mean_at(middle) < mean else (low, middle)
    return high * (1.0 + 1e-9)
