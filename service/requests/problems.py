"""The one table from typed errors to HTTP: RFC 9457 problem+json with a stable `code`."""

from __future__ import annotations

import errno
import logging
import traceback
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import HTTPException as FastApiHTTPException
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.types import Message as Sent

from service.base import errors
from service.base.faults import sentence_of
from service.base.messages import Message
from service.platform.reasons import is_not_set_up

logger = logging.getLogger(__name__)

STATUS: dict[type[errors.ImprimaturError], int] = {
    errors.InvalidInput: 422,
    errors.InvalidSchema: 422,
    errors.InvalidFile: 422,
    errors.InvalidOrder: 422,
    errors.DeclarationNeeded: 409,
    errors.AlreadyOrdered: 409,
    errors.Unpriceable: 422,
    errors.TooMuchWork: 422,
    errors.TooLarge: 413,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.Gone: 410,
    errors.DuplicateRows: 409,
    errors.OtherRows: 409,
    errors.AlreadyCharged: 409,
    errors.OpenOrders: 409,
    errors.UploadNeeded: 409,
    errors.Redeclared: 409,
    errors.IdempotencyConflict: 409,
    errors.NameTaken: 409,
    errors.BudgetExhausted: 409,
    errors.NotReady: 409,
    errors.NotInRelease: 409,
    errors.NotCancellable: 409,
    errors.NotPostponable: 409,
    errors.NotReplaceable: 409,
    errors.LastOwnerKey: 409,
    errors.TooSlow: 408,
    errors.CallerLeft: 408,
    errors.RateLimited: 429,
    errors.TooManyOpenOrders: 429,
    errors.LedgerConflict: 409,
    errors.Tampered: 500,
    errors.Unavailable: 503,
    errors.WrongSecretKey: 503,
}

TITLES = {
    401: "Not authenticated",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "Too slow",
    409: "Refused",
    410: "Gone",
    413: "Too large",
    421: "Not for this service",
    422: "Not acceptable as it stands",
    429: "Too often",
    431: "Too large",
    500: "Our fault",
    503: "Try again",
}

FRAMEWORK = {
    400: (422, "invalid_input", "the body cannot be read; send JSON in UTF-8"),
    404: (404, "not_found", "there is nothing at this address; the API begins at /v1"),
    405: (405, "method_not_allowed", "this address does not take that method; the reply's Allow names those it takes"),
}
"""What the framework itself refuses, said in our words."""

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.ENFILE, errno.EMFILE}
"""A full disk or too many open files is no mistake of the caller, and passes."""

NOT_SET_UP = Message("the service is not set up yet; its operator finds the reason in the log")
NO_ROOM_LEFT = Message("there is no room left on our side; ask again")
FAILED = Message("something went wrong on our side; nothing is known to be lost")

RETRY_SECONDS = 60
"""Until what has failed on our side, and passes, may have passed."""

MEDIA_TYPE = "application/problem+json"

PROBLEM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "A problem (RFC 9457): `code` is stable; further members carry the values a person needs.",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
    },
    "additionalProperties": True,
}
INTERNAL_ERROR = "internal_error"

FailurePage = Callable[[Request, int, str], Awaitable[Response | None]]
"""Of a request, a status and a sentence; None for who wants no page."""

Responses = dict[int | str, dict[str, Any]]


def problems(*kinds: type[errors.ImprimaturError]) -> Responses:
    """What an operation documents about its refusals: one entry a status, naming every code."""
    by_status: dict[int, list[str]] = {}
    for kind in kinds:
        sentence = (kind.__doc__ or "").partition("\n")[0]
        by_status.setdefault(_status_of_class(kind), []).append(f"`{kind.code}`: {sentence}")
    return {status: described_problem(" ".join(sentences)) for status, sentences in by_status.items()}


