"""A file that hands over what was written since it was last asked: writers of whole files become streams."""

from __future__ import annotations

import io
from typing import Any


class Drain(io.RawIOBase):
    """Write-only; holds no more than was written between two calls of `drain`."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._pieces.append(bytes(data))
        return len(data)

    def drain(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)
