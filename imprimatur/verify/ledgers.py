"""A dataset's ledger as the service lists it, in JSON: its hash chain and its sums, computed again. Pure."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from imprimatur.verify import chain


@dataclass(frozen=True)
class ListedEntry:
    """One entry, read from JSON."""

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
    def of(cls, dataset_id: str, entry: Mapping[str, Any]) -> Self:
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
class ListedBalance:
    """The balance beside the entries, read from JSON."""

    simple_pending: int
    simple_posted: int
    renyi_pending: int
    renyi_posted: int
    entry_count: int
    head_hash: bytes

    @classmethod
    def of(cls, balance: Mapping[str, Any]) -> Self:
        return cls(
            balance["simple_pending"],
            balance["simple_posted"],
            balance["renyi_pending"],
            balance["renyi_posted"],
            balance["entry_count"],
            bytes.fromhex(balance["head_hash"]),
        )


def entries_of(ledger: Mapping[str, Any]) -> list[ListedEntry]:
    """The entries of `client.ledger(dataset)`, or of `GET /v1/datasets/{id}/ledger`."""
    return [ListedEntry.of(ledger["dataset_id"], entry) for entry in ledger["items"]]


def ledger_faults(ledger: Mapping[str, Any]) -> list[str]:
    """Every fault of the hash chain, and every disagreement with the balance, in words; an empty list when it is whole."""
    return chain.verify_ledger(entries_of(ledger), ListedBalance.of(ledger["balance"]))
