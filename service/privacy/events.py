"""What a release does to private rows, as frozen data: the price list that the worker later executes.

Adjacency everywhere: zero-out one unit (`REPLACE_SPECIAL` in dp_accounting). Every noise multiplier is the ratio
noise_std / L2 sensitivity of one joint Gaussian release.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from service.base.errors import Unpriceable
from service.base.lazy import lazy

if TYPE_CHECKING:
    import dp_accounting
else:
    dp_accounting = lazy("dp_accounting")

MARGINALS = "marginals"
ONE_WAY_TABLES = "one_way_tables"
PAIR_SCORES = "pair_scores"
SHARED_VALUES = "shared_values"
"""Purposes of the Gaussian releases of `method: marginals`."""
CLASS_MEANS = "class_means"
SHARED_MOMENTS = "shared_moments"
CELL_MEANS = "cell_means"
CELL_MOMENTS = "cell_moments"
TONES = "tones"
LEANINGS = "leanings"
"""Purposes of the Gaussian releases of `method: mixture`."""


@dataclass(frozen=True, slots=True)
class GaussianEvent:
    """One Gaussian release computed from every unit, for example noised label counts.

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
    def parts(self) -> dict[str, float | None]:
        """Noise multipliers of what one release consists of; none, where it is one sum."""
        return {}

    @property
    def sampling_probability(self) -> float:
        return 1.0


@dataclass(frozen=True, slots=True)
class SampledStepEvent:
    """`count` consecutive critic steps on fresh Poisson draws, all with the same noise.

    One step is one joint Gaussian release on one draw: the clipped gradient sum (multiplier
    `gradient_noise_multiplier`) and, where present, the histogram of gradient norms (`histogram_noise_multiplier`,
    for the whole vector of all tensors' counts). Together 1/σ² = 1/σ_gradient² + 1/σ_histogram² (docs/privacy.md, Lemma 3).
    """

    kind: ClassVar[str] = "sampled_step"
    purpose: ClassVar[str] = "sampled_steps"
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
    def joint_noise_multiplier(self) -> float:
        if self.histogram_noise_multiplier is None:
            return self.gradient_noise_multiplier
        precision = self.gradient_noise_multiplier**-2 + self.histogram_noise_multiplier**-2
        return 1.0 / math.sqrt(precision)

    @property
    def parts(self) -> dict[str, float | None]:
        return {
            "gradient_noise_multiplier": self.gradient_noise_multiplier,
            "histogram_noise_multiplier": self.histogram_noise_multiplier,
        }


Event = GaussianEvent | SampledStepEvent
Events = tuple[Event, ...]

_KINDS: dict[str, type[GaussianEvent | SampledStepEvent]] = {cls.kind: cls for cls in (GaussianEvent, SampledStepEvent)}


def events_to_json(events: Iterable[Event]) -> list[dict[str, Any]]:
    """The list as JSON values, in execution order; floats keep all their digits."""
    return [{"kind": event.kind, **asdict(event)} for event in events]


def events_from_json(rows: Sequence[dict[str, Any]]) -> Events:
    """Read a stored list. An unknown kind is refused, naming it."""
    events = []
    for row in rows:
        arguments = dict(row)
        kind = arguments.pop("kind")
        if kind not in _KINDS:
            raise Unpriceable(f"unknown event kind {kind!r}")
        events.append(_KINDS[kind](**arguments))
    return tuple(events)


def to_dp_event(events: Iterable[Event]) -> dp_accounting.DpEvent:
    """The same list in dp_accounting's vocabulary. Order does not matter to composition, so equal steps are pooled."""
    pooled: dict[tuple[float, float], int] = {}
    for event in events:
        key = (event.sampling_probability, event.joint_noise_multiplier)
        pooled[key] = pooled.get(key, 0) + event.count
    return dp_accounting.ComposedDpEvent([_pooled_event(q, noise, count) for (q, noise), count in pooled.items()])


def steps_in(events: Iterable[Event]) -> int:
    """Number of private critic steps on the list."""
    return sum(event.count for event in events if isinstance(event, SampledStepEvent))


def noise_multipliers(events: Events) -> tuple[float, float]:
    """Of the first and the last private step; of a list without steps, of the first and the last release."""
    steps = [event.gradient_noise_multiplier for event in events if isinstance(event, SampledStepEvent)]
    multipliers = steps or [event.joint_noise_multiplier for event in events]
    return multipliers[0], multipliers[-1]


def _pooled_event(sampling_probability: float, noise_multiplier: float, count: int) -> dp_accounting.DpEvent:
    gaussian = dp_accounting.GaussianDpEvent(noise_multiplier)
    one = (
        gaussian if sampling_probability == 1.0 else dp_accounting.PoissonSampledDpEvent(sampling_probability, gaussian)
    )
    return dp_accounting.SelfComposedDpEvent(one, count)


def _check_noise(noise_multiplier: float) -> None:
    if not (math.isfinite(noise_multiplier) and noise_multiplier > 0.0):
        raise Unpriceable("a noise multiplier must be positive and finite")


def _check_count(count: int) -> None:
    if count < 1:
        raise Unpriceable("an event happens at least once")
