"""Kinds of events. Each knows its own accounting: what one occurrence is priced as, and what the rest of the service asks.

Adjacency everywhere: zero-out one unit (`REPLACE_SPECIAL` in dp_accounting). Every noise multiplier is the ratio
noise_std / L2 sensitivity of one joint Gaussian release.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self

from service.base.errors import Unpriceable
from service.privacy.event import Event, Events, Reader
from service.privacy.loss_cells import UNIT
from service.privacy.mechanisms import (
    BoundedRange,
    Laplace,
    Mechanism,
    Parallel,
    Pure,
    RepeatAndSelect,
    SampledGaussian,
    pooled,
)

SAMPLED_STEPS = "sampled_steps"
"""Purpose of all sampled steps."""

LARGEST_PURE_EPSILON = 500.0
MOST_MEAN_RUNS = 1e6
MOST_SHAPE = 1e3


@dataclass(frozen=True, slots=True)
class _Kind:
    """What is the same for most."""

    kind: ClassVar[str]

    @property
    def mechanism(self) -> Mechanism:
        raise NotImplementedError

    @property
    def alike(self) -> Events:
        return (self,)  # type: ignore[return-value]  # every kind is an event

    @property
    def private_steps(self) -> int:
        return 0

    @property
    def whole_number_releases(self) -> int:
        return 0

    @property
    def quoted_noise_multiplier(self) -> float | None:
        return None

    @property
    def failures(self) -> float:
        return 0.0

    def sizes(self) -> Sequence[float]:
        return (self.count * self.mechanism.size,)  # type: ignore[attr-defined]  # every kind has a count

    def cut(self, count: int) -> Self:
        return replace(self, count=count)  # type: ignore[call-arg]  # every kind has a count

    def as_json(self) -> dict[str, Any]:
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_json(cls, row: dict[str, Any], read: Reader) -> Self:  # noqa: ARG003  for kinds that hold lists
        return cls(**row)


@dataclass(frozen=True, slots=True)
class _OfAllUnits(_Kind):
    """Computed from every unit, not from a draw."""

    @property
    def sampling_probability(self) -> float:
        return 1.0


@dataclass(frozen=True, slots=True)
class GaussianEvent(_OfAllUnits):
    """One Gaussian release computed from every unit, for example noisy label counts.

    Sensitivity: 1 after scaling; noise_multiplier = noise_std / sensitivity.
    """

    kind: ClassVar[str] = "gaussian"
    purpose: str
    noise_multiplier: float
    count: int = 1

    def __post_init__(self) -> None:
        _check_noise(self.noise_multiplier)
        _check_count(self.count)

    @property
    def joint_noise_multiplier(self) -> float:
        return self.noise_multiplier

    @property
    def mechanism(self) -> Mechanism:
        return SampledGaussian(1.0, self.noise_multiplier)

    @property
    def whole_number_releases(self) -> int:
        return self.count

    @property
    def quoted_noise_multiplier(self) -> float | None:
        return self.noise_multiplier

    def parameters(self) -> dict[str, Any]:
        return {"sampling_probability": 1.0, "noise_multiplier": self.noise_multiplier}


@dataclass(frozen=True, slots=True)
class SampledStepEvent(_Kind):
    """`count` consecutive critic steps on fresh Poisson draws, all with the same noise.

    One step is one joint Gaussian release on one draw: the clipped gradient sum (multiplier
    `gradient_noise_multiplier`) and, where present, the histogram of gradient norms (`histogram_noise_multiplier`,
    for the whole vector of all tensors' counts). Together 1/σ² = 1/σ_gradient² + 1/σ_histogram² (docs/privacy.md, Lemma 3).
    The histograms of all steps together are noisy enough to count as one release of whole numbers, which every list has.
    """

    kind: ClassVar[str] = "sampled_step"
    sampling_probability: float
    gradient_noise_multiplier: float
    histogram_noise_multiplier: float | None
    count: int

    def __post_init__(self) -> None:
        if not 0.0 < self.sampling_probability <= 1.0:
            raise Unpriceable("sampling_probability must be in (0, 1]")
        _check_noise(self.gradient_noise_multiplier)
        if self.histogram_noise_multiplier is not None:
            _check_noise(self.histogram_noise_multiplier)
        _check_count(self.count)

    @property
    def purpose(self) -> str:
        return SAMPLED_STEPS

    @property
    def joint_noise_multiplier(self) -> float:
        if self.histogram_noise_multiplier is None:
            return self.gradient_noise_multiplier
        precision = self.gradient_noise_multiplier**-2 + self.histogram_noise_multiplier**-2
        return 1.0 / math.sqrt(precision)

    @property
    def mechanism(self) -> Mechanism:
        return SampledGaussian(self.sampling_probability, self.joint_noise_multiplier)

    @property
    def private_steps(self) -> int:
        return self.count

    @property
    def quoted_noise_multiplier(self) -> float | None:
        return self.gradient_noise_multiplier

    def parameters(self) -> dict[str, Any]:
        return {
            "sampling_probability": self.sampling_probability,
            "noise_multiplier": self.joint_noise_multiplier,
            "gradient_noise_multiplier": self.gradient_noise_multiplier,
            "histogram_noise_multiplier": self.histogram_noise_multiplier,
        }


@dataclass(frozen=True, slots=True)
class LaplaceEvent(_OfAllUnits):
    """Laplace noise on numbers that one unit moves by at most 1 in L1, all together, after scaling.

    noise_scale: scale of the noise / L1 sensitivity = 1/ε₀.
    """

    kind: ClassVar[str] = "laplace"
    purpose: str
    noise_scale: float
    count: int = 1

    def __post_init__(self) -> None:
        if not 1.0 / LARGEST_PURE_EPSILON <= self.noise_scale < math.inf:
            raise Unpriceable(f"a noise scale must be finite, and at least {1.0 / LARGEST_PURE_EPSILON:g}")
        _check_count(self.count)

    @property
    def epsilon(self) -> float:
        return 1.0 / self.noise_scale * (1.0 + 2.0 * UNIT)

    @property
    def mechanism(self) -> Mechanism:
        return Laplace(self.epsilon)

    def parameters(self) -> dict[str, Any]:
        return {"sampling_probability": 1.0, "noise_scale": self.noise_scale}


@dataclass(frozen=True, slots=True)
class PureEvent(_OfAllUnits):
    """Any ε₀-DP mechanism: geometric noise, randomised response, the index of a noisy maximum."""

    kind: ClassVar[str] = "pure"
    purpose: str
    epsilon: float
    count: int = 1

    def __post_init__(self) -> None:
        if not 0.0 < self.epsilon <= LARGEST_PURE_EPSILON:
            raise Unpriceable(f"the epsilon of an event must be positive, and at most {LARGEST_PURE_EPSILON:g}")
        _check_count(self.count)

    @property
    def mechanism(self) -> Mechanism:
        return Pure(self.epsilon)

    def parameters(self) -> dict[str, Any]:
        return {"sampling_probability": 1.0, "epsilon": self.epsilon}


@dataclass(frozen=True, slots=True)
class ExponentialEvent(PureEvent):
    """An exponential mechanism: an output r with probability ∝ e^(ε₀·score(r)/2Δ), Δ the most that a unit moves a score.

    For any two outputs, the logarithm of the ratio of their probabilities changes by at most ε₀ when a unit is zeroed out: losses lie within an
    interval of length ε₀ around 0.
    """

    kind: ClassVar[str] = "exponential"

    @property
    def mechanism(self) -> Mechanism:
        return BoundedRange(self.epsilon)


@dataclass(frozen=True, slots=True)
class ParallelEvent(_OfAllUnits):
    """One list for each part of a split of the units. In which part a unit is, depends on no other unit's data.

    Rényi: the largest of all parts. (ε, δ): the whole release is priced once for each part that a unit may be in. That holds where the split is declared,
    or drawn by coins of its own. Where it follows earlier outputs (cells around noisy centres) say so: then Rényi divergences price the list.
    """

    kind: ClassVar[str] = "parallel"
    purpose: str
    parts: tuple[Events, ...]
    count: int = 1
    follows_outputs: bool = False

    def __post_init__(self) -> None:
        if not self.parts or not all(self.parts):
            raise Unpriceable("a release in parts has at least one part, and no part is empty")
        _check_no_failures(event for part in self.parts for event in part)
        _check_count(self.count)
        if type(self.follows_outputs) is not bool:
            raise Unpriceable("follows_outputs is true or false")

    @property
    def mechanism(self) -> Mechanism:
        return Parallel(tuple(tuple(accounted(part)) for part in self.parts), self.follows_outputs)

    @property
    def whole_number_releases(self) -> int:
        return self.count * max(sum(event.whole_number_releases for event in part) for part in self.parts)

    def parameters(self) -> dict[str, Any]:
        parts = [_listed(part) for part in self.parts]
        return {"sampling_probability": 1.0, "follows_outputs": self.follows_outputs, "parts": parts}

    def as_json(self) -> dict[str, Any]:
        parts = [[event.as_json() for event in part] for part in self.parts]
        own = {"count": self.count, "follows_outputs": self.follows_outputs}
        return {"kind": self.kind, "purpose": self.purpose, "parts": parts, **own}

    @classmethod
    def from_json(cls, row: dict[str, Any], read: Reader) -> Self:
        return cls(**{**row, "parts": tuple(read(part) for part in row["parts"])})


@dataclass(frozen=True, slots=True)
class RepeatAndSelectEvent(_OfAllUnits):
    """A list run K times, K drawn afresh, of which the output of the best run is released and nothing of the others.

    mean: of K. shape: η of the truncated negative binomial that K is drawn from (1: geometric, 0: logarithmic); None: Poisson. How good a run
    is, is part of its output, and paid for in `base`. Discrete noise has the Rényi divergence of the Gaussian at whole orders, which alone
    price this event: nothing is reserved for whole numbers.
    """

    kind: ClassVar[str] = "repeat_and_select"
    purpose: str
    base: Events
    mean: float
    shape: float | None
    count: int = 1

    def __post_init__(self) -> None:
        if not self.base:
            raise Unpriceable("there is nothing to repeat")
        _check_no_failures(self.base)
        if not 1.0 <= self.mean <= MOST_MEAN_RUNS:
            raise Unpriceable(f"the mean number of runs must be in [1, {MOST_MEAN_RUNS:g}]")
        if self.shape is not None and not 0.0 <= self.shape <= MOST_SHAPE:
            raise Unpriceable(f"the shape of the number of runs must be in [0, {MOST_SHAPE:g}], or none for Poisson")
        _check_count(self.count)

    @property
    def mechanism(self) -> Mechanism:
        return RepeatAndSelect(tuple(accounted(self.base)), self.mean, self.shape)

    def parameters(self) -> dict[str, Any]:
        return {"sampling_probability": 1.0, "mean": self.mean, "shape": self.shape, "base": _listed(self.base)}

    def as_json(self) -> dict[str, Any]:
        base = [event.as_json() for event in self.base]
        own = {"mean": self.mean, "shape": self.shape, "count": self.count}
        return {"kind": self.kind, "purpose": self.purpose, "base": base, **own}

    @classmethod
    def from_json(cls, row: dict[str, Any], read: Reader) -> Self:
        return cls(**{**row, "base": read(row["base"])})


def accounted(events: Sequence[Event]) -> list[tuple[Mechanism, int]]:
    """A list as mechanisms, those alike together, in the order in which each comes first."""
    return list(pooled((each.mechanism, each.count) for event in events for each in event.alike).items())


def _listed(events: Events) -> list[dict[str, Any]]:
    alike = [each for event in events for each in event.alike]
    return [{"kind": each.kind, "purpose": each.purpose, "count": each.count, **each.parameters()} for each in alike]


def _check_no_failures(events: Iterable[Event]) -> None:
    if any(event.failures > 0.0 for event in events):
        raise Unpriceable("a release with a failure probability cannot be part of another event")


def _check_noise(noise_multiplier: float) -> None:
    if not (math.isfinite(noise_multiplier) and noise_multiplier > 0.0):
        raise Unpriceable("a noise multiplier must be positive and finite")


def _check_count(count: int) -> None:
    # A stored list may hold 1.5 or true: a plan would go on handing out an event that it never counts to the end.
    if type(count) is not int or count < 1:
        raise Unpriceable("an event happens a whole number of times, at least once")
