"""Checks of Ed25519 signatures, and of endorsements that lead from one signing key to the next. No secret is needed."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from imprimatur.errors import MissingExtra
from imprimatur.verify.documents import canonical_json

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
except ModuleNotFoundError as error:
    raise MissingExtra("checking signatures", "verify") from error

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping

KEY_BYTES = 32
KEY_ID_BYTES = 16
UNSIGNED = frozenset({"signature", "public_key", "consistency"})
"""Members of a certificate that its signature does not cover. Consistency proofs prove themselves or nothing."""
_ENDORSEMENT = b"\x00imprimatur endorses the signing key\x00"
"""No canonical JSON and no tree head begins like this: a signature of one kind never passes for another."""


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


def endorsed_bytes(public_bytes: bytes) -> bytes:
    """What a key signs to endorse another."""
    return _ENDORSEMENT + public_bytes


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
            if verify_bytes(endorsed_bytes(key.public_bytes), key.endorsement, endorser):
                trusted[key.id], grown = key.public_bytes, True
    return trusted
