"""`/sign-in`, `/sign-out`, `/language`: a key becomes a session, and ends with it."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Request, Response
from fastapi.responses import RedirectResponse

from service.audit import service as audit
from service.auth import sessions
from service.auth.dependencies import ContextOf, note_failure
from service.auth.limits import RateLimits, caller_address
from service.auth.service import authenticate
from service.base.errors import InvalidInput, Unauthenticated
from service.base.messages import Message
from service.pages.doors import OwnForm, PageRoute, Reader, VisitorIfFound, own_path, require_own_site, set_cookie
from service.pages.languages import COOKIE, LANGUAGES
from service.pages.policy import PAGE_HEADERS
from service.pages.rendering import page
from service.pages.visitors import cookie_name

router = APIRouter(include_in_schema=False, route_class=PageRoute)

A_YEAR_SECONDS = 31_536_000


def sign_in_page(
    request: Request, next_path: str, *, status: int = 200, fault: str | None = None, has_ended: bool = False
) -> Response:
    """The form for a key, and the way to the provider where there is one. `has_ended`: a session, as it does after a while."""
    has_provider = request.app.state.sign_in_provider is not None
    values: dict[str, Any] = {"next": own_path(next_path), "fault": fault, "has_provider": has_provider}
    values["has_ended"] = has_ended
    return page(request, "sign_in.html", status=status, **values)


@router.get("/sign-in")
def ask_for_key(request: Request, visitor: VisitorIfFound, next: str = "/", ended: str = "") -> Response:  # noqa: A002 - the word in the address
    """The form for a key, also where so many sessions have failed that none is looked up."""
    if visitor is not None:
        return RedirectResponse(own_path(next), 303, headers=dict(PAGE_HEADERS))
    return sign_in_page(request, next, has_ended=bool(ended))


@router.get("/session")
def go_on(_: Reader) -> Response:
    """Nothing, but that somebody is there: who types sends no other request."""
    return Response(status_code=204, headers=dict(PAGE_HEADERS))


@router.post("/sign-in", dependencies=[Depends(require_own_site)])
def sign_in(
    request: Request,
    context: ContextOf,
    key: Annotated[str, Form(max_length=1_000)] = "",
    next: Annotated[str, Form(max_length=1_000)] = "/",  # noqa: A002 - as above
) -> Response:
    """A session for a good key; the same form again, with a sentence, for a wrong one."""
    limits: RateLimits = request.app.state.rate_limits
    address = caller_address(request.client)
    digest = context.secrets.api_key_digest(key.strip())
    limits.before_lookup(address, digest)
    try:
        with context.driver() as connection:
            principal = authenticate(connection, context.secrets, key.strip())
            longest = context.settings.page_longest_seconds
            token = sessions.begin(connection, context.secrets, principal.key_id, longest_seconds=longest)
    except Unauthenticated as error:
        limits.failed(address, digest)
        note_failure(request, "unknown", digest)
        return sign_in_page(request, next, status=401, fault=error.detail)
    limits.passed(digest, principal.tenant_id)
    principal = replace(principal, action="sign_in", request_id=request.state.request_id)
    with context.transaction() as session:
        audit.record(session, principal, "key", principal.key_id)
    reply = RedirectResponse(own_path(next), 303, headers=dict(PAGE_HEADERS))
    set_cookie(reply, context.settings, token)
    return reply


@router.post("/sign-out", dependencies=[OwnForm])
def sign_out(request: Request, context: ContextOf) -> Response:
    """End the session, here and in the browser."""
    name = cookie_name(context.settings)
    with context.driver() as connection:
        sessions.end(connection, context.secrets, request.cookies.get(name, ""))
    reply = RedirectResponse("/sign-in", 303, headers={**PAGE_HEADERS, "Clear-Site-Data": '"cache"'})
    reply.delete_cookie(name, path="/", secure=context.settings.behind_tls, httponly=True, samesite="lax")
    return reply


@router.get("/language/{language}")
def choose_language(language: str, next: str = "/") -> Response:  # noqa: A002 - as above
    """Remember the language in a cookie; it says nothing of who it is."""
    if language not in LANGUAGES:
        raise InvalidInput(Message("The languages of this page are %(names)s.", names=", ".join(LANGUAGES.values())))
    reply = RedirectResponse(own_path(next), 303, headers=dict(PAGE_HEADERS))
    reply.set_cookie(COOKIE, language, max_age=A_YEAR_SECONDS, httponly=True, samesite="lax", path="/")
    return reply
