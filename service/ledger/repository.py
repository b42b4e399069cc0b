"""The ledger's SQL. One conditional UPDATE decides; entries are appended under the row lock it takes."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence

from sqlalchemy import insert, or_, select, text, update
from sqlalchemy.orm import Session

from service.errors import NotFound
from service.ledger.chain import entry_hash
from service.ledger.models import Balance, LedgerEntry
from service.privacy.filters import NANO, Shares


def open_account(session: Session, dataset_id: uuid.UUID) -> None:
    """An empty balance for a new dataset."""
    session.execute(insert(Balance).values(dataset_id=dataset_id))


def read_balance(session: Session, dataset_id: uuid.UUID, *, lock: bool = False) -> Balance:
    """The balance as it stands in this transaction; with `lock`, held until the transaction ends."""
    query = select(Balance).where(Balance.dataset_id == dataset_id).execution_options(populate_existing=True)
    balance = session.scalars(query.with_for_update() if lock else query).one_or_none()
    if balance is None:
        raise NotFound("no such dataset")
    return balance


def reserve_if_it_fits(session: Session, dataset_id: uuid.UUID, cost: Shares) -> bool:
    """Add to both pending amounts iff at least one account has room: one statement, so no two orders can both slip in.

    Source: the filter of PRIVACY.md §4. READ COMMITTED re-evaluates the condition after waiting for the row lock.
    """
    simple_after = Balance.simple_pending + Balance.simple_posted + cost.simple
    renyi_after = Balance.renyi_pending + Balance.renyi_posted + cost.renyi
    decided = session.execute(
        update(Balance)
        .where(Balance.dataset_id == dataset_id, or_(simple_after <= NANO, renyi_after <= NANO))
        .values(
            simple_pending=Balance.simple_pending + cost.simple,
            renyi_pending=Balance.renyi_pending + cost.renyi,
        )
        .returning(Balance.dataset_id)
        .execution_options(synchronize_session=False)
    )
    return decided.one_or_none() is not None


def move(
    session: Session,
    dataset_id: uuid.UUID,
    *,
    simple_pending: int = 0,
    simple_posted: int = 0,
    renyi_pending: int = 0,
    renyi_posted: int = 0,
) -> None:
    """Add to the amounts of a balance; the table's CHECKs refuse what must not be."""
    session.execute(
        update(Balance)
        .where(Balance.dataset_id == dataset_id)
        .values(
            simple_pending=Balance.simple_pending + simple_pending,
            simple_posted=Balance.simple_posted + simple_posted,
            renyi_pending=Balance.renyi_pending + renyi_pending,
            renyi_posted=Balance.renyi_posted + renyi_posted,
        )
        .execution_options(synchronize_session=False)
    )


def append_entry(
    session: Session, dataset_id: uuid.UUID, release_id: uuid.UUID, kind: str, cost: Shares
) -> LedgerEntry:
    """Write the next line of the chain. The caller's transaction holds the lock on the balance."""
    balance = read_balance(session, dataset_id, lock=True)
    created_at = session.execute(text("SELECT clock_timestamp()")).scalar_one()
    fields = {
        "dataset_id": dataset_id,
        "seq": balance.entry_count + 1,
        "release_id": release_id,
        "kind": kind,
        "simple": cost.simple,
        "renyi": cost.renyi,
        "created_at": created_at.astimezone(dt.UTC),
        "previous_hash": bytes(balance.head_hash),
    }
    entry = LedgerEntry(**fields, hash=entry_hash(**fields))
    session.add(entry)
    balance.entry_count, balance.head_hash = entry.seq, entry.hash
    session.flush()
    return entry


def entries_of_release(session: Session, release_id: uuid.UUID) -> dict[str, LedgerEntry]:
    """The entries of one release, by kind."""
    return {e.kind: e for e in session.scalars(select(LedgerEntry).where(LedgerEntry.release_id == release_id))}


def entries_of_dataset(session: Session, dataset_id: uuid.UUID) -> Sequence[LedgerEntry]:
    """All entries of a dataset, in the order of its chain."""
    return session.scalars(
        select(LedgerEntry).where(LedgerEntry.dataset_id == dataset_id).order_by(LedgerEntry.seq)
    ).all()
