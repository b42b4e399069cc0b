"""Whose signatures count: keys that the caller names, keys that were pinned at the first use, and those they endorse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from imprimatur.cli.verification.checks import Word
from imprimatur.verify.signatures import PublicKey, key_id, trusted_keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from imprimatur.cli.verification.memory import Memory


@dataclass(frozen=True)
class Trust:
    """Keys whose signatures count, and on whose word."""

    keys: dict[str, bytes]
    whose: str
    word: Word
    """Verified where the caller knows a key from outside the service; else the service's own list is believed."""
    anchor: str = ""
    fault: str = ""
    """Why no key of the service counts."""

    @classmethod
    def of(
        cls,
        known: Sequence[bytes],
        memory: Memory | None,
        listed: Iterable[PublicKey],
        *,
        served: Sequence[PublicKey] = (),
        service: str = "",
    ) -> Trust:
        """`known`: named by the caller. `listed`: endorsements from anywhere. `served`: all keys that the service lists now."""
        listed = [*listed, *served]
        if known:
            trusted = trusted_keys(known, listed)
            return cls(trusted, "a key you named", Word.VERIFIED, f"key {key_id(known[0])}, which you named")
        if memory is not None and memory.keys:
            newest, since = memory.keys[-1]
            if served and served[-1].id not in trusted_keys([newest], listed):
                return cls({}, "", Word.CONSISTENT, fault=changed_key(memory, served[-1].id))
            anchor = f"key {key_id(newest)}, pinned on {since}"
            trusted = trusted_keys(memory.public_keys, listed)
            return cls(trusted, f"a key of {memory.service} that is pinned", Word.VERIFIED, anchor)
        return cls(
            {key.id: key.public_bytes for key in served}, f"a key of {service}" if served else "", Word.CONSISTENT
        )


def changed_key(memory: Memory, new: str) -> str:
    """The warning that a service signs with another key than before, as ssh warns of a changed host key."""
    newest, since = memory.keys[-1]
    return (
        f"THE SIGNING KEY OF {memory.service} HAS CHANGED. It signs with key {new}; you know key {key_id(newest)} since"
        f" {since}, which does not endorse it. Somebody may answer in the service's place, or have changed its database."
        " Ask its operator by another way. If the key was replaced because it was lost, give the new one with --public-key,"
        f" which pins it instead (or remove {memory.path})"
    )
