"""A budget in words: what is left, counted in releases."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.pages.declared import is_purchase
from service.pages.writing import rounded_down
from service.privacy.filters import NANO

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.datasets.schemas import BudgetReply, SimpleAccount
    from service.datasets.service import BudgetLeft
    from service.releases.models import Release


_HARDLY_ANYTHING = 0.001
"""Of the whole budget: what the page writes as less than 0.1 %."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What is left of a budget, in short."""

    epsilon: float
    """Of the whole."""
    remaining: float
    """As a share of the account that has more room."""
    largest_next_epsilon: float
    """To three digits, never rounded up: what a page says fits must fit."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing worth ordering fits: less than a thousandth of what was promised."""
        return self.largest_next_epsilon < self.epsilon / 1_000.0

    @property
    def is_nearly_empty(self) -> bool:
        """Whether so little fits that it buys next to nothing, of however many releases there might be room for."""
        return self.remaining < _HARDLY_ANYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauge(Left):
    """The same with what it is for."""

    delta: float
    spent: float
    """As a share of the account that has more room."""
    like_the_last: int | None
    """How many more releases like the newest one fit; None where there was none."""
    last_epsilon: float | None
    simple: float
    """Used of this account, as a share."""
    renyi: float


def left_of(epsilon: float, budget: BudgetLeft) -> Left:
    """Of a dataset in a list."""
    return Left(
        epsilon=epsilon,
        remaining=budget.remaining_share,
        largest_next_epsilon=rounded_down(budget.largest_next_epsilon),
    )


def gauge(budget: BudgetReply, releases: Sequence[Release]) -> Gauge:
    """From the balance and the newest releases, the newest first. Nothing of it depends on a row."""
    accounts = budget.accounts
    last = next((each for each in releases if each.state not in {"voided", "failed"} and not is_purchase(each)), None)
    return Gauge(
        epsilon=budget.epsilon,
        delta=budget.delta,
        spent=1.0 - budget.remaining_share,
        remaining=budget.remaining_share,
        largest_next_epsilon=rounded_down(budget.largest_next_epsilon),
        like_the_last=None if last is None else _how_many(last, budget),
        last_epsilon=None if last is None else last.price["epsilon"],
        simple=_used(accounts.simple),
        renyi=_used(accounts.renyi),
    )


def _how_many(release: Release, budget: BudgetReply) -> int:
    """A release fits where one of both accounts has room for it, each time."""
    by_account = (
        (budget.accounts.simple.remaining, release.simple_cost),
        (budget.accounts.renyi.remaining, release.renyi_cost),
    )
    return (
        max(math.floor(remaining / cost) for remaining, cost in by_account if cost)
        if any(cost for _, cost in by_account)
        else 0
    )


def _used(account: SimpleAccount) -> float:
    return (account.posted + account.pending) / NANO
