"""Reserve, post, void, settle: the four things that can happen to a release's cost, each at most once.

All functions run inside the caller's transaction, so that a release and its money change together or not at all.
Model: two-phase transfers (pending → posted | voided), never updated, never deleted.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from sqlalchemy.orm import Session

from service.errors import BudgetExhausted, ImprimaturError
from service.ledger import repository
from service.ledger.chain import totals_of, verify_chain
from service.ledger.models import Balance, LedgerEntry
from service.privacy.filters import NANO, Shares


class LedgerConflict(ImprimaturError):
    """A move that the release's earlier entries rule out, such as posting a voided reservation."""

    code = "ledger_conflict"


@dataclass(frozen=True, slots=True)
class Remaining:
    """What is left in each account, in nano-shares; never negative."""

    simple: int
    renyi: int

    @classmethod
    def of(cls, balance: Balance) -> Remaining:
        return cls(
            simple=max(0, NANO - balance.simple_pending - balance.simple_posted),
            renyi=max(0, NANO - balance.renyi_pending - balance.renyi_posted),
        )

    def fits(self, cost: Shares) -> bool:
        """The filter's condition, for a quote; only `reserve` decides."""
        return cost.simple <= self.simple or cost.renyi <= self.renyi


def reserve(session: Session, dataset_id: uuid.UUID, release_id: uuid.UUID, cost: Shares) -> LedgerEntry:
    """Set the cost aside, or raise `BudgetExhausted` with what was left and what was asked."""
    if not repository.reserve_if_it_fits(session, dataset_id, cost):
        left = Remaining.of(repository.read_balance(session, dataset_id))
        raise BudgetExhausted(
            "neither account of this dataset's budget has room for the order",
            remaining={"simple": left.simple, "renyi": left.renyi},
            requested={"simple": cost.simple, "renyi": cost.renyi},
        )
    return repository.append_entry(session, dataset_id, release_id, "reserve", cost)


def post(session: Session, dataset_id: uuid.UUID, release_id: uuid.UUID) -> LedgerEntry:
    """Charge the reservation. Committed before the first private step; asking again returns the same entry."""
    entries = _locked_entries(session, dataset_id, release_id)
    if "post" in entries:
        return entries["post"]
    cost = _open_reservation(entries)
    repository.move(
        session,
        dataset_id,
        simple_pending=-cost.simple,
        simple_posted=cost.simple,
        renyi_pending=-cost.renyi,
        renyi_posted=cost.renyi,
    )
    return repository.append_entry(session, dataset_id, release_id, "post", cost)


def void(session: Session, dataset_id: uuid.UUID, release_id: uuid.UUID) -> LedgerEntry:
    """Give a reservation back in full: nothing private has run. Asking again returns the same entry."""
    entries = _locked_entries(session, dataset_id, release_id)
    if "void" in entries:
        return entries["void"]
    cost = _open_reservation(entries)
    repository.move(session, dataset_id, simple_pending=-cost.simple, renyi_pending=-cost.renyi)
    return repository.append_entry(session, dataset_id, release_id, "void", cost)


def settle(session: Session, dataset_id: uuid.UUID, release_id: uuid.UUID, *, renyi: int) -> LedgerEntry:
    """After an early stop by a person: the Rényi account keeps only the steps really run; the simple one keeps all."""
    entries = _locked_entries(session, dataset_id, release_id)
    if "settle" in entries:
        return entries["settle"]
    if "post" not in entries:
        raise LedgerConflict("only a posted charge can be settled")
    charged = entries["post"]
    if not 0 <= renyi <= charged.renyi:
        raise LedgerConflict("a settlement cannot exceed the charge")
    repository.move(session, dataset_id, renyi_posted=renyi - charged.renyi)
    return repository.append_entry(session, dataset_id, release_id, "settle", Shares(charged.simple, renyi))


def verify(session: Session, dataset_id: uuid.UUID) -> list[str]:
    """Every disagreement between the chain, the balances and each other; empty when all is well."""
    balance = repository.read_balance(session, dataset_id, lock=True)
    entries = repository.entries_of_dataset(session, dataset_id)
    faults = verify_chain(entries)
    if len(entries) != balance.entry_count:
        faults.append(f"the balance counts {balance.entry_count} entries, the ledger holds {len(entries)}")
    if entries and bytes(entries[-1].hash) != bytes(balance.head_hash):
        faults.append("the last entry is not the head of the chain")
    recomputed = totals_of(entries)
    for account in ("simple_pending", "simple_posted", "renyi_pending", "renyi_posted"):
        stored, expected = getattr(balance, account), getattr(recomputed, account)
        if stored != expected:
            faults.append(f"{account} is {stored} but the entries add up to {expected}")
    return faults


def _locked_entries(session: Session, dataset_id: uuid.UUID, release_id: uuid.UUID) -> dict[str, LedgerEntry]:
    repository.read_balance(session, dataset_id, lock=True)
    return repository.entries_of_release(session, release_id)


def _open_reservation(entries: dict[str, LedgerEntry]) -> Shares:
    if "reserve" not in entries:
        raise LedgerConflict("this release has no reservation")
    if "void" in entries or "post" in entries:
        raise LedgerConflict("this release's reservation is no longer pending")
    reservation = entries["reserve"]
    return Shares(reservation.simple, reservation.renyi)
