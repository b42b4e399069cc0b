"""The one table from typed errors to HTTP: RFC 9457 problem+json with a stable `code`."""

from __future__ import annotations

import errno
import logging
import traceback
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service import errors
from service.ledger.service import LedgerConflict

logger = logging.getLogger(__name__)

STATUS: dict[type[errors.ImprimaturError], int] = {
    errors.InvalidInput: 422,
    errors.InvalidSchema: 422,
    errors.InvalidFile: 422,
    errors.InvalidOrder: 422,
    errors.Unpriceable: 422,
    errors.TooLarge: 413,
    errors.Unauthenticated: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.Gone: 410,
    errors.DuplicateRows: 409,
    errors.IdempotencyConflict: 409,
    errors.BudgetExhausted: 409,
    errors.NotReady: 409,
    errors.NotCancellable: 409,
    LedgerConflict: 409,
    errors.Tampered: 500,
    errors.Unavailable: 503,
}

TITLES = {
    401: "Not authenticated",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "Refused",
    410: "Gone",
    413: "Too large",
    422: "Not acceptable as it stands",
    500: "Our fault",
    503: "Try again",
}

FRAMEWORK = {
    400: (422, "invalid_input", "the body cannot be read; send JSON in UTF-8"),
    404: (404, "not_found", "there is nothing at this address; see /docs"),
    405: (405, "method_not_allowed", "this address does not take that method; see /docs"),
}
"""What the framework itself refuses, said in our words."""

NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.ENFILE, errno.EMFILE}
"""A full disk or too many open files is nobody's mistake, and passes."""

MEDIA_TYPE = "application/problem+json"

OPENAPI_RESPONSES: dict[int | str, dict[str, Any]] = {
    "default": {
        "description": "A problem (RFC 9457): `code` is stable; further members carry the values a person needs.",
        "content": {
            MEDIA_TYPE: {
                "schema": {
                    "type": "object",
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
            }
        },
    }
}
"""What every operation may answer besides its own replies."""


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


def install(app: FastAPI) -> None:
    """Map every error the service knows, and hide the text of those it does not."""
    app.add_middleware(LastResort)

    @app.exception_handler(errors.ImprimaturError)
    def known(_: Request, error: errors.ImprimaturError) -> Response:
        return problem(status_of(error), error.code, error.detail, **error.values)

    @app.exception_handler(RequestValidationError)
    def invalid(_: Request, error: RequestValidationError) -> Response:
        # Never the input itself: it may be a private cell sent to the wrong place.
        faults = [{"where": ".".join(str(part) for part in e["loc"]), "message": e["msg"]} for e in error.errors()]
        first = faults[0] if faults else {"where": "request", "message": "invalid"}
        return problem(422, "invalid_input", f"{first['where']}: {first['message']}", errors=faults[:20])

    @app.exception_handler(HTTPException)
    def plain(_: Request, error: HTTPException) -> Response:
        status, code, detail = FRAMEWORK.get(error.status_code, (error.status_code, "invalid_input", str(error.detail)))
        return problem(status, code, detail)


class LastResort:
    """Turns what nobody expected into a plain 500. Innermost, because the server would log the message of the error."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def watched(message: Message) -> None:
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
            logger.error("%s %s failed with %s\n%s", scope["method"], scope["path"], type(error).__name__, frames)  # noqa: TRY400 - see above
            if started:
                raise ConnectionAbortedError("the reply broke off") from None
            if isinstance(error, OSError) and error.errno in NO_ROOM:
                reply = problem(
                    503, errors.Unavailable.code, "there is no room left on our side; ask again", retry_after_seconds=60
                )
            else:
                reply = problem(500, "internal_error", "something went wrong on our side; nothing is known to be lost")
            await reply(scope, receive, send)


def status_of(error: errors.ImprimaturError) -> int:
    """HTTP status of an error: its own class's, or that of the nearest base in the table."""
    return next((STATUS[cls] for cls in type(error).__mro__ if cls in STATUS), 500)
