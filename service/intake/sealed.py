"""Files without a name that only this process, and the child they are handed to, can read: AES-256-CTR under a fresh key.

Uploads and what is made of them lie in the scratch folder for seconds or minutes. A process that is killed leaves
nothing there: the folder never named the file, and the key is gone with the memory it was in. The mode has no tags: the
file is out of reach but for root, and what is kept longer is encrypted anew, with tags (`service/platform/crypto.py`).
"""

from __future__ import annotations

import io
import os
import tempfile
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol, Self, cast

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CTR

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from _typeshed import ReadableBuffer, WriteableBuffer

KEY_BYTES = 32
PIECE_BYTES = 256 * 1024
_BLOCK_BYTES = 16


class SealedFile:
    """An open file, read and written at any place. No place may be written twice: the same key stream would show both."""

    def __init__(self, descriptor: int, key: bytes | None) -> None:
        self.descriptor = descriptor
        self._key = key
        self._end = os.fstat(descriptor).st_size

    @classmethod
    def create(cls, folder: Path | None) -> Self:
        """A new one, in a folder that does not name it."""
        with tempfile.TemporaryFile(prefix="imprimatur-", dir=folder) as file:
            return cls(os.dup(file.fileno()), os.urandom(KEY_BYTES))

    @classmethod
    def in_the_clear(cls, path: Path) -> Self:
        """The owner's own file, on the owner's machine, as it is. For reading."""
        return cls(os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)), None)

    @classmethod
    def handed_over(cls, document: dict[str, Any]) -> Self:
        """What the parent of this process has handed over with `handle`."""
        key = document["key"]
        return cls(document["descriptor"], None if key is None else bytes.fromhex(key))

    def handle(self) -> dict[str, Any]:
        """The descriptor and the key, for the child's standard input and nowhere else."""
        return {"descriptor": self.descriptor, "key": None if self._key is None else self._key.hex()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the room back. Once is enough; more does no harm."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    @property
    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    def read_at(self, place: int, size: int) -> bytes:
        """At most `size` bytes from a place on; fewer at the end of the file."""
        pieces = []
        while size > 0 and (piece := os.pread(self.descriptor, size, place)):
            pieces.append(self._turned(piece, place))
            place, size = place + len(piece), size - len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def write_at(self, place: int, data: ReadableBuffer) -> None:
        """Write at a place where nothing was written before."""
        turned = memoryview(self._turned(data, place))
        while turned:
            written = os.pwrite(self.descriptor, turned, place)
            turned, place = turned[written:], place + written

    def append(self, data: ReadableBuffer) -> int:
        """Write behind all that was appended, and return that place. From one thread at a time."""
        place = self._end
        self.write_at(place, data)
        self._end += memoryview(data).nbytes
        return place

    def reader(self) -> BinaryIO:
        """The content from its beginning on, with a place of its own."""
        return cast("BinaryIO", io.BufferedReader(_Reading(self), PIECE_BYTES))

    def writer(self) -> BinaryIO:
        """What is written to it is appended, in large pieces; closing it leaves the file open."""
        return cast("BinaryIO", io.BufferedWriter(_Appending(self), PIECE_BYTES))

    def pieces(self) -> Iterator[bytes]:
        """The whole content."""
        place = 0
        while piece := self.read_at(place, PIECE_BYTES):
            yield piece
            place += len(piece)

    def _turned(self, data: ReadableBuffer, place: int) -> bytes:
        """Encrypted, or decrypted, which is the same."""
        if self._key is None:
            return bytes(data)
        block, into = divmod(place, _BLOCK_BYTES)
        cipher = Cipher(AES(self._key), CTR(block.to_bytes(_BLOCK_BYTES, "big"))).encryptor()
        cipher.update(bytes(into))
        return cipher.update(memoryview(data).cast("B"))


class _Readable(Protocol):
    @property
    def size(self) -> int: ...

    def read_at(self, place: int, size: int) -> bytes: ...


def reading(file: _Readable) -> io.RawIOBase:
    """What can be read at any place, as a stream."""
    return _Reading(file)


class _Reading(io.RawIOBase):
    def __init__(self, file: _Readable) -> None:
        self._file = file
        self._place = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = self._file.size if whence == os.SEEK_END else self._place if whence == os.SEEK_CUR else 0
        self._place = max(0, base + offset)
        return self._place

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        piece = self._file.read_at(self._place, len(view))
        view[: len(piece)] = piece
        self._place += len(piece)
        return len(piece)


class _Appending(io.RawIOBase):
    def __init__(self, file: SealedFile) -> None:
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer) -> int:
        self._file.append(data)
        return memoryview(data).nbytes
