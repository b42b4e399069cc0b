"""The SQL of releases as callers see them. What workers do to them is in `workers/lease.py`."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from sqlalchemy import func, insert, select, update
from sqlalchemy.orm import Session

from service.errors import NotFound
from service.releases.models import Release


def add(session: Session, **values: Any) -> None:
    session.execute(insert(Release).values(**values))


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
