"""What an order of candidates will give: what the candidate gives whose counts are furthest off, since each may be published."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from service.base.messages import Message
from service.methods.choose.methods import METHODS
from service.methods.choose.order import ChooseOrder
from service.methods.choose.price import epsilon_of_one_run
from service.methods.forecast import Forecast

if TYPE_CHECKING:
    from service.methods.facts import Facts
    from service.privacy.events import Events


def forecast(order: ChooseOrder, events: Events, facts: Facts) -> Forecast:
    """The forecast of the candidate whose counts are furthest off, since each may be published."""
    of_the_order = order.epsilon if order.epsilon is not None else float(order.share or 1.0) * facts.budget.epsilon
    if order.form == "parts":
        lists, whole = events[1].lists, of_the_order  # type: ignore[attr-defined]  # as `price.events` lists them
    else:
        lists, whole = events[0].base[0].lists, epsilon_of_one_run(order, of_the_order)  # type: ignore[attr-defined]
    epsilon = (1.0 - order.selection_share) * whole
    found = [
        METHODS[candidate.method].forecast(candidate.model_copy(update={"epsilon": epsilon}), each, facts)
        for candidate, each in zip(order.candidates, lists, strict=True)
    ]
    place = max(range(len(found)), key=lambda each: _distance(found[each]))
    if len(found) == 1 or _distance(found[place]) < 0.0:
        return found[place]
    said = Message(
        "All this is said of candidate %(place)s, counted from 0, whose counts are furthest off; another one may be "
        "chosen.",
        place=place,
    )
    return replace(found[place], sentences=(said, *found[place].sentences))


def _distance(found: Forecast) -> float:
    """Of the smallest tables that are forecast; -1 where none are."""
    return -1.0 if found.one_way is None else found.one_way.total_variation.expected
