"""What an order of candidates leaves open, settled from the declared schema, n and the budget alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from service.base.errors import InvalidOrder
from service.base.messages import Message
from service.methods.choose.methods import METHODS
from service.methods.choose.order import ChooseOrder
from service.methods.choose.price import epsilon_of_one_run
from service.methods.choose.runs import exceeded_rarely
from service.methods.conditions import MAX_STRATA, categories_of
from service.methods.facts import Facts

LEAST_UNITS_OF_A_PART = 20
EXCEEDED = 1e-6
"""Part of the orders whose time may tell something of the number of tries."""


def resolve(order: ChooseOrder, facts: Facts) -> ChooseOrder:
    """Target and candidates; of `parts` these as they are tried, too; of `repeat` how often, and how many tries are made in any case."""
    shape = facts.table(order.numeric_bins)
    target = order.target or shape.target
    if categories_of(target, shape) > MAX_STRATA:
        raise InvalidOrder(
            Message(
                "target: a classifier of at most %(most)s categories is fitted; choose another field", most=MAX_STRATA
            ),
            where="target",
        )
    epsilon = order.epsilon if order.epsilon is not None else float(order.share or 1.0) * facts.budget.epsilon
    order = order.model_copy(update={"target": target})
    found = _parts(order, facts, epsilon) if order.form == "parts" else _runs(order, facts, epsilon)
    return order.model_copy(update=found)


def _parts(order: ChooseOrder, facts: Facts, epsilon: float) -> dict[str, Any]:
    units = units_of_a_part(order, facts.units)
    if units < LEAST_UNITS_OF_A_PART:
        raise InvalidOrder(
            Message(
                "candidates: %(count)s of them leave %(units)s units for each part, and %(least)s are the least; take fewer "
                "candidates, or form: repeat",
                count=len(order.candidates),
                units=units,
                least=LEAST_UNITS_OF_A_PART,
            ),
            where="candidates",
        )
    share = order.selection_share
    trials = order.trials or tuple(
        _resolved(order, each, replace(facts, units=units), share * epsilon) for each in order.candidates
    )
    finals = tuple(_resolved(order, each, facts, (1.0 - share) * epsilon) for each in order.candidates)
    return {"trials": trials, "candidates": finals}


def _runs(order: ChooseOrder, facts: Facts, epsilon: float) -> dict[str, Any]:
    mean = order.mean_runs or float(len(order.candidates))
    share = (1.0 - order.selection_share) * epsilon_of_one_run(order, epsilon)
    return {
        "mean_runs": mean,
        "padded_runs": order.padded_runs or exceeded_rarely(mean, order.runs_shape, EXCEEDED),
        "candidates": tuple(_resolved(order, each, facts, share) for each in order.candidates),
    }


def units_of_a_part(order: ChooseOrder, units: int) -> int:
    """One part for each candidate, and one more on which errors are counted."""
    return units // (len(order.candidates) + 1)


def _resolved(order: ChooseOrder, candidate: Any, facts: Facts, epsilon: float) -> Any:
    priced = candidate.model_copy(update={"epsilon": epsilon, "device": order.device})
    resolved = METHODS[candidate.method].resolve(priced, facts)
    return resolved.model_copy(update={"epsilon": None, "share": None})
