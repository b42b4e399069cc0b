"""What a browser sees where there is no page, or none could be made: the usual page with the usual navigation.

Who asks for JSON, or asks the API, gets what `service.requests.problems` says. A page says no more than that: not whether anything
of another tenant is there. The navigation is that of the visitor's own session, at every address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from service.base.errors import ImprimaturError, RateLimited
from service.base.messages import Message
from service.pages.nearest import nearest_page
from service.pages.rendering import is_fragment, page
from service.pages.visitors import session_of
from service.requests.problems import RETRY_SECONDS, status_of

if TYPE_CHECKING:
    from fastapi import FastAPI, Request, Response

    from service.auth.limits import RateLimits
    from service.auth.sessions import SignedIn

NOT_POSSIBLE = Message("This is not possible")
NOT_FOUND = Message("There is no such page")
BROKEN = Message("Something went wrong")
DETAILS = {
    404: Message("There is nothing at this address. Look whether it is written right, or begin with the datasets."),
    405: Message("There is no page at this address: it takes what a form sends. Open the page that the form is on."),
    422: Message("What was sent cannot be read. Go back, load the page again, and send it once more."),
}
"""Of what the framework itself refuses."""
NOTHING_IS_SENT_THERE = Message("This address takes nothing that is sent to it. Open it as a page.")
"""405 of what is sent to a page."""


def wants_page(request: Request) -> bool:
    """Whether a browser asks for a whole page, and not for something of the API."""
    path = request.url.path
    is_api = path == "/v1" or path.startswith("/v1/")
    return "text/html" in request.headers.get("accept", "") and not is_api and not is_fragment(request)


def install(app: FastAPI) -> None:
    """Pages for addresses that no route has. What the log and the audit log hear stays as it was."""
    answer: Any = app.exception_handlers[HTTPException]

    async def answer_or_show(request: Request, error: HTTPException) -> Response:
        reply: Response = await answer(request, error)
        if not wants_page(request):
            return reply
        status = reply.status_code
        heading = NOT_FOUND if status == 404 else NOT_POSSIBLE
        detail, values = DETAILS.get(status, str(error.detail)), {}
        if status == 405:
            detail = detail if request.method in {"GET", "HEAD"} else NOTHING_IS_SENT_THERE
            values = {"near": nearest_page(request)}
        shown = await error_page(request, status, heading, detail, **values)
        shown.headers.update(error.headers or {})  # Allow, where the method is wrong
        return shown

    app.add_exception_handler(HTTPException, answer_or_show)  # type: ignore[arg-type]  # of this class alone


def with_retry_after(reply: Response, error: ImprimaturError) -> Response:
    """The reply of a refusal that passes says when, as the API does."""
    if (seconds := error.values.get("retry_after_seconds")) is not None:
        reply.headers["Retry-After"] = str(seconds)
    return reply


async def failure_page(request: Request, status: int, detail: str) -> Response | None:
    """The page of a failure of the service; None for who wants no page, or where even this one fails."""
    if not wants_page(request):
        return None
    try:
        shown = await error_page(request, status, BROKEN, detail, request_id=request.state.request_id)
    except Exception:  # noqa: BLE001 - what has failed once may fail again; the log has the first failure
        return None
    if status == 503:
        shown.headers["Retry-After"] = str(RETRY_SECONDS)
    return shown


async def error_page(
    request: Request, status: int, heading: str, detail: str, *, back: str | None = None, **values: Any
) -> Response:
    """One page, with the navigation of who is signed in."""
    shown = {
        "heading": heading,
        "detail": detail,
        "back": back,
        "is_download": False,
        "request_id": None,
        "near": None,
    } | values
    try:
        visitor = await _visitor_of(request)
    except RateLimited as refusal:
        status, visitor = status_of(refusal), request.state.signed_in
        shown |= {"heading": NOT_POSSIBLE, "detail": refusal.detail}
        request.app.state.refused(request, status, refusal.code)
    return page(request, "refusal.html", status=status, signed_in=visitor, **shown)


async def _visitor_of(request: Request) -> SignedIn | None:
    """As a page has found out before it failed, or else by the cookie, which is counted as a page is. Without a database no one is."""
    if is_fragment(request):
        return None
    if hasattr(request.state, "signed_in"):
        found: SignedIn | None = request.state.signed_in
        return found
    try:
        visitor = await run_in_threadpool(session_of, request, request.app.state.context)
    except RateLimited:
        raise
    except (ImprimaturError, SQLAlchemyError, psycopg.Error):
        return None
    if visitor is not None:
        limits: RateLimits = request.app.state.rate_limits
        limits.passed(visitor.principal.key_id.bytes, visitor.principal.tenant_id)
    return visitor
