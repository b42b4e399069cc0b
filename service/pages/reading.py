"""The draft of a file that was sent: at once where that is quick, else behind the reply, with a page that says how far it is.

That page needs no script: it loads itself again. What it shows is in the object store, so any process of the API can show it.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool

from service.auth.dependencies import ContextOf
from service.base.errors import CallerLeft, ImprimaturError, InvalidFile, NotFound
from service.base.messages import Message
from service.datasets import staging
from service.datasets.service import limits_of
from service.intake.caller import Caller
from service.intake.drafted import draft_of
from service.pages.doors import Owner, PageRoute
from service.pages.findings import refusal_of
from service.pages.rendering import is_fragment, on, page
from service.requests.uploads import in_turn_unwatched, watched

if TYPE_CHECKING:
    from contextlib import AsyncExitStack

    from service.auth.sessions import SignedIn
    from service.platform.context import Context
    from service.requests.uploads import Upload

router = APIRouter(include_in_schema=False, route_class=PageRoute)

QUICK_SECONDS = 2.0
"""So long a reply waits for the draft; then the page that says how far it is comes first."""
REPORT_SECONDS = 1.0
INTERRUPTED = Message("The service was stopped while it read the file. Send the file again.")
_log = logging.getLogger(__name__)

FilledOf = Callable[[Mapping[str, Any]], dict[str, Any]]
"""What is filled in at first, from the draft."""


@router.get("/datasets/new/{staged_id}/reading")
def read_reading(request: Request, staged_id: uuid.UUID, context: ContextOf, visitor: Owner) -> Response:
    """How far the draft is; once it is there, on to the second step."""
    if not staging.find(context, visitor.principal, staged_id).is_being_read:
        return on(request, f"/datasets/new/{staged_id}")
    try:
        reading = staging.read_reading(context, visitor.principal, staged_id)
    except NotFound:  # it has come in this moment, or the file is gone: the next page says which
        return on(request, f"/datasets/new/{staged_id}")
    fault = reading.fault or INTERRUPTED if reading.is_over else None
    reply = page(request, "reading.html", signed_in=visitor, staged_id=staged_id, share=reading.share, fault=fault)
    if reading.is_over and is_fragment(request):
        reply.headers["HX-Refresh"] = "true"
    return reply


async def stage_with_draft(
    request: Request,
    context: Context,
    visitor: SignedIn,
    upload: Upload,
    held: AsyncExitStack,
    filled_of: FilledOf,
) -> uuid.UUID:
    """Keep the file with its draft, or while that is still made. `held`: what keeps the file open; it goes along."""
    caller, principal, file = Caller(), visitor.principal, upload.spool.file

    def draft(caller: Caller) -> dict[str, Any]:
        try:
            return draft_of(file, limits_of(context.settings), context.settings.scratch_dir, caller)
        except InvalidFile as error:
            raise refusal_of(error) from None

    work = asyncio.ensure_future(in_turn_unwatched(request, principal.tenant_id, draft, caller))
    try:
        async with watched(request, caller):
            await asyncio.wait({work}, timeout=QUICK_SECONDS)
            if work.done():
                found = work.result()
                return await run_in_threadpool(staging.stage, context, principal, file, found, filled_of(found))
            staged_id = await run_in_threadpool(staging.stage, context, principal, file, None, {})
    except BaseException:
        await _end(work, caller)
        raise
    going_on = _go_on(context, visitor, staged_id, work, caller, held.pop_all(), filled_of)
    request.app.state.behind.keep(going_on, caller)
    return staged_id


async def _go_on(
    context: Context,
    visitor: SignedIn,
    staged_id: uuid.UUID,
    work: asyncio.Future[dict[str, Any]],
    caller: Caller,
    held: AsyncExitStack,
    filled_of: FilledOf,
) -> None:
    """Behind the reply: says how far the draft is, then keeps it, or why there is none."""
    principal = visitor.principal
    async with held:
        try:
            while not work.done():
                await asyncio.wait({work}, timeout=REPORT_SECONDS)
                await run_in_threadpool(staging.say_reading, context, principal, staged_id, caller.share)
            found = work.result()
            await run_in_threadpool(staging.finish_reading, context, principal, staged_id, found, filled_of(found))
        except ImprimaturError as error:  # a discarded file is not found, which ends the reading
            await _end(work, caller)
            await _say_why(context, visitor, staged_id, INTERRUPTED if isinstance(error, CallerLeft) else error.detail)
        except Exception as error:  # noqa: BLE001 - behind a reply there is none to raise it to; its text may quote cells
            await _end(work, caller)
            _log.error("the draft of a staged upload ended unexpectedly: %s", type(error).__name__)
            await _say_why(context, visitor, staged_id, INTERRUPTED)


async def _end(work: asyncio.Future[dict[str, Any]], caller: Caller) -> None:
    caller.leave()
    await asyncio.gather(work, return_exceptions=True)


async def _say_why(context: Context, visitor: SignedIn, staged_id: uuid.UUID, fault: str) -> None:
    try:
        await run_in_threadpool(staging.say_reading, context, visitor.principal, staged_id, 0.0, fault=fault)
    except (
        ImprimaturError
    ):  # it was discarded; or it cannot be told, and after a minute of silence the page says so itself
        return
