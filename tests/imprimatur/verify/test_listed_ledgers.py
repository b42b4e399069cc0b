"""A ledger as the service lists it, checked without the service."""

from __future__ import annotations

import copy
import datetime as dt
import uuid

import pytest

from imprimatur.verify import chain
from imprimatur.verify.ledgers import entries_of, ledger_faults

AMOUNTS = {"simple": 500, "renyi": 300}


@pytest.fixture
def ledger():
    dataset_id, release_id, previous, items = uuid.uuid4(), uuid.uuid4(), chain.GENESIS, []
    for seq, kind in enumerate(("reserve", "post"), start=1):
        at = dt.datetime(2026, 1, seq, tzinfo=dt.UTC)
        named = {"seq": seq, "kind": kind, **AMOUNTS}
        hash_ = chain.entry_hash(
            dataset_id=dataset_id, release_id=release_id, created_at=at, previous_hash=previous, **named
        )
        hashes = {"hash": hash_.hex(), "previous_hash": previous.hex()}
        items.append({**named, **hashes, "release_id": str(release_id), "created_at": at.isoformat()})
        previous = hash_
    balance = {"simple_pending": 0, "simple_posted": 500, "renyi_pending": 0, "renyi_posted": 300}
    balance |= {"entry_count": 2, "head_hash": previous.hex()}
    return {"dataset_id": str(dataset_id), "items": items, "balance": balance}


def test_a_whole_ledger_has_no_faults(ledger):
    assert ledger_faults(ledger) == []
    assert [entry.kind for entry in entries_of(ledger)] == ["reserve", "post"]


def test_a_smaller_charge_is_found(ledger):
    forged = copy.deepcopy(ledger)
    forged["items"][1]["simple"] = 1
    faults = ledger_faults(forged)
    assert faults[0] == "entry 2 was changed: its hash does not match its contents"
    assert "simple_posted is 500 but the entries add up to 1" in faults


def test_a_missing_entry_is_found(ledger):
    del ledger["items"][1]
    assert "entry 2 is missing at the end" in ledger_faults(ledger)
