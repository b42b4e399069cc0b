"""What a release does to private rows, as frozen data: the price list that the worker later executes. Kinds: event_kinds.py."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from service.base.errors import Unpriceable
from service.privacy.drawn_parts import DrawnPartEvent
from service.privacy.event import Event, Events
from service.privacy.event_kinds import (
    SAMPLED_STEPS,
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    PureEvent,
    RepeatAndSelectEvent,
    SampledStepEvent,
    accounted,
)
from service.privacy.interleaved_steps import InterleavedStepsEvent
from service.privacy.mechanisms import composed_dp_event
from service.privacy.one_of_events import OneOfEvent
from service.privacy.threshold_events import ThresholdEvent

if TYPE_CHECKING:
    import dp_accounting

__all__ = [
    "SAMPLED_STEPS",
    "DrawnPartEvent",
    "Event",
    "Events",
    "ExponentialEvent",
    "GaussianEvent",
    "InterleavedStepsEvent",
    "LaplaceEvent",
    "OneOfEvent",
    "ParallelEvent",
    "PureEvent",
    "RepeatAndSelectEvent",
    "SampledStepEvent",
    "ThresholdEvent",
    "accounted",
    "events_from_json",
    "events_to_json",
    "failures_of",
    "steps_in",
    "to_dp_event",
]

DEEPEST = 3
"""A list in a list in a list: a split inside a selection. Stored lists can be written by who holds the database."""

_KINDS = {
    kind.kind: kind
    for kind in (
        GaussianEvent,
        SampledStepEvent,
        InterleavedStepsEvent,
        LaplaceEvent,
        PureEvent,
        ExponentialEvent,
        ThresholdEvent,
        ParallelEvent,
        RepeatAndSelectEvent,
        OneOfEvent,
        DrawnPartEvent,
    )
}


def events_to_json(events: Iterable[Event]) -> list[dict[str, Any]]:
    """The list as JSON values, in execution order; floats keep all their digits."""
    return [event.as_json() for event in events]


def events_from_json(rows: Sequence[dict[str, Any]], depth: int = 0) -> Events:
    """Read a stored list. An unknown kind is refused, naming it; and so is all that is no list of events."""
    if depth > DEEPEST:
        raise Unpriceable(f"lists of events may be nested {DEEPEST} deep at most")

    def read_part(part: Sequence[dict[str, Any]]) -> Events:
        return events_from_json(part, depth + 1)

    events: list[Event] = []
    try:
        for row in rows:
            arguments = dict(row)
            kind = arguments.pop("kind")
            if kind not in _KINDS:
                raise Unpriceable(f"unknown event kind {kind!r}")
            events.append(_KINDS[kind].from_json(arguments, read_part))
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise Unpriceable("this is not a list of events") from error
    return tuple(events)


def to_dp_event(events: Iterable[Event]) -> dp_accounting.DpEvent:
    """The same list in dp_accounting's vocabulary. Order does not matter to composition, so equal steps are pooled."""
    return composed_dp_event(accounted(tuple(events)))


def failures_of(events: Iterable[Event]) -> float:
    """Probability of any output of the list that no mechanism of it accounts for, from above; it counts as δ."""
    failures = math.fsum(event.failures for event in events)
    return math.nextafter(failures, math.inf) if failures > 0.0 else 0.0


def steps_in(events: Iterable[Event]) -> int:
    """Number of private critic steps on the list."""
    return sum(event.private_steps for event in events)


def noise_multipliers(events: Events) -> tuple[float | None, float | None]:
    """Of the first and the last private step; of a list without steps, of the first and the last event. None: it has no such number."""
    shown = [event for event in events if event.private_steps] or list(events)
    return shown[0].quoted_noise_multiplier, shown[-1].quoted_noise_multiplier
