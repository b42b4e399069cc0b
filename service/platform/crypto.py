"""Everything secret, by the roots of the secret key file (`service.platform.keyring`).

Rows and bundles are encrypted with
AES-256-GCM in chunks, the STREAM construction (Hoang, Reyhanitabar, Rogaway, Vizár 2015, as in Tink): the nonce of a
chunk holds its number and whether it is the last, so a chunk that is changed, moved, left out or cut off is noticed.
"""

from __future__ import annotations

import hashlib
import hmac
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from service.base.errors import Tampered, Unavailable
from service.platform.keyring import KEY_BYTES, Keyring, make_file, root_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from uuid import UUID

    from _typeshed import WriteableBuffer

CHUNK_BYTES = 256 * 1024
_TAG_BYTES = 16
_NONCE_BYTES = 12
_MAGIC = b"IMPRIM\x00\x01"  # the last byte is the version of the format
_SALT_BYTES = 32
_PREFIX_BYTES = 7
HEADER_BYTES = len(_MAGIC) + _SALT_BYTES + _PREFIX_BYTES
_MAX_CHUNKS = 2**32
_SEALED_BYTES = CHUNK_BYTES + _TAG_BYTES
_WINDOW_CHUNKS = 16
"""Chunks that a file read at any place fetches, decrypts and holds at once."""


class Secrets:
    """The roots of the secret key file and what is made from them. Nothing here is ever logged or sent.

    A file that was replaced is read again when something new is encrypted, and when something cannot be read: a
    rotation needs no restart of the processes that see the file.
    """

    def __init__(self, content: bytes, path: Path | None = None) -> None:
        self.ring = Keyring.from_bytes(content)
        self._path = path
        self._seen = _state_of(path)

    def __repr__(self) -> str:
        return "Secrets(…)"

    @classmethod
    def load(cls, path: Path | None) -> Secrets:
        """Read the secret key file. Without one there are no roots: that of the relay."""
        if path is None:
            return cls(Keyring().to_bytes())
        try:
            return cls(path.read_bytes(), path)
        except OSError as error:
            raise Unavailable(
                f"The secret key file {path} cannot be read ({error.strerror}): set IMPRIMATUR_SECRET_KEY_FILE, or restore it."
            ) from None

    @classmethod
    def load_or_create(cls, path: Path) -> Secrets:
        """Read the secret key file, or make one (mode 0600). Two processes that both make it end with the same one."""
        make_file(path, Keyring.new().to_bytes())
        return cls.load(path)

    def reload(self) -> bool:
        """Read the file again if it is another one than before; whether it was."""
        state = _state_of(self._path)
        if self._path is None or state is None or state == self._seen:
            return False
        self.ring, self._seen = Keyring.from_bytes(self._path.read_bytes()), state
        return True

    # API keys

    def api_key_digest(self, api_key: str) -> bytes:
        """What is stored of an API key: a keyed hash. API keys are long and random, so no slow hash is needed."""
        return _keyed_hash(self.ring.newest("api_keys"), api_key)

    def api_key_digests(self, api_key: str) -> list[bytes]:
        """What may be stored of an API key, under each root."""
        return [_keyed_hash(root, api_key) for root in self.ring.api_keys]

    @property
    def api_key_root(self) -> str:
        """Under which root the digest of a new API key lies."""
        return root_id("api_keys", self.ring.newest("api_keys"))

    def matches_api_key(self, api_key: str, stored: bytes) -> bool:
        """Whether the key is the stored one, in constant time."""
        matches = [hmac.compare_digest(digest, stored) for digest in self.api_key_digests(api_key)]
        return any(matches)  # under each root, so that the time does not tell under which

    def session_digests(self, token: str) -> list[bytes]:
        """What may be stored of a session of the page, under each root; the first one is of a new session.

        Keyed, so that who can write to the database cannot begin a session. The byte in front is in no UTF-8, so that no text, sent
        as an API key, has the digest of a session.
        """
        return [hmac.digest(root, b"\xff" + token.encode(), hashlib.sha256) for root in self.ring.api_keys]

    # rows

    @property
    def fingerprint_key(self) -> bytes:
        """Key of the row fingerprints: without it, a guess of a row cannot be tested against a stored fingerprint."""
        return self.ring.newest("fingerprints")

    @staticmethod
    def new_data_key() -> bytes:
        """A fresh key for one dataset. It is kept only wrapped; destroying that destroys the rows."""
        return os.urandom(KEY_BYTES)

    def wrap_data_key(self, data_key: bytes, dataset_id: UUID | str) -> bytes:
        """The data key encrypted under the newest root and bound to the dataset's id (its associated data)."""
        self.reload()
        nonce = os.urandom(_NONCE_BYTES)
        return nonce + AESGCM(self.ring.newest("wrapping")).encrypt(nonce, data_key, str(dataset_id).encode())

    def unwrap_data_key(self, wrapped: bytes, dataset_id: UUID | str) -> bytes:
        """The data key; `Tampered` if it was changed, belongs to another dataset, or to another secret key file."""
        for root in self.ring.wrapping:
            if (data_key := unwrapped(root, wrapped, dataset_id)) is not None:
                return data_key
        if self.reload():
            return self.unwrap_data_key(wrapped, dataset_id)
        raise Tampered("The data key does not belong to this dataset and this secret key file.")

    # certificates

    @property
    def first_signing_seed(self) -> bytes | None:
        """The key that signed certificates before there was a signing key file; it endorses the key of the first one."""
        return self.ring.first_signing[0] if self.ring.first_signing else None


