"""Replies whose source must not outlive them, nor those who read them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

import anyio
from fastapi.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

STALLED_SECONDS = 60.0
"""A reader who takes nothing for so long is taken for gone: what is drawn for him holds memory."""


class ClosingStream(StreamingResponse):
    """Closes its source when the reply is over, however it ends: sent, broken off or never begun."""

    def __init__(
        self,
        source: AsyncGenerator[bytes] | AsyncGenerator[str],
        media_type: str,
        headers: dict[str, str],
        *,
        on_close: Callable[[], None] = lambda: None,
    ) -> None:
        self._source, self._on_close = source, on_close
        super().__init__(source, media_type=media_type, headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def patient(message: Message) -> None:
            try:
                async with asyncio.timeout(STALLED_SECONDS):
                    await send(message)
            except TimeoutError:
                raise OSError("the reader takes nothing") from None  # as of one who has gone: Starlette knows these

        try:
            await super().__call__(scope, receive, patient)
        finally:
            with anyio.CancelScope(shield=True):
                await self._source.aclose()
            self._on_close()
