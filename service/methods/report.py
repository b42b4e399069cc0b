"""A charged report on what a release makes: its event on the price list, whatever the method. Reads no row.

A fixed part of the precision that one Gaussian release of this (ε, δ) would have; the rest of the list is then calibrated, so that all
of it together costs what was ordered.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from service.base.errors import InvalidOrder
from service.base.messages import Message, percent, sentences, whole
from service.base.text import some_of
from service.methods.conditions import nothing_to_predict
from service.methods.forecast import SURE, in_digits
from service.methods.interface import Measured
from service.methods.knobs import DEFAULT_NUMERIC_BINS
from service.methods.whole_noise import noise_of_share
from service.privacy.events import Events, GaussianEvent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.domain.table_schema import TableSchema
    from service.methods.facts import Facts
    from service.methods.forecast import Counts, Forecast
    from service.methods.interface import Card, Method
    from service.methods.knobs import AnyOrder, Order
    from service.privacy.calibration import EventsAt

REPORT = "report"
REPORT_HELD_OUT = "report_held_out"
"""Purpose of the event, always the last of its list: of a report on all units, and of one with held-out units."""

TABLES = (
    "tables of counts of single columns and of publicly chosen pairs, which the finished generator is compared with"
)

RELEASED = {
    REPORT: Measured(TABLES, "{rows} in each table, jointly over all"),
    REPORT_HELD_OUT: Measured(
        f"{TABLES}, of the units that it was made of; and of the held-out units how many rows a classifier gets right and how many wrong, which "
        "was trained on synthetic rows. Public coins say which units are held out, so each unit is in the tables or in the answers, never in both",
        "{rows} in each table, jointly over all; or {rows} in the two counts of answers, with noise for that alone",
    ),
}

MOST_CLASSES = 32
"""Of a target that classifiers of reports predict."""
LEAST_HELD_OUT_UNITS = 20
MOST_HALF_WIDTH = 0.4
"""Of an interval that says anything: accuracy lies between 0 and 1 in any case."""


def events_with_report(method: Method[Order], order: Order, epsilon: float, delta: float) -> EventsAt:
    """(method, resolved order, ε, δ) -> noise multiplier -> its events, and that of the report where one is ordered."""
    own = method.events(order, epsilon, delta)
    if order.report is None:
        return own
    noise = noise_of_share(order.report.share, epsilon, delta)
    return lambda noise_multiplier: (*own(noise_multiplier), GaussianEvent(purpose_of(order), noise))


def purpose_of(order: Order) -> str:
    """The purpose of the report's event."""
    return REPORT if order.held_out is None else REPORT_HELD_OUT


def split(events: Events) -> tuple[Events, Events]:
    """What the method runs, and what the report does."""
    if events and events[-1].purpose in RELEASED:
        return events[:-1], events[-1:]
    return events, ()


def released_for(card: Card, purpose: str) -> Measured | None:
    """What is released for an event of this purpose; None where nothing says so."""
    return RELEASED.get(purpose) or card.releases.get(purpose)


def held_out_units(order: AnyOrder, units: int) -> int:
    """How many of n units are held out: public, as n is."""
    return 0 if order.held_out is None else round(order.held_out * units)


def facts_of_training(order: AnyOrder, facts: Facts) -> Facts:
    """What the method has: the units that are not held out."""
    held_out = held_out_units(order, facts.units)
    if order.held_out is None:
        return facts
    if held_out < LEAST_HELD_OUT_UNITS:
        raise InvalidOrder(
            Message(
                "report.held_out: %(held_out)s of %(units)s units would be held out, and %(least_held_out_units)s are "
                "the least; hold out a larger part, or none",
                held_out=held_out,
                units=whole(facts.units),
                least_held_out_units=LEAST_HELD_OUT_UNITS,
            ),
            where="report.held_out",
        )
    return replace(facts, units=facts.units - held_out)