def unwrapped(root: bytes, wrapped: bytes, dataset_id: UUID | str) -> bytes | None:
    """The data key, if it was wrapped under this root for this dataset."""
    nonce, sealed = wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:]
    try:
        return AESGCM(root).decrypt(nonce, sealed, str(dataset_id).encode())
    except (InvalidTag, ValueError):
        return None


def _keyed_hash(root: bytes, api_key: str) -> bytes:
    return hmac.digest(root, api_key.encode(), hashlib.sha256)


def _state_of(path: Path | None) -> tuple[int, int, int] | None:
    """What changes when a file is replaced."""
    try:
        found = path.stat() if path is not None else None
    except OSError:
        return None
    return None if found is None else (found.st_ino, found.st_mtime_ns, found.st_size)


def make_secret_file(path: Path) -> None:
    """32 random bytes in a file of mode 0600, where there is none yet. Of two processes that make it, one does."""
    make_file(path, os.urandom(KEY_BYTES))


def encrypt(pieces: Iterable[bytes], key: bytes, *, context: str = "") -> Iterator[bytes]:
    """Encrypt a stream: a header, then chunks. Decrypting needs the same key and the same context.

    Layout: magic, salt, nonce prefix; then AES-256-GCM chunks of CHUNK_BYTES + 16, the last one shorter.
    Each file has its own key, HKDF(key, salt, context), so nonces of different files never meet. The prefix is derived in
    the same way, so that a header says of itself what it belongs to.
    """
    salt = os.urandom(_SALT_BYTES)
    prefix = _prefix_of(key, salt, context)
    cipher = _file_cipher(key, salt, context)
    yield _MAGIC + salt + prefix
    for number, (chunk, last) in enumerate(_chunks(pieces, CHUNK_BYTES)):
        yield cipher.encrypt(_nonce(prefix, number, last=last), chunk, None)


def decrypt(pieces: Iterable[bytes], key: bytes, *, context: str = "") -> Iterator[bytes]:
    """Decrypt a stream; `Tampered` at the first wrong chunk.

    The end is only known to be genuine once the iterator is exhausted: act on the whole, or on none of it.
    """
    stream = iter(pieces)
    header = b""
    for piece in stream:
        header += piece
        if len(header) >= HEADER_BYTES:
            break
    if len(header) < HEADER_BYTES or not header.startswith(_MAGIC):
        raise Tampered("The stored data is not in this service's encrypted format.")
    salt = header[len(_MAGIC) : len(_MAGIC) + _SALT_BYTES]
    prefix = header[len(_MAGIC) + _SALT_BYTES : HEADER_BYTES]
    cipher = _file_cipher(key, salt, context)
    rest = _prepend(header[HEADER_BYTES:], stream)
    for number, (chunk, last) in enumerate(_chunks(rest, CHUNK_BYTES + _TAG_BYTES)):
        try:
            yield cipher.decrypt(_nonce(prefix, number, last=last), chunk, None)
        except (InvalidTag, ValueError):
            raise Tampered("The stored data was changed, cut off or encrypted with another key.") from None


def is_header_of(header: bytes, key: bytes, *, context: str) -> bool:
    """Whether a file that begins so was encrypted with this key and context: nothing of its content is decrypted for it.

    A first look: who copies headers passes it, and fails at the chunks. Of files from before revision 0030 it says nothing.
    """
    salt, prefix = header[len(_MAGIC) : len(_MAGIC) + _SALT_BYTES], header[len(_MAGIC) + _SALT_BYTES : HEADER_BYTES]
    return header.startswith(_MAGIC) and hmac.compare_digest(prefix, _prefix_of(key, salt, context))


