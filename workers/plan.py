"""Hands out an order's events one by one, so that what runs is what was charged."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import ClassVar, TypeVar, cast

from service.base.errors import ImprimaturError
from service.privacy.drawn_parts import DRAWN_PARTS
from service.privacy.events import (
    SAMPLED_STEPS,
    DrawnPartEvent,
    Event,
    Events,
    GaussianEvent,
    InterleavedStepsEvent,
    PureEvent,
    SampledStepEvent,
    events_to_json,
    steps_in,
)

Taken = TypeVar("Taken", bound=Event)


class StepNotOnPlan(ImprimaturError):
    """A private step was asked for that is not the next one on the price list. Values: position."""

    code: ClassVar[str] = "step_not_on_plan"


@dataclass(frozen=True, slots=True)
class StepNoise:
    """The noise multipliers of one sampled step; no histogram where none is on the list."""

    gradient_noise_multiplier: float
    histogram_noise_multiplier: float | None


class Plan:
    """Executes an event list in order. A mechanism that touches rows first takes its event from here.

    `position` counts single events taken, so a run that resumes from a checkpoint continues the list exactly.
    """

    def __init__(self, events: Events, position: int = 0) -> None:
        self._events = events
        self.steps = steps_in(events)
        self._length = sum(event.count for event in events)
        self._index, self._taken = 0, 0
        self.position, self.steps_done = 0, 0
        if position:
            self.resume(position)

    def upcoming(self) -> str | None:
        """The purpose of the next event if it is a Gaussian release, which a measurement runs by; else None. Spends nothing."""
        event = self._events[self._index] if self.position < self._length else None
        return event.purpose if event is not None and event.kind == GaussianEvent.kind else None

    def expect(self, releases: Events) -> None:
        """Refuse a list that does not go on with Gaussian releases of just these purposes. Spends nothing."""
        wanted = _purposes(releases)
        if _purposes(self._events[self._index :]) != wanted:
            raise self._refusal(f"a measurement of {', '.join(wanted)}")

    def take_gaussian(self, purpose: str) -> float:
        """Spend the next event, which must be the Gaussian release of this purpose; its noise multiplier."""
        return self.take(GaussianEvent, purpose).noise_multiplier

    def take(self, kind: type[Taken], purpose: str) -> Taken:
        """Spend one occurrence of the next event, which must be of this kind and purpose; the event with its parameters."""
        event = self._next(kind, purpose)
        self._advance(1)
        return event

    def taken_before(self, kind: type[Taken], purpose: str) -> Taken:
        """An event of this kind and purpose that was taken whole, for what goes on inside it. Spends nothing."""
        for event in self._events[: self._index]:
            if (event.kind, event.purpose) == (kind.kind, purpose):
                return cast("Taken", event)
        raise self._refusal(f"what belongs to {kind.kind} for {purpose}")

    def upcoming_gaussian(self, purpose: str) -> float:
        """The noise multiplier of the first Gaussian release of this purpose that is still to come. Spends nothing."""
        for event in self._events[self._index :]:
            if (event.kind, event.purpose) == (GaussianEvent.kind, purpose):
                return cast("GaussianEvent", event).noise_multiplier
        raise self._refusal(f"{GaussianEvent.kind} for {purpose}")

    def upcoming_pure(self, purpose: str) -> float:
        """The ε of the first ε-differentially private release of this purpose that is still to come. Spends nothing."""
        for event in self._events[self._index :]:
            if (event.kind, event.purpose) == (PureEvent.kind, purpose):
                return cast("PureEvent", event).epsilon
        raise self._refusal(f"{PureEvent.kind} for {purpose}")

    def take_sampled_step(self, *, sampling_probability: float, histogram: bool | None = None) -> StepNoise:
        """Spend the next sampled step, which must have this sampling probability, and carry a histogram or none if that is said."""
        coming = self._coming()
        if coming.kind == InterleavedStepsEvent.kind:
            event = cast("InterleavedStepsEvent", coming).step(self._taken)
        else:
            event = self._next(SampledStepEvent, SAMPLED_STEPS)
        with_histogram = event.histogram_noise_multiplier is not None
        if event.sampling_probability != sampling_probability or histogram not in {None, with_histogram}:
            raise self._refusal("a sampled step with these properties")
        self._advance(1)
        return StepNoise(event.gradient_noise_multiplier, event.histogram_noise_multiplier)

    def take_drawn_part(self, *, sampling_probability: float) -> float:
        """Spend the next step on one of 1/sampling_probability parts; its noise multiplier."""
        event = self._next(DrawnPartEvent, DRAWN_PARTS)
        if event.sampling_probability != sampling_probability:
            raise self._refusal("a step on a drawn part with this sampling probability")
        self._advance(1)
        return event.noise_multiplier

    def resume(self, position: int) -> None:
        """Go on where an earlier run of the same list left its checkpoint; only before anything was taken."""
        if self.position or not 0 <= position <= self._length:
            raise StepNotOnPlan("the position to resume from is not on the price list", position=position)
        while self.position < position:
            self._advance(min(position - self.position, self._events[self._index].count - self._taken))

    def digest(self) -> str:
        """Names the list, so that a checkpoint of another one is refused."""
        return hashlib.sha256(json.dumps(events_to_json(self._events), sort_keys=True).encode()).hexdigest()

    def _next(self, kind: type[Taken], purpose: str) -> Taken:
        event = self._coming()
        if (event.kind, event.purpose) != (kind.kind, purpose):
            raise self._refusal(f"{kind.kind} for {purpose}")
        return cast("Taken", event)

    def _coming(self) -> Event:
        if self.position >= self._length:
            raise self._refusal("one more step")
        return self._events[self._index]

    def _advance(self, count: int) -> None:
        event = self._events[self._index]
        self.position += count
        self._taken += count
        self.steps_done += event.cut(count).private_steps
        if self._taken >= event.count:
            self._index, self._taken = self._index + 1, 0

    def _refusal(self, wanted: str) -> StepNotOnPlan:
        return StepNotOnPlan(
            f"{wanted} was asked for, but it is not the next event on the price list; nothing was spent",
            position=self.position,
        )


def _purposes(events: Events) -> list[str]:
    """Of the Gaussian releases before the first private step."""
    purposes: list[str] = []
    for event in events:
        if event.kind != GaussianEvent.kind:
            break
        purposes += [event.purpose] * event.count
    return purposes
