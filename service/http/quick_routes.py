"""Plain requests of the busiest routes, answered in one turn of one thread, without the framework.

FastAPI describes these routes and answers whatever is not plain. For a small order or a look at a budget its way (twelve
callables deep, dependencies resolved and replies serialised generically, a change of thread for each dependency that asks
the database) costs more than the request itself. `QuickRoutes` reads the same declarations once, when the application is
put together. Ids in the path, a small JSON object, headers as text: that is a plain request, and its key is looked up and
its endpoint called one after the other. What is not plain goes on to FastAPI untouched, and gets its errors.

There are few threads for it, and requests wait for one in the order they came in: with more threads than connections to
the database, a new request may overtake one that waits (the slowest waited three times the median, now 1.3 times), and
the interpreter's lock goes from hand to hand.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import uuid
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, get_type_hints

from fastapi import APIRouter, Request, Response, params
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.auth.dependencies import get_context, get_principal, read_json_body
from service.auth.principal import Scope as KeyScope
from service.base.errors import ImprimaturError, InvalidInput, PricingBusy, Unavailable
from service.base.text import read_json
from service.platform.database import kept_connection

SMALL_BODY_BYTES = 1 << 16

LONGEST_WAIT_SECONDS = 5.0
"""For a thread; as long as a thread would wait for a connection."""

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.05, 0.4
"""Between two looks whether a price may be computed now, or is there."""

ID_LENGTH = 36


class QuickThreads:
    """The threads of a process that keeps so many connections to the database: some are left for all other routes.

    Each keeps its connection from its first request on (`service.platform.database.kept_connection`).
    """

    def __init__(self, connections: int) -> None:
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._count = max(1, connections * 2 // 5)
        self._started = False

    @property
    def waiting(self) -> int:
        """Calls that wait for a thread."""
        return self._calls.qsize()

    async def run(self, function: Callable[..., Response], *arguments: Any) -> Response:
        """Call it in a thread, first come, first served; `Unavailable` where all of them are held up too long."""
        if not self._started:
            self._started = True
            for number in range(self._count):
                threading.Thread(target=self._work, name=f"quick-{number}", daemon=True).start()
        loop = asyncio.get_running_loop()
        call = _Call(function, arguments, loop, loop.create_future())
        patience = loop.call_later(LONGEST_WAIT_SECONDS, call.give_up)
        self._calls.put(call)
        try:
            return await call.answer
        finally:
            patience.cancel()

    def close(self) -> None:
        """End the threads after what waits now; their connections go back to the pool."""
        for _ in range(self._count if self._started else 0):
            self._calls.put(None)
        self._started = False

    def _work(self) -> None:
        with kept_connection():
            while (call := self._calls.get()) is not None:
                call.make()


class _Call:
    """One call that waits for a thread. The thread and the clock compete for its one ticket; the one that takes it decides."""

    __slots__ = ("answer", "arguments", "function", "loop", "tickets")

    def __init__(
        self,
        function: Callable[..., Response],
        arguments: tuple[Any, ...],
        loop: asyncio.AbstractEventLoop,
        answer: asyncio.Future[Response],
    ) -> None:
        self.function, self.arguments, self.loop, self.answer = function, arguments, loop, answer
        self.tickets = [None]

    def make(self) -> None:
        """Answer the call, in a thread, unless it was given up."""
        try:
            self.tickets.pop()
        except IndexError:
            return
        done: tuple[Response | None, BaseException | None]
        try:
            done = self.function(*self.arguments), None
        except BaseException as error:  # noqa: BLE001 - it belongs to the caller that waits, and the thread must live
            done = None, error
        with suppress(RuntimeError):  # the loop has ended, and no caller waits
            self.loop.call_soon_threadsafe(self._settle, *done)

    def give_up(self) -> None:
        """Refuse a call that has waited too long, in the event loop."""
        with suppress(IndexError):
            self.tickets.pop()
            self._settle(None, Unavailable("too much waits for the database; ask again", retry_after_seconds=5))

    def _settle(self, response: Response | None, error: BaseException | None) -> None:
        if self.answer.done():  # the client has gone
            return
        if response is None:
            self.answer.set_exception(error or RuntimeError("a call without an answer"))
        else:
            self.answer.set_result(response)


class QuickRoutes:
    """Middleware: answers the plain requests of these routers' plain routes, and passes all others on untouched."""

    def __init__(self, app: ASGIApp, routers: Iterable[APIRouter]) -> None:
        self.app = app
        self.plans: dict[tuple[str, str], _Plan] = {}
        for router in routers:
            for route in router.routes:
                plan = _plan(route) if isinstance(route, APIRoute) else None
                if plan is not None:
                    self.plans |= {(method, plan.shape): plan for method in plan.route.methods or ()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            shape, ids = _shape(scope["path"])
            plan = self.plans.get((scope["method"], shape))
            if plan is not None:
                request = Request(scope, receive)
                values, receive = await _plain_values(request, plan, ids)
                if values is not None:
                    scope["route"], scope["path_params"] = plan.route, dict(zip(plan.ids, ids, strict=True))
                    await (await _respond(request, plan, values))(scope, receive, send)
                    return
        await self.app(scope, receive, send)


@dataclass
class _Plan:
    """Which parameter of an endpoint is what."""

    route: APIRoute
    shape: str
    """The path with `{}` for each id."""
    status: int
    scope: KeyScope | None = None
    ids: list[str] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    body: str | None = None
    context: str = ""
    principal: str = ""
    response: str | None = None


def _plan(route: APIRoute) -> _Plan | None:
    """None where a parameter, the reply or another dependency is of a kind that only FastAPI knows."""
    if route.dependencies:
        return None
    hints = get_type_hints(route.endpoint, include_extras=True)
    reply = hints.pop("return", None)
    if inspect.iscoroutinefunction(route.endpoint) or not (isinstance(reply, type) and issubclass(reply, BaseModel)):
        return None
    shape, names = _shape_of_pattern(route.path)
    plan = _Plan(route, shape, route.status_code if isinstance(route.status_code, int) else 200, ids=names)
    if not all(_is_planned(plan, name, hint) for name, hint in hints.items()):
        return None
    return plan if plan.principal and plan.context and all(hints.get(name) is uuid.UUID for name in names) else None


def _is_planned(plan: _Plan, name: str, hint: Any) -> bool:
    """Write down what this parameter is; False where only FastAPI knows."""
    marks = getattr(hint, "__metadata__", ())
    needed = [mark.dependency for mark in marks if isinstance(mark, params.Depends)]
    security = next((mark for mark in marks if isinstance(mark, params.Security)), None)
    if security is not None:
        plan.principal, plan.scope = name, security.scopes[0]  # type: ignore[index, assignment, unused-ignore]
    elif get_context in needed:
        plan.context = name
    elif any(isinstance(mark, params.Header) for mark in marks):
        plan.headers[name] = name.replace("_", "-")
    elif read_json_body in needed:
        plan.body = name
    elif hint is Response:
        plan.response = name
    else:
        return hint is uuid.UUID and name in plan.ids
    return True


def _shape_of_pattern(path: str) -> tuple[str, list[str]]:
    parts = path.split("/")
    names = [part[1:-1] for part in parts if part.startswith("{")]
    return "/".join("{}" if part.startswith("{") else part for part in parts), names


def _shape(path: str) -> tuple[str, list[str]]:
    """The path with `{}` for everything as long as an id, and what stood there."""
    parts = path.split("/")
    ids = [part for part in parts if len(part) == ID_LENGTH]
    return "/".join("{}" if len(part) == ID_LENGTH else part for part in parts), ids


async def _plain_values(request: Request, plan: _Plan, ids: list[str]) -> tuple[dict[str, Any] | None, Receive]:
    """The endpoint's arguments, or None where the request is not plain; and what there is (still) to receive."""
    receive = request.receive
    try:
        values: dict[str, Any] = {name: uuid.UUID(text) for name, text in zip(plan.ids, ids, strict=True)}
        if plan.body is not None:
            length, kind = request.headers.get("content-length", ""), request.headers.get("content-type", "")
            if not length.isdecimal() or int(length) > SMALL_BODY_BYTES or kind.lower() != "application/json":
                return None, receive
            body, receive = await _small_body(receive)
            if body is None:
                return None, receive
            values[plan.body] = read_json(body, "body")
    except (ValueError, InvalidInput):
        return None, receive
    for name, header in plan.headers.items():
        values[name] = request.headers.get(header)
    return values, receive


async def _small_body(receive: Receive) -> tuple[bytes | None, Receive]:
    """A whole body (None: too late, broken off), and a `receive` that says all of it once more."""
    heard: list[Message] = []
    failure: Exception | None = None
    body: bytes | None = b""
    more = True
    try:
        while more and body is not None:
            heard.append(message := await receive())
            body = body + message.get("body", b"") if message["type"] == "http.request" else None
            more = message.get("more_body", False)
    except Exception as error:  # noqa: BLE001 - a refusal of `uploads.BodyLimit`: FastAPI meets it where it reads the body
        body, failure = None, error

    async def again() -> Message:
        nonlocal failure
        if heard:
            return heard.pop(0)
        if failure is not None:
            raised, failure = failure, None
            raise raised
        return await receive()

    return body, again


async def _respond(request: Request, plan: _Plan, values: dict[str, Any]) -> Response:
    threads: QuickThreads = request.app.state.quick_threads
    deadline = asyncio.get_running_loop().time() + LONGEST_WAIT_SECONDS
    pause = FIRST_PAUSE_SECONDS
    while True:
        try:
            return await threads.run(_answer, request, plan, dict(values))
        except PricingBusy as error:  # no thread is held by those that wait for one's turn
            if asyncio.get_running_loop().time() + pause > deadline:
                return _refusal(request, error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)
        except ImprimaturError as error:
            return _refusal(request, error)


def _answer(request: Request, plan: _Plan, values: dict[str, Any]) -> Response:
    """Who asks, whether they may, what they get; in this thread."""
    said = Response()
    if plan.response is not None:
        values[plan.response] = said
    try:
        values[plan.context] = context = request.app.state.context
        values[plan.principal] = principal = get_principal(request, context)
        if plan.scope is not None:
            principal.require(plan.scope)
        reply = plan.route.endpoint(**values)
    except PricingBusy:
        raise
    except ImprimaturError as error:
        return _refusal(request, error)
    headers = {} if "location" not in said.headers else {"Location": said.headers["location"]}
    return Response(reply.model_dump_json(by_alias=True), plan.status, headers, "application/json")


def _refusal(request: Request, error: ImprimaturError) -> Response:
    refusal: Response = request.app.exception_handlers[ImprimaturError](request, error)
    return refusal
