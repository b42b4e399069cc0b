"""What a caller wants of counts, and the least ε that gives it: a search over forecasts, of bounded work, that reads no row."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from service.base.errors import InvalidOrder
from service.base.faults import sentence_of
from service.base.messages import Figure, Listed, Message, whole
from service.domain.image_schema import DeclaredSchema
from service.methods.catalogue import check_order, method_of, with_method
from service.methods.facts import Facts
from service.methods.forecast import Counts, Forecast, in_digits
from service.methods.knobs import AnyOrder, Knobs
from service.methods.report import facts_of_training
from service.methods.turns import turn
from service.methods.whole_noise import whole_noise
from service.privacy.calibration import SMALLEST_EPSILON

STEPS, HALVINGS = 18, 8
"""ε are tried from the largest down in so many steps, and between two of them in so many halves."""

MOST_LOOKS = STEPS + HALVINGS + 2
SMALLEST_PART = 1e-5
"""Of the largest ε: below it nothing is tried."""

NOISE_MARGIN = 1.02
"""A price may leave a hundredth of its ε, and what is said of an ε must hold of its price."""

DIGITS = 3


class Want(Knobs):
    """How near counts should be. All that is said must hold."""

    group: Annotated[int | None, Field(ge=1, description="Rows of a group, with `within`.")] = None
    within: Annotated[
        float | None,
        Field(gt=0.0, lt=1.0, description="Part of the group that its count may be off by, 19 times in 20."),
    ] = None
    columns: Annotated[
        Literal[1, 2], Field(description="Columns that tell the group: all pairs of columns, or single ones.")
    ] = 2
    one_way_tv: Annotated[
        float | None, Field(gt=0.0, lt=1.0, description="Expected total variation of tables of one column, at most.")
    ] = None
    two_way_tv: Annotated[float | None, Field(gt=0.0, lt=1.0, description="The same of all pairs of columns.")] = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if (self.group is None) != (self.within is None):
            raise ValueError(Message("give group and within together"))
        if self.group is None and self.one_way_tv is None and self.two_way_tv is None:
            raise ValueError(
                Message(
                    'say what is wanted: {"group": 200, "within": 0.1}, {"one_way_tv": 0.02} or {"two_way_tv": 0.05}'
                )
            )
        return self

    def misses(self, found: Forecast) -> list[str]:
        """What of it such a forecast does not give, with what it gives instead; none where all is given."""
        missed = []
        if self.group is not None and self.within is not None:
            off = _largest(found, self.columns, lambda counts: counts.off_by)
            if not off <= self.within * self.group:
                missed.append(
                    _unknown(Message("a group of %(rows)s rows", rows=whole(self.group)))
                    if math.isinf(off)
                    else Message(
                        "a group of %(rows)s rows is off by up to %(off)s rows",
                        rows=whole(self.group),
                        off=in_digits(off),
                    )
                )
        if self.one_way_tv is not None and not (tv := _largest(found, 1, _expected)) <= self.one_way_tv:
            missed.append(_far_off(Message("tables of one column"), tv))
        if self.two_way_tv is not None and not (tv := _largest(found, 2, _expected)) <= self.two_way_tv:
            missed.append(_far_off(Message("tables of two columns"), tv))
        return missed


@dataclass(frozen=True)
class Wanted:
    """The answer."""

    epsilon: float | None
    """The least that gives it; None where no ε that can still be paid does."""
    largest: float
    """The largest ε that was looked at: what the dataset can still pay."""
    says: str


def parse_want(document: Any) -> Want:
    """Raises `InvalidOrder` naming what is wrong."""
    try:
        return Want.model_validate_json(json.dumps(document), strict=True)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(["want", *map(str, first["loc"])])
        known = (
            Message("; there are: %(names)s", names=", ".join(Want.model_fields))
            if first["type"] == "extra_forbidden"
            else ""
        )
        raise InvalidOrder(
            Message("%(where)s: %(fault)s%(known)s", where=where, fault=sentence_of(first), known=known),
            where=where,
        ) from None


def least_epsilon(want: Want, order: AnyOrder, facts: Facts, schema: DeclaredSchema, largest: float) -> Wanted:
    """The least ε, to three digits, at which a release of this order is forecast to give what is wanted.

    order: its ε or share does not matter. largest: the ε that the dataset can still pay. For a caller it takes that one's turn, as prices
    do: at most `MOST_LOOKS` forecasts, whose work grows with the number of columns.
    """
    with turn():
        return _least_epsilon(want, order, facts, schema, largest)


def _least_epsilon(want: Want, order: AnyOrder, facts: Facts, schema: DeclaredSchema, largest: float) -> Wanted:
    check_order(order, schema)
    facts = facts_of_training(order, facts)
    if largest < SMALLEST_EPSILON:
        return Wanted(None, 0.0, Message("Nothing is left of this dataset's budget, so no further release fits."))
    looked: dict[float, list[str]] = {}

    def misses(epsilon: float) -> list[str]:
        if epsilon not in looked:
            looked[epsilon] = want.misses(forecast_at(order, facts, epsilon))
        return looked[epsilon]

    largest = _rounded(largest, math.floor)
    if misses(largest):
        return Wanted(
            None,
            largest,
            Message(
                "No ε that this dataset can still pay gives that. The largest is %(largest)s, and with it: %(misses)s.",
                largest=Figure(f"{largest:g}"),
                misses=Listed("; ", misses(largest)),
            ),
        )
    step = SMALLEST_PART ** (1.0 / STEPS)
    high = largest
    while (low := high * step) > max(SMALLEST_EPSILON, largest * SMALLEST_PART * 0.99) and not misses(low):
        high = low
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if misses(middle) else (low, middle)
    epsilon = min(largest, _rounded(high, math.ceil))
    return Wanted(
        epsilon, largest, Message("About ε = %(epsilon)s is the least that gives that.", epsilon=Figure(f"{epsilon:g}"))
    )


def forecast_at(order: AnyOrder, facts: Facts, epsilon: float) -> Forecast:
    """The forecast of this order at another ε, without pricing it: as if all its noise were one Gaussian's, as it is for tables."""
    chosen = with_method(order.model_copy(update={"epsilon": epsilon, "share": None}), facts)
    method = method_of(chosen)
    resolved = method.resolve(chosen, facts)
    delta = facts.budget.account_delta * epsilon / facts.budget.epsilon
    events = method.events(resolved, epsilon, delta)(NOISE_MARGIN * whole_noise(resolved, facts.budget))
    found = method.forecast(resolved, events, facts)
    if found.one_way is None:
        raise InvalidOrder(
            Message(
                "want: how far off counts will be is not forecast for method: %(method)s; leave it out, or order "
                "marginals",
                method=method.name,
            ),
            where="want",
        )
    return found


def _largest(found: Forecast, columns: int, of: Callable[[Counts], float]) -> float:
    """Over the kinds of marginals; infinite where not all pairs of columns are sure to be measured."""
    if columns == 1:
        return math.inf if found.one_way is None else of(found.one_way)
    if found.pairs not in {"all", "few_or_all"}:
        return math.inf
    return max((of(counts) for counts in (found.with_condition, found.two_way) if counts is not None), default=math.inf)


def _expected(counts: Counts) -> float:
    return counts.total_variation.expected


def _unknown(what: str) -> str:
    return Message("%(what)s cannot be known, since not all pairs of columns are sure to be measured", what=what)


def _far_off(what: str, distance: float) -> str:
    if math.isinf(distance):
        return _unknown(what)
    return Message("%(what)s are off by %(off)s in total variation", what=what, off=in_digits(distance))


def _rounded(value: float, way: Callable[[float], int]) -> float:
    scale = 10.0 ** (DIGITS - 1 - math.floor(math.log10(value)))
    return float(f"{way(value * scale) / scale:.{DIGITS}g}")
