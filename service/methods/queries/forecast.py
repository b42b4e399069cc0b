"""How far off answers will be: what each of them will say of itself, known beforehand where it follows from price and declaration."""

from __future__ import annotations

import math
from typing import Any

from service.base.messages import Message, Sentence, percent, whole
from service.methods.declaration.ranks import rows_to_be_told
from service.methods.facts import Facts
from service.methods.forecast import Forecast, in_digits
from service.methods.knobs import DEFAULT_NUMERIC_BINS
from service.methods.queries.lattice import MOST_CANDIDATES
from service.methods.queries.order import (
    ArgMax,
    Count,
    CrossTable,
    Histogram,
    Keys,
    Mean,
    Quantiles,
    QueriesOrder,
    Question,
    Sum,
)
from service.methods.queries.price import events_of_each
from service.privacy.events import Events

MISSED = 0.05
"""Part of the answers that are further off."""
TWO_SIDED = 1.959963984540054
MOST_SAID = 10
"""Questions that have a sentence."""


def forecast(order: QueriesOrder, events: Events, facts: Facts) -> Forecast:
    """A sentence of each question; of many, of the first ones."""
    pairs = list(zip(order.questions, events_of_each(order, events), strict=True))
    found = [_sentence(question, own, facts) for question, own in pairs[:MOST_SAID]]
    if len(pairs) == 1:
        return Forecast((Sentence(found[0]),))
    several = [
        Message("Question %(number)s: %(says)s.", number=number, says=says) for number, says in enumerate(found, 1)
    ]
    more = len(pairs) - len(found)
    further = [Message("Further questions: %(number)s, not said here.", number=more)] if more else []
    return Forecast((*several, *further))


def _sentence(question: Question, events: Events, facts: Facts) -> str:
    shape = facts.table(DEFAULT_NUMERIC_BINS)
    most, of = shape.max_rows_per_unit, [event.parameters() for event in events]
    match question:
        case Count():
            off = in_digits(_of_counts(of[0], most))
            said = Message("the count is off by at most about %(rows)s, 19 times in 20", rows=off)
        case Histogram() | CrossTable():
            off = in_digits(_of_counts(of[0], most))
            said = Message("each count is off by at most about %(rows)s, 19 times in 20", rows=off)
        case Sum():
            said = Message(
                "the sum is off by at most about %(times)s times the end of the range that is furthest from 0, 19 times in 20",
                times=in_digits(_half_width(most, of[0]["epsilon"])),
            )
        case Mean():
            said = Message(
                "the mean of %(rows)s rows is off by at most about %(part)s of the width of the range, 19 times in 20; of fewer rows by more, in proportion",
                rows=whole(facts.units),
                part=percent(_of_mean(of, most, facts.units), 2),
            )
        case Quantiles():
            said = Message(
                "each value has at most about %(rows)s rows too many or too few below it, 19 times in 20",
                rows=in_digits(_of_quantiles(question, of[0]["epsilon"], most)),
            )
        case ArgMax():
            cells = question.bins or shape.cells[question.column]
            said = Message(
                "the value has at most about %(rows)s rows less than the most frequent one, 19 times in 20",
                rows=in_digits(most * math.log(cells / MISSED) / of[0]["epsilon"]),
            )
        case Keys():
            said = Message(
                "combinations that fewer than about %(rows)s rows have are not told; counts are off by at most about %(off)s, 19 times in 20",
                rows=in_digits(rows_to_be_told(of[0], most_per_unit=most)),
                off=in_digits(_half_width(most, of[0]["epsilon"])),
            )
        case _:
            said = Message("how far off a median is depends on how many values lie near it, so it is not told")
    return said


def _of_counts(event: dict[str, Any], most: int) -> float:
    if "noise_multiplier" in event:
        return TWO_SIDED * float(event["noise_multiplier"]) * most
    return _half_width(most, event["epsilon"])


def _half_width(sensitivity: float, epsilon: float, missed: float = MISSED) -> float:
    """Of geometric noise, P(z) ∝ e^(-ε|z|/Δ): whole numbers beyond it are as rare as said (`workers.mechanism.geometric`)."""
    decay = math.exp(-epsilon / sensitivity)
    return max(0.0, math.ceil(sensitivity / epsilon * math.log(2.0 / (missed * (1.0 + decay))) - 1.0))


def _of_quantiles(question: Quantiles, epsilon: float, most: int) -> float:
    widest = most * max(max(p, 1.0 - p) for p in question.probabilities)
    return 2.0 * widest * math.log(MOST_CANDIDATES / MISSED) / epsilon


def _of_mean(events: list[dict[str, Any]], most: int, rows: int) -> float:
    """Of the width of the range: the sum is about its middle, from which no value is further than half of it."""
    off = _half_width(most, events[1]["epsilon"], MISSED / 2.0)
    near = _half_width(most, events[0]["epsilon"], MISSED / 2.0)
    return min(1.0, 0.5 * (off + near) / max(1.0, rows - near))
