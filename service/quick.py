"""Routes that answer plain requests in one turn of one thread. FastAPI describes them, and answers all others itself.

FastAPI resolves dependencies, validates and serialises generically, with a change of thread for each dependency that
asks the database: for a small order that is more work than the order. A `QuickRoute` reads the same declaration once,
when it is made. Ids in the path, a small JSON object, headers as text: that is a plain request, and its key is looked
up and its endpoint called one after the other. Whatever is not plain goes FastAPI's way and gets its errors.

There are few threads for it, and requests wait for one in the order they came in: with more threads than connections to
the database, whoever comes may overtake whoever waits (the slowest waited three times the median, now 1.3 times), and
the interpreter's lock goes from hand to hand.
"""

from __future__ import annotations

import asyncio
import inspect
import uuid
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, get_type_hints

from fastapi import HTTPException, Request, Response, params
from fastapi.routing import APIRoute
from pydantic import BaseModel

from service.auth.principal import Scope
from service.dependencies import get_context, get_principal, read_json_body
from service.errors import ImprimaturError, InvalidInput, Unavailable
from service.text import read_json

SMALL_BODY_BYTES = 1 << 16


LONGEST_WAIT_SECONDS = 5.0
"""For a thread; as long as a thread would wait for a connection."""


class QuickThreads:
    """The threads of a process that keeps so many connections to the database: some are left for all other routes."""

    def __init__(self, connections: int) -> None:
        count = max(1, connections * 2 // 5)
        self._threads = ThreadPoolExecutor(count, "quick")
        self._free = asyncio.Semaphore(count)

    async def run(self, function: Callable[..., Response], *arguments: Any) -> Response:
        """Call it in a thread, first come, first served; `Unavailable` where all of them are held up too long."""
        try:
            async with asyncio.timeout(LONGEST_WAIT_SECONDS):
                await self._free.acquire()
        except TimeoutError:
            raise Unavailable("too much waits for the database; ask again", retry_after_seconds=5) from None
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)
        finally:
            self._free.release()


class QuickRoute(APIRoute):
    """Use as `route_class` of a router; endpoints it cannot make quick stay as they are."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        thorough = super().get_route_handler()
        plan = _plan(self.endpoint)
        if plan is None:
            return thorough
        status = self.status_code if isinstance(self.status_code, int) else 200

        async def handle(request: Request) -> Response:
            values = await _plain_values(request, plan)
            if values is None:
                return await thorough(request)
            threads: QuickThreads = request.app.state.quick_threads
            return await threads.run(_answer, request, plan, values, status)

        return handle


@dataclass
class _Plan:
    """Which parameter of an endpoint is what."""

    endpoint: Callable[..., BaseModel]
    scope: Scope | None = None
    ids: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    context: str | None = None
    principal: str | None = None
    response: str | None = None


def _plan(endpoint: Callable[..., Any]) -> _Plan | None:
    """None where a parameter or the reply is of a kind that only FastAPI knows."""
    hints = get_type_hints(endpoint, include_extras=True)
    reply = hints.pop("return", None)
    if inspect.iscoroutinefunction(endpoint) or not (isinstance(reply, type) and issubclass(reply, BaseModel)):
        return None
    plan = _Plan(endpoint)
    for name, hint in hints.items():
        marks = getattr(hint, "__metadata__", ())
        security = next((mark for mark in marks if isinstance(mark, params.Security)), None)
        if security is not None:
            plan.principal, plan.scope = name, security.scopes[0]  # type: ignore[index, assignment, unused-ignore]
        elif any(isinstance(mark, params.Depends) and mark.dependency is get_context for mark in marks):
            plan.context = name
        elif any(isinstance(mark, params.Header) for mark in marks):
            plan.headers[name] = name.replace("_", "-")
        elif any(isinstance(mark, params.Depends) and mark.dependency is read_json_body for mark in marks):
            plan.body = name
        elif hint is uuid.UUID:
            plan.ids.append(name)
        elif hint is Response:
            plan.response = name
        else:
            return None
    return plan if plan.principal and plan.context else None


async def _plain_values(request: Request, plan: _Plan) -> dict[str, Any] | None:
    """The endpoint's arguments from the request; None where the request is not plain."""
    try:
        values: dict[str, Any] = {name: uuid.UUID(request.path_params[name]) for name in plan.ids}
        if plan.body is not None:
            length, kind = request.headers.get("content-length", ""), request.headers.get("content-type", "")
            if not length.isdecimal() or int(length) > SMALL_BODY_BYTES or kind.lower() != "application/json":
                return None
            values[plan.body] = read_json(await _body(request), "body")
    except (KeyError, ValueError, InvalidInput):
        return None
    for name, header in plan.headers.items():
        values[name] = request.headers.get(header)
    return values


async def _body(request: Request) -> bytes:
    try:
        return await request.body()
    except HTTPException:  # too large, or too slow
        raise
    except Exception as error:
        raise HTTPException(400) from error  # as FastAPI does: it broke off


def _answer(request: Request, plan: _Plan, values: dict[str, Any], status: int) -> Response:
    """Who asks, whether they may, what they get; in this thread."""
    said = Response()
    if plan.response is not None:
        values[plan.response] = said
    try:
        values[str(plan.context)] = context = request.app.state.context
        values[str(plan.principal)] = principal = get_principal(request, context)
        if plan.scope is not None:
            principal.require(plan.scope)
        reply = plan.endpoint(**values)
    except ImprimaturError as error:
        refusal: Response = request.app.exception_handlers[ImprimaturError](request, error)
        return refusal
    headers = {} if "location" not in said.headers else {"Location": said.headers["location"]}
    return Response(reply.model_dump_json(by_alias=True), status, headers, "application/json")
