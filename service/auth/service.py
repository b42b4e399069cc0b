"""From a bearer key to a principal, and the making, replacing and ending of keys."""

from __future__ import annotations

import datetime as dt
import secrets
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import psycopg
from sqlalchemy.orm import Session

from service.audit import repository as audit
from service.auth import repository
from service.auth.models import ApiKey
from service.auth.principal import Principal, Scope
from service.base.errors import InvalidInput, LastOwnerKey, NotFound, NotReplaceable, Unauthenticated
from service.base.messages import Message
from service.platform.crypto import Secrets
from service.platform.database import database_time
from service.platform.paging import Page

FIRST_TENANT = "first"
LONGEST_LIFE = dt.timedelta(days=3_653)


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key that was just made; `key` is shown once and never again."""

    id: uuid.UUID
    key: str
    expires_at: dt.datetime | None


def bearer_key(authorization: str | None) -> str:
    """The key of an `Authorization: Bearer …` header."""
    scheme, _, key = (authorization or "").partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise Unauthenticated(Message("send your API key as 'Authorization: Bearer <key>'"))
    return key.strip()


def authenticate(connection: psycopg.Connection[Any], key_secrets: Secrets, key: str) -> Principal:
    """The principal behind a key; the same error for every kind of wrong key."""
    found = repository.find_live_key(connection, key_secrets.api_key_digests(key))
    if found is None and key_secrets.reload():  # made under a root that this process has not seen
        found = repository.find_live_key(connection, key_secrets.api_key_digests(key))
    if found is None or not key_secrets.matches_api_key(key, bytes(found.digest)):
        raise Unauthenticated(Message("this API key is not known, was revoked or has expired"))
    return Principal(found.tenant_id, found.id, cast("Scope", found.scope))


def create_key(
    session: Session,
    key_secrets: Secrets,
    tenant_id: uuid.UUID,
    *,
    name: str,
    scope: Scope,
    expires_at: dt.datetime | None = None,
    key: str | None = None,
) -> NewKey:
    """A new key of the tenant, made by the service itself: `make_key` is for what a key asks for.

    `key` is a random one unless given; the database takes each text once.
    """
    if expires_at is not None:
        now = database_time(session)
        if not now < expires_at <= now + LONGEST_LIFE:
            raise InvalidInput(Message("expires_at: name a moment within the next ten years"), where="expires_at")
        expires_at = expires_at.astimezone(dt.UTC)
    key = key or f"imp_{secrets.token_urlsafe(32)}"
    key_id = repository.add_key(
        session,
        tenant_id,
        name,
        scope,
        digest=key_secrets.api_key_digest(key),
        root_id=key_secrets.api_key_root,
        expires_at=expires_at,
    )
    return NewKey(key_id, key, expires_at)


def make_key(
    session: Session,
    key_secrets: Secrets,
    principal: Principal,
    *,
    name: str,
    scope: Scope,
    expires_at: dt.datetime | None,
) -> NewKey:
    """A new key of the caller's tenant, which does not outlive the caller's own."""
    end = _end_within(_end_of_caller(session, principal), expires_at)
    return create_key(session, key_secrets, principal.tenant_id, name=name, scope=scope, expires_at=end)


def create_tenant(session: Session, key_secrets: Secrets, name: str) -> str:
    """A new tenant with its first owner key."""
    if repository.find_tenant(session, name) is not None:
        raise InvalidInput(Message("a tenant named %(name)s exists", name=repr(name)), where="name")
    tenant_id = repository.add_tenant(session, name)
    audit.add(session, audit.Line(tenant_id, "create_tenant", object_kind="tenant", object_id=tenant_id))
    return create_key(session, key_secrets, tenant_id, name="first owner", scope="owner").key


def tenant_named(session: Session, name: str) -> uuid.UUID | None:
    """The tenant of this name."""
    return repository.tenant_named(session, name)


def create_first_owner(session: Session, key_secrets: Secrets) -> str | None:
    """The first tenant's owner key on an empty installation; None when a tenant exists."""
    if repository.count_tenants(session):
        return None
    return create_tenant(session, key_secrets, FIRST_TENANT)


