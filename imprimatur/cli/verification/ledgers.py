"""A dataset's ledger as the service lists it: its hash chain, its sums, and its place in the signed log."""

from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from imprimatur.cli.verification.checks import Checks
from imprimatur.cli.verification.documents import path_of
from imprimatur.verify import chain, merkle
from imprimatur.verify.heads import TreeHead
from imprimatur.verify.signatures import PublicKey, trusted_keys

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imprimatur.client import Client
    from imprimatur.replies import Entry, Json, LedgerBalance

MOST_HEADS = 100
"""Proofs from the service are counted by address; heads of the newest certificates are enough for one look."""
LATE_MS = 60_000
"""An entry that is this much older than a signed head, and not in its log, is kept out of it."""


@dataclass(frozen=True)
class _Entry:
    dataset_id: uuid.UUID
    seq: int
    release_id: uuid.UUID
    kind: str
    simple: int
    renyi: int
    created_at: dt.datetime
    previous_hash: bytes
    hash: bytes

    @classmethod
    def of(cls, dataset_id: str, entry: Entry) -> _Entry:
        return cls(
            uuid.UUID(dataset_id),
            entry["seq"],
            uuid.UUID(entry["release_id"]),
            entry["kind"],
            entry["simple"],
            entry["renyi"],
            dt.datetime.fromisoformat(entry["created_at"]),
            bytes.fromhex(entry["previous_hash"]),
            bytes.fromhex(entry["hash"]),
        )


@dataclass(frozen=True)
class _Balance:
    simple_pending: int
    simple_posted: int
    renyi_pending: int
    renyi_posted: int
    entry_count: int
    head_hash: bytes

    @classmethod
    def of(cls, balance: LedgerBalance) -> _Balance:
        return cls(
            balance["simple_pending"],
            balance["simple_posted"],
            balance["renyi_pending"],
            balance["renyi_posted"],
            balance["entry_count"],
            bytes.fromhex(balance["head_hash"]),
        )


def verify_ledger(client: Client, dataset_id: str) -> Checks:
    """Compute every hash again, add the entries up again, and look for the entries that certificates name.

    Certificates are signed and in other people's hands: a history that was rewritten as a whole, balance included,
    still lacks what they name.
    """
    releases = client.releases(dataset_id)
    ledger = client.ledger(dataset_id)
    entries = [_Entry.of(dataset_id, entry) for entry in ledger["items"]]
    checks = Checks()
    faults = chain.verify_ledger(entries, _Balance.of(ledger["balance"]))
    checks.faults += faults
    if not faults:
        checks.passed += [
            f"hash chain of {len(entries)} entries, computed again here",
            "entries add up to the balances",
        ]
    fault = f"the service's own check fails: {'; '.join(ledger['faults'])}"
    checks.expect(ledger["verified"], "the service's own check", fault)
    hashes = {entry.seq: entry.hash.hex() for entry in entries}
    named = [certificate["ledger_entry"] for release in releases if (certificate := release["certificate"]) is not None]
    lost = [str(entry["seq"]) for entry in named if hashes.get(entry["seq"]) != entry["hash"]]
    checks.expect(
        not lost,
        f"the entries that {len(named)} certificates name",
        f"certificates name entries that the ledger does not hold as they were: {', '.join(lost)}",
    )
    return checks


def verify_in_log(client: Client, dataset_id: str, known: Sequence[bytes]) -> Checks:
    """That every entry of a dataset is in the log whose head is signed, where certificates say it is.

    Without a known key, the service's own list of keys is believed: a head by itself says little, but two heads, or a
    head and a certificate from another day, cannot both be true of a log that was rewritten.
    """
    checks = Checks()
    releases = client.releases(dataset_id)
    entries = [_Entry.of(dataset_id, entry) for entry in client.ledger(dataset_id)["items"]]
    head = _signed_head(client, known)
    if head is None:
        checks.faults.append("the head of the log is not signed by a key you know")
        return checks
    checks.passed.append(f"head of the log of {head.tree_size} entries, signed by key {head.key_id}")
    proofs = {item["seq"]: item for item in client.inclusion(dataset_id, head.tree_size)["items"]}
    _check_entries(checks, entries, proofs, head)
    certificates = [c for release in releases if (c := release["certificate"]) is not None and "transparency" in c]
    _check_places(checks, certificates, proofs)
    newest = certificates[:MOST_HEADS]
    torn = [str(c["ledger_entry"]["seq"]) for c in newest if not _follows(client, c, head)]
    checks.expect(
        not torn,
        f"the log only grew since {len(newest)} certificates",
        f"the log was REWRITTEN since certificates of entries {', '.join(torn)}",
    )
    return checks


def _signed_head(client: Client, known: Sequence[bytes]) -> TreeHead | None:
    """The newest head, if a key that is trusted has signed it."""
    listed = [PublicKey.of_json(key) for key in client.signing_keys()]
    trusted = trusted_keys(known or [key.public_bytes for key in listed], listed)
    head = TreeHead.of_json(client.tree_head())
    signer = trusted.get(head.key_id)
    return head if signer is not None and head.is_signed_by(signer) else None


def _check_entries(checks: Checks, entries: list[_Entry], proofs: dict[int, Json], head: TreeHead) -> None:
    """Each entry is in the log, or newer than its head."""
    in_log = [entry for entry in entries if entry.seq in proofs]
    changed = [entry.seq for entry in in_log if not _is_included(entry, proofs[entry.seq], head)]
    checks.faults += [f"entry {seq} is not in the log as it is in the ledger: it was changed" for seq in changed]
    if not changed:
        newer = "" if len(in_log) == len(entries) else ", the others are newer"
        checks.passed.append(f"{len(in_log)} of {len(entries)} entries are in it{newer}")
    late = [
        str(entry.seq)
        for entry in entries
        if entry.seq not in proofs and head.timestamp_ms - entry.created_at.timestamp() * 1_000 > LATE_MS
    ]
    checks.expect(not late, "no entry is kept out of the log", f"entries are kept out of the log: {', '.join(late)}")


def _is_included(entry: _Entry, proof: Json, head: TreeHead) -> bool:
    path = path_of(proof["path"])
    return merkle.verify_inclusion(entry.hash, proof["leaf_index"], head.tree_size, path, head.root_hash)


def _check_places(checks: Checks, certificates: list[Json], proofs: dict[int, Json]) -> None:
    """Certificates name the places in the log that their entries have."""
    moved = [
        str(c["ledger_entry"]["seq"])
        for c in certificates
        if proofs.get(c["ledger_entry"]["seq"], {}).get("leaf_index") != c["transparency"]["inclusion"]["leaf_index"]
    ]
    checks.expect(
        not moved,
        f"{len(certificates)} certificates name the places of their entries",
        f"certificates name other places in the log for entries: {', '.join(moved)}",
    )


def _follows(client: Client, certificate: Json, head: TreeHead) -> bool:
    """Whether the log of this head begins with that of the certificate."""
    earlier = TreeHead.of_json(certificate["transparency"]["tree_head"])
    first, second = earlier.tree_size, head.tree_size
    path = path_of(client.consistency(first, second)["path"]) if first < second else []
    return merkle.verify_consistency(first, second, path, earlier.root_hash, head.root_hash)
