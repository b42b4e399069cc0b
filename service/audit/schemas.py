"""Replies about the audit log."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class AuditReply(BaseModel):
    """One line: who did what, to which object, and how it ended."""

    model_config = ConfigDict(from_attributes=True)

    id: int
    at: dt.datetime
    key_id: Annotated[uuid.UUID | None, Field(description="Whose request it was; null: the service or its operator.")]
    action: Annotated[str, Field(description="The operation, for example `order_release`, or `expire_rows`.")]
    object_kind: Annotated[str | None, Field(description="dataset, release, key or tenant.")]
    object_id: uuid.UUID | None
    outcome: Annotated[str, Field(description="`done`, or the code of the refusal.")]
    unrecorded: Annotated[int, Field(description="Refusals of this key since its last line that got no line.")]
    request_id: Annotated[uuid.UUID, Field(description="The reply's X-Request-Id.")]


class AuditList(BaseModel):
    """One page, newest first."""

    items: list[AuditReply]
    next: Annotated[int | None, Field(description="Give it as `before` to get the next, older page; null: the end.")]
