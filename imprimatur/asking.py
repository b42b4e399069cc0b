"""Requests that are tried again where that cannot do harm, pages of lists, uploads and streams: what operations are made of."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

import httpx

from imprimatur.errors import ApiError
from imprimatur.steps import Ask, Close, Give, Next, Pause, Read, Streamed, Upload
from imprimatur.streams import Events

if TYPE_CHECKING:
    from collections.abc import Callable

    from imprimatur.replies import Json
    from imprimatur.steps import Items, Steps

DEFAULT_RETRIES = 5
PAGE = 1_000
"""Items of a page; the service gives no more at a time."""
FIRST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 10.0
EVENT_SILENCE_SECONDS = 60.0
"""A stream of events that says nothing for so long is opened again."""
EVENT_STREAM = {"Accept": "text/event-stream"}


class NoEvents(Exception):
    """A stream of events does not come, or broke off."""


class Asking:
    """One service, and how often it is asked again."""

    def __init__(self, url: str, timeout: float, retries: int) -> None:
        self.url = url.rstrip("/")
        self._timeout = timeout
        self._retries = retries
        self.on_retry: Callable[[str], None] | None = None
        """Is told when a request is tried again."""

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Steps[Json]:
        reply = yield from self.send(Ask("GET", path, query or {}), repeat=True)
        return cast("Json", reply.json())

    def pages(self, path: str, query: Mapping[str, Any] | None = None, *, most: int | None = None) -> Items[Json]:
        """The items of a list, newest first, `most` at most; the next page is fetched when it is asked for."""
        asked: dict[str, Any] = {**(query or {}), "limit": min(most or PAGE, PAGE)}
        left = most
        while True:
            page = yield from self.get(path, asked)
            for item in page["items"][:left]:
                yield Give(item)
            left = None if left is None else left - len(page["items"])
            if page.get("next") is None or (left is not None and left <= 0):
                return
            asked["before"] = page["next"]

    def whole(self, path: str, query: Mapping[str, Any] | None = None) -> Steps[Json]:
        """The first page, with the items of all pages in order: each page is in order itself and older than the one before."""
        asked = {**(query or {}), "limit": PAGE}
        first = page = yield from self.get(path, asked)
        items = [page["items"]]
        while page.get("next") is not None:
            page = yield from self.get(path, {**asked, "before": page["next"]})
            items.append(page["items"])
        return {**first, "items": [item for part in reversed(items) for item in part], "next": None}

    def send(self, ask: Ask, *, repeat: bool) -> Steps[httpx.Response]:
        """The reply to a request, read."""
        return cast("httpx.Response", (yield from self._attempt(ask, repeat=repeat)))

    def upload(
        self, method: str, path: str, upload: Upload, *, headers: Mapping[str, str] | None = None, seconds: float = 0.0
    ) -> Steps[httpx.Response]:
        """Send a file; the reply is read. Reading a large table can take the service a while after its last byte."""
        ask = Ask(method, path, headers=headers or {}, upload=upload, read_seconds=self._timeout * 10 + seconds)
        return (yield from self.send(ask, repeat=False))

    def upload_heard(self, method: str, path: str, upload: Upload) -> Steps[Json]:
        """Send a file; the document at the end of the events of its upload."""
        hear = upload.on_progress
        if hear is None:
            return cast("Json", (yield from self.upload(method, path, upload)).json())
        ask = Ask(method, path, headers=EVENT_STREAM, upload=upload, read_seconds=self._timeout * 10, streamed=True)
        reply: Streamed = yield from self._attempt(ask, repeat=False)
        events = Events()
        try:
            while (line := (yield Next(reply.lines))) is not None:
                for event, document in events.after(line):
                    if event == "progress":
                        hear(document["phase"], document["share"])
                    elif event == "problem":
                        raise _problem(int(document["status"]), document)
                    else:
                        return document
        except httpx.TransportError as error:
            raise self._unreachable(error) from error
        finally:
            yield Close(reply)
        raise ApiError(0, "unreachable", f"{self.url} hung up before it said what became of the upload")

    def events(self, path: str) -> Items[Json]:
        """The documents of a stream of events, until it ends; one that is silent for long is broken off. Raises `NoEvents`."""
        ask = Ask("GET", path, headers=EVENT_STREAM, read_seconds=EVENT_SILENCE_SECONDS, streamed=True)
        try:
            reply: Streamed = yield ask
        except httpx.TransportError as error:
            raise NoEvents from error
        events = Events()
        try:
            while True:
                try:
                    yield from _raise_for_problem(reply.response, reply)
                    if (line := (yield Next(reply.lines))) is None:
                        return
                    documents = _documents(events.after(line))
                except (httpx.TransportError, ApiError, ValueError) as error:
                    raise NoEvents from error
                for document in documents:
                    yield Give(document)
        finally:
            yield Close(reply)

    def download(self, path: str, query: Mapping[str, Any]) -> Items[bytes]:
        """The bytes of a file, chunk after chunk."""
        reply: Streamed = yield from self._attempt(Ask("GET", path, query, streamed=True), repeat=True)
        try:
            while (chunk := (yield Next(reply.chunks))) is not None:
                yield Give(chunk)
        except httpx.TransportError as error:  # rows already handed out cannot be called back: no second attempt
            raise self._unreachable(error) from error
        finally:
            yield Close(reply)

    def _attempt(self, ask: Ask, *, repeat: bool) -> Steps[Any]:
        """One request; again, with growing pauses, when that cannot do harm.

        A connection that never opened may always be tried again, and so may a 503: should it have been carried out all
        the same, an order's Idempotency-Key finds it and rows sent twice are refused. A connection that broke in the
        middle only when the request is safe or carries an Idempotency-Key (`repeat`).
        """
        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            try:
                reply = yield ask
            except httpx.UnsupportedProtocol as error:
                raise self._unreachable(
                    error, f"; begin it with http:// or https://, as in http://{self.url}"
                ) from error
            except httpx.TransportError as error:
                never_sent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
                if last or not (repeat or never_sent):
                    raise self._unreachable(error) from error
                if self.on_retry is not None and attempt == 0:
                    self.on_retry(f"no answer from {self.url}; trying again for a few seconds")
                yield _pause(attempt)
                continue
            streamed = reply if isinstance(reply, Streamed) else None
            response = reply.response if isinstance(reply, Streamed) else reply
            if response.status_code == httpx.codes.SERVICE_UNAVAILABLE and not last:
                if streamed is not None:
                    yield Close(streamed)
                yield _pause(attempt, response.headers.get("Retry-After"))
                continue
            yield from _raise_for_problem(response, streamed)
            return reply
        raise AssertionError("the last attempt returns or raises")

    def _unreachable(self, error: Exception, advice: str = "") -> ApiError:
        return ApiError(0, "unreachable", f"no answer from {self.url}: {error or type(error).__name__}{advice}")


def _documents(events: list[tuple[str, Json]]) -> list[Json]:
    for kind, document in events:
        if kind == "problem":
            raise _problem(int(document["status"]), document)
    return [document for _, document in events]


def order_headers(idempotency_key: str, priority: int | None, name: str | None) -> dict[str, str]:
    """What is said of an order beside its document; a name in percent-encoded UTF-8, for headers are ASCII."""
    named = {} if name is None else {"Release-Name": quote(name)}
    return {"Idempotency-Key": idempotency_key, **priority_header(priority), **named}


def priority_header(urgency: int | None) -> dict[str, str]:
    """RFC 9218; none where the default is meant."""
    return {} if urgency is None else {"Priority": f"u={urgency}"}


def _pause(attempt: int, retry_after: str | None = None) -> Pause:
    seconds = min(FIRST_PAUSE_SECONDS * 2**attempt, LONGEST_PAUSE_SECONDS)
    if retry_after is not None and retry_after.isdigit():
        seconds = min(float(retry_after), LONGEST_PAUSE_SECONDS)
    return Pause(seconds * random.uniform(0.8, 1.2))  # noqa: S311 - so that many clients do not come back together


def _raise_for_problem(response: httpx.Response, streamed: Streamed | None) -> Steps[None]:
    if response.is_success:
        return
    if streamed is not None:
        try:
            yield Read(streamed)
        finally:
            yield Close(streamed)
    try:
        body = json.loads(response.content)
    except ValueError:
        body = {}
    if not isinstance(body, dict):
        body = {}
    body["detail"] = body.get("detail") or f"{response.status_code} {response.reason_phrase}"
    raise _problem(response.status_code, body)


def _problem(status: int, document: Json) -> ApiError:
    known = {"type", "title", "status", "detail", "code", "instance"}
    values = {name: value for name, value in document.items() if name not in known}
    return ApiError(status, str(document.get("code", "http_error")), str(document["detail"]), values)
