"""The SQL of datasets. Every read names the tenant, so another tenant's id finds nothing."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence

from sqlalchemy import func, or_, select, update
from sqlalchemy.orm import Session

from service.datasets.models import Dataset
from service.errors import NotFound
from service.ledger.models import Balance


def find(session: Session, tenant_id: uuid.UUID, dataset_id: uuid.UUID) -> Dataset:
    dataset = session.scalars(
        select(Dataset).where(Dataset.id == dataset_id, Dataset.tenant_id == tenant_id)
    ).one_or_none()
    if dataset is None:
        raise NotFound("no such dataset")
    return dataset


def find_with_balance(session: Session, tenant_id: uuid.UUID, dataset_id: uuid.UUID) -> tuple[Dataset, Balance]:
    """Both in one statement: a balance without its dataset's promise says nothing."""
    query = select(Dataset, Balance).join(Balance, Balance.dataset_id == Dataset.id)
    row = session.execute(query.where(Dataset.id == dataset_id, Dataset.tenant_id == tenant_id)).one_or_none()
    if row is None:
        raise NotFound("no such dataset")
    return row[0], row[1]


def find_by_fingerprint(session: Session, fingerprint: bytes) -> Dataset | None:
    return session.scalars(select(Dataset).where(Dataset.fingerprint == fingerprint)).one_or_none()


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
