"""The Ed25519 key that signs certificates and tree heads: a file of its own, apart from the master secret.

The database knows the public keys, in the order in which they came into use; each is endorsed by the one before it. So
somebody who knows one key can follow to the keys after it, and needs no trust in the list.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from service.base.errors import Unavailable
from service.platform.crypto import KEY_BYTES, canonical_json, make_secret_file

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping
    from pathlib import Path

KEY_ID_BYTES = 16
UNSIGNED = frozenset({"signature", "public_key", "consistency"})
"""Members of a certificate that its signature does not cover. Consistency proofs prove themselves or nothing."""
_ENDORSEMENT = b"\x00imprimatur endorses the signing key\x00"
"""No canonical JSON and no tree head begins like this: a signature of one kind never passes for another."""


class NoSigningKey(Unavailable):
    """The signing key file is missing, unreadable, or not the newest key that the database knows."""

    code = "no_signing_key"


class SigningKey:
    """The private key. Nothing of it is ever logged or sent."""

    def __init__(self, seed: bytes) -> None:
        if len(seed) != KEY_BYTES:
            raise NoSigningKey("The signing key file must hold exactly 32 bytes; restore it from your backup.")
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.public_bytes = self._key.public_key().public_bytes(
            serialization.Encoding.Raw, serialization.PublicFormat.Raw
        )

    def __repr__(self) -> str:
        return f"SigningKey({self.id})"

    @classmethod
    def load(cls, path: Path) -> SigningKey:
        """Read the file."""
        try:
            return cls(path.read_bytes())
        except OSError:
            raise NoSigningKey(
                "The signing key file cannot be read; set IMPRIMATUR_SIGNING_KEY_FILE, or restore it from your backup. If it is lost: "
                "`imprimatur key replace-signing --lost`, with the --data of your `up`."
            ) from None

    @classmethod
    def load_or_create(cls, path: Path) -> SigningKey:
        """Read the file, or make one (mode 0600). Two processes that both make it end with the same one."""
        make_secret_file(path)
        return cls.load(path)

    @property
    def id(self) -> str:
        return key_id(self.public_bytes)

    @property
    def public_key(self) -> str:
        """The raw Ed25519 public key, base64: what a stranger needs to check a certificate."""
        return base64.b64encode(self.public_bytes).decode()

    def sign(self, document: Any) -> str:
        """Signature of the document's canonical JSON, base64."""
        return base64.b64encode(self.sign_bytes(canonical_json(document))).decode()

    def sign_bytes(self, message: bytes) -> bytes:
        return self._key.sign(message)

    def endorse(self, public_bytes: bytes) -> bytes:
        """This key's word that another is its successor."""
        return self._key.sign(_ENDORSEMENT + public_bytes)


@dataclass(frozen=True, slots=True)
class PublicKey:
    """One key as the database and certificates list it."""

    id: str
    public_bytes: bytes
    endorsed_by: str | None = None
    endorsement: bytes | None = None
    created_at: dt.datetime | None = None
    """When the key came into use; only the database knows, and no certificate says so."""

    def to_json(self) -> dict[str, str | None]:
        return {
            "id": self.id,
            "public_key": base64.b64encode(self.public_bytes).decode(),
            "endorsed_by": self.endorsed_by,
            "endorsement": None if self.endorsement is None else base64.b64encode(self.endorsement).decode(),
        }

    @classmethod
    def of_json(cls, document: Mapping[str, Any]) -> PublicKey:
        """Raises `ValueError`, `KeyError` or `TypeError` where it is none. The id is computed, not believed."""
        raw, endorsement = base64.b64decode(document["public_key"], validate=True), document["endorsement"]
        return cls(
            key_id(raw),
            raw,
            document["endorsed_by"],
            None if endorsement is None else base64.b64decode(endorsement, validate=True),
        )


def key_id(public_bytes: bytes) -> str:
    """The first 16 bytes of SHA-256 of the raw public key, hexadecimal."""
    return hashlib.sha256(public_bytes).digest()[:KEY_ID_BYTES].hex()


def verify_signature(document: Any, signature: str, public_key: str) -> bool:
    """Whether the signature (base64) is the public key's (base64) on this document. Needs no secret."""
    try:
        raw, key = (base64.b64decode(text, validate=True) for text in (signature, public_key))
        message = canonical_json(document)
    except ValueError:  # no base64, or no number that JSON has
        return False
    return verify_bytes(message, raw, key)


def verify_bytes(message: bytes, signature: bytes, public_bytes: bytes) -> bool:
    """Whether the signature is the key's."""
    try:
        Ed25519PublicKey.from_public_bytes(public_bytes).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def trusted_keys(known: Iterable[bytes], listed: Iterable[PublicKey]) -> dict[str, bytes]:
    """Ids and raw keys of those that are known, and of the listed ones to which endorsements lead from them."""
    trusted = {key_id(raw): raw for raw in known}
    waiting = list(listed)
    grown = True
    while grown:
        grown = False
        for key in waiting:
            endorser = trusted.get(key.endorsed_by or "")
            if endorser is None or key.endorsement is None or key.id in trusted:
                continue
            if verify_bytes(_ENDORSEMENT + key.public_bytes, key.endorsement, endorser):
                trusted[key.id], grown = key.public_bytes, True
    return trusted
