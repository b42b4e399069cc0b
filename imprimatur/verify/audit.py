"""The hash chain over one tenant's audit log: a line's hash covers the line, its place and the hash before it. Pure."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

GENESIS = bytes(32).hex()
COVERED = ("action", "id", "key_id", "object_id", "object_kind", "outcome", "request_id", "tenant_id", "unrecorded")


@dataclass(frozen=True)
class AuditChain:
    """What a check of a whole log found. `seq` and `hash` of the newest place: note them, and compare them next time."""

    lines: int
    without_place: int
    seq: int
    hash: str
    faults: list[str] = field(default_factory=list)


def line_hash(line: dict[str, Any], *, seq: int, previous_hash: str) -> str:
    """SHA-256 of the line's canonical JSON, as the database computes it (`audit_hash` of migration 0010)."""
    at = dt.datetime.fromisoformat(line["at"]).astimezone(dt.UTC).isoformat(timespec="microseconds")
    covered = {name: line[name] for name in COVERED} | {
        "at": at,
        "previous_hash": previous_hash,
        "seq": seq,
    }
    canonical = json.dumps(covered, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def verify_audit(lines: Iterable[dict[str, Any]]) -> AuditChain:
    """Check all lines of a tenant's log, in any order: none changed, none missing, none between two others."""
    found = list(lines)
    placed = sorted((line for line in found if line["place"]), key=lambda line: line["place"]["seq"])
    faults, previous = [], GENESIS
    for expected, line in enumerate(placed, start=1):
        place = line["place"]
        if place["seq"] != expected:
            faults.append(f"place {expected}: its line is missing")
            break
        if place["previous_hash"] != previous:
            faults.append(f"place {expected}: it does not follow the line before it")
        if place["hash"] != line_hash(line, seq=expected, previous_hash=place["previous_hash"]):
            faults.append(f"place {expected}: its line was changed")
        previous = place["hash"]
    last: dict[str, Any] = placed[-1]["place"] if placed else {"seq": 0, "hash": GENESIS}
    return AuditChain(len(found), len(found) - len(placed), last["seq"], last["hash"], faults)
