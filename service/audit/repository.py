"""The SQL of the audit log: append and read, nothing else."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from service.audit.models import DONE, AuditEvent


def add(
    session: Session,
    tenant_id: uuid.UUID,
    action: str,
    *,
    key_id: uuid.UUID | None = None,
    request_id: uuid.UUID | None = None,
    object_kind: str | None = None,
    object_id: uuid.UUID | None = None,
    outcome: str = DONE,
    unrecorded: int = 0,
) -> None:
    """Append one line in the caller's transaction."""
    session.execute(
        insert(AuditEvent)
        .values(
            tenant_id=tenant_id,
            key_id=key_id,
            action=action,
            object_kind=object_kind,
            object_id=object_id,
            outcome=outcome,
            unrecorded=unrecorded,
            request_id=request_id or uuid.uuid4(),
        )
        .inline()
    )


def page(session: Session, tenant_id: uuid.UUID, *, before: int | None, limit: int) -> Sequence[AuditEvent]:
    """Up to `limit` lines of the tenant, newest first, all older than line `before`."""
    query = select(AuditEvent).where(AuditEvent.tenant_id == tenant_id)
    if before is not None:
        query = query.where(AuditEvent.id < before)
    return session.scalars(query.order_by(AuditEvent.id.desc()).limit(limit)).all()
