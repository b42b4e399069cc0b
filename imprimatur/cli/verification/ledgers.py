"""A dataset's ledger as the service lists it: its hash chain, its sums, and its place in the signed log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imprimatur.cli.verification.checks import Checks, Word
from imprimatur.cli.verification.documents import path_of
from imprimatur.cli.verification.history import Kept, check_head, follows, kept_heads, remember
from imprimatur.cli.verification.trust import Trust
from imprimatur.verify import chain, merkle
from imprimatur.verify.heads import TreeHead
from imprimatur.verify.ledgers import ListedBalance, ListedEntry
from imprimatur.verify.signatures import PublicKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imprimatur.cli.verification.memory import KnownLedger, Memory
    from imprimatur.client import Client
    from imprimatur.replies import Json

MOST_HEADS = 100
"""Proofs from the service are counted by address; heads of the newest certificates are enough for one look."""
LATE_MS = 60_000
"""An entry that is this much older than a signed head, and not in its log, is kept out of it."""


def verify_ledger(client: Client, dataset_id: str) -> Checks:
    """Compute every hash again, add the entries up again, and look for the entries that certificates name.

    All of it comes from the service: who rewrites the database can make it agree, certificates too. So what holds
    here is consistent, and no more.
    """
    releases = client.releases(dataset_id)
    ledger = client.ledger(dataset_id)
    entries = [ListedEntry.of(dataset_id, entry) for entry in ledger["items"]]
    checks = Checks()
    faults = chain.verify_ledger(entries, ListedBalance.of(ledger["balance"]))
    checks.faults += faults
    if not faults:
        checks.hold(f"hash chain of {len(entries)} entries, computed again here")
        checks.hold("entries add up to the balances")
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


def verify_in_log(
    client: Client,
    dataset_id: str,
    known: Sequence[bytes],
    memory: Memory | None = None,
    named: TreeHead | None = None,
) -> Checks:
    """Check that every entry of a dataset is in the log whose head is signed, where certificates say it is.

    The head must follow the one that the caller names and the one in the memory, and the ledger what the memory holds
    of it. Without any of them the service is held against itself alone: a head by itself says little, but two heads
    from different days cannot both be true of a log that was rewritten. What held is then put into the memory.
    """
    checks = Checks()
    releases = client.releases(dataset_id)
    entries = [ListedEntry.of(dataset_id, entry) for entry in client.ledger(dataset_id)["items"]]
    listed = tuple(PublicKey.of_json(key) for key in client.signing_keys())
    trust = Trust.of(known, memory, (), served=listed, service="this service")
    if trust.fault:
        checks.faults.append(trust.fault)
        return checks
    kept = kept_heads(memory, named)
    head = check_head(checks, client, trust, kept)
    if head is None:
        return checks
    proofs = {item["seq"]: item for item in client.inclusion(dataset_id, head.tree_size)["items"]}
    _check_entries(checks, entries, proofs, head)
    _anchor(checks, entries, proofs, kept, None if memory is None else memory.ledgers.get(dataset_id))
    certificates = [c for release in releases if (c := release["certificate"]) is not None and "transparency" in c]
    _check_places(checks, certificates, proofs)
    newest = certificates[:MOST_HEADS]
    heads = {str(c["ledger_entry"]["seq"]): TreeHead.of_json(c["transparency"]["tree_head"]) for c in newest}
    torn = [seq for seq, earlier in heads.items() if not follows(client, earlier, head)]
    checks.expect(
        not torn,
        f"the log only grew since {len(newest)} certificates",
        f"the log was REWRITTEN since certificates of entries {', '.join(torn)}",
    )
    if memory is not None and not checks.faults:
        remember(memory, trust, listed, head)
        memory.keep_ledger(dataset_id, [entry.hash for entry in entries])
    return checks


def _anchor(
    checks: Checks, entries: list[ListedEntry], proofs: dict[int, Json], kept: list[Kept], seen: KnownLedger | None
) -> None:
    """How much of the ledger is held against something from before: what the caller saw, or a head that it kept."""
    up_to = 0
    if seen is not None:
        same = len(entries) >= seen.entries and entries[seen.entries - 1].hash == seen.hash
        checks.expect(
            same,
            f"the first {seen.entries} entries are those that are remembered since {seen.since}",
            f"the ledger was REWRITTEN or rolled back: its first {seen.entries} entries are not those that are"
            f" remembered since {seen.since}",
            Word.VERIFIED,
        )
        up_to = seen.entries
        checks.anchors.append(f"the {seen.entries} entries remembered since {seen.since}")
    for each in kept:
        covered = 0
        for entry in entries:
            if entry.seq not in proofs or proofs[entry.seq]["leaf_index"] >= each.head.tree_size:
                break
            covered += 1
        if covered:
            checks.hold(f"the first {covered} entries are in the log of {each.whence}", each.word)
            checks.anchors.append(each.whence)
        up_to = max(up_to, covered)
    if up_to < len(entries):
        checks.up_to = f" up to entry {up_to} of {len(entries)}"
        newer = f"{len(entries) - up_to} of {len(entries)} entries are"
        checks.notes.append(f"{newer} held against nothing from outside the service: they are consistent, not verified")


def _check_entries(checks: Checks, entries: list[ListedEntry], proofs: dict[int, Json], head: TreeHead) -> None:
    """Each entry is in the log, or newer than its head."""
    in_log = [entry for entry in entries if entry.seq in proofs]
    changed = [entry.seq for entry in in_log if not _is_included(entry, proofs[entry.seq], head)]
    checks.faults += [f"entry {seq} is not in the log as it is in the ledger: it was changed" for seq in changed]
    if not changed:
        newer = "" if len(in_log) == len(entries) else ", the others are newer"
        checks.hold(f"{len(in_log)} of {len(entries)} entries are in it{newer}")
    late = [
        str(entry.seq)
        for entry in entries
        if entry.seq not in proofs and head.timestamp_ms - entry.created_at.timestamp() * 1_000 > LATE_MS
    ]
    checks.expect(not late, "no entry is kept out of the log", f"entries are kept out of the log: {', '.join(late)}")


def _is_included(entry: ListedEntry, proof: Json, head: TreeHead) -> bool:
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