def described_problem(description: str) -> dict[str, Any]:
    """The OpenAPI entry of a problem+json reply."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": description, "content": content}


def problem(status: int, code: str, detail: str, **values: Any) -> JSONResponse:
    """One problem+json reply."""
    body = {
        **values,
        "type": f"urn:imprimatur:{code}",
        "title": TITLES.get(status, "Request failed"),
        "status": status,
        "detail": detail,
        "code": code,
    }
    headers = {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if "retry_after_seconds" in values:
        headers["Retry-After"] = str(values["retry_after_seconds"])
    return JSONResponse(body, status, headers, MEDIA_TYPE)


def install(app: FastAPI, *, refused: Callable[[Request, int, str], None], failure_page: FailurePage) -> None:
    """Map every error the service knows, and hide the text of those it does not.

    `refused` hears of every known one. `failure_page` makes the reply for a browser where something failed on our side.
    """
    app.add_middleware(LastResort, failure_page=failure_page)

    @app.exception_handler(errors.ImprimaturError)
    def known(request: Request, error: errors.ImprimaturError) -> Response:
        status = status_of(error)
        _note(request, error.code)
        refused(request, status, error.code)
        return problem(status, error.code, error.detail, **error.values)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        # Never the input itself: it may be a private cell sent to the wrong place.
        faults = [{"where": ".".join(map(str, e["loc"])), "message": sentence_of(e)} for e in error.errors()]
        first = faults[0] if faults else {"where": "request", "message": "invalid"}
        return problem(422, "invalid_input", f"{first['where']}: {first['message']}", errors=faults[:20])

    @app.exception_handler(RefusedBody)
    async def refused_body(_: Request, refusal: RefusedBody) -> Response:
        return problem(refusal.status_code, refusal.error.code, refusal.error.detail, **refusal.error.values)

    @app.exception_handler(HTTPException)
    async def plain(request: Request, error: HTTPException) -> Response:
        status, code, detail = FRAMEWORK.get(error.status_code, (error.status_code, "invalid_input", str(error.detail)))
        _note(request, code)
        reply = problem(status, code, detail)
        reply.headers.update(error.headers or {})  # Allow, where the method is wrong
        return reply


def _note(request: Request, code: str) -> None:
    """For `service/http/refusals.py`."""
    request.scope.setdefault("state", {})["refusal"] = code


class RefusedBody(FastApiHTTPException):
    """A body that was refused while it was read; the only kind of error that FastAPI lets through from there."""

    def __init__(self, error: errors.ImprimaturError) -> None:
        super().__init__(status_of(error), error.detail)
        self.error = error


class LastResort:
    """Turns an unexpected error into a plain 500. Innermost, because the server would log the message of the error."""

    def __init__(self, app: ASGIApp, failure_page: FailurePage) -> None:
        self.app = app
        self.failure_page = failure_page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def watched(message: Sent) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except Exception as error:
            if scope["type"] != "http":
                raise
            # Frames and class, never the message: a library's message may quote a cell.
            frames = "".join(traceback.format_tb(error.__traceback__))
            # Nor the path as it was sent, which may hold a line feed or a key.
            route = getattr(scope.get("route"), "path", "no route")
            logger.error("a request of %s failed with %s\n%s", route, type(error).__name__, frames)  # noqa: TRY400 - see above
            if started:
                raise ConnectionAbortedError("the reply broke off") from None
            status, detail = _failure(error)
            reply = await self.failure_page(Request(scope), status, detail) or _problem_of(status, detail)
            await reply(scope, receive, send)


def _failure(error: Exception) -> tuple[int, str]:
    """Status and sentence of an error that no one expected."""
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return 503, NO_ROOM_LEFT
    if is_not_set_up(error):  # the log says what is missing
        return 503, NOT_SET_UP
    return 500, FAILED


def _problem_of(status: int, detail: str) -> Response:
    if status == 503:
        return problem(status, errors.Unavailable.code, detail, retry_after_seconds=RETRY_SECONDS)
    return problem(status, INTERNAL_ERROR, detail)


def status_of(error: errors.ImprimaturError) -> int:
    """HTTP status of an error: its own class's, or that of the nearest base in the table."""
    return _status_of_class(type(error))


def _status_of_class(kind: type[errors.ImprimaturError]) -> int:
    return next((STATUS[cls] for cls in kind.__mro__ if cls in STATUS), 500)
