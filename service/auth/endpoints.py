"""`/v1/keys`: make, list, replace and revoke the keys of one's own tenant."""

from __future__ import annotations

import uuid

from fastapi import APIRouter, status

from service.audit import service as audit
from service.auth import service
from service.auth.dependencies import ContextOf, Owner
from service.auth.reading import ReadingTurn
from service.auth.schemas import KeyList, KeyReply, KeyRequest, NewKeyReply, ReplacementRequest
from service.base.errors import LastOwnerKey, NotReplaceable
from service.platform.paging import DEFAULT_LIMIT, Page
from service.requests.paging import Before, Limit
from service.requests.problems import problems

router = APIRouter(prefix="/v1/keys", tags=["keys"])


@router.post("", status_code=status.HTTP_201_CREATED)
def create_key(body: KeyRequest, context: ContextOf, principal: Owner) -> NewKeyReply:
    """Make a key of scope owner, analyst or reader. Its secret is shown in this reply only. It ends with yours, or before."""
    with context.transaction() as session:
        made = service.make_key(
            session, context.secrets, principal, name=body.name, scope=body.scope, expires_at=body.expires_at
        )
        audit.record(session, principal, "key", made.id)
    return NewKeyReply(id=made.id, key=made.key, expires_at=made.expires_at)


@router.get("", dependencies=[ReadingTurn])
def list_keys(context: ContextOf, principal: Owner, limit: Limit = DEFAULT_LIMIT, before: Before = None) -> KeyList:
    """The keys of your tenant, newest first, without their secrets."""
    page = Page.of(limit, before)
    with context.transaction() as session:
        keys, following = service.list_keys(session, principal, page)
    return KeyList(items=[KeyReply.model_validate(key) for key in keys], next=following)


@router.post(
    "/{key_id}/replacement", status_code=status.HTTP_201_CREATED, responses=problems(NotReplaceable, LastOwnerKey)
)
def replace_key(key_id: uuid.UUID, body: ReplacementRequest, context: ContextOf, principal: Owner) -> NewKeyReply:
    """Make a key of the same name and scope in place of an old one, which works on for a while or ends at once."""
    with context.transaction() as session:
        made = service.replace_key(
            session,
            context.secrets,
            principal,
            key_id,
            overlap_seconds=body.overlap_seconds,
            expires_at=body.expires_at,
        )
        audit.record(session, principal, "key", key_id)
        audit.record(session, principal, "key", made.id)
    return NewKeyReply(id=made.id, key=made.key, expires_at=made.expires_at)


@router.delete("/{key_id}", status_code=status.HTTP_204_NO_CONTENT, responses=problems(LastOwnerKey))
def revoke_key(key_id: uuid.UUID, context: ContextOf, principal: Owner) -> None:
    """Revoke a key; it stops working at once. The last owner key that never ends can only be replaced."""
    with context.transaction() as session:
        service.revoke_key(session, principal, key_id)
        audit.record(session, principal, "key", key_id)
