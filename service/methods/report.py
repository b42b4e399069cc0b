"""A charged report on what a release makes: its event on the price list, whatever the method. Reads no row.

A fixed part of the precision that one Gaussian release of this (ε, δ) would have; the rest of the list is then calibrated, so that all
of it together costs what was ordered.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from service.base.errors import InvalidOrder
from service.base.text import some_of
from service.methods.forecast import SURE, in_digits
from service.methods.interface import Measured
from service.methods.knobs import DEFAULT_NUMERIC_BINS
from service.methods.whole_noise import noise_of_share
from service.privacy.events import Events, GaussianEvent

if TYPE_CHECKING:
    from service.domain.table_schema import TableSchema
    from service.methods.facts import Facts
    from service.methods.forecast import Forecast
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
    """Of the report's event."""
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
            f"report.held_out: {held_out} of {facts.units:,} units would be held out, and {LEAST_HELD_OUT_UNITS} are the least; hold out a "
            "larger part, or none",
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
    kept = f"{held_out:,} of the {facts.units:,} units are held out: nothing is made of them."
    if within >= MOST_HALF_WIDTH:
        said = "Noise and the few held-out units leave next to nothing known of the accuracy; hold out more, or take a larger share or ε."
        return replace(forecast, sentences=(*forecast.sentences, kept), warnings=(*forecast.warnings, said))
    known = f"Accuracy on their rows will be known to about ±{in_digits(within)}, or better (19 times in 20)."
    return replace(forecast, sentences=(*forecast.sentences, f"{kept} {known}"))


def half_width(noise_multiplier: float, held_out: int, most_rows: int) -> float:
    """Of the interval around an accuracy of a half, where it is widest; of units with several rows, as if each had one."""
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
        f"declare one as the schema's target, or condition on one, such as {some_of(fitting)}"
        if fitting
        else "no field of this dataset can be predicted, so leave it out"
    )
    if name is None:
        raise InvalidOrder(f"{where}: a classifier needs a column of categories to predict; {choose}", where=where)
    if name not in fitting:
        raise InvalidOrder(
            f"{where}: {name!r} cannot be predicted: it must be modelled, with at most {MOST_CLASSES} categories; {choose}",
            where=where,
        )
    if len(modelled.fields) < 2:
        raise InvalidOrder(f"{where}: there is no other column to predict {name!r} from; leave it out", where=where)
    return name