def forecast_of(method: Method[Order], order: Order, events: Events, facts: Facts) -> Forecast:
    """The method's, of the units that it has, and how well accuracy on the others will be known. events: the whole list. facts: of all units."""
    own, report = split(events)
    forecast = method.forecast(order, own, facts_of_training(order, facts))
    held_out = held_out_units(order, facts.units)
    if not held_out:
        return forecast
    (event,) = report
    most = facts.table(DEFAULT_NUMERIC_BINS).max_rows_per_unit
    within = half_width(cast("GaussianEvent", event).noise_multiplier, held_out, most)
    kept = Message(
        "%(held_out)s of the %(units)s units are held out: nothing is made of them.",
        held_out=whole(held_out),
        units=whole(facts.units),
    )
    if within >= MOST_HALF_WIDTH:
        said = Message(
            "Noise and the few held-out units leave next to nothing known of the accuracy; hold out more, or take a "
            "larger share or ε."
        )
        return replace(forecast, sentences=(*forecast.sentences, kept), warnings=(*forecast.warnings, said))
    known = Message(
        "Accuracy on their rows will be known to about ±%(within)s, or better (19 times in 20).",
        within=in_digits(within),
    )
    return replace(forecast, sentences=(*forecast.sentences, sentences(kept, known)))


def unlikely_to_be_met(order: Order, found: Forecast) -> list[str]:
    """Warnings of limits in `accept` that lie below what noise alone is forecast to make, so that the charge would buy nothing.

    Where no pair is measured: a pair is off by at least as much as each of its columns.
    """
    accept = order.accept
    if accept is None:
        return []
    one_way = [] if found.one_way is None else [found.one_way]
    two_way = [counts for counts in (found.with_condition, found.two_way) if counts is not None]
    limits = (
        (Message("single columns"), accept.one_way_tv, one_way),
        (Message("pairs of columns"), accept.two_way_tv, two_way or one_way),
    )
    return [
        Message(
            "You accept %(what)s that are off by at most %(limit)s, and noise alone is expected to make about %(expected)s of it. The "
            "release may well be refused: then nothing is published, and the charge stands. Accept more, or order at a larger ε.",
            what=what,
            limit=percent(limit, 3),
            expected=percent(expected, 3),
        )
        for what, limit, counts in limits
        if limit is not None and counts and limit < (expected := _mean_distance(counts))
    ]


def _mean_distance(counts: Sequence[Counts]) -> float:
    """Over all marginals that are measured."""
    marginals = sum(each.marginals for each in counts)
    return sum(each.marginals * each.total_variation.expected for each in counts) / marginals


def half_width(noise_multiplier: float, held_out: int, most_rows: int) -> float:
    """Half of the interval around an accuracy of 1/2, where it is widest; of units with several rows, as if each had one."""
    return SURE * math.sqrt((noise_multiplier * most_rows) ** 2 / (2.0 * held_out**2) + most_rows / (4.0 * held_out))


def target_of(order: AnyOrder, schema: TableSchema) -> str:
    """The column that is predicted on held-out rows: the declared target, or else what the order conditions on or predicts. Refuses where there is none."""
    where, modelled = "report.held_out", schema.modelled
    name = schema.target or order.condition_on or getattr(order, "target", None)
    fitting = [
        field.name
        for field in modelled.fields
        if field.is_categorical and len(field.categories or ()) + (not field.constraints.required) <= MOST_CLASSES
    ]
    choose = (
        Message("declare one as the schema's target, or condition on one, such as %(names)s", names=some_of(fitting))
        if fitting
        else Message("no field of this dataset can be predicted, so leave it out")
    )
    if name is None:
        raise nothing_to_predict(where, choose)
    if name not in fitting:
        raise InvalidOrder(
            Message(
                "%(where)s: %(name)s cannot be predicted: it must be modelled, with at most %(most_classes)s "
                "categories; %(choose)s",
                where=where,
                name=repr(name),
                most_classes=MOST_CLASSES,
                choose=choose,
            ),
            where=where,
        )
    if len(modelled.fields) < 2:
        raise InvalidOrder(
            Message(
                "%(where)s: there is no other column to predict %(name)s from; leave it out",
                where=where,
                name=repr(name),
            ),
            where=where,
        )
    return name
