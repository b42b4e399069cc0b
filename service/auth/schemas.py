"""Requests and replies about keys."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from service.auth.principal import Scope
from service.base.text import Name
from service.platform.paging import NEXT

End = Annotated[
    AwareDatetime | None,
    Field(
        description="When the key stops working, at most ten years from now and not after the key that makes it; "
        "null: with that key, never where it has no end."
    ),
]


class KeyRequest(BaseModel):
    """A new key for the caller's own tenant."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    scope: Scope
    expires_at: End = None


class ReplacementRequest(BaseModel):
    """How a key is replaced by a new one of the same name and scope."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    overlap_seconds: Annotated[
        int, Field(ge=0, le=30 * 86_400, description="How long the old key still works; 0 ends it at once.")
    ] = 86_400
    expires_at: Annotated[
        AwareDatetime | None,
        Field(
            description="When the new key stops working, not after the key that asks; default: it lives as long as the "
            "old one was made to live, but no longer than the key that asks."
        ),
    ] = None


class KeyReply(BaseModel):
    """A key without its secret."""

    model_config = ConfigDict(from_attributes=True)

    id: uuid.UUID
    name: str
    scope: Scope
    created_at: dt.datetime
    expires_at: dt.datetime | None
    revoked_at: dt.datetime | None
    replaced_by: uuid.UUID | None


class KeyList(BaseModel):
    """One page of the tenant's keys, newest first."""

    items: list[KeyReply]
    next: Annotated[str | None, Field(description=NEXT)]


class NewKeyReply(BaseModel):
    """The only time the secret is shown."""

    id: uuid.UUID
    key: str
    expires_at: dt.datetime | None
