"""Replies about the audit log."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field

from service.audit.models import AuditEvent, AuditPlace


class PlaceReply(BaseModel):
    """A line's place in its tenant's chain; the hash covers the line, its place and the hash before it."""

    seq: Annotated[int, Field(description="From 1, without gaps, in the order in which lines were committed.")]
    previous_hash: str
    hash: str

    @classmethod
    def of(cls, place: AuditPlace) -> Self:
        return cls(seq=place.seq, previous_hash=place.previous_hash.hex(), hash=place.hash.hex())


class AuditReply(BaseModel):
    """One line: who did what, to which object, and how it ended."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    tenant_id: Annotated[uuid.UUID, Field(description="Your own; every hash covers it.")]
    at: dt.datetime
    key_id: Annotated[uuid.UUID | None, Field(description="Whose request it was; null: the service or its operator.")]
    key_name: Annotated[str | None, Field(description="The name that the tenant gave this key; no hash covers it.")] = (
        None
    )
    action: Annotated[str, Field(description="The operation, for example `order_release`, or `expire_rows`.")]
    object_kind: Annotated[str | None, Field(description="dataset, release, key or tenant.")]
    object_id: uuid.UUID | None
    outcome: Annotated[str, Field(description="`done`, or the code of the refusal.")]
    unrecorded: Annotated[int, Field(description="Refusals of this key since its last line that got no line.")]
    request_id: Annotated[uuid.UUID, Field(description="The reply's X-Request-Id.")]
    place: Annotated[PlaceReply | None, Field(description="null: too new to have one; it gets one within seconds.")] = (
        None
    )

    @classmethod
    def of(cls, event: AuditEvent, place: AuditPlace | None, key_name: str | None) -> Self:
        made = cls.model_validate(event)
        made.key_name = key_name
        made.place = None if place is None else PlaceReply.of(place)
        return made


class AuditList(BaseModel):
    """One page, newest first."""

    items: list[AuditReply]
    next: Annotated[int | None, Field(description="Give it as `before` to get the next, older page; null: the end.")]
