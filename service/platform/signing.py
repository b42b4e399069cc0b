"""The Ed25519 key that signs certificates and tree heads: a file of its own, apart from the master secret.

The database knows the public keys, in the order in which they came into use; each is endorsed by the one before it. So
somebody who knows one key can follow to the keys after it, and needs no trust in the list.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from imprimatur.verify.documents import canonical_json
from imprimatur.verify.signatures import endorsed_bytes, key_id
from service.base.errors import Unavailable
from service.platform.crypto import make_secret_file
from service.platform.keyring import KEY_BYTES

if TYPE_CHECKING:
    from pathlib import Path


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
        return self._key.sign(endorsed_bytes(public_bytes))