def open_decrypted(read_range: Callable[[int, int], bytes], size: int, key: bytes, *, context: str = "") -> BinaryIO:
    """The plain data as a file to be read at any place, of which a few MiB are held at a time.

    `read_range(start, stop)` gives those bytes of the encrypted object of `size` bytes. Its end is checked at once: a
    chunk that is the last says so, and every chunk its number, so whatever is read afterwards is genuine too.
    `Tampered` at the first wrong chunk.
    """
    return cast("BinaryIO", io.BufferedReader(_DecryptedFile(read_range, size, key, context), CHUNK_BYTES))


class _DecryptedFile(io.RawIOBase):
    def __init__(self, read_range: Callable[[int, int], bytes], size: int, key: bytes, context: str) -> None:
        header = read_range(0, min(size, HEADER_BYTES))
        if len(header) < HEADER_BYTES or not header.startswith(_MAGIC):
            raise Tampered("The stored data is not in this service's encrypted format.")
        salt, self._prefix = header[len(_MAGIC) : len(_MAGIC) + _SALT_BYTES], header[len(_MAGIC) + _SALT_BYTES :]
        self._cipher = _file_cipher(key, salt, context)
        self._read_range, self._size = read_range, size
        self._chunks = max(1, -(-(size - HEADER_BYTES) // _SEALED_BYTES))
        self._length = size - HEADER_BYTES - self._chunks * _TAG_BYTES
        self._place = 0
        self._window, self._window_start = b"", 0
        self._fetch(self._chunks - 1)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._place

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._place, os.SEEK_END: self._length}[whence]
        self._place = max(0, base + offset)
        return self._place

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        if self._place >= self._length:
            return 0
        if not self._window_start <= self._place < self._window_start + len(self._window):
            self._fetch(self._place // CHUNK_BYTES)
        start = self._place - self._window_start
        part = self._window[start : start + len(view)]
        view[: len(part)] = part
        self._place += len(part)
        return len(part)

    def _fetch(self, first: int) -> None:
        """Decrypt a few chunks from that number on."""
        stop = min(self._chunks, first + _WINDOW_CHUNKS)
        begin = HEADER_BYTES + first * _SEALED_BYTES
        sealed = self._read_range(begin, min(self._size, HEADER_BYTES + stop * _SEALED_BYTES))
        pieces = []
        for number in range(first, stop):
            at = (number - first) * _SEALED_BYTES
            nonce = _nonce(self._prefix, number, last=number == self._chunks - 1)
            try:
                pieces.append(self._cipher.decrypt(nonce, sealed[at : at + _SEALED_BYTES], None))
            except (InvalidTag, ValueError):
                raise Tampered("The stored data was changed, cut off or encrypted with another key.") from None
        self._window, self._window_start = b"".join(pieces), first * CHUNK_BYTES


def _chunks(pieces: Iterable[bytes], size: int) -> Iterator[tuple[bytes, bool]]:
    """Regroup into chunks of exactly `size`, the last one shorter or equal and marked; at least one chunk."""
    held = bytearray()
    for piece in pieces:
        held += piece
        while len(held) > size:  # strictly: a full chunk may still be the last
            yield bytes(held[:size]), False
            del held[:size]
    yield bytes(held), True


def _prepend(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _nonce(prefix: bytes, number: int, *, last: bool) -> bytes:
    if number >= _MAX_CHUNKS:
        raise Unavailable("The data is too large for one encrypted file.")
    return prefix + number.to_bytes(4, "big") + bytes([last])


def _file_cipher(key: bytes, salt: bytes, context: str) -> AESGCM:
    if len(key) != KEY_BYTES:
        raise Tampered("A data key has 32 bytes.")
    return AESGCM(_derive(key, salt=salt, info=_MAGIC + context.encode()))


def _prefix_of(key: bytes, salt: bytes, context: str) -> bytes:
    return _derive(key, salt=salt, info=b"nonce prefix of " + _MAGIC + context.encode())[:_PREFIX_BYTES]


def _derive(key: bytes, *, salt: bytes | None, info: bytes) -> bytes:
    return HKDF(algorithm=hashes.SHA256(), length=KEY_BYTES, salt=salt, info=info).derive(key)
