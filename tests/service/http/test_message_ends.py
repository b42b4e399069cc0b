"""Where a request ends is never a matter of opinion: what a proxy could read otherwise is refused, and nothing behind it is read."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
import uvicorn

from service.http.protocol import ImpatientProtocol

TWO_ENDS = {
    "length, then chunks": "Content-Length: 4\r\nTransfer-Encoding: chunked",
    "chunks, then length": "Transfer-Encoding: chunked\r\nContent-Length: 4",
    "two lengths": "Content-Length: 5\r\nContent-Length: 40",
    "an unknown coding": "Transfer-Encoding: xchunked\r\nContent-Length: 4",
    "a blank before the colon": "Transfer-Encoding : chunked\r\nContent-Length: 4",
}


async def _said(head: str) -> tuple[bytes, list[str]]:
    """The reply to a request of that head with another hidden in its body, and the paths that the application saw."""
    seen: list[str] = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body"):
            pass
        seen.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(application, http=ImpatientProtocol, lifespan="off", log_level="error")
        server = uvicorn.Server(config)
        serving = asyncio.ensure_future(server.serve([listening]))
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        hidden = "GET /hidden HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"
        writer.write(f"POST /open HTTP/1.1\r\nHost: here\r\n{head}\r\n\r\n0\r\n\r\n{hidden}".encode())
        reply = await asyncio.wait_for(reader.read(), 30)
        writer.close()
        server.should_exit = True
        await serving
    return reply, seen


@pytest.mark.parametrize("head", TWO_ENDS.values(), ids=TWO_ENDS)
def test_a_message_with_two_ends_is_refused(head: str) -> None:
    reply, seen = asyncio.run(_said(head))
    assert reply.startswith(b"HTTP/1.1 400 ")
    assert reply.count(b"HTTP/1.1") == 1
    assert seen == []


def test_a_message_with_one_end_is_answered_and_so_is_the_next() -> None:
    reply, seen = asyncio.run(_said("Content-Length: 5"))
    assert reply.count(b"HTTP/1.1 200 ") == 2
    assert seen == ["/open", "/hidden"]
