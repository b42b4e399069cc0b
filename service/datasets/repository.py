"""The SQL of datasets. Every read names the tenant, so another tenant's id finds nothing."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import psycopg
from sqlalchemy import func, insert, or_, select, update
from sqlalchemy.orm import Session

from service.datasets.alike import ColumnFingerprint, Match, count_columns
from service.datasets.models import Dataset, DatasetColumnFingerprint, DatasetFingerprint
from service.errors import NotFound
from service.privacy.filters import Budget

_FINGERPRINTS_LOCK = 7062
"""An advisory lock; migrations hold 7061."""


def find(session: Session, tenant_id: uuid.UUID, dataset_id: uuid.UUID) -> Dataset:
    dataset = session.scalars(
        select(Dataset).where(Dataset.id == dataset_id, Dataset.tenant_id == tenant_id)
    ).one_or_none()
    if dataset is None:
        raise NotFound("no such dataset")
    return dataset


ACCOUNT = """
SELECT d.units, d.epsilon, d.delta, d.renyi_order, d.renyi_capacity,
       b.simple_pending, b.simple_posted, b.renyi_pending, b.renyi_posted
FROM datasets d JOIN balances b ON b.dataset_id = d.id
WHERE d.id = %s AND d.tenant_id = %s
"""


class Account(NamedTuple):
    """A dataset's promise and what has become of it."""

    units: int
    epsilon: float
    delta: float
    renyi_order: int
    renyi_capacity: float
    simple_pending: int
    simple_posted: int
    renyi_pending: int
    renyi_posted: int

    @property
    def budget(self) -> Budget:
        return Budget(self.epsilon, self.delta, self.renyi_order, self.renyi_capacity)


def find_account(connection: psycopg.Connection[Any], tenant_id: uuid.UUID, dataset_id: uuid.UUID) -> Account:
    """Read at every look at a budget; see `service.db.driver`."""
    found = connection.execute(ACCOUNT, (dataset_id, tenant_id)).fetchone()
    if found is None:
        raise NotFound("no such dataset")
    return Account(*found)


def find_by_fingerprints(session: Session, fingerprints: Sequence[bytes]) -> Dataset | None:
    """Of several, the oldest."""
    its = select(DatasetFingerprint.dataset_id).where(DatasetFingerprint.fingerprint.in_(fingerprints))
    return session.scalars(select(Dataset).where(Dataset.id.in_(its)).order_by(Dataset.created_at)).first()


def lock_fingerprints(session: Session) -> None:
    """One upload at a time looks for rows like its own and writes its own down; held until the transaction ends."""
    session.execute(select(func.pg_advisory_xact_lock(_FINGERPRINTS_LOCK)))


def add_fingerprints(
    session: Session,
    dataset_id: uuid.UUID,
    fingerprints: Sequence[bytes],
    column_fingerprints: Sequence[ColumnFingerprint],
) -> None:
    """All that later uploads are compared with."""
    session.execute(
        insert(DatasetFingerprint),
        [{"fingerprint": fingerprint, "dataset_id": dataset_id} for fingerprint in fingerprints],
    )
    if column_fingerprints:
        shared = {"dataset_id": dataset_id, "column_count": count_columns(column_fingerprints)}
        rows = [shared | {"place": one.place, "fingerprint": one.fingerprint} for one in column_fingerprints]
        session.execute(insert(DatasetColumnFingerprint), rows)


def find_matches(session: Session, column_fingerprints: Sequence[ColumnFingerprint]) -> list[Match]:
    """What datasets of every tenant share with these columns."""
    its = DatasetColumnFingerprint
    query = select(its.dataset_id, its.place, its.fingerprint, its.column_count).where(
        its.fingerprint.in_([one.fingerprint for one in column_fingerprints])
    )
    return [Match(*row) for row in session.execute(query)]


def find_all(session: Session, dataset_ids: Collection[uuid.UUID]) -> Sequence[Dataset]:
    """Of every tenant, the oldest first: to compare rows, not to show."""
    return session.scalars(select(Dataset).where(Dataset.id.in_(dataset_ids)).order_by(Dataset.created_at)).all()


def list_of_tenant(session: Session, tenant_id: uuid.UUID) -> Sequence[Dataset]:
    return session.scalars(
        select(Dataset).where(Dataset.tenant_id == tenant_id).order_by(Dataset.created_at.desc())
    ).all()


def list_expired(session: Session) -> Sequence[Dataset]:
    """Datasets whose rows should be gone by now and are not."""
    return session.scalars(
        select(Dataset).where(Dataset.erased_at.is_(None), Dataset.rows_expire_at <= func.now())
    ).all()


def bring_expiry_forward(session: Session, dataset_id: uuid.UUID, rows_expire_at: dt.datetime) -> bool:
    """Set the deletion date; False where an earlier one stands."""
    changed = session.scalars(
        update(Dataset)
        .where(
            Dataset.id == dataset_id,
            or_(Dataset.rows_expire_at.is_(None), Dataset.rows_expire_at >= rows_expire_at),
        )
        .values(rows_expire_at=rows_expire_at)
        .returning(Dataset.id)
        .execution_options(synchronize_session=False)
    )
    return changed.one_or_none() is not None


def mark_erased(session: Session, dataset_id: uuid.UUID) -> str | None:
    """Forget where the rows lie and their key; returns the storage key once, None when already erased."""
    storage_key = session.scalars(
        select(Dataset.storage_key).where(Dataset.id == dataset_id).with_for_update()
    ).one_or_none()
    if storage_key is not None:
        session.execute(
            update(Dataset)
            .where(Dataset.id == dataset_id)
            .values(storage_key=None, wrapped_data_key=None, erased_at=dt.datetime.now(dt.UTC))
            .execution_options(synchronize_session=False)
        )
    return storage_key
