"""The SQL of the audit log: append and read, nothing else."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from service.audit.models import DONE, AuditEvent


@dataclass(frozen=True, slots=True)
class Line:
    """What a line says, before the log gives it a number and a time."""

    tenant_id: uuid.UUID
    action: str
    key_id: uuid.UUID | None = None
    request_id: uuid.UUID = field(default_factory=uuid.uuid4)
    object_kind: str | None = None
    object_id: uuid.UUID | None = None
    outcome: str = DONE
    unrecorded: int = 0


def add(session: Session, line: Line) -> None:
    """Append one line in the caller's transaction."""
    session.execute(insert(AuditEvent).values(asdict(line)).inline())


def page(session: Session, tenant_id: uuid.UUID, *, before: int | None, limit: int) -> Sequence[AuditEvent]:
    """Up to `limit` lines of the tenant, newest first, all older than line `before`."""
    query = select(AuditEvent).where(AuditEvent.tenant_id == tenant_id)
    if before is not None:
        query = query.where(AuditEvent.id < before)
    return session.scalars(query.order_by(AuditEvent.id.desc()).limit(limit)).all()
