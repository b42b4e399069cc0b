"""The hash chain of a dataset's ledger and the check that entries and balances tell the same story. Pure."""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

GENESIS = bytes(32)


class Entry(Protocol):
    """What the chain needs to know of an entry; rows of the table and parsed JSON both fit."""

    @property
    def dataset_id(self) -> uuid.UUID: ...
    @property
    def seq(self) -> int: ...
    @property
    def release_id(self) -> uuid.UUID: ...
    @property
    def kind(self) -> str: ...
    @property
    def simple(self) -> int: ...
    @property
    def renyi(self) -> int: ...
    @property
    def created_at(self) -> dt.datetime: ...
    @property
    def previous_hash(self) -> bytes: ...
    @property
    def hash(self) -> bytes: ...


class Amounts(Protocol):
    """Both accounts, in nano-shares: a row of the table, a part of a larger row, or parsed JSON."""

    @property
    def simple_pending(self) -> int: ...
    @property
    def simple_posted(self) -> int: ...
    @property
    def renyi_pending(self) -> int: ...
    @property
    def renyi_posted(self) -> int: ...


class Head(Amounts, Protocol):
    """What a balance says of its entries: their sums, their number, the last one's hash."""

    @property
    def entry_count(self) -> int: ...
    @property
    def head_hash(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Totals:
    """Both accounts, in nano-shares."""

    simple_pending: int = 0
    simple_posted: int = 0
    renyi_pending: int = 0
    renyi_posted: int = 0


def entry_hash(
    *,
    dataset_id: uuid.UUID,
    seq: int,
    release_id: uuid.UUID,
    kind: str,
    simple: int,
    renyi: int,
    created_at: dt.datetime,
    previous_hash: bytes,
) -> bytes:
    """SHA-256 of the entry as canonical JSON (sorted keys, no spaces, UTC time in microseconds)."""
    document = {
        "created_at": created_at.astimezone(dt.UTC).isoformat(timespec="microseconds"),
        "dataset_id": str(dataset_id),
        "kind": kind,
        "previous_hash": previous_hash.hex(),
        "release_id": str(release_id),
        "renyi": renyi,
        "seq": seq,
        "simple": simple,
    }
    return hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).digest()


def verify_chain(entries: Iterable[Entry]) -> list[str]:
    """Every fault of the chain, in words, naming the entry; an empty list when it is whole."""
    faults: list[str] = []
    previous, expected_seq = GENESIS, 1
    for entry in entries:
        if entry.seq > expected_seq:
            faults.append(f"{_entries(expected_seq, entry.seq - 1)} missing")
        elif entry.seq < expected_seq:
            faults.append(f"entry {entry.seq} is out of order: it comes after entry {expected_seq - 1}")
        if entry.previous_hash != previous:
            faults.append(f"entry {entry.seq} does not follow the entry before it")
        computed = entry_hash(
            dataset_id=entry.dataset_id,
            seq=entry.seq,
            release_id=entry.release_id,
            kind=entry.kind,
            simple=entry.simple,
            renyi=entry.renyi,
            created_at=entry.created_at,
            previous_hash=entry.previous_hash,
        )
        if computed != entry.hash:
            faults.append(f"entry {entry.seq} was changed: its hash does not match its contents")
        previous, expected_seq = entry.hash, entry.seq + 1
    return faults


def verify_ledger(entries: Sequence[Entry], balance: Head) -> list[str]:
    """Every fault of the chain, and every disagreement with the balance: its count, its head and its amounts."""
    faults = verify_chain(entries)
    last = entries[-1].seq if entries else 0
    if balance.entry_count > last:
        faults.append(f"{_entries(last + 1, balance.entry_count)} missing at the end")
    elif balance.entry_count < last:
        faults.append(f"{_entries(balance.entry_count + 1, last)} unknown to the balance")
    elif bytes(balance.head_hash) != (bytes(entries[-1].hash) if entries else GENESIS):
        faults.append(f"the balance's head is not the hash of entry {last}")
    recomputed = totals_of(entries)
    for account in Totals.__dataclass_fields__:
        stored, expected = getattr(balance, account), getattr(recomputed, account)
        if stored != expected:
            faults.append(f"{account} is {stored} but the entries add up to {expected}")
    return faults


def totals_of(entries: Iterable[Entry]) -> Totals:
    """Balances recomputed from entries: reserve → pending; post moves to posted; void takes back; settle corrects."""
    held: dict[uuid.UUID, tuple[str, int, int]] = {}
    for entry in entries:
        held[entry.release_id] = (entry.kind, entry.simple, entry.renyi)
    pending = [amounts for kind, *amounts in held.values() if kind == "reserve"]
    posted = [amounts for kind, *amounts in held.values() if kind in {"post", "settle"}]
    return Totals(
        simple_pending=sum(simple for simple, _ in pending),
        simple_posted=sum(simple for simple, _ in posted),
        renyi_pending=sum(renyi for _, renyi in pending),
        renyi_posted=sum(renyi for _, renyi in posted),
    )


def _entries(first: int, last: int) -> str:
    return f"entry {first} is" if first == last else f"entries {first} to {last} are"
