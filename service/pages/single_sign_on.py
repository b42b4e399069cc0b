"""`/sign-in/oidc`: to the provider and back, where one is set up. What comes back becomes a session like any other.

The session has a key row of its own, "sign-in: SUBJECT", so that the audit log names the person and an owner can end it.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import RedirectResponse
from sqlalchemy.exc import IntegrityError

from service.audit import service as audit
from service.auth import sessions
from service.auth import single_sign_on as sign_on
from service.auth.dependencies import ContextOf, get_outsider
from service.auth.principal import Principal
from service.auth.service import create_key, tenant_named
from service.base.errors import Forbidden, NotFound
from service.base.messages import Message
from service.pages.doors import PageRoute, own_path, set_cookie
from service.pages.policy import PAGE_HEADERS
from service.pages.visitors import cookie_name
from service.platform.context import Context
from service.platform.database import database_time

router = APIRouter(include_in_schema=False, route_class=PageRoute, prefix="/sign-in/oidc")

LONGEST_ANSWER = 4_000


def get_provider(request: Request) -> sign_on.Provider:
    """The provider; without one there is no such page."""
    provider: sign_on.Provider | None = request.app.state.sign_in_provider
    if provider is None:
        raise NotFound(Message("this service has no sign-in provider; sign in with a key"))
    return provider


ProviderOf = Annotated[sign_on.Provider, Depends(get_provider)]


@router.get("", dependencies=[Depends(get_outsider)])
def leave(
    context: ContextOf,
    provider: ProviderOf,
    next: Annotated[str, Query(max_length=1_000)] = "/",  # noqa: A002 - the word in the address
) -> Response:
    """To the provider, with a ticket that only this browser has."""
    ticket, address = provider.leave(context.secrets, own_path(next), _now(context))
    reply = RedirectResponse(address, 303, headers=dict(PAGE_HEADERS))
    name = _ticket_name(context)
    reply.set_cookie(
        name,
        ticket,
        max_age=sign_on.TICKET_SECONDS,
        httponly=True,
        samesite="lax",
        secure=context.settings.behind_tls,
        path="/",
    )
    return reply


@router.get("/callback", dependencies=[Depends(get_outsider)], name="sign_in")
def come_back(request: Request, context: ContextOf, provider: ProviderOf) -> Response:
    """A session for who the provider says it is, or a page that says why not."""
    ticket = request.cookies.get(_ticket_name(context), "")
    answered = {name: value[:LONGEST_ANSWER] for name, value in request.query_params.items()}
    person = provider.come_back(context.secrets, ticket, answered, _now(context))
    principal = _principal(request, context, person, ticket)
    with context.driver() as connection:
        longest = context.settings.page_longest_seconds
        token = sessions.begin(connection, context.secrets, principal.key_id, longest_seconds=longest)
    reply = RedirectResponse(own_path(sign_on.next_path_of(ticket)), 303, headers=dict(PAGE_HEADERS))
    set_cookie(reply, context.settings, token)
    reply.delete_cookie(
        _ticket_name(context), path="/", secure=context.settings.behind_tls, httponly=True, samesite="lax"
    )
    return reply


def _principal(request: Request, context: Context, person: sign_on.Person, ticket: str) -> Principal:
    """The key row of this session, which ends with the longest session; its line in the audit log."""
    try:
        with context.transaction() as session:
            tenant_id = tenant_named(session, person.tenant)
            if tenant_id is None:
                raise Forbidden(
                    Message(
                        "the provider names a tenant that is not here; its operator makes one: imprimatur tenant create"
                    )
                )
            end = database_time(session) + dt.timedelta(seconds=context.settings.page_longest_seconds)
            made = create_key(
                session,
                context.secrets,
                tenant_id,
                name=f"sign-in: {person.subject}",
                scope=person.scope,
                expires_at=end,
                key=sign_on.key_text(context.secrets, ticket),
            )
            principal = Principal(tenant_id, made.id, person.scope)
            principal = replace(principal, action="sign_in", request_id=request.state.request_id)
            audit.record(session, principal, "key", made.id)
    except IntegrityError:  # the digest is there already: this ticket has been used
        raise Forbidden(sign_on.AGAIN) from None
    return principal


def _now(context: Context) -> dt.datetime:
    with context.transaction() as session:
        return database_time(session)


def _ticket_name(context: Context) -> str:
    return f"{cookie_name(context.settings)}_ticket"
