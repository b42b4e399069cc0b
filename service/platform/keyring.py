"""The secret key file: independent roots for each purpose, the newest first.

    wrapping      encrypts the data keys of datasets
    api_keys      keys the hashes that are stored of API keys
    fingerprints  keys the fingerprints of rows

Two forms are read. A file of 32 random bytes is one master secret, from which HKDF-SHA256 made the roots: installations
from before the roots were apart have it until they rotate. Any other file is JSON, which names each root in base64. A file
may lack a purpose: a worker's holds `wrapping` alone.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Literal, Self

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from service.base.errors import Unavailable

KEY_BYTES = 32
VERSION = 2
Purpose = Literal["wrapping", "api_keys", "fingerprints"]
PURPOSES: tuple[Purpose, ...] = ("wrapping", "api_keys", "fingerprints")
_DERIVED: dict[Purpose, str] = {"wrapping": "data keys", "api_keys": "api keys", "fingerprints": "row fingerprints"}
"""What HKDF was told for each root of a master secret."""


@dataclass(frozen=True, slots=True, repr=False)
class Keyring:
    """The roots of one file. `first_signing`: seed of the key that signed before there was a signing key file."""

    wrapping: tuple[bytes, ...] = ()
    api_keys: tuple[bytes, ...] = ()
    fingerprints: tuple[bytes, ...] = ()
    first_signing: tuple[bytes, ...] = ()

    @classmethod
    def new(cls) -> Self:
        """Independent random roots."""
        return cls(*((os.urandom(KEY_BYTES),) for _ in PURPOSES))

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """What a file holds. Raises `Unavailable`, without a word of the contents."""
        if len(content) == KEY_BYTES:
            roots = {purpose: (derive(content, words),) for purpose, words in _DERIVED.items()}
            return cls(**roots, first_signing=(derive(content, "certificates"),))
        try:
            document = json.loads(content)
            known = document.pop("version") == VERSION
            ring = cls(**{name: tuple(_root(text) for text in roots) for name, roots in document.items()})
        except (ValueError, TypeError, KeyError, AttributeError, binascii.Error):
            raise Unavailable(
                "The secret key file is neither 32 bytes nor a keyring; restore it from your backup."
            ) from None
        if not known:
            raise Unavailable("The secret key file is of a newer version than this program.")
        return ring

    def to_bytes(self) -> bytes:
        """The content of a file of the second form."""
        roots = {each.name: [base64.b64encode(r).decode() for r in getattr(self, each.name)] for each in fields(self)}
        return (json.dumps({"version": VERSION} | {k: v for k, v in roots.items() if v}, indent=1) + "\n").encode()

    def newest(self, purpose: Purpose) -> bytes:
        """The root that is used for what is new. Raises `Unavailable` where this file has none."""
        if not (roots := self.of(purpose)):
            raise Unavailable(f"The secret key file of this process holds no root for {purpose}.")
        return roots[0]

    def of(self, purpose: Purpose) -> tuple[bytes, ...]:
        roots: tuple[bytes, ...] = getattr(self, purpose)
        return roots


def derive(master: bytes, words: str) -> bytes:
    """A subkey of a master secret; none tells about another."""
    info = f"imprimatur 1 {words}".encode()
    return HKDF(algorithm=hashes.SHA256(), length=KEY_BYTES, salt=None, info=info).derive(master)


def root_id(purpose: Purpose, root: bytes) -> str:
    """A name for a root that tells nothing about it: a keyed hash of a constant, 16 bytes in hexadecimal."""
    return hmac.digest(root, f"imprimatur root {purpose}".encode(), hashlib.sha256)[:16].hex()


def make_file(path: Path, content: bytes) -> None:
    """A file of mode 0600, where there is none yet. Of two processes that make it, one does."""
    if path.exists():
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = _written_beside(path, content)
    try:
        with suppress(FileExistsError):  # the other process was first; a link never shows half a file
            os.link(draft, path)
    finally:
        draft.unlink()


def replace_file(path: Path, content: bytes) -> None:
    """The file with new contents, mode 0600, whole at every moment, on disk when this returns."""
    _written_beside(path, content).replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _written_beside(path: Path, content: bytes) -> Path:
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 0600
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return Path(draft)


def _root(text: str) -> bytes:
    root = base64.b64decode(text, validate=True)
    if len(root) != KEY_BYTES:
        raise ValueError
    return root
