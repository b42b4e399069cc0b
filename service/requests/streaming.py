"""Replies whose source must not outlive them."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import anyio
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send


class ClosingStream(StreamingResponse):
    """Closes its source when the reply is over, however it ends: sent, broken off or never begun."""

    def __init__(
        self, source: AsyncGenerator[bytes] | AsyncGenerator[str], media_type: str, headers: dict[str, str]
    ) -> None:
        self._source = source
        super().__init__(source, media_type=media_type, headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            with anyio.CancelScope(shield=True):
                await self._source.aclose()
