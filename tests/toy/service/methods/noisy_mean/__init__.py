"""`method: noisy_mean`: the mean of one column, by a noisy histogram of its declared bins. A toy, to show what a method is."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from service.base.errors import InvalidOrder
from service.domain.image_schema import DeclaredSchema, ImageSchema
from service.methods.facts import Facts
from service.methods.interface import Card, Measured, Method
from service.methods.knobs import DEFAULT_NUMERIC_BINS, Order
from service.methods.work import Work, coded_rows
from service.privacy.calibration import EventsAt
from service.privacy.events import GaussianEvent

HISTOGRAM = "noisy_mean_histogram"


class NoisyMeanOrder(Order):
    """The mean of one column."""

    method: Literal["noisy_mean"]
    column: Annotated[str | None, Field(description="A column that is a range. Default: the first one.")] = None
    numeric_bins: Annotated[
        int, Field(ge=2, le=256, description="Bins of the column, if its declaration names none.")
    ] = DEFAULT_NUMERIC_BINS


def check(order: NoisyMeanOrder, schema: DeclaredSchema) -> None:
    """The column must be a range."""
    if isinstance(schema, ImageSchema):
        return
    ranges = [field.name for field in schema.fields if not field.is_categorical]
    if not ranges or order.column not in {None, *ranges}:
        raise InvalidOrder("column: choose a declared column that is a range", where="column")


def resolve(order: NoisyMeanOrder, facts: Facts) -> NoisyMeanOrder:
    """Nothing is left open that the price depends on."""
    facts.table(order.numeric_bins)
    return order


def events(_order: NoisyMeanOrder, _epsilon: float, _delta: float) -> EventsAt:
    """One Gaussian release of all counts."""
    return lambda noise_multiplier: (GaussianEvent(HISTOGRAM, noise_multiplier),)


def estimate(order: NoisyMeanOrder, facts: Facts) -> Work:
    """Reading the table, and one look at a column of it."""
    shape = facts.table(order.numeric_bins)
    rows = float(facts.units) * shape.max_rows_per_unit
    return coded_rows(rows, len(shape.cells), 0) + Work(elements=rows, draws=float(order.numeric_bins), calls=1.0)


METHOD = Method(
    name="noisy_mean",
    takes=frozenset({"table"}),
    order=NoisyMeanOrder,
    check=check,
    resolve=resolve,
    events=events,
    estimate=estimate,
    returns="answers",
    card=Card(
        summary="The mean of one column, from a noisy histogram of its bins.",
        makes="one number: the mean of a column, computed from noisy counts of its bins",
        source="Dwork and Roth 2014, The Algorithmic Foundations of Differential Privacy",
        paper_holds="Of the Gaussian mechanism, as it is used here.",
        releases={HISTOGRAM: Measured("counts of the bins of one column", "{rows} in all counts")},
    ),
)
