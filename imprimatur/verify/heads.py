"""Signed tree heads: size, root and time of the log at one moment, under a signature. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from imprimatur.verify.merkle import EMPTY_ROOT
from imprimatur.verify.signatures import verify_bytes

_V1, _TREE_HASH = b"\x00", b"\x01"


class Signer(Protocol):
    """A private key, which only the server has."""

    @property
    def id(self) -> str: ...
    def sign_bytes(self, message: bytes) -> bytes: ...


@dataclass(frozen=True, slots=True)
class TreeHead:
    """What its signer says the log was."""

    tree_size: int
    timestamp_ms: int
    root_hash: bytes
    key_id: str
    signature: bytes

    @classmethod
    def sign(cls, key: Signer, *, tree_size: int, timestamp_ms: int, root_hash: bytes) -> TreeHead:
        signature = key.sign_bytes(signed_bytes(tree_size, timestamp_ms, root_hash))
        return cls(tree_size, timestamp_ms, root_hash, key.id, signature)

    def is_signed_by(self, public_bytes: bytes) -> bool:
        return verify_bytes(
            signed_bytes(self.tree_size, self.timestamp_ms, self.root_hash), self.signature, public_bytes
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "tree_size": self.tree_size,
            "timestamp_ms": self.timestamp_ms,
            "root_hash": self.root_hash.hex(),
            "key_id": self.key_id,
            "signature": base64.b64encode(self.signature).decode(),
        }

    @classmethod
    def of_json(cls, document: Mapping[str, Any]) -> TreeHead:
        """Raises `ValueError`, `KeyError` or `TypeError` where it is none."""
        return cls(
            whole(document["tree_size"]),
            whole(document["timestamp_ms"]),
            bytes.fromhex(document["root_hash"]),
            str(document["key_id"]),
            base64.b64decode(document["signature"], validate=True),
        )


def signed_bytes(tree_size: int, timestamp_ms: int, root_hash: bytes) -> bytes:
    """The TreeHeadSignature of RFC 6962, section 3.5: 50 bytes."""
    if len(root_hash) != len(EMPTY_ROOT):
        raise ValueError("a root has 32 bytes")
    return _V1 + _TREE_HASH + timestamp_ms.to_bytes(8, "big") + tree_size.to_bytes(8, "big") + root_hash


def whole(value: Any) -> int:
    """A whole number that fits 63 bits and is not negative; JSON's true and 1.0 are none."""
    if type(value) is not int or not 0 <= value < 1 << 63:
        raise ValueError("not a whole number")
    return value
