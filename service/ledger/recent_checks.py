"""Whole ledgers that were checked a moment ago: a check reads and hashes every entry, and a page shows a few."""

from __future__ import annotations

import threading
import time
import uuid
from typing import TYPE_CHECKING

from imprimatur.verify.chain import verify_ledger
from service.ledger import repository

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from imprimatur.verify.chain import Head

HOLDS_SECONDS = 20.0
"""An unchanged balance is believed for so long; entries that are rewritten under it are noticed at the next check."""
MOST_KEPT = 1_000
MOST_FAULTS = 1_000
"""That a reply names; one is one too many."""
_Balance = tuple[int, bytes, int, int, int, int]


class RecentChecks:
    """One for a process; threads share it. Two threads check the same ledger one after the other, and so once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[uuid.UUID, tuple[_Balance, float, list[str]]] = {}
        self._checking: dict[uuid.UUID, threading.Lock] = {}

    def faults(self, session: Session, dataset_id: uuid.UUID, balance: Head) -> list[str]:
        """What is wrong with the ledger, of which `balance` is the head in this session's snapshot."""
        seen = (
            balance.entry_count,
            bytes(balance.head_hash),
            balance.simple_pending,
            balance.simple_posted,
            balance.renyi_pending,
            balance.renyi_posted,
        )
        with self._lock:
            checking = self._checking.setdefault(dataset_id, threading.Lock())
        with checking:
            kept = self._kept.get(dataset_id)
            if kept is None or kept[0] != seen or time.monotonic() - kept[1] > HOLDS_SECONDS:
                found = verify_ledger(repository.lines_of_dataset(session, dataset_id), balance)
                kept = (seen, time.monotonic(), found[:MOST_FAULTS])
                self._keep(dataset_id, kept)
        return kept[2]

    def _keep(self, dataset_id: uuid.UUID, checked: tuple[_Balance, float, list[str]]) -> None:
        with self._lock:
            self._kept[dataset_id] = checked
            while len(self._kept) > MOST_KEPT:
                oldest = next(iter(self._kept))
                del self._kept[oldest]
                self._checking.pop(oldest, None)


RECENT = RecentChecks()
