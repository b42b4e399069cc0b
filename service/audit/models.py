"""One line of the audit log: who did what to which object, and how it ended. No cell, no key, no free text."""

from __future__ import annotations

import datetime as dt
import uuid

from sqlalchemy import BigInteger, DateTime, Identity, LargeBinary, Text
from sqlalchemy.orm import Mapped, mapped_column

from service.platform.database import Base

DONE = "done"


class AuditEvent(Base):
    """Append-only. `outcome` is `done` or the code of the refusal; without a key the service itself acted."""

    __tablename__ = "audit_events"

    tenant_id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    key_id: Mapped[uuid.UUID | None]
    action: Mapped[str] = mapped_column(Text)
    object_kind: Mapped[str | None] = mapped_column(Text)
    object_id: Mapped[uuid.UUID | None]
    outcome: Mapped[str] = mapped_column(Text)
    unrecorded: Mapped[int] = mapped_column(BigInteger)
    request_id: Mapped[uuid.UUID]
    at: Mapped[dt.datetime] = mapped_column(DateTime(timezone=True))


class AuditPlace(Base):
    """A line's place in its tenant's chain, given after it was committed (`audit_integrate` of migration 0010)."""

    __tablename__ = "audit_chain"

    tenant_id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    seq: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    id: Mapped[int] = mapped_column(BigInteger)
    previous_hash: Mapped[bytes] = mapped_column(LargeBinary)
    hash: Mapped[bytes] = mapped_column(LargeBinary)
