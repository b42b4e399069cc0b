"""`/v1/keys`: make, list and revoke the keys of one's own tenant."""

from __future__ import annotations

import uuid

from fastapi import APIRouter, status

from service.auth import service
from service.auth.schemas import KeyList, KeyReply, KeyRequest, NewKeyReply
from service.dependencies import ContextOf, Owner

router = APIRouter(prefix="/v1/keys", tags=["keys"])


@router.post("", status_code=status.HTTP_201_CREATED)
def create_key(body: KeyRequest, context: ContextOf, principal: Owner) -> NewKeyReply:
    """Make a key of scope owner, analyst or reader. Its secret is shown in this reply only."""
    with context.transaction() as session:
        key_id, key = service.create_key(
            session, context.secrets, principal.tenant_id, name=body.name, scope=body.scope
        )
    return NewKeyReply(id=key_id, key=key)


@router.get("")
def list_keys(context: ContextOf, principal: Owner) -> KeyList:
    """The keys of your tenant, without their secrets."""
    with context.transaction() as session:
        return KeyList(items=[KeyReply.model_validate(key) for key in service.list_keys(session, principal)])


@router.delete("/{key_id}", status_code=status.HTTP_204_NO_CONTENT)
def revoke_key(key_id: uuid.UUID, context: ContextOf, principal: Owner) -> None:
    """Revoke a key; it stops working at once."""
    with context.transaction() as session:
        service.revoke_key(session, principal, key_id)
