"""The SQL of releases as callers see them. What workers do to them is in `workers/lease.py`."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Row, and_, func, select, text, update
from sqlalchemy.orm import Session

from service.datasets import repository as datasets
from service.datasets.models import Dataset
from service.errors import NotFound
from service.ledger.models import Balance
from service.releases.models import Release

PLACE = text(
    """
    WITH money AS (
        SELECT outcome, simple_left, renyi_left FROM ledger_reserve(:dataset_id, :id, :simple_cost, :renyi_cost)
    ), placed AS (
        INSERT INTO releases (id, tenant_id, dataset_id, order_, price, simple_cost, renyi_cost, idempotency_key,
                              body_digest, steps)
        SELECT :id, :tenant_id, :dataset_id, CAST(:order AS jsonb), CAST(:price AS jsonb), :simple_cost, :renyi_cost,
               CAST(:idempotency_key AS text), :body_digest, :steps
        FROM money WHERE outcome = 'done'
        RETURNING id, state, phase, step, created_at
    ), message AS (
        INSERT INTO outbox (task, release_id) SELECT :task, id FROM placed
    ), line AS (
        INSERT INTO audit_events (tenant_id, key_id, action, object_kind, object_id, outcome, request_id)
        SELECT :tenant_id, :key_id, :action, 'release', id, :audit_outcome, :request_id FROM placed
    )
    SELECT money.*, placed.* FROM money LEFT JOIN placed ON true
    """
)
"""Reserve, record, enqueue and note, or change nothing: one statement and so one transaction of one round trip.

The balance's row, for which every order on the dataset waits, is locked only while the server works on this.
"""


def place(session: Session, **values: Any) -> Row[Any]:
    """The outcome of the reservation and, where it is `done`, what the database filled in."""
    return session.execute(PLACE, values).one()


@dataclass(frozen=True, slots=True)
class Ground:
    """What an order stands on: the dataset's declaration, its balance, and what the same key has ordered before."""

    dataset: Dataset
    balance: Balance
    earlier: Release | None


def find_ground(
    session: Session, tenant_id: uuid.UUID, dataset_id: uuid.UUID, *, idempotency_key: str | None = None
) -> Ground:
    """All of it in one statement."""
    if idempotency_key is None:
        return Ground(*datasets.find_with_balance(session, tenant_id, dataset_id), earlier=None)
    same_key = and_(Release.tenant_id == tenant_id, Release.idempotency_key == idempotency_key)
    query = select(Dataset, Balance, Release).join(Balance, Balance.dataset_id == Dataset.id)
    query = query.outerjoin(Release, same_key).where(Dataset.id == dataset_id, Dataset.tenant_id == tenant_id)
    row = session.execute(query).one_or_none()
    if row is None:
        raise NotFound("no such dataset")
    return Ground(*row)


def find(session: Session, tenant_id: uuid.UUID, release_id: uuid.UUID, *, lock: bool = False) -> Release:
    query = (
        select(Release)
        .where(Release.id == release_id, Release.tenant_id == tenant_id)
        .execution_options(populate_existing=True)
    )
    release = session.scalars(query.with_for_update() if lock else query).one_or_none()
    if release is None:
        raise NotFound("no such release")
    return release


def find_by_idempotency_key(session: Session, tenant_id: uuid.UUID, key: str) -> Release | None:
    return session.scalars(
        select(Release).where(Release.tenant_id == tenant_id, Release.idempotency_key == key)
    ).one_or_none()


def list_of_tenant(session: Session, tenant_id: uuid.UUID, dataset_id: uuid.UUID | None) -> Sequence[Release]:
    query = select(Release).where(Release.tenant_id == tenant_id)
    if dataset_id is not None:
        query = query.where(Release.dataset_id == dataset_id)
    return session.scalars(query.order_by(Release.created_at.desc()).limit(1_000)).all()


def change(session: Session, release_id: uuid.UUID, **values: Any) -> None:
    session.execute(
        update(Release)
        .where(Release.id == release_id)
        .values(**values, updated_at=func.now())
        .execution_options(synchronize_session=False)
    )
