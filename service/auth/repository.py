"""The SQL of tenants and keys."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple

import psycopg
from sqlalchemy import ColumnElement, and_, func, insert, literal, or_, select, update
from sqlalchemy.orm import Session

from service.auth.models import ApiKey, Tenant
from service.platform.paging import Page, in_order, is_among

KEY_BYTES = 1_000
"""More than a key takes in a list."""


def add_tenant(session: Session, name: str) -> uuid.UUID:
    tenant_id = uuid.uuid4()
    session.execute(insert(Tenant).values(id=tenant_id, name=name))
    return tenant_id


def find_tenant(session: Session, name: str) -> uuid.UUID | None:
    return session.scalars(select(Tenant.id).where(Tenant.name == name)).one_or_none()


def tenant_named(session: Session, name: str) -> uuid.UUID | None:
    """The tenant of a name, for the API, whose role sees no list of tenants."""
    found: uuid.UUID | None = session.scalars(select(func.tenant_named(name))).one()
    return found


def list_tenants(session: Session) -> Sequence[Tenant]:
    return session.scalars(select(Tenant).order_by(Tenant.created_at)).all()


def count_tenants(session: Session) -> int:
    return session.scalars(select(func.count()).select_from(Tenant)).one()


def add_key(
    session: Session,
    tenant_id: uuid.UUID,
    name: str,
    scope: str,
    *,
    digest: bytes,
    root_id: str,
    expires_at: dt.datetime | None,
) -> uuid.UUID:
    key_id = uuid.uuid4()
    session.execute(
        insert(ApiKey).values(
            id=key_id,
            tenant_id=tenant_id,
            name=name,
            scope=scope,
            digest=digest,
            root_id=root_id,
            expires_at=expires_at,
        )
    )
    return key_id


LIVE_KEY = """
SELECT id, tenant_id, scope, digest FROM api_keys
WHERE digest = ANY(%s) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())
"""


class LiveKey(NamedTuple):
    """A key that works now, by the database's clock."""

    id: uuid.UUID
    tenant_id: uuid.UUID
    scope: str
    digest: bytes


def find_live_key(connection: psycopg.Connection[Any], digests: list[bytes]) -> LiveKey | None:
    """Every request asks this; see `service.platform.database.driver`."""
    found = connection.execute(LIVE_KEY, (digests,)).fetchone()
    return None if found is None else LiveKey(*found)


def find_living(connection: psycopg.Connection[Any], key_ids: Sequence[uuid.UUID]) -> set[uuid.UUID]:
    """Those of the keys that work now, by the database's clock."""
    return {row[0] for row in connection.execute(LIVING_KEYS, (key_ids,))}


LIVING_KEYS = """
SELECT id FROM api_keys
WHERE id = ANY(%s) AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > clock_timestamp())
"""


def page_of_keys(session: Session, tenant_id: uuid.UUID, page: Page) -> tuple[Sequence[ApiKey], str | None]:
    """One page, newest first, and the cursor of the next."""
    query = select(ApiKey.id, ApiKey.created_at, literal(KEY_BYTES)).where(ApiKey.tenant_id == tenant_id)
    ids, following = page.cut(session.execute(page.narrow(query, ApiKey.created_at, ApiKey.id)).all())
    return in_order(ids, session.scalars(select(ApiKey).where(is_among(ApiKey.id, ids)))), following


def lock_key(session: Session, tenant_id: uuid.UUID, key_id: uuid.UUID) -> ApiKey | None:
    """The tenant's key; no other transaction changes it before this one ends."""
    return session.scalars(
        select(ApiKey).where(ApiKey.tenant_id == tenant_id, ApiKey.id == key_id).with_for_update()
    ).one_or_none()


def lock_lasting_owner_keys(session: Session, tenant_id: uuid.UUID) -> Sequence[uuid.UUID]:
    """The tenant's owner keys that work and have no end."""
    return session.scalars(
        select(ApiKey.id)
        .where(
            ApiKey.tenant_id == tenant_id,
            ApiKey.scope == "owner",
            ApiKey.revoked_at.is_(None),
            ApiKey.expires_at.is_(None),
        )
        .order_by(ApiKey.id)
        .with_for_update()
    ).all()


def is_live(session: Session, key_id: uuid.UUID) -> bool:
    """Whether the key works now, by the database's clock."""
    return session.scalars(select(ApiKey.id).where(ApiKey.id == key_id, _live())).one_or_none() is not None


def change_key(session: Session, key_id: uuid.UUID, **values: Any) -> None:
    """Set columns of a key; `revoked_now` and `ended_after` make such values."""
    session.execute(
        update(ApiKey).where(ApiKey.id == key_id).values(**values).execution_options(synchronize_session=False)
    )


def revoked_now() -> dict[str, Any]:
    """Values of `change_key`: revoked now; revoking twice keeps the first time."""
    return {"revoked_at": func.coalesce(ApiKey.revoked_at, func.now())}


def ended_after(seconds: float) -> dict[str, Any]:
    """Values of `change_key`: ends so many seconds from now, or earlier where that was said before."""
    return {"expires_at": func.least(ApiKey.expires_at, func.now() + dt.timedelta(seconds=seconds))}


def _live() -> ColumnElement[bool]:
    return and_(ApiKey.revoked_at.is_(None), or_(ApiKey.expires_at.is_(None), ApiKey.expires_at > func.now()))
