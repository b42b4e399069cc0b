"""The two accounts of a dataset's privacy filter (docs/privacy.md, The filter). An order is admitted iff at least one has room.

Amounts are integers: nano-shares, billionths of the budget. Costs are rounded up. No float is compared in the ledger.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from service.base.errors import InvalidInput, Unpriceable
from service.base.messages import Message
from service.privacy.accounting import RENYI_ORDERS
from service.privacy.failures import loss_of_failures
from service.privacy.renyi import renyi_capacity, renyi_delta, renyi_epsilon

NANO = 1_000_000_000
"""Capacity of each account, in nano-shares."""

LARGEST_COST = 1_000 * NANO
"""Any cost above capacity closes its account alike, so larger ones are written as this; sums stay inside 64 bits."""

FAILURE_PART = 0.01
"""Of the Rényi account's half of δ, what is kept for failures (`service.privacy.failures`): about 0.0005 of ε less capacity."""

ROUNDING_GUARD = 1e-9
"""Relative addition to a float before rounding up, far above the error of the double that carries it."""


@dataclass(frozen=True, slots=True)
class Budget:
    """The promise of a dataset: (ε, δ) for everything ever released from it, and the fixed Rényi order α*."""

    epsilon: float
    delta: float
    renyi_order: int
    renyi_capacity: float

    @property
    def account_delta(self) -> float:
        """Each account owns half of δ."""
        return self.delta / 2.0

    @property
    def failure_delta(self) -> float:
        """Of the Rényi account's half, what is kept for failures; nothing in datasets of versions before, whose capacity takes all of it."""
        converted = (1.0 - FAILURE_PART) * self.account_delta
        taken = renyi_delta(self.renyi_capacity, self.epsilon, self.renyi_order)
        return (self.account_delta - converted) * (1.0 - 1e-6) if taken <= converted * (1.0 + 1e-9) else 0.0

    @property
    def conversion_delta(self) -> float:
        """The rest of it, at which divergences are converted."""
        return self.account_delta - self.failure_delta


@dataclass(frozen=True, slots=True)
class Shares:
    """What a release costs in each account, in nano-shares."""

    simple: int
    renyi: int

    def __post_init__(self) -> None:
        for cost in (self.simple, self.renyi):
            if type(cost) is not int or not 0 <= cost <= LARGEST_COST:
                raise Unpriceable("a cost must be a finite, non-negative whole number of nano-shares")


def open_budget(epsilon: float, delta: float) -> Budget:
    """Fix α* and the Rényi capacity B for a new dataset.

    B(α) = ε - ln(1 - 1/α) + ln(α δ')/(α - 1), δ' the part of δ/2 that is not kept for failures; α* maximises B(α)/α over the grid.
    Source: conversion of Canonne, Kamath, Steinke 2020, Prop. 12; filter of Feldman & Zrnic 2021, fixed order.
    """
    converted = (1.0 - FAILURE_PART) * delta / 2.0
    order = max(RENYI_ORDERS, key=lambda alpha: renyi_capacity(epsilon, converted, alpha) / alpha)
    capacity = renyi_capacity(epsilon, converted, order)
    if capacity <= 0.0:
        raise InvalidInput(
            Message("epsilon is too small for this delta: the Rényi account would have no room. Give a larger epsilon"),
            where="budget",
        )
    return Budget(epsilon, delta, order, capacity)


def simple_cost(share: Fraction) -> int:
    """Nano-shares of the simple account, rounded up exactly."""
    return min(LARGEST_COST, math.ceil(share * NANO))


def renyi_cost(divergence: float, budget: Budget, *, failures: float = 0.0) -> int:
    """Nano-shares of the Rényi account: ρ(α*)/B, rounded up with a guard for the float that carries it.

    failures: probability of outputs that ρ(α*) does not account for (`service.privacy.failures`).
    """
    if failures > 0.0:
        charge = failure_divergence(failures, budget)
        if charge == math.inf:
            return LARGEST_COST  # the account is closed; the other one may have room
        divergence += charge
    ratio = divergence / budget.renyi_capacity * (1.0 + ROUNDING_GUARD)
    if not math.isfinite(ratio) or ratio < 0.0:
        raise Unpriceable(Message("the Rényi cost of this order is not a finite, non-negative number"))
    return min(LARGEST_COST, math.ceil(Fraction(ratio) * NANO))


def failure_divergence(failures: float, budget: Budget) -> float:
    """What failures of this probability are charged in the Rényi account, as a divergence (docs/privacy.md, Failures).

    In proportion to the δ that is kept for failures, so that no path spends more of it; infinite where nothing is kept. That δ must not
    be what other paths leave over: whether something may fail can depend on what was released before.
    """
    kept = budget.failure_delta
    if kept <= 0.0:
        return math.inf
    return budget.renyi_capacity * failures / kept + loss_of_failures(failures)


def proven_epsilon(simple: int, renyi: int, budget: Budget) -> float:
    """The smaller ε of what both accounts prove, each at its half of δ, where so many nano-shares are spent in each."""
    if simple == 0 and renyi == 0:
        return 0.0
    by_simple = simple / NANO * budget.epsilon
    by_renyi = renyi_epsilon(renyi / NANO * budget.renyi_capacity, budget.conversion_delta, budget.renyi_order)
    return min(by_simple, by_renyi)


def exact(value: float) -> Fraction:
    """The number as its writer meant it: 0.1 is one tenth, not the nearest double."""
    return Fraction(Decimal(repr(value)))
