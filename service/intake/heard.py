"""A file that says how much of it has been read."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from service.intake.sealed import PIECE_BYTES, reading

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from service.intake.room import Source


class Heard:
    """Reads as its source does. What is read twice counts twice, up to the whole."""

    def __init__(self, source: Source, hear: Callable[[float], object]) -> None:
        self._source, self._hear = source, hear
        self._is_heard = True
        self._read = 0

    @property
    def size(self) -> int:
        return self._source.size

    @property
    def share(self) -> float:
        """The share of the file's bytes that has been read so far."""
        return min(1.0, self._read / max(1, self.size))

    def read_at(self, place: int, size: int) -> bytes:
        piece = self._source.read_at(place, size)
        self._read += len(piece)
        if self._is_heard:
            self._hear(self.share)
        return piece

    def reader(self) -> BinaryIO:
        return io.BufferedReader(reading(self), buffer_size=PIECE_BYTES)

    def stop(self) -> float:
        """Say no more of it; the share that was read."""
        self._is_heard = False
        return self.share
