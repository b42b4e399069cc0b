"""Replies about the Merkle log."""

from __future__ import annotations

import datetime as dt

from pydantic import BaseModel, Field

from service.platform.paging import NEXT


class TreeHeadReply(BaseModel):
    """Size, root and time of the log, signed (RFC 6962, section 3.5)."""

    tree_size: int
    timestamp_ms: int = Field(description="Milliseconds since 1970.")
    root_hash: str
    key_id: str
    signature: str = Field(description="Ed25519 over the 50 bytes of the TreeHeadSignature, base64.")


class InclusionReply(BaseModel):
    """Where an entry lies in the log, and the path from it to the root."""

    seq: int
    leaf_index: int
    path: list[str]


class InclusionList(BaseModel):
    """Proofs for one tree size, a page of them in order. An entry that is younger is not among them."""

    tree_size: int
    items: list[InclusionReply]
    next: int | None = Field(description=NEXT)


class ConsistencyReply(BaseModel):
    """That the log of `second` entries begins with the log of `first`."""

    first: int
    second: int
    path: list[str]


class SigningKeyReply(BaseModel):
    """One public key, and the word of the key before it."""

    id: str
    public_key: str
    endorsed_by: str | None
    endorsement: str | None
    created_at: dt.datetime


class SigningKeyList(BaseModel):
    """All signing keys the service has had, in order; the last one signs now."""

    items: list[SigningKeyReply]
