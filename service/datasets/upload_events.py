"""An upload that says how far it is: the reply to `POST /v1/datasets` as server-sent events, when the caller accepts them.

`progress` events name the phase and the share of the file that has been read; the last event is `dataset`, with what a
plain reply would hold, or `problem`, with the problem document a plain refusal would be. One connection, no state: it
works across any number of API processes, and a caller who hangs up stops the reading.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AsyncExitStack
from typing import Any

import anyio
from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from service.base.errors import ImprimaturError
from service.intake.caller import Caller
from service.requests.problems import problem, status_of
from service.requests.streaming import ClosingStream

MEDIA_TYPE = "text/event-stream"
REPORT_SECONDS = 0.5

Work = Callable[[Caller], Coroutine[Any, Any, dict[str, Any]]]


class UploadEvents(ClosingStream):
    """Does the work while it reports. Holds the uploaded file until the last event is out."""

    def __init__(self, request: Request, work: Work, upload: AsyncExitStack) -> None:
        self._upload = upload
        super().__init__(_events(request, work), media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._upload:
            await super().__call__(scope, receive, send)


async def _events(request: Request, work: Work) -> AsyncGenerator[str]:
    caller = Caller()
    task = asyncio.ensure_future(work(caller))
    try:
        while not task.done():
            yield _event(
                "progress", {"phase": "reading" if caller.share < 1 else "storing", "share": round(caller.share, 3)}
            )
            await asyncio.wait({task}, timeout=REPORT_SECONDS)
        try:
            yield _event("dataset", task.result())
        except ImprimaturError as error:
            # The reply has begun, so the handler of refusals hears nothing of it: the audit log does by this.
            await run_in_threadpool(request.app.state.refused, request, status_of(error), error.code)
            document = problem(status_of(error), error.code, error.detail, **error.values)
            yield _event("problem", json.loads(bytes(document.body)))
    finally:
        caller.leave()
        with anyio.CancelScope(shield=True):
            await asyncio.wait({task})


def _event(kind: str, document: dict[str, Any]) -> str:
    return f"event: {kind}\ndata: {json.dumps(document)}\n\n"
