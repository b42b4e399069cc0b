"""A release: an order, its price, and how far it has come."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any, cast

from sqlalchemy import BigInteger, DateTime, LargeBinary, SmallInteger, Text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from service.methods.catalogue import parse_resolved_order
from service.methods.knobs import Order
from service.platform.database import Base
from service.privacy.events import Events, events_from_json

ACTIVE = ("reserved", "charged")
ENDED = ("published", "failed", "voided")


class Release(Base):
    """States: reserved → charged → published | failed, reserved → voided."""

    __tablename__ = "releases"

    id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    tenant_id: Mapped[uuid.UUID]
    dataset_id: Mapped[uuid.UUID]
    key_id: Mapped[uuid.UUID]
    """Of the API key that ordered; nil where a version before took the order."""
    priority: Mapped[int] = mapped_column(SmallInteger)
    name: Mapped[str | None] = mapped_column(Text)
    """As given with the order; None: see `service.releases.names.shown_name`."""
    state: Mapped[str] = mapped_column(Text)
    order_: Mapped[dict[str, Any]] = mapped_column(JSONB)
    price: Mapped[dict[str, Any]] = mapped_column(JSONB)
    simple_cost: Mapped[int] = mapped_column(BigInteger)
    renyi_cost: Mapped[int] = mapped_column(BigInteger)
    idempotency_key: Mapped[str | None] = mapped_column(Text)
    estimate: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    """What it was estimated to take; None of those ordered before there were estimates."""
    body_digest: Mapped[bytes] = mapped_column(LargeBinary)
    phase: Mapped[str] = mapped_column(Text)
    step: Mapped[int] = mapped_column(BigInteger)
    steps: Mapped[int] = mapped_column(BigInteger)
    cancel_requested: Mapped[bool]
    failure: Mapped[str | None] = mapped_column(Text)
    attempts: Mapped[int]
    lease_token: Mapped[int] = mapped_column(BigInteger)
    lease_expires_at: Mapped[dt.datetime | None] = mapped_column(DateTime(timezone=True))
    recorded_steps: Mapped[int] = mapped_column(BigInteger)
    """So far somebody may have seen it, by what workers recorded before they stored a checkpoint; only ever more."""
    recorded_renyi: Mapped[int] = mapped_column(BigInteger)
    """What these steps cost: no settlement is below it."""
    recorded_token: Mapped[int] = mapped_column(BigInteger)
    checkpoint_key: Mapped[str | None] = mapped_column(Text)
    bundle_key: Mapped[str | None] = mapped_column(Text)
    certificate: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    created_at: Mapped[dt.datetime] = mapped_column(DateTime(timezone=True))
    updated_at: Mapped[dt.datetime] = mapped_column(DateTime(timezone=True))

    @property
    def signed_certificate(self) -> dict[str, Any]:
        """The certificate of a published release: a constraint of the table says that it has one."""
        return cast("dict[str, Any]", self.certificate)

    @property
    def order(self) -> Order:
        return parse_resolved_order(self.order_)

    @property
    def events(self) -> Events:
        return events_from_json(self.price["events"])
