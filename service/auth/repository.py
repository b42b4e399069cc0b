"""The SQL of tenants and keys."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence

from sqlalchemy import func, insert, select, update
from sqlalchemy.orm import Session

from service.auth.models import ApiKey, Tenant


def add_tenant(session: Session, name: str) -> uuid.UUID:
    tenant_id = uuid.uuid4()
    session.execute(insert(Tenant).values(id=tenant_id, name=name))
    return tenant_id


def find_tenant(session: Session, name: str) -> uuid.UUID | None:
    return session.scalars(select(Tenant.id).where(Tenant.name == name)).one_or_none()


def count_tenants(session: Session) -> int:
    return session.scalars(select(func.count()).select_from(Tenant)).one()


def add_key(session: Session, tenant_id: uuid.UUID, name: str, scope: str, digest: bytes) -> uuid.UUID:
    key_id = uuid.uuid4()
    session.execute(insert(ApiKey).values(id=key_id, tenant_id=tenant_id, name=name, scope=scope, digest=digest))
    return key_id


def find_live_key(session: Session, digest: bytes) -> ApiKey | None:
    return session.scalars(select(ApiKey).where(ApiKey.digest == digest, ApiKey.revoked_at.is_(None))).one_or_none()


def list_keys(session: Session, tenant_id: uuid.UUID) -> Sequence[ApiKey]:
    return session.scalars(select(ApiKey).where(ApiKey.tenant_id == tenant_id).order_by(ApiKey.created_at)).all()


def revoke_key(session: Session, tenant_id: uuid.UUID, key_id: uuid.UUID) -> bool:
    """True when the tenant has such a key; revoking twice keeps the first time."""
    found = session.scalars(
        update(ApiKey)
        .where(ApiKey.tenant_id == tenant_id, ApiKey.id == key_id)
        .values(revoked_at=func.coalesce(ApiKey.revoked_at, dt.datetime.now(dt.UTC)))
        .returning(ApiKey.id)
    )
    return found.one_or_none() is not None
