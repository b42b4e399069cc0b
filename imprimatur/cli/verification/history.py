"""The newest head of a service's log, held against heads from before: the log must only have grown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from imprimatur.cli.verification.checks import Word
from imprimatur.cli.verification.documents import path_of
from imprimatur.errors import ApiError
from imprimatur.verify import merkle
from imprimatur.verify.heads import TreeHead

if TYPE_CHECKING:
    from imprimatur.cli.verification.checks import Checks
    from imprimatur.cli.verification.memory import Memory
    from imprimatur.cli.verification.trust import Trust
    from imprimatur.client import Client
    from imprimatur.verify.signatures import PublicKey

PASSING = frozenset({0, 429, 502, 503, 504})
"""Replies that say nothing about the log: no answer, or one to ask again for."""


@dataclass(frozen=True)
class Kept:
    """A head from before, and where the caller has it from."""

    head: TreeHead
    whence: str
    word: Word = Word.VERIFIED


def kept_heads(memory: Memory | None, named: TreeHead | None) -> list[Kept]:
    """What the caller has from outside the service. A head of an empty log fixes nothing."""
    heads = []
    if named is not None:
        heads.append(Kept(named, f"the head of {named.tree_size} entries that you named"))
    if memory is not None and memory.head is not None:
        size, since = memory.head.tree_size, memory.head_since
        heads.append(Kept(memory.head, f"the head of {size} entries that is remembered since {since}"))
    return [kept for kept in heads if kept.head.tree_size > 0]


def check_head(checks: Checks, client: Client, trust: Trust, kept: list[Kept]) -> TreeHead | None:
    """The newest head, if a key that counts has signed it and it follows each that was kept."""
    head = TreeHead.of_json(client.tree_head())
    signer = trust.keys.get(head.key_id)
    if signer is None or not head.is_signed_by(signer):
        checks.faults.append("the head of the log is not signed by a key you know")
        return None
    checks.hold(f"head of the log of {head.tree_size} entries, signed by key {head.key_id}", trust.word)
    for each in kept:
        checks.expect(
            follows(client, each.head, head),
            f"the log only grew since {each.whence}",
            f"the log was REWRITTEN or rolled back since {each.whence}: that of {head.tree_size} entries, which the"
            " service signs now, does not begin with it. Where the operator says why (a backup that was restored),"
            " everything after the backup was lost, charges too",
            each.word,
        )
    checks.head = head
    return head


def remember(memory: Memory, trust: Trust, listed: tuple[PublicKey, ...], head: TreeHead | None) -> None:
    """What was found to hold is what the next look is held against."""
    if listed and listed[-1].id in trust.keys:
        memory.pin(listed)
    if head is not None:
        memory.keep_head(head)


def follows(client: Client, earlier: TreeHead, later: TreeHead) -> bool:
    """Whether the log of the later head begins with that of the earlier one. The proof needs no trust."""
    first, second = earlier.tree_size, later.tree_size
    if first > second:
        return False
    path: list[bytes] = []
    if first < second:
        try:
            path = path_of(client.consistency(first, second)["path"])
        except ApiError as error:
            if error.status in PASSING:
                raise
            return False
        except (KeyError, TypeError, ValueError):
            return False
    return merkle.verify_consistency(first, second, path, earlier.root_hash, later.root_hash)
