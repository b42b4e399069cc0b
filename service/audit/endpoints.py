"""`/v1/audit`: what was done with the keys of one's own tenant."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from service.audit import service
from service.audit.schemas import AuditList, AuditReply
from service.auth.dependencies import ContextOf, Owner
from service.auth.reading import ReadingTurn

router = APIRouter(prefix="/v1/audit", tags=["audit"])


@router.get("", dependencies=[ReadingTurn])
def read_audit(
    context: ContextOf,
    principal: Owner,
    before: Annotated[int | None, Query(ge=1, lt=2**63, description="`next` of the page before.")] = None,
    limit: Annotated[int, Query(ge=1, le=1_000)] = 100,
) -> AuditList:
    """Your tenant's audit log, newest first: every change, every download and refusals; no row, no key."""
    events, following = service.read_page(context, principal, before=before, limit=limit)
    items = [AuditReply.of(*found) for found in events]
    return AuditList(items=items, next=following)
