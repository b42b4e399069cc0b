"""Steps carried out in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import httpx

from imprimatur.steps import Ask, Close, Give, Next, NoMore, Pause, Read, Streamed, Work
from imprimatur.transport import http_arguments, request_of

if TYPE_CHECKING:
    from imprimatur.steps import Items, Step, Steps

T = TypeVar("T")
OperationsT = TypeVar("OperationsT")


class AsyncSession(Generic[OperationsT]):
    """Carries out operations in an event loop."""

    def __init__(self, operations: OperationsT, url: str, api_key: str | None, timeout: float) -> None:
        self.operations = operations
        self._http = httpx.AsyncClient(**http_arguments(url, api_key, timeout))

    async def close(self) -> None:
        await self._http.aclose()

    async def run(self, steps: Steps[T]) -> T:
        """What the operation returns."""
        try:
            step = next(steps)
            while True:
                try:
                    answer = await self._done(step)
                except BaseException as error:  # noqa: BLE001 - also that the task is cancelled
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as done:
            return cast("T", done.value)

    async def iterate(self, items: Items[T]) -> AsyncGenerator[T]:
        """What the operation gives, as it is asked for."""
        try:
            step = next(items)
            while True:
                try:
                    answer = None
                    if isinstance(step, Give):
                        yield step.item
                    else:
                        answer = await self._done(step)
                except GeneratorExit:
                    step = items.throw(NoMore())
                except BaseException as error:  # noqa: BLE001 - as above
                    step = items.throw(error)
                else:
                    step = items.send(answer)
        except (StopIteration, NoMore):
            return

    async def _done(self, step: Step) -> Any:
        match step:
            case Ask():
                with ExitStack() as opened:
                    response = await self._http.send(request_of(self._http, step, opened), stream=step.streamed)
                return Streamed(response, response.aiter_lines(), response.aiter_bytes()) if step.streamed else response
            case Next():
                return await anext(cast("AsyncIterator[Any]", step.of), None)
            case Read():
                await step.reply.response.aread()
            case Close():
                await step.reply.response.aclose()
            case Pause():
                await asyncio.sleep(step.seconds)
            case Work():
                return await asyncio.to_thread(step.function)
        return None
