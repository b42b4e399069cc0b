"""Objects by key, in a local folder, S3, GCS or Azure, chosen by one URL. What is private arrives here encrypted.

A put is atomic on every backend: a reader sees the whole object or none, and an iterator that fails half-way leaves
nothing (the local backend writes beside the target and renames; tested).
"""

from __future__ import annotations

import datetime as dt
import hashlib
import hmac
import itertools
import re
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, MemoryStore, ObjectStore, from_url

from service.base.errors import InvalidInput, NotFound, Tampered, Unavailable

CHUNK_BYTES = 4 * 1024 * 1024
PROBE = "probe"
"""What a probe looks for, and how the objects begin that it writes."""
_KEY = re.compile(r"(?!\.+(?:/|$))[A-Za-z0-9_.=-]+(?:/(?!\.+(?:/|$))[A-Za-z0-9_.=-]+)*")

_CLOUDS = frozenset({"s3", "s3a", "gs", "az", "azure", "abfs", "abfss"})

Content = bytes | Path | Iterable[bytes]


class Storage:
    """A thin face of one object store."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    @classmethod
    def from_url(cls, url: str) -> Storage:
        """`file:///folder`, `s3://bucket/prefix`, `gs://…`, `az://…`; credentials come from the usual environment."""
        parts = urlsplit(url)
        if parts.scheme == "memory":
            return cls(MemoryStore())
        if parts.scheme == "file":
            folder = Path(unquote(parts.path))
            if parts.netloc or not folder.is_absolute():
                raise InvalidInput("A local storage URL is file:// followed by an absolute path.", where="storage_url")
            with _translated("open"):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                return cls(LocalStore(folder))
        if parts.scheme not in _CLOUDS:
            raise InvalidInput("A storage URL begins with file://, s3://, gs:// or az://.", where="storage_url")
        with _translated("open"):
            return cls(from_url(url))

    def probe(self, *, write: bool = False) -> None:
        """`Unavailable` unless the store answers. A folder is always written to.

        A cloud only where `write` says so: there every write costs money, and where versions are kept it stays.
        """
        if write or isinstance(self._store, LocalStore | MemoryStore):
            key = f"{PROBE}-{uuid.uuid4().hex}"
            self.put(key, b"imprimatur")
            self.delete(key)
        else:
            next(self.list(PROBE), None)

    def put(self, key: str, content: Content) -> None:
        """Store bytes, a local file, or an iterator of bytes (streamed in parts); replaces what was there."""
        _check_key(key)
        if isinstance(content, Path):
            with content.open("rb") as file, _translated("write"):
                obstore.put(self._store, key, file, chunk_size=CHUNK_BYTES)
            return
        with _translated("write"):
            obstore.put(self._store, key, content, chunk_size=CHUNK_BYTES)

    def put_content(self, prefix: str, content: bytes) -> str:
        """Store bytes under their own SHA-256, so that the same content always has the same key; returns the key."""
        key = f"{prefix.rstrip('/')}/{hashlib.sha256(content).hexdigest()}"
        self.put(key, content)
        return key

    def get_content(self, key: str) -> bytes:
        """The whole object that `put_content` stored; `Tampered` if it is no longer the same."""
        content = self.get(key)
        _require_content(key, hashlib.sha256(content))
        return content

    def stream_content(self, key: str, *, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
        """The content in pieces. One that was changed is never given in full: the last piece waits for the whole hash.

        The first piece is read at once: what is wrong with an object of one piece, or its absence, is told before any.
        """
        checked = _checked(key, self.stream(key, chunk_bytes=chunk_bytes))
        first = next(checked, b"")
        return itertools.chain([first], checked)

    def get(self, key: str) -> bytes:
        """The whole object; `NotFound` if there is none."""
        _check_key(key)
        with _translated("read"):
            return bytes(obstore.get(self._store, key).bytes())

    def stream(self, key: str, *, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
        """The object in pieces. It is looked up at once, so `NotFound` comes before the first piece is asked for."""
        _check_key(key)
        with _translated("read"):
            found = obstore.get(self._store, key)
        return _pieces(found, chunk_bytes)

    def read_range(self, key: str, start: int, stop: int) -> bytes:
        """Bytes start to stop of the object, which has that many."""
        _check_key(key)
        with _translated("read"):
            return bytes(obstore.get_range(self._store, key, start=start, end=stop))

    def size(self, key: str) -> int:
        """Bytes of the object."""
        _check_key(key)
        with _translated("read"):
            return int(obstore.head(self._store, key)["size"])

    def exists(self, key: str) -> bool:
        try:
            self.size(key)
        except NotFound:
            return False
        return True

    def delete(self, key: str) -> None:
        """Remove the object; one that is already gone is fine, so that erasing can be repeated."""
        _check_key(key)
        try:
            with _translated("delete"):
                obstore.delete(self._store, key)
        except NotFound:
            return

    def list(self, prefix: str = "") -> Iterator[str]:
        """Keys below a prefix, which ends at a `/` or at the end of a key."""
        if prefix:
            _check_key(prefix.rstrip("/"))
        with _translated("list"):
            for batch in obstore.list(self._store, prefix.rstrip("/") or None):
                for found in batch:
                    yield found["path"]

    def list_older(self, min_age_seconds: float) -> Iterator[str]:
        """Keys of all objects last written at least that long ago, by the store's clock."""
        limit = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=min_age_seconds)
        with _translated("list"):
            for batch in obstore.list(self._store):
                for found in batch:
                    if found["last_modified"] <= limit:
                        yield found["path"]


def _pieces(found: obstore.GetResult, chunk_bytes: int) -> Iterator[bytes]:
    with _translated("read"):
        for piece in found.stream(min_chunk_size=chunk_bytes):
            yield bytes(piece)


def _checked(key: str, pieces: Iterator[bytes]) -> Iterator[bytes]:
    digest, waiting = hashlib.sha256(), None
    for piece in pieces:
        digest.update(piece)
        if waiting is not None:
            yield waiting
        waiting = piece
    _require_content(key, digest)
    if waiting is not None:
        yield waiting


def _require_content(key: str, digest: hashlib._Hash) -> None:
    """The last part of such a key is the SHA-256 of what was stored."""
    if not hmac.compare_digest(key.rpartition("/")[2], digest.hexdigest()):
        raise Tampered(
            f"the object {key} is not what was stored under this name: its SHA-256 is another. Nothing of it is used;"
            " the operator must put it back from a backup"
        )


def _check_key(key: str) -> None:
    """Keys are made by this service; one that could leave its folder is a bug or an attack, on any backend."""
    if not _KEY.fullmatch(key):
        raise InvalidInput("A storage key is made of letters, digits and _ . = - between single slashes.", where="key")


@contextmanager
def _translated(action: str) -> Iterator[None]:
    """Backend errors name hosts, paths and sometimes credentials, so only their kind is passed on."""
    try:
        yield
    except FileNotFoundError:
        raise NotFound("There is no such object in storage.") from None
    except (BaseError, OSError) as error:
        kind = type(error).__name__
        raise Unavailable(
            f"The object storage could not {action} ({kind}); try again.", retry_after_seconds=5
        ) from None
