"""The SQL of the audit log: append and read, nothing else."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from sqlalchemy import and_, insert, select, text
from sqlalchemy.orm import Session

from service.audit.models import DONE, AuditEvent, AuditPlace
from service.auth.models import ApiKey


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


APPEND = text(
    "SELECT audit_append(:tenant_id, :key_id, :action, :object_kind, :object_id, :outcome, :unrecorded, :request_id)"
)
MOST_PLACED = 10_000
"""Lines that get their place in one transaction."""


def add(session: Session, line: Line) -> None:
    """Append one line in the caller's transaction. A line without a key, of the operator, needs the owning role."""
    if line.key_id is None:
        session.execute(insert(AuditEvent).values(asdict(line)).inline())
    else:
        session.execute(APPEND, asdict(line))


Found = tuple[AuditEvent, AuditPlace | None, str | None]
"""A line, its place, and the name that its key has now."""


def page(session: Session, tenant_id: uuid.UUID, *, before: int | None, limit: int) -> Sequence[Found]:
    """Up to `limit` lines of the tenant, newest first, all older than line `before`."""
    its_place = and_(AuditPlace.tenant_id == AuditEvent.tenant_id, AuditPlace.id == AuditEvent.id)
    its_key = and_(ApiKey.tenant_id == AuditEvent.tenant_id, ApiKey.id == AuditEvent.key_id)
    query = select(AuditEvent, AuditPlace, ApiKey.name).outerjoin(AuditPlace, its_place).outerjoin(ApiKey, its_key)
    query = query.where(AuditEvent.tenant_id == tenant_id)
    if before is not None:
        query = query.where(AuditEvent.id < before)
    return session.execute(query.order_by(AuditEvent.id.desc()).limit(limit)).all()


def integrate(session: Session) -> int:
    """Give committed lines their places in the chains of their tenants; how many. In a transaction of its own."""
    return int(session.execute(text("SELECT audit_integrate(:most)"), {"most": MOST_PLACED}).scalar_one())
