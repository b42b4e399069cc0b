"""A cheap HTTP/1.1 client, so that the load generator takes little of the machine it measures: asyncio streams, no parser."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass


@dataclass
class Connection:
    """One keep-alive connection; requests go one after another."""

    host: str
    port: int
    key: str
    reader: asyncio.StreamReader | None = None
    writer: asyncio.StreamWriter | None = None

    async def request(
        self, method: str, path: str, body: bytes = b"", content_type: str = "application/json", extra: str = ""
    ) -> tuple[int, bytes]:
        """Status and body; (0, b"") when the connection was refused or broke off."""
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\nAuthorization: Bearer {self.key}\r\n"
            f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n{extra}\r\n"
        )
        try:
            if self.writer is None:
                self.reader, self.writer = await asyncio.open_connection(self.host, self.port)
            self.writer.write(head.encode() + body)
            return await self._reply()
        except (OSError, EOFError, asyncio.IncompleteReadError):
            self.close()
            return 0, b""

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
        self.reader = self.writer = None

    async def _reply(self) -> tuple[int, bytes]:
        assert self.reader is not None
        head = (await self.reader.readuntil(b"\r\n\r\n")).lower()
        status = int(head[9:12])
        length = head.partition(b"\r\ncontent-length: ")[2].partition(b"\r\n")[0]
        if length:
            body = await self.reader.readexactly(int(length))
        elif b"transfer-encoding: chunked" in head:
            body = await self._chunks()
        else:
            body = b""
        if b"\r\nconnection: close" in head:
            self.close()
        return status, body

    async def _chunks(self) -> bytes:
        assert self.reader is not None
        pieces = []
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            pieces.append(await self.reader.readexactly(size))
            await self.reader.readexactly(2)
        await self.reader.readexactly(2)
        return b"".join(pieces)
