"""`method: queries`: its events."""

from __future__ import annotations

import math
from collections.abc import Iterator

from service.methods.queries.order import (
    ArgMax,
    Count,
    CrossTable,
    Histogram,
    Keys,
    Mean,
    Median,
    Quantiles,
    QueriesOrder,
    Question,
    Sum,
)
from service.privacy.calibration import EventsAt
from service.privacy.events import (
    Event,
    Events,
    ExponentialEvent,
    GaussianEvent,
    PureEvent,
    ThresholdEvent,
)
from service.privacy.filters import FAILURE_PART

COUNTS = "query_counts"
SUM = "query_sum"
MEAN_COUNT = "query_mean_count"
MEAN_SUM = "query_mean_sum"
QUANTILE = "query_quantile"
LARGEST = "query_largest"
MEDIAN = "query_median"
KEYS = "query_keys"
"""Purposes of the releases."""

COUNT_SHARE = 0.3
"""Of what a mean is given, for the number of rows."""
KEYS_DELTA_SHARE = FAILURE_PART
"""Of the δ of a release, for all questions about keys together: so its share of what the Rényi account keeps for failures is its share of the budget."""


def question_events(
    question: Question, *, epsilon: float, gaussian_noise_multiplier: float, failure_probability: float
) -> Iterator[Event]:
    """The releases of one question, which together are ε-DP (or one Gaussian release of this noise multiplier).

    failure_probability: of a question about keys, that a key of one unit alone is told.
    """
    if isinstance(question, Count | Histogram | CrossTable):
        if question.noise == "gaussian":
            yield GaussianEvent(COUNTS, gaussian_noise_multiplier)
        else:
            yield PureEvent(COUNTS, epsilon)
    elif isinstance(question, Sum):
        yield PureEvent(SUM, epsilon)
    elif isinstance(question, Mean):
        yield PureEvent(MEAN_COUNT, COUNT_SHARE * epsilon)
        yield PureEvent(MEAN_SUM, (1.0 - COUNT_SHARE) * epsilon)
    elif isinstance(question, Quantiles):
        yield ExponentialEvent(QUANTILE, epsilon / len(question.probabilities), len(question.probabilities))
    elif isinstance(question, ArgMax):
        yield ExponentialEvent(LARGEST, epsilon)
    elif isinstance(question, Median):
        yield PureEvent(MEDIAN, epsilon)
    elif isinstance(question, Keys):
        yield ThresholdEvent(KEYS, epsilon, failure_probability=failure_probability)


def queries_events(order: QueriesOrder, *, noise_multiplier: float, delta: float) -> Events:
    """The events of all questions in turn: the ε of each is its share divided by the noise multiplier."""
    keys = sum(isinstance(question, Keys) for question in order.questions)
    failure = KEYS_DELTA_SHARE * delta / max(1, keys)
    # A Gaussian release of this noise has about the ε of a geometric one with the same share.
    wider = max(1.0, math.sqrt(-2.0 * math.log(delta)))
    return tuple(
        event
        for question, share in zip(order.questions, order.shares, strict=True)
        for event in question_events(
            question,
            epsilon=share / noise_multiplier,
            gaussian_noise_multiplier=wider * noise_multiplier / share,
            failure_probability=failure,
        )
    )


def events(order: QueriesOrder, _epsilon: float, delta: float) -> EventsAt:
    """Noise multiplier -> the events of `queries_events`, in the form that the catalogue asks for."""
    return lambda noise_multiplier: queries_events(order, noise_multiplier=noise_multiplier, delta=delta)


def events_of_each(order: QueriesOrder, events: Events) -> list[Events]:
    """The part of a price list that belongs to each question, in turn."""
    found, start = [], 0
    for question in order.questions:
        stop = start + (2 if isinstance(question, Mean) else 1)
        found.append(events[start:stop])
        start = stop
    return found
