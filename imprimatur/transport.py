"""Steps carried out in this thread; `async_transport.py` does so in an event loop."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import httpx

from imprimatur.steps import Ask, Close, Give, Next, NoMore, Pause, Read, Streamed, Work
from imprimatur.streams import multipart

if TYPE_CHECKING:
    from imprimatur.steps import Items, Step, Steps

T = TypeVar("T")
OperationsT = TypeVar("OperationsT")


def http_arguments(url: str, api_key: str | None, timeout: float) -> dict[str, Any]:
    """The arguments of an `httpx` client. timeout: seconds."""
    is_local = httpx.URL(url).host in {"127.0.0.1", "localhost", "::1"}  # never through a proxy of the environment
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    return {"base_url": url, "headers": headers, "timeout": timeout, "trust_env": not is_local}


def request_of(http: httpx.Client | httpx.AsyncClient, ask: Ask, opened: ExitStack) -> httpx.Request:
    """A file to be uploaded stays open as long as `opened`; it is opened anew for every attempt."""
    upload, files = ask.upload, None
    if upload is not None:
        files = opened.enter_context(multipart(upload.file, upload.fields, upload.on_progress))
    timeout = http.timeout if ask.read_seconds is None else httpx.Timeout(http.timeout.connect, read=ask.read_seconds)
    return http.build_request(
        ask.method,
        ask.path,
        params=dict(ask.query),
        json=ask.json,
        content=ask.content,
        files=files,
        headers=dict(ask.headers),
        timeout=timeout,
    )


class Session(Generic[OperationsT]):
    """Carries out operations in this thread."""

    def __init__(self, operations: OperationsT, url: str, api_key: str | None, timeout: float) -> None:
        self.operations = operations
        self._http = httpx.Client(**http_arguments(url, api_key, timeout))

    def close(self) -> None:
        self._http.close()

    def run(self, steps: Steps[T]) -> T:
        """What the operation returns."""
        try:
            step = next(steps)
            while True:
                try:
                    answer = self._done(step)
                except BaseException as error:  # noqa: BLE001 - whatever it is, the operation closes what it has opened
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as done:
            return cast("T", done.value)

    def iterate(self, items: Items[T]) -> Generator[T]:
        """What the operation gives, as it is asked for."""
        try:
            step = next(items)
            while True:
                try:
                    answer = None
                    if isinstance(step, Give):
                        yield step.item
                    else:
                        answer = self._done(step)
                except GeneratorExit:
                    step = items.throw(NoMore())
                except BaseException as error:  # noqa: BLE001 - as above
                    step = items.throw(error)
                else:
                    step = items.send(answer)
        except (StopIteration, NoMore):
            return

    def _done(self, step: Step) -> Any:
        match step:
            case Ask():
                with ExitStack() as opened:
                    response = self._http.send(request_of(self._http, step, opened), stream=step.streamed)
                return Streamed(response, response.iter_lines(), response.iter_bytes()) if step.streamed else response
            case Next():
                return next(cast("Iterator[Any]", step.of), None)
            case Read():
                step.reply.response.read()
            case Close():
                step.reply.response.close()
            case Pause():
                time.sleep(step.seconds)
            case Work():
                return step.function()
        return None
