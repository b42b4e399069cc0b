"""The ledger's SQL. Balances change only inside the functions of migration 0002: check, change and append, one round trip."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Literal

from sqlalchemy import Row, select, text
from sqlalchemy.orm import Session

from service.base.errors import NotFound
from service.ledger.models import Balance, LedgerEntry
from service.platform.paging import is_among

Move = Literal["post", "void", "settle"]
_ARGUMENTS: dict[Move, str] = {
    "post": ":dataset, :release",
    "void": ":dataset, :release",
    "settle": ":dataset, :release, :renyi",
}


def open_account(session: Session, dataset_id: uuid.UUID) -> None:
    """An empty balance for a new dataset."""
    session.execute(text("SELECT ledger_open(:dataset)"), {"dataset": dataset_id})


def move(session: Session, kind: Move, dataset_id: uuid.UUID, release_id: uuid.UUID, **amounts: int) -> Row[Any]:
    """Call one of the ledger's functions; the row is its outcome, the entry's columns, and what a refusal left."""
    call = f"SELECT outcome, (entry).*, simple_left, renyi_left FROM ledger_{kind}({_ARGUMENTS[kind]})"  # noqa: S608 - constants
    return session.execute(text(call), {"dataset": dataset_id, "release": release_id, **amounts}).one()


def read_balance(session: Session, dataset_id: uuid.UUID) -> Balance:
    """The balance as it stands in this transaction."""
    query = select(Balance).where(Balance.dataset_id == dataset_id).execution_options(populate_existing=True)
    balance = session.scalars(query).one_or_none()
    if balance is None:
        raise NotFound("no such dataset")
    return balance


def entries_of_release(session: Session, release_id: uuid.UUID) -> dict[str, LedgerEntry]:
    """The entries of one release, by kind."""
    return {e.kind: e for e in session.scalars(select(LedgerEntry).where(LedgerEntry.release_id == release_id))}


def entries_of_dataset(session: Session, dataset_id: uuid.UUID) -> Sequence[LedgerEntry]:
    """All entries of a dataset, in the order of its chain."""
    return session.scalars(
        select(LedgerEntry).where(LedgerEntry.dataset_id == dataset_id).order_by(LedgerEntry.seq)
    ).all()


_LINE = (
    LedgerEntry.dataset_id,
    LedgerEntry.seq,
    LedgerEntry.release_id,
    LedgerEntry.kind,
    LedgerEntry.simple,
    LedgerEntry.renyi,
    LedgerEntry.created_at,
    LedgerEntry.previous_hash,
    LedgerEntry.hash,
)


def lines_of_dataset(session: Session, dataset_id: uuid.UUID) -> Sequence[Row[*tuple[Any, ...]]]:
    """All entries as plain rows, which take a fifth of the memory."""
    return session.execute(select(*_LINE).where(LedgerEntry.dataset_id == dataset_id).order_by(LedgerEntry.seq)).all()


def lines_before(
    session: Session, dataset_id: uuid.UUID, *, before: int | None, limit: int
) -> Sequence[Row[*tuple[Any, ...]]]:
    """The last of those before an entry, or of all, in order."""
    query = select(*_LINE).where(LedgerEntry.dataset_id == dataset_id)
    if before is not None:
        query = query.where(LedgerEntry.seq < before)
    return session.execute(query.order_by(LedgerEntry.seq.desc()).limit(limit)).all()[::-1]


def sums_of_others(session: Session, dataset_id: uuid.UUID, release_id: uuid.UUID) -> Row[Any]:
    """Numbers and sums of a dataset's releases but one, by the last entry of each; one moment, as it is one statement."""
    return session.execute(
        text(
            """
            SELECT count(*) FILTER (WHERE kind IN ('post', 'settle')) AS charged,
                   count(*) FILTER (WHERE kind = 'reserve') AS pending,
                   coalesce(sum(simple) FILTER (WHERE kind <> 'void'), 0)::bigint AS simple,
                   coalesce(sum(renyi) FILTER (WHERE kind <> 'void'), 0)::bigint AS renyi,
                   (SELECT max(seq) FROM ledger_entries WHERE dataset_id = :dataset) AS entries
            FROM (SELECT DISTINCT ON (release_id) kind, simple, renyi FROM ledger_entries
                  WHERE dataset_id = :dataset AND release_id <> :release ORDER BY release_id, seq DESC) AS last
            """
        ),
        {"dataset": dataset_id, "release": release_id},
    ).one()


def balances_of(session: Session, dataset_ids: Sequence[uuid.UUID]) -> Sequence[Balance]:
    """The balances of these datasets; the caller knows that they are the tenant's."""
    return session.scalars(select(Balance).where(is_among(Balance.dataset_id, dataset_ids))).all()
