"""Who is signed in, by the cookie."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.auth import sessions
from service.auth.dependencies import note_failure
from service.auth.limits import caller_address
from service.base.errors import RateLimited

if TYPE_CHECKING:
    from fastapi import Request

    from service.auth.limits import RateLimits
    from service.auth.sessions import SignedIn
    from service.platform.context import Context
    from service.platform.settings import Settings


def cookie_name(settings: Settings) -> str:
    """The cookie's name. Behind TLS browsers hold to a name that begins so: of this host alone, sent over TLS alone."""
    return "__Host-imprimatur" if settings.behind_tls else "imprimatur_session"


def session_of(request: Request, context: Context) -> SignedIn | None:
    """The session of the request's cookie, which is kept for the rest of the request.

    A cookie of no session counts as a wrong key does: by address, in the log of refusals and its metrics. Raises `RateLimited`.
    """
    request.state.signed_in = None
    token = request.cookies.get(cookie_name(context.settings))
    if not token:
        return None
    limits: RateLimits = request.app.state.rate_limits
    address, digest = caller_address(request.client), context.secrets.session_digests(token)[0]
    try:
        limits.before_session(address, digest)
    except RateLimited:
        if not limits.knows(digest):
            _note_failure(request, "too_often", digest)
        raise
    found = _looked_up(context, token)
    if found is None:
        _note_failure(request, "session", digest)
        limits.failed(address, digest)
        return None
    limits.found_session(digest)
    request.state.signed_in = found
    return found


def _looked_up(context: Context, token: str) -> SignedIn | None:
    idle, longest = context.settings.page_idle_seconds, context.settings.page_longest_seconds
    with context.driver() as connection:
        return sessions.find(connection, context.secrets, token, idle_seconds=idle, longest_seconds=longest)


def _note_failure(request: Request, reason: str, digest: bytes) -> None:
    """The reply leads to the sign-in page; the log calls it what it is."""
    request.state.refusal = "unauthenticated"
    note_failure(request, reason, digest)
