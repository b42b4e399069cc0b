"""Requests and replies about keys."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from service.auth.service import Scope


class KeyRequest(BaseModel):
    """A new key for the caller's own tenant."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=200)]
    scope: Scope


class KeyReply(BaseModel):
    """A key without its secret."""

    model_config = ConfigDict(from_attributes=True)

    id: uuid.UUID
    name: str
    scope: Scope
    created_at: dt.datetime
    revoked_at: dt.datetime | None


class KeyList(BaseModel):
    """All keys of the tenant."""

    items: list[KeyReply]


class NewKeyReply(BaseModel):
    """The only time the secret is shown."""

    id: uuid.UUID
    key: str
