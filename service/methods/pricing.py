"""The way of an order: method, check, ε, everything that it leaves open, price. Each step once; no private row is read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from service.base.caching import computed_once
from service.base.errors import InvalidOrder, Unpriceable
from service.base.messages import Message
from service.domain.image_schema import DeclaredSchema
from service.methods.bounded import bounded, job_of
from service.methods.catalogue import check_order, method_of, with_method
from service.methods.facts import Facts
from service.methods.knobs import AnyOrder, Order
from service.methods.report import events_with_report, facts_of_training
from service.methods.turns import turn
from service.privacy.accounting import renyi_divergence
from service.privacy.calibration import EventsAt, calibrate, largest_epsilon
from service.privacy.events import Events, GaussianEvent, events_from_json, events_to_json, failures_of
from service.privacy.filters import NANO, Budget, Shares, exact, renyi_cost, simple_cost

LARGEST_COST = 2**62
"""Nano-shares; the ledger counts in 64 bits."""
MOST_DOCUMENT_BYTES = 1 << 16
"""Of a price as it is stored and sent. Lists of today's methods take a tenth of that."""

PRICE_CACHE_BYTES, SMALL_CACHE_BYTES = 4 << 20, 2 << 20
"""A price takes 5 to 40 kB with its order."""

UNPRICED = {"epsilon": None, "share": None, "chosen_because": None}
"""What the noise of a list does not depend on, ε apart: orders that differ in it alone share a cached price."""


