"""Who asks, with which scope, and in which request."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Literal, get_args

from service.base.errors import Forbidden
from service.base.messages import Message, Text

Scope = Literal["owner", "analyst", "reader"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
"""From the most to the least powerful; each may do what those after it may."""


@dataclass(frozen=True, slots=True)
class Principal:
    """A tenant, through one key, with one scope; `action` names the operation for the audit log."""

    tenant_id: uuid.UUID
    key_id: uuid.UUID
    scope: Scope
    action: str = "call"
    request_id: uuid.UUID = field(default_factory=uuid.uuid4)

    def require(self, scope: Scope) -> None:
        """Raise `Forbidden` unless this key's scope includes `scope`."""
        if SCOPES.index(self.scope) > SCOPES.index(scope):
            raise Forbidden(
                Message(
                    "this needs a key of scope %(scope)s; yours is %(own)s", scope=Text(scope), own=Text(self.scope)
                ),
                required_scope=scope,
            )
