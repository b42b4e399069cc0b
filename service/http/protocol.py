"""The API's HTTP protocol: uvicorn's, and a connection without a whole request head is soon closed.

    uvicorn service.http.app:create_app --factory --http service.http.protocol:ImpatientProtocol

Start it with `--no-proxy-headers`: uvicorn believes an X-Forwarded-For of any caller on the same machine, by which a limit
on addresses is evaded. Whose proxies count is a setting of the application (`trusted_proxies`); this protocol leaves
uvicorn's own belief out even where the option was forgotten.

uvicorn waits for ever for the first request of a connection and for the rest of a head that has begun, so that a few
bytes a minute would hold a connection (slowloris). Bodies have their own limits in `service/requests/uploads.py`.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from service.http.security_headers import BASE
from service.requests.rates import Rates

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol
else:
    H11Protocol = AutoHTTPProtocol  # the httptools one where that is installed; both keep `cycle` and `transport`


DEFAULT_HEAD_SECONDS = 10.0
"""For an application whose lifespan names no `request_head_seconds`."""


MAX_UNANSWERED_BYTES = 1 << 20
"""Of a head, or of what follows a reply that came before the end of its body; httptools itself keeps any number."""


LONGEST_ADDRESS_BYTES = 1 << 16
"""That httptools can parse."""
_NO_REQUEST = b"400 Bad Request", b"text/plain; charset=utf-8", b"this is no HTTP request\n"
_TOO_LONG = (
    b"431 Request Header Fields Too Large",
    b"application/problem+json",
    (
        b'{"type":"urn:imprimatur:too_large","title":"Too large","status":431,'
        b'"detail":"the address of the request is longer than 65536 bytes","code":"too_large"}'
    ),
)


SERVER_LINES_PER_MINUTE = 60
"""Warnings of uvicorn itself, such as of requests that are none: a stranger must not fill the log with them."""


class _Sparingly(logging.Filter):
    """Lets so many warnings a minute through; errors always."""

    def __init__(self) -> None:
        super().__init__()
        self._rates = Rates(SERVER_LINES_PER_MINUTE)

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno != logging.WARNING or not self._rates.seconds_until_free("")


_SPARINGLY = _Sparingly()


class ImpatientProtocol(H11Protocol):
    """Closes connections on which no request is being answered and none arrives whole."""

    _head_timer: asyncio.TimerHandle | None = None
    _head_bytes: int = 0
    _newest_bytes: int = 0

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if isinstance(self.app, ProxyHeadersMiddleware):
            self.app = self.app.app
        self.logger.addFilter(_SPARINGLY)  # once: a filter that is there is not added again

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        self._newest_bytes = len(data)
        super().data_received(data)
        if self._is_answering():
            self._forget_head()
        else:
            self._head_bytes += len(data)
            self._await_head()
            if self._head_bytes > MAX_UNANSWERED_BYTES:
                self._give_up()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_head()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - as uvicorn's own
        """To what is no request, or has an address longer than the parser takes. uvicorn's own reply has none of the headers."""
        is_long = self._head_bytes + self._newest_bytes > LONGEST_ADDRESS_BYTES
        status, kind, body = _TOO_LONG if is_long else _NO_REQUEST
        head = {b"content-type": kind, b"connection": b"close", **BASE}
        lines = [b"HTTP/1.1 " + status, *(name + b": " + value for name, value in head.items())]
        lines.append(b"content-length: %d" % len(body))
        self.transport.write(b"\r\n".join(lines) + b"\r\n\r\n" + body)
        self.transport.close()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _await_head(self) -> None:
        """At most so long from the first moment a head is awaited to its last byte."""
        if self._head_timer is None:
            seconds = self.app_state.get("request_head_seconds", DEFAULT_HEAD_SECONDS)
            self._head_timer = self.loop.call_later(seconds, self._give_up)

    def _forget_head(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._forget_head()
        if not self._is_answering() and not self.transport.is_closing():
            self.transport.close()
