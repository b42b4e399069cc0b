"""Room for what an upload unpacks to: parts of one sealed file, never more bytes than the upload's size allows."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

from service.base.errors import TooLarge
from service.base.messages import Message
from service.intake.sealed import PIECE_BYTES, SealedFile, reading

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self


class Source(Protocol):
    """Bytes that can be read at any place: an upload, or a part of what was unpacked from it."""

    @property
    def size(self) -> int: ...

    def read_at(self, place: int, size: int) -> bytes: ...

    def reader(self) -> BinaryIO: ...


class Part:
    """A stretch of a sealed file."""

    def __init__(self, file: SealedFile, start: int, size: int) -> None:
        self._file = file
        self._start = start
        self.size = size

    def read_at(self, place: int, size: int) -> bytes:
        """So many bytes, fewer at the end."""
        return self._file.read_at(self._start + place, max(0, min(size, self.size - place)))

    def reader(self) -> BinaryIO:
        """The content from its beginning on, with a place of its own."""
        return cast("BinaryIO", io.BufferedReader(reading(self), PIECE_BYTES))


class Room:
    """Keeps what is unpacked, one after the other. From one thread."""

    def __init__(self, file: SealedFile, limit_bytes: int) -> None:
        self._file = file
        self._limit_bytes = limit_bytes
        self._held_bytes = 0

    @classmethod
    def of_its_own(cls, limit_bytes: int) -> Self:
        """Room in the system's folder for temporary files, encrypted under a key that is never stored."""
        return cls(SealedFile.create(None), limit_bytes)

    def keep(self, pieces: Iterable[bytes]) -> Part:
        """The pieces as one part; `TooLarge` where all that was kept is more than the upload may become."""
        start, size = None, 0
        for piece in pieces:
            self._held_bytes += len(piece)
            if self._held_bytes > self._limit_bytes:
                raise TooLarge(
                    Message(
                        "The file unpacks to more than %(most)s bytes, far more than its own size.",
                        most=self._limit_bytes,
                    ),
                    limit_bytes=self._limit_bytes,
                )
            place = self._file.append(piece)
            start, size = place if start is None else start, size + len(piece)
        return Part(self._file, start or 0, size)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Give the room back, where it is of its own."""
        self._file.close()