def list_keys(session: Session, principal: Principal, page: Page) -> tuple[Sequence[ApiKey], str | None]:
    """A page of the keys of the caller's tenant, ended ones too."""
    return repository.page_of_keys(session, principal.tenant_id, page)


def replace_key(
    session: Session,
    key_secrets: Secrets,
    principal: Principal,
    key_id: uuid.UUID,
    *,
    overlap_seconds: int,
    expires_at: dt.datetime | None,
) -> NewKey:
    """A key with the name and scope of an old one, which still works for `overlap_seconds`.

    Without `expires_at` the new key lives as long as the old one was made to live, but never longer than the caller's.
    """
    asked_for_end = expires_at is not None
    lasting = repository.lock_lasting_owner_keys(session, principal.tenant_id)
    for locked in sorted({key_id, principal.key_id}):  # in one order, so that two who replace each other's do not block
        repository.lock_key(session, principal.tenant_id, locked)
    callers_end = _end_of_caller(session, principal)
    old = repository.lock_key(session, principal.tenant_id, key_id)
    if old is None:
        raise NotFound(Message("no such key"))
    expires_at = _end_within(callers_end, expires_at)
    if expires_at is not None and list(lasting) == [key_id]:
        raise LastOwnerKey(
            Message(
                "this is the tenant's last owner key that never ends; its replacement must never end either, and only "
                "a key that never ends can make one"
            )
        )
    if old.replaced_by is not None or not repository.is_live(session, key_id):
        raise NotReplaceable(Message("this key has ended or was replaced already; make a new one"))
    if not asked_for_end and old.expires_at is not None:
        as_long = database_time(session) + (old.expires_at - old.created_at)
        expires_at = as_long if expires_at is None else min(as_long, expires_at)
    scope = cast("Scope", old.scope)  # the CHECK allows no other
    new = create_key(session, key_secrets, principal.tenant_id, name=old.name, scope=scope, expires_at=expires_at)
    ended = repository.ended_after(overlap_seconds) if overlap_seconds else repository.revoked_now()
    repository.change_key(session, key_id, replaced_by=new.id, **ended)
    return new


def revoke_key(session: Session, principal: Principal, key_id: uuid.UUID) -> None:
    """Make a key of the caller's tenant useless at once, unless no key would be left to make another."""
    lasting = repository.lock_lasting_owner_keys(session, principal.tenant_id)
    if repository.lock_key(session, principal.tenant_id, key_id) is None:
        raise NotFound(Message("no such key"))
    if list(lasting) == [key_id]:
        raise LastOwnerKey(Message("this is the tenant's last owner key that never ends; replace it instead"))
    repository.change_key(session, key_id, **repository.revoked_now())


def _end_of_caller(session: Session, principal: Principal) -> dt.datetime | None:
    """When the caller's key ends. Its row stays locked, so that it cannot be ended, or given an end, meanwhile."""
    own = repository.lock_key(session, principal.tenant_id, principal.key_id)
    if own is None or not repository.is_live(session, principal.key_id):
        raise Unauthenticated(Message("this API key is not known, was revoked or has expired"))
    return own.expires_at


def _end_within(callers_end: dt.datetime | None, wanted: dt.datetime | None) -> dt.datetime | None:
    """The end of a key that another makes: what was asked for, or else the maker's own end."""
    if callers_end is None or (wanted is not None and wanted <= callers_end):
        return wanted
    if wanted is None:
        return callers_end
    raise InvalidInput(
        Message(
            "expires_at: a key cannot make one that outlives it, and yours ends at %(end)s",
            end=callers_end.isoformat(),
        ),
        where="expires_at",
    )
