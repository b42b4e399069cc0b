"""Steps of which every so many carry a histogram of gradient norms, as one event: a price does not grow with the steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from service.base.errors import Unpriceable
from service.base.work import spend
from service.privacy.event_kinds import SAMPLED_STEPS, SampledStepEvent, _Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.privacy.event import Events
    from service.privacy.mechanisms import Mechanism

SUMMAND_WORK = 20
"""In about nanoseconds (`service.base.work`)."""


@dataclass(frozen=True, slots=True)
class InterleavedStepsEvent(_Kind):
    """`count` consecutive critic steps of one gradient noise, of which every so many release a histogram of norms as well.

    These are the steps number i, from 0, for which i - first_histogram is a multiple of `every_steps`. To the accounting
    it is two kinds of steps with a count each (`alike`). Which step is of which kind, the worker reads here.
    """

    kind: ClassVar[str] = "interleaved_steps"
    sampling_probability: float
    gradient_noise_multiplier: float
    histogram_noise_multiplier: float
    every_steps: int
    first_histogram: int
    count: int

    def __post_init__(self) -> None:
        if type(self.every_steps) is not int or self.every_steps < 2:
            raise Unpriceable("every_steps is a whole number, at least 2")
        if type(self.first_histogram) is not int or not 0 <= self.first_histogram < self.every_steps:
            raise Unpriceable("first_histogram is a whole number below every_steps")
        if type(self.histogram_noise_multiplier) is not float:
            raise Unpriceable("a histogram has a noise multiplier")
        # Everything else is checked as that of the steps themselves.
        SampledStepEvent(
            self.sampling_probability, self.gradient_noise_multiplier, self.histogram_noise_multiplier, self.count
        )

    @property
    def histograms(self) -> int:
        """How many of the steps carry one."""
        return max(0, -(-(self.count - self.first_histogram) // self.every_steps))

    def step(self, number: int) -> SampledStepEvent:
        """The step of this number, alone."""
        histogram = (number - self.first_histogram) % self.every_steps == 0
        return self._steps(1, histogram=histogram)

    @property
    def alike(self) -> Events:
        counts = {True: self.histograms, False: self.count - self.histograms}
        first = self.first_histogram == 0
        return tuple(self._steps(counts[kind], histogram=kind) for kind in (first, not first) if counts[kind])

    @property
    def purpose(self) -> str:
        return SAMPLED_STEPS

    @property
    def mechanism(self) -> Mechanism:
        return self._steps(1, histogram=True).mechanism

    @property
    def private_steps(self) -> int:
        return self.count

    @property
    def quoted_noise_multiplier(self) -> float | None:
        return self.gradient_noise_multiplier

    def sizes(self) -> Sequence[float]:
        """One summand for each run of like steps: the same sum of doubles as of a list that has each run as an event.

        A search for noise begins there, so prices are those of earlier versions to the last bit.
        """
        with_one, without = (self._steps(1, histogram=kind).mechanism.size for kind in (True, False))
        rest = self.every_steps - 1
        before, after = self.first_histogram, self.count - self.first_histogram - 1
        periods, left = divmod(after, self.every_steps)
        spend(SUMMAND_WORK * 2 * periods)
        whole = [with_one, rest * without] * periods
        tail = [with_one, left * without] if left else [with_one]
        return ([before * without] if before else []) + whole + tail

    def parameters(self) -> dict[str, Any]:
        return {
            **self._steps(1, histogram=True).parameters(),
            "every_steps": self.every_steps,
            "first_histogram": self.first_histogram,
        }

    def _steps(self, count: int, *, histogram: bool) -> SampledStepEvent:
        noise = self.histogram_noise_multiplier if histogram else None
        return SampledStepEvent(self.sampling_probability, self.gradient_noise_multiplier, noise, count)


def steps_with_histograms(
    sampling_probability: float, noise: tuple[float, float], *, every_steps: int, first: int, end: int
) -> SampledStepEvent | InterleavedStepsEvent:
    """The steps of a run from number `first` to before `end`, of which every multiple of every_steps has a histogram.

    noise: the multipliers of gradients and of histograms.
    """
    gradient, histogram = noise
    count, first_histogram = end - first, -first % every_steps
    if first_histogram >= count:
        return SampledStepEvent(sampling_probability, gradient, None, count)
    if every_steps == 1 or count == 1:
        return SampledStepEvent(sampling_probability, gradient, histogram, count)
    return InterleavedStepsEvent(sampling_probability, gradient, histogram, every_steps, first_histogram, count)
