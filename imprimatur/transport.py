"""Requests and their replies: retries where a retry cannot do harm, and answers of the service as typed errors."""

from __future__ import annotations

import json
import random
import time
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote

import httpx

from imprimatur.errors import ApiError
from imprimatur.streams import multipart, server_sent_events

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping
    from pathlib import Path

    from imprimatur.replies import Json

DEFAULT_RETRIES = 5
PAGE = 1_000
"""Items of a page; the service gives no more at a time."""
FIRST_PAUSE_SECONDS = 0.25
LONGEST_PAUSE_SECONDS = 10.0
EVENT_SILENCE_SECONDS = 60.0
"""A stream of events that says nothing for so long is opened again."""
EVENT_STREAM = {"Accept": "text/event-stream"}


@dataclass(frozen=True)
class Upload:
    """One file and its text fields on their way to a path."""

    path: str
    file: str | Path | None
    fields: Mapping[str, str]
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str = "POST"
    extra_seconds: float = 0.0


class Transport:
    """One service, one API key: what every method of the client goes through."""

    def __init__(self, url: str, api_key: str | None, timeout: float, retries: int) -> None:
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self.url = url.rstrip("/")
        self._retries = retries
        self._http = httpx.Client(
            base_url=self.url, headers=headers, timeout=timeout, trust_env=not _is_local(self.url)
        )

    def close(self) -> None:
        self._http.close()

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Json:
        return cast("Json", self.send("GET", path, repeat=True, params=dict(query or {})).json())

    def pages(self, path: str, query: Mapping[str, Any] | None = None, *, most: int | None = None) -> Iterator[Json]:
        """The items of a list, newest first, `most` at most; the next page is fetched when it is asked for."""
        asked: dict[str, Any] = {**(query or {}), "limit": min(most or PAGE, PAGE)}
        while True:
            page = self.get(path, asked)
            yield from page["items"]
            if page.get("next") is None:
                return
            asked["before"] = page["next"]

    def whole(self, path: str, query: Mapping[str, Any] | None = None) -> Json:
        """The first page, with the items of all pages in order: each page is in order itself and older than the one before."""
        asked = {**(query or {}), "limit": PAGE}
        first = page = self.get(path, asked)
        items = [page["items"]]
        while page.get("next") is not None:
            page = self.get(path, {**asked, "before": page["next"]})
            items.append(page["items"])
        return {**first, "items": [item for part in reversed(items) for item in part], "next": None}

    def upload(self, upload: Upload) -> httpx.Response:
        """Send a file; the reply is read."""
        return self._upload(upload, None)

    def upload_heard(self, upload: Upload, on_progress: Callable[[str, float], None]) -> Json:
        """Send a file; the document at the end of the events of its upload."""
        with closing(self._upload(upload, on_progress)) as reply:
            try:
                for event, document in server_sent_events(reply.iter_lines()):
                    if event == "progress":
                        on_progress(document["phase"], document["share"])
                    elif event == "problem":
                        raise _problem(int(document["status"]), document)
                    else:
                        return document
            except httpx.TransportError as error:
                raise self._unreachable(error) from error
        raise ApiError(0, "unreachable", f"{self.url} hung up before it said what became of the upload")

    def _upload(self, upload: Upload, on_progress: Callable[[str, float], None] | None) -> httpx.Response:
        """The reply; not yet read where progress is wanted."""
        # Reading a large table can take the service a while after its last byte has arrived.
        read_seconds = (self._http.timeout.read or 0.0) * 10 + upload.extra_seconds
        timeout = httpx.Timeout(self._http.timeout.connect, read=read_seconds)
        headers = dict(upload.headers) if on_progress is None else {**upload.headers, **EVENT_STREAM}

        def send() -> httpx.Response:
            with multipart(upload.file, upload.fields, on_progress) as parts:  # opened anew by every attempt
                request = self._http.build_request(
                    upload.method, upload.path, files=parts, headers=headers, timeout=timeout
                )
                return self._http.send(request, stream=on_progress is not None)

        return self._attempt(send, repeat=False)

    def events(self, path: str) -> Generator[Json, None, None]:
        """The documents of a stream of events, until it is closed; one that is silent for long ends."""
        silence = httpx.Timeout(self._http.timeout.connect, read=EVENT_SILENCE_SECONDS)
        with self._http.stream("GET", path, headers=EVENT_STREAM, timeout=silence) as reply:
            _raise_for_problem(reply)
            for kind, document in server_sent_events(reply.iter_lines()):
                if kind == "problem":
                    raise _problem(int(document["status"]), document)
                yield document

    def send(self, method: str, path: str, *, repeat: bool, **arguments: Any) -> httpx.Response:
        return self._attempt(lambda: self._http.request(method, path, **arguments), repeat=repeat)

    @contextmanager
    def download(self, path: str, query: Mapping[str, Any]) -> Iterator[Iterator[bytes]]:
        request = self._http.build_request("GET", path, params=dict(query))
        reply = self._attempt(lambda: self._http.send(request, stream=True), repeat=True)
        try:
            yield reply.iter_bytes()
        except httpx.TransportError as error:  # rows already handed out cannot be called back: no second attempt
            raise self._unreachable(error) from error
        finally:
            reply.close()

    def _attempt(self, send: Callable[[], httpx.Response], *, repeat: bool) -> httpx.Response:
        """One request; again, with growing pauses, when that cannot do harm.

        A connection that never opened may always be tried again, and so may a 503: should it have been carried out all
        the same, an order's Idempotency-Key finds it and rows sent twice are refused. A connection that broke in the
        middle only when the request is safe or carries an Idempotency-Key (`repeat`).
        """
        for attempt in range(self._retries + 1):
            last = attempt == self._retries
            try:
                reply = send()
            except httpx.TransportError as error:
                never_sent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
                if last or not (repeat or never_sent):
                    raise self._unreachable(error) from error
                _pause(attempt)
                continue
            if reply.status_code == httpx.codes.SERVICE_UNAVAILABLE and not last:
                reply.close()
                _pause(attempt, reply.headers.get("Retry-After"))
                continue
            _raise_for_problem(reply)
            return reply
        raise AssertionError("the last attempt returns or raises")

    def _unreachable(self, error: Exception) -> ApiError:
        return ApiError(0, "unreachable", f"no answer from {self.url}: {error or type(error).__name__}")


