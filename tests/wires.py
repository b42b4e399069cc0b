"""A wire between client and service that is cut in bad moments."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Cut = Callable[[int, bytes], str | None]


class Wire:
    """Carries connections to the service, one request each; `cut(number, request)` says where to cut one.

    "before": the service never sees the request. "after": it has answered, the client never hears it.
    "middle": the client hears only the beginning.
    """

    def __init__(self, url: str, cut: Cut) -> None:
        host, port = url.removeprefix("http://").split(":")
        self.target = (host, int(port))
        self.cut = cut
        self.requests: list[str] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self._carry, args=(connection,), daemon=True).start()

    def _carry(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            request = self._read_request(connection)
            self.requests.append(request.split(b"\r\n")[0].decode())
            where = self.cut(len(self.requests), request)
            if where == "before":
                return
            with socket.create_connection(self.target) as service:
                service.sendall(request.replace(b"Connection: keep-alive", b"Connection: close"))
                while piece := service.recv(65536):
                    if where != "after":
                        connection.sendall(piece)
                    if where == "middle" and b"\r\n\r\n" in piece:
                        return

    @staticmethod
    def _read_request(connection: socket.socket) -> bytes:
        request = b""
        while b"\r\n\r\n" not in request:
            request += connection.recv(65536)
        head, _, body = request.partition(b"\r\n\r\n")
        lengths = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
        missing = int(lengths[0].split(b":")[1]) - len(body) if lengths else 0
        while missing > 0:
            piece = connection.recv(65536)
            request, missing = request + piece, missing - len(piece)
        return request
