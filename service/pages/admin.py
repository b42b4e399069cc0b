"""`/admin`: keys of the tenant, the audit log, and whether the service's parts are at work. For owners."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import TYPE_CHECKING, Annotated, get_args

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy import text

from service.audit import service as audit
from service.auth import service as keys
from service.auth.dependencies import ContextOf
from service.auth.principal import Scope
from service.base.errors import InvalidInput
from service.base.messages import Message
from service.base.text import ungrouped
from service.datasets import service as datasets
from service.pages.doors import Owner, OwnForm, PageRoute, PageTurn
from service.pages.policy import PAGE_HEADERS
from service.pages.rendering import page
from service.pages.words import AUDIT_ACTIONS, AUDIT_OBJECTS
from service.platform.broker import seconds_since_beat
from service.platform.database import database_time
from service.platform.paging import Page

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.auth.models import ApiKey

router = APIRouter(include_in_schema=False, route_class=PageRoute, prefix="/admin")

KEYS_OF_A_PAGE, LINES_OF_A_PAGE, DATASETS_COUNTED = 100, 100, 100
QUIET_SECONDS = 30.0
LONGEST_DAYS = 3_650
QUEUE = text("SELECT waiting, running, oldest_waiting_seconds FROM queue_state()")


@router.get("", dependencies=[PageTurn])
def read_state(request: Request, context: ContextOf, visitor: Owner) -> Response:
    """Whether relay and workers are there, and how many releases of everybody wait."""
    with context.transaction() as session:
        ages = {part: seconds_since_beat(session, part) for part in ("relay", "worker")}
        queue = session.execute(QUEUE).one()
    parts = {part: age is not None and age < QUIET_SECONDS for part, age in ages.items()}
    return page(request, "admin.html", signed_in=visitor, parts=parts, queue=queue)


@router.get("/keys", dependencies=[PageTurn])
def list_keys(
    request: Request, context: ContextOf, visitor: Owner, before: Annotated[str | None, Query(max_length=200)] = None
) -> Response:
    """Keys of the tenant, ended ones too, without their secrets."""
    return _keys(request, context, visitor, before)


@router.post("/keys", dependencies=[OwnForm, PageTurn], name="create_key")
def make_key(
    request: Request,
    context: ContextOf,
    visitor: Owner,
    name: Annotated[str, Form(min_length=1, max_length=200)],
    scope: Annotated[Scope, Form()],
    days: Annotated[str, Form(max_length=10)] = "",
) -> Response:
    """A new key. Its secret is on this one page and never again."""
    with context.transaction() as session:
        end = _end(database_time(session), days)
        made = keys.make_key(
            session, context.secrets, visitor.principal, name=name.strip(), scope=scope, expires_at=end
        )
        audit.record(session, visitor.principal, "key", made.id)
    return _keys(request, context, visitor, None, made=made)


@router.post("/keys/{key_id}/revoke", dependencies=[OwnForm], name="revoke_key")
def revoke_key(key_id: uuid.UUID, context: ContextOf, visitor: Owner) -> Response:
    """End a key at once, and every session that it began."""
    with context.transaction() as session:
        keys.revoke_key(session, visitor.principal, key_id)
        audit.record(session, visitor.principal, "key", key_id)
    return RedirectResponse("/admin/keys", 303, headers=dict(PAGE_HEADERS))


@router.get("/tenants", dependencies=[PageTurn])
def read_tenants(
    request: Request,
    context: ContextOf,
    visitor: Owner,
    name: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """The own tenant, and how the operator lists and makes others: no key can, and the role of this process sees no list of them."""
    own = visitor.principal
    found, further = datasets.list_page(context, own, Page.of(DATASETS_COUNTED, None))
    with context.transaction() as session:
        known, further_keys = keys.list_keys(session, own, Page.of(KEYS_OF_A_PAGE, None))
        living = _living(known, database_time(session))
    wanted = "".join(mark for mark in name if mark.isprintable()).strip()
    return page(
        request,
        "tenants.html",
        signed_in=visitor,
        dataset_count=len(found),
        has_more_datasets=further is not None,
        key_counts={
            scope: sum(each.scope == scope for each in known if each.id in living) for scope in get_args(Scope)
        },
        has_more_keys=further_keys is not None,
        wanted=wanted,
    )


@router.get("/audit", dependencies=[PageTurn])
def read_audit(
    request: Request,
    context: ContextOf,
    visitor: Owner,
    before: Annotated[int | None, Query(ge=1, lt=2**63)] = None,
) -> Response:
    """Who did what, newest first."""
    events, following = audit.read_page(context, visitor.principal, before=before, limit=LINES_OF_A_PAGE)
    return page(
        request,
        "audit.html",
        signed_in=visitor,
        events=events,
        following=following,
        actions=AUDIT_ACTIONS,
        objects=AUDIT_OBJECTS,
    )


def _keys(
    request: Request,
    context: ContextOf,
    visitor: Owner,
    before: str | None,
    *,
    made: keys.NewKey | None = None,
) -> Response:
    with context.transaction() as session:
        found, following = keys.list_keys(session, visitor.principal, Page.of(KEYS_OF_A_PAGE, before))
        now = database_time(session)
    return page(
        request,
        "keys.html",
        signed_in=visitor,
        keys=found,
        living=_living(found, now),
        following=following,
        made=made,
        scopes=get_args(Scope),
    )


def _living(found: Sequence[ApiKey], now: dt.datetime) -> set[uuid.UUID]:
    """Keys that still open something."""
    return {each.id for each in found if each.revoked_at is None and (each.expires_at is None or each.expires_at > now)}


def _end(now: dt.datetime, days: str) -> dt.datetime | None:
    if not days.strip():
        return None
    typed = ungrouped(days.strip())
    if not typed.isdecimal() or not 1 <= int(typed) <= LONGEST_DAYS:
        raise InvalidInput(
            Message("days: a whole number from 1 to %(most)s, or nothing for a key that never ends", most=LONGEST_DAYS),
            where="days",
        )
    return now + dt.timedelta(days=int(typed))
