"""From a bearer key to a principal, and the making of keys."""

from __future__ import annotations

import secrets
import uuid
from dataclasses import dataclass
from typing import Literal, get_args

from sqlalchemy.orm import Session

from service.auth import repository
from service.auth.models import ApiKey
from service.crypto import Secrets
from service.errors import Forbidden, InvalidInput, NotFound, Unauthenticated

Scope = Literal["owner", "analyst", "reader"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
"""From the most to the least powerful; each may do what those after it may."""

FIRST_TENANT = "first"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who asks: a tenant, through one key, with one scope."""

    tenant_id: uuid.UUID
    key_id: uuid.UUID
    scope: Scope

    def require(self, scope: Scope) -> None:
        """Raise `Forbidden` unless this key's scope includes `scope`."""
        if SCOPES.index(self.scope) > SCOPES.index(scope):
            raise Forbidden(f"this needs a key of scope {scope}; yours is {self.scope}", required_scope=scope)


def authenticate(session: Session, key_secrets: Secrets, authorization: str | None) -> Principal:
    """The principal behind an `Authorization: Bearer …` header; the same error for every kind of wrong key."""
    scheme, _, key = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise Unauthenticated("send your API key as 'Authorization: Bearer <key>'")
    found = repository.find_live_key(session, key_secrets.api_key_digest(key.strip()))
    if found is None or not key_secrets.matches_api_key(key.strip(), bytes(found.digest)):
        raise Unauthenticated("this API key is not known or was revoked")
    return Principal(found.tenant_id, found.id, found.scope)  # type: ignore[arg-type]  # the CHECK allows only scopes


def create_key(
    session: Session, key_secrets: Secrets, tenant_id: uuid.UUID, *, name: str, scope: Scope
) -> tuple[uuid.UUID, str]:
    """A new key; the second value is shown once and never again."""
    key = f"imp_{secrets.token_urlsafe(32)}"
    return repository.add_key(session, tenant_id, name, scope, key_secrets.api_key_digest(key)), key


def create_tenant(session: Session, key_secrets: Secrets, name: str) -> str:
    """A new tenant with its first owner key."""
    if repository.find_tenant(session, name) is not None:
        raise InvalidInput(f"a tenant named {name!r} exists", where="name")
    return create_key(session, key_secrets, repository.add_tenant(session, name), name="first owner", scope="owner")[1]


def create_first_owner(session: Session, key_secrets: Secrets) -> str | None:
    """The first tenant's owner key on an empty installation; None when a tenant exists."""
    if repository.count_tenants(session):
        return None
    return create_tenant(session, key_secrets, FIRST_TENANT)


def list_keys(session: Session, principal: Principal) -> list[ApiKey]:
    """The keys of the caller's tenant, revoked ones too."""
    return list(repository.list_keys(session, principal.tenant_id))


def revoke_key(session: Session, principal: Principal, key_id: uuid.UUID) -> None:
    """Make a key of the caller's tenant useless at once."""
    if not repository.revoke_key(session, principal.tenant_id, key_id):
        raise NotFound("no such key")
