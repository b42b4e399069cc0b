"""Who is signed in, by the cookie."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.auth import sessions

if TYPE_CHECKING:
    from fastapi import Request

    from service.auth.sessions import SignedIn
    from service.platform.context import Context
    from service.platform.settings import Settings


def cookie_name(settings: Settings) -> str:
    """The cookie's name. Behind TLS browsers hold to a name that begins so: of this host alone, sent over TLS alone."""
    return "__Host-imprimatur" if settings.behind_tls else "imprimatur_session"


def session_of(request: Request, context: Context) -> SignedIn | None:
    """The session of the request's cookie, which is kept for the rest of the request."""
    settings = context.settings
    token = request.cookies.get(cookie_name(settings))
    found = None
    if token:
        with context.driver() as connection:
            found = sessions.find(
                connection,
                context.secrets,
                token,
                idle_seconds=settings.page_idle_seconds,
                longest_seconds=settings.page_longest_seconds,
            )
    request.state.signed_in = found
    return found