@dataclass(frozen=True)
class Price:
    """What one release costs: its own (ε, δ) by PLD, its shares of both accounts, and the list it will execute."""

    epsilon: float
    delta: float
    shares: Shares
    events: Events
    pld_epsilon: float
    renyi_divergence: float
    json_text: str
    """The document kept with the release."""

    @classmethod
    def of(
        cls, promise: tuple[float, float], shares: Shares, events: Events, pld_epsilon: float, divergence: float
    ) -> Price:
        """promise: ε and δ of the release."""
        document = {
            "epsilon": promise[0],
            "delta": promise[1],
            "pld_epsilon": pld_epsilon,
            "renyi_divergence": divergence,
            "shares": {"simple": shares.simple, "renyi": shares.renyi},
            "events": events_to_json(events),
        }
        text = json.dumps(document)
        if len(text) > MOST_DOCUMENT_BYTES:
            raise Unpriceable(
                Message("the list of releases of this order is longer than %(most)s bytes", most=MOST_DOCUMENT_BYTES)
            )
        return cls(*promise, shares, events, pld_epsilon, divergence, text)

    @property
    def as_json(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(self.json_text)
        return document


def price_order(order: Order, budget: Budget) -> Price:
    """Price a resolved order from itself and the dataset's budget alone; reads no private row.

    A release with share s of the budget is calibrated to be (s·ε, s·δ/2)-DP.
    """
    share = _requested_share(order, budget)
    epsilon = float(share * exact(budget.epsilon))
    delta = float(share * exact(budget.delta) / 2)
    return _price(order.model_copy(update=UNPRICED), share, epsilon, delta, budget)


@computed_once(most_bytes=PRICE_CACHE_BYTES, turn=turn)
def _price(order: Order, share: Fraction, epsilon: float, delta: float, budget: Budget) -> Price:
    values: dict[str, Any] = {"share": share.as_integer_ratio(), "epsilon": epsilon, "delta": delta}
    return bounded(
        lambda: priced(order, share, epsilon, delta, budget),
        lambda: job_of("price", order, budget, **values),
        lambda answer: _read_price(answer, share, epsilon, delta, budget),
    )


def priced(order: Order, share: Fraction, epsilon: float, delta: float, budget: Budget) -> Price:
    """Compute it, here and now."""
    events, pld_epsilon = _calibrated(order, epsilon, delta)
    divergence = renyi_divergence(events, budget.renyi_order)
    return _with_costs(share, (epsilon, delta), events, pld_epsilon, divergence, budget)


def _read_price(answer: dict[str, Any], share: Fraction, epsilon: float, delta: float, budget: Budget) -> Price:
    events = events_from_json(answer["events"])
    return _with_costs(share, (epsilon, delta), events, answer["pld_epsilon"], answer["renyi_divergence"], budget)


def _with_costs(
    share: Fraction,
    promise: tuple[float, float],
    events: Events,
    pld_epsilon: float,
    divergence: float,
    budget: Budget,
) -> Price:
    shares = Shares(simple=simple_cost(share), renyi=renyi_cost(divergence, budget, failures=failures_of(events)))
    if max(shares.simple, shares.renyi) > LARGEST_COST:
        raise Unpriceable(Message("this order costs more than any budget holds"))
    return Price.of(promise, shares, events, pld_epsilon, divergence)


@computed_once(most_bytes=PRICE_CACHE_BYTES, turn=turn)
def _calibrated(order: Order, epsilon: float, delta: float) -> tuple[Events, float]:
    """Prices never change, and the same order under another budget may have the same (ε, δ)."""
    return calibrate(events_with_report(method_of(order), order, epsilon, delta), epsilon, delta)


def resolve_order(order: AnyOrder, facts: Facts, left: Shares, schema: DeclaredSchema) -> Order:
    """What will be stored and run: every knob settled. Raises `InvalidOrder` for what these data cannot be released by.

    left: what remains in both accounts, of which an order of the `rest` takes all.
    """
    check_order(order, schema)
    facts = facts_of_training(order, facts)
    chosen = with_method(order, facts)
    if chosen.share == "rest":
        chosen = chosen.model_copy(update={"epsilon": _rest(chosen, facts, left), "share": None})
    resolved: Order = method_of(chosen).resolve(chosen, facts)
    return resolved


def largest_next_epsilon(budget: Budget, left: Shares) -> float:
    """Largest ε that an order of Gaussian releases may ask for and still fit one of the accounts."""
    return max(_by_simple(budget, left.simple), _gaussian_by_renyi(budget, left.renyi))


def _rest(order: Order, facts: Facts, left: Shares) -> float:
    """Largest ε, to about 1 %, that this order may ask for and still fit one of the accounts."""
    by_simple = _by_simple(facts.budget, left.simple)
    epsilon = by_simple
    if left.renyi > 0 and by_simple < facts.budget.epsilon:
        # What is left depends on how the list is made, and that not on ε: settled here as if all of the budget were asked for.
        method = method_of(order)
        as_if = method.resolve(order.model_copy(update={"epsilon": facts.budget.epsilon, "share": None}), facts)
        epsilon = max(by_simple, _largest(as_if.model_copy(update=UNPRICED), facts.budget, left.renyi))
    if epsilon <= 0.0:
        raise InvalidOrder(
            Message(
                "nothing is left of this dataset's budget, and no release fits any more; rows can still be drawn from published "
                "ones, at no cost"
            ),
            where="share",
        )
    return epsilon


def _by_simple(budget: Budget, left: int) -> float:
    return float(Fraction(max(0, left), NANO) * exact(budget.epsilon))


@computed_once(most_bytes=SMALL_CACHE_BYTES, turn=turn)
def _largest(order: Order, budget: Budget, renyi_left: int) -> float:
    return bounded(
        lambda: largest_of(order, budget, renyi_left),
        lambda: job_of("largest", order, budget, renyi_left=renyi_left),
        float,
    )


def largest_of(order: Order, budget: Budget, renyi_left: int) -> float:
    """Compute it, here and now."""
    method = method_of(order)
    return largest_epsilon(lambda epsilon, delta: events_with_report(method, order, epsilon, delta), budget, renyi_left)


@computed_once(most_bytes=SMALL_CACHE_BYTES)
def _gaussian_by_renyi(budget: Budget, renyi_left: int) -> float:
    def one_release(_epsilon: float, _delta: float) -> EventsAt:
        return lambda noise_multiplier: (GaussianEvent("any", noise_multiplier),)

    return largest_epsilon(one_release, budget, renyi_left) if renyi_left > 0 else 0.0


def _requested_share(order: Order, budget: Budget) -> Fraction:
    if order.epsilon is not None:
        return exact(order.epsilon) / exact(budget.epsilon)
    if isinstance(order.share, float):
        return exact(order.share)
    raise InvalidOrder("share 'rest' must be resolved against the ledger before pricing")
