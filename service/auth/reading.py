"""Turns of tenants at replies that take long to put together: lists, ledgers, proofs, certificates, what is read out of ZIPs.

Of the API and of the page, whose `service.pages.doors.PageTurn` takes the same turns.

Each holds a thread and a connection to the database. Without turns one tenant, asking often, has all of them.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, Request

from service.auth.dependencies import JsonBody, get_principal
from service.auth.principal import Principal
from service.base.errors import RateLimited
from service.base.messages import Message
from service.requests.turns import FairTurns

SHARE_OF_POOL = 0.4
"""As `QuickThreads` has; what is left is for keys to be looked up, and for uploads."""
OF_ONE_TENANT = 2
PATIENCE_SECONDS = 20.0


CallerOf = Annotated[Principal, Depends(get_principal)]


def reading_turns(database_pool_size: int) -> FairTurns:
    """The turns of a process that keeps so many connections to the database."""
    return FairTurns(max(1, int(database_pool_size * SHARE_OF_POOL)), OF_ONE_TENANT)


@asynccontextmanager
async def reading_turn(request: Request, tenant_id: uuid.UUID) -> AsyncIterator[None]:
    """Wait for a turn of this tenant, and give it back at the end of the block."""
    turns: FairTurns = request.app.state.reading_turns
    turn = turns.turn(tenant_id)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await turn.__aenter__()
    except TimeoutError:
        raise RateLimited(
            Message("too many lists and ledgers are being read at this moment; ask again"), retry_after_seconds=5
        ) from None
    try:
        yield
    finally:
        await turn.__aexit__(None, None, None)


async def _take_turn(request: Request, principal: CallerOf) -> AsyncIterator[None]:
    async with reading_turn(request, principal.tenant_id):
        yield


ReadingTurn = Depends(_take_turn, scope="function")
"""A dependency of a route: its function runs in a turn of its tenant, and who waits for one holds no thread."""


async def _take_turn_after_body(request: Request, principal: CallerOf, _: JsonBody) -> AsyncIterator[None]:
    async with reading_turn(request, principal.tenant_id):
        yield


ReadingTurnAfterBody = Depends(_take_turn_after_body, scope="function")
"""The same, begun when the body is here: who sends it slowly holds no turn."""
