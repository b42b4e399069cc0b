"""Reserve, post, void, settle: the four things that can happen to a release's cost, each at most once.

A reservation is made within the statement that places an order (`service.releases.repository.PLACE`).

All functions run inside the caller's transaction, so that a release and its balance change together or not at all.
Model: two-phase transfers (pending → posted | voided), never updated, never deleted. Each is one call of a function of
the database (migration 0002) that checks, moves and appends; the application's role can change the ledger in no other
way. Asking again for what has happened returns the same entry and moves nothing.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import Row
from sqlalchemy.orm import Session

from imprimatur.verify.chain import Amounts
from service.base.errors import BudgetExhausted, LedgerConflict, NotFound, Redeclared
from service.base.messages import Message, percent
from service.ledger import repository
from service.ledger.models import LedgerEntry
from service.privacy.filters import NANO, Shares


@dataclass(frozen=True, slots=True)
class Remaining:
    """What is left in each account, in nano-shares; never negative."""

    simple: int
    renyi: int

    @classmethod
    def of(cls, balance: Amounts) -> Remaining:
        return cls(
            simple=max(0, NANO - balance.simple_pending - balance.simple_posted),
            renyi=max(0, NANO - balance.renyi_pending - balance.renyi_posted),
        )

    def fits(self, cost: Shares) -> bool:
        """The filter's condition, for a quote; only the reservation decides."""
        return cost.simple <= self.simple or cost.renyi <= self.renyi


def post(session: Session, dataset_id: uuid.UUID, release_id: uuid.UUID) -> LedgerEntry:
    """Charge the reservation. Committed before the first private step."""
    row = repository.move(session, "post", dataset_id, release_id)
    return _entry(row, conflict="this release has no pending reservation to charge")


def void(session: Session, dataset_id: uuid.UUID, release_id: uuid.UUID) -> LedgerEntry:
    """Give a reservation back in full: nothing private has run."""
    row = repository.move(session, "void", dataset_id, release_id)
    return _entry(row, conflict="this release has no pending reservation to give back")


def settle(session: Session, dataset_id: uuid.UUID, release_id: uuid.UUID, *, renyi: int) -> LedgerEntry:
    """After an early stop by a person: the Rényi account keeps only the steps really run; the simple one keeps all."""
    row = repository.move(session, "settle", dataset_id, release_id, renyi=renyi)
    return _entry(row, conflict="only a posted charge that published nothing is settled, and never above itself")


@dataclass(frozen=True, slots=True)
class OtherReleases:
    """What a dataset's other releases cost by one moment of its ledger. Reserved counts as spent; what was given back does not."""

    charged: int
    pending: int
    simple: int
    renyi: int
    entries: int


def other_releases(session: Session, dataset_id: uuid.UUID, release_id: uuid.UUID) -> OtherReleases:
    """All but one release of a dataset, those that failed after their charge too."""
    row = repository.sums_of_others(session, dataset_id, release_id)
    return OtherReleases(row.charged, row.pending, row.simple, row.renyi, row.entries or 0)


class Outcome(Protocol):
    """What the database's functions answer besides an entry."""

    @property
    def outcome(self) -> str: ...
    @property
    def simple_left(self) -> int: ...
    @property
    def renyi_left(self) -> int: ...


def require_done(outcome: Outcome, cost: Shares) -> None:
    """The outcome of a new reservation made within a larger statement: `BudgetExhausted` unless it was made."""
    _raise_refusal(outcome, "this release has a reservation already")
    if outcome.outcome == "redeclared":
        raise Redeclared(
            Message(
                "the dataset's declaration was replaced while this order was priced; nothing was ordered: look at the "
                "dataset and order again"
            )
        )
    if outcome.outcome == "exhausted":
        raise BudgetExhausted(
            Message(
                "neither account of this dataset's budget has room for the order: it costs %(simple)s of the budget by "
                "basic composition, where %(simple_left)s is left, and %(renyi)s by Rényi composition, where "
                "%(renyi_left)s is left; order a smaller ε: the dataset's budget names the largest that fits",
                simple=percent(cost.simple / NANO),
                simple_left=percent(outcome.simple_left / NANO),
                renyi=percent(cost.renyi / NANO),
                renyi_left=percent(outcome.renyi_left / NANO),
            ),
            remaining={"simple": outcome.simple_left, "renyi": outcome.renyi_left},
            requested={"simple": cost.simple, "renyi": cost.renyi},
        )


def _entry(row: Row[Any], *, conflict: str) -> LedgerEntry:
    """The entry of a move that has happened, now or before; the error of one that cannot."""
    _raise_refusal(row, conflict)
    return LedgerEntry(**{column: getattr(row, column) for column in LedgerEntry.__table__.columns.keys()})  # noqa: SIM118 - not a dict


def _raise_refusal(row: Outcome | Row[Any], conflict: str) -> None:
    if row.outcome == "no_account":
        raise NotFound(Message("no such dataset; GET /v1/datasets lists yours"))
    if row.outcome == "conflict":
        raise LedgerConflict(conflict)