def order_headers(idempotency_key: str, priority: int | None, name: str | None) -> dict[str, str]:
    """What is said of an order beside its document; a name in percent-encoded UTF-8, for headers are ASCII."""
    named = {} if name is None else {"Release-Name": quote(name)}
    return {"Idempotency-Key": idempotency_key, **priority_header(priority), **named}


def priority_header(urgency: int | None) -> dict[str, str]:
    """RFC 9218; none where the default is meant."""
    return {} if urgency is None else {"Priority": f"u={urgency}"}


def _is_local(url: str) -> bool:
    return httpx.URL(url).host in {"127.0.0.1", "localhost", "::1"}  # never through a proxy of the environment


def _pause(attempt: int, retry_after: str | None = None) -> None:
    seconds = min(FIRST_PAUSE_SECONDS * 2**attempt, LONGEST_PAUSE_SECONDS)
    if retry_after is not None and retry_after.isdigit():
        seconds = min(float(retry_after), LONGEST_PAUSE_SECONDS)
    time.sleep(seconds * random.uniform(0.8, 1.2))  # noqa: S311 - so that many clients do not come back together


def _raise_for_problem(reply: httpx.Response) -> None:
    if reply.is_success:
        return
    try:
        body = json.loads(reply.read())
    except ValueError:
        body = {}
    if not isinstance(body, dict):
        body = {}
    body["detail"] = body.get("detail") or f"{reply.status_code} {reply.reason_phrase}"
    raise _problem(reply.status_code, body)


def _problem(status: int, document: Json) -> ApiError:
    known = {"type", "title", "status", "detail", "code", "instance"}
    values = {name: value for name, value in document.items() if name not in known}
    return ApiError(status, str(document.get("code", "http_error")), str(document["detail"]), values)
