"""What must be true after hours of load and faults: read from the database itself, and from the record of what was promised."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from bench.faults.stack import BrokenPromise, FaultyStack
from service.ledger import service as ledger

DATABASE = "imprimatur"
PATHS = {
    "published": [("reserve", "post")],
    "failed": [("reserve", "post"), ("reserve", "post", "settle"), ("reserve", "void")],
    "voided": [("reserve", "void"), ("reserve", "post", "settle")],
    "reserved": [("reserve",)],
    "charged": [("reserve", "post")],
}
"""The entries that a release of each state has in the ledger, in their order."""


@dataclass
class Verdict:
    """Counts, and sentences for what is wrong."""

    counts: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    def require(self, wrong: list[str]) -> None:
        """Note the first of them, and how many more there are."""
        if wrong:
            self.broken.append(wrong[0] + (f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""))


def judge(stack: FaultyStack, record: dict[str, Any]) -> Verdict:
    verdict = Verdict()
    with stack.postgres.connect(DATABASE) as connection:
        releases = {
            str(row[0]): row[1:]
            for row in connection.execute(
                "SELECT id, dataset_id, state, idempotency_key, simple_cost, renyi_cost FROM releases"
            ).fetchall()
        }
        entries = connection.execute(
            "SELECT dataset_id, release_id, kind, simple, renyi FROM ledger_entries ORDER BY dataset_id, seq"
        ).fetchall()
        balances = connection.execute(
            "SELECT dataset_id, simple_pending, simple_posted, renyi_pending, renyi_posted FROM balances"
        ).fetchall()
    check_orders(verdict, record["orders"], releases)
    check_erased(verdict, stack, record)
    check_charges(verdict, releases, entries)
    check_balances(verdict, entries, balances)
    check_ledgers(verdict, stack, [str(row[0]) for row in balances])
    try:
        verdict.counts["orphans swept"] = stack.check_storage()
    except BrokenPromise as error:
        verdict.broken.append(str(error))
    return verdict


def check_orders(verdict: Verdict, orders: dict[str, list[str]], releases: dict[str, Any]) -> None:
    """Nothing lost, nothing doubled: one release for each key, and for each release of the load a client that knows it."""
    verdict.counts["orders accepted"] = len(orders)
    verdict.counts["answers to them"] = sum(map(len, orders.values()))
    verdict.require(
        [f"key {key} was given {len(set(ids))} releases" for key, ids in orders.items() if len(set(ids)) > 1]
    )
    verdict.require(
        [f"release {ids[0]} was accepted and is not there" for ids in orders.values() if ids[0] not in releases]
    )
    by_key = Counter(row[2] for row in releases.values() if row[2] is not None)
    verdict.require([f"key {key} has {count} releases" for key, count in by_key.items() if count > 1])
    states = Counter(str(row[1]) for row in releases.values())
    verdict.counts.update({f"releases {state}": count for state, count in states.items()})
    verdict.require(
        [f"{states[state]} releases are still {state}" for state in ("reserved", "charged") if states[state]]
    )


def check_erased(verdict: Verdict, stack: FaultyStack, record: dict[str, Any]) -> None:
    """A dataset that was accepted is there, and one that was erased holds no rows."""
    with stack.postgres.connect(DATABASE) as connection:
        rows = {
            str(row[0]): row[1]
            for row in connection.execute("SELECT id, coalesce(storage_key, upload_key) FROM datasets").fetchall()
        }
    verdict.counts["uploads accepted"] = len(record["uploads"])
    verdict.counts["datasets erased"] = len(record["erased"])
    verdict.require([f"dataset {each} was accepted and is not there" for each in record["uploads"] if each not in rows])
    verdict.require([f"dataset {each} was erased and has rows" for each in record["erased"] if rows.get(each)])


def check_charges(verdict: Verdict, releases: dict[str, Any], entries: list[Any]) -> None:
    """Each release was reserved once, and charged once or not at all, for its own price."""
    paths: dict[str, list[Any]] = defaultdict(list)
    for _, release, *entry in entries:
        paths[str(release)].append(entry)
    verdict.counts["charges"] = sum(kind == "post" for _, _, kind, _, _ in entries)
    verdict.require([f"the ledger knows a release {each} that is not there" for each in paths if each not in releases])
    wrong, dear = [], []
    for each, (_, state, _, simple, renyi) in releases.items():
        kinds = tuple(kind for kind, _, _ in paths[each])
        if kinds not in PATHS[state]:
            wrong.append(f"release {each} is {state} and has the entries {kinds}")
        if any((a, b) != (simple, renyi) for kind, a, b in paths[each] if kind in {"reserve", "post"}):
            dear.append(f"release {each} was charged another price than its own")
    verdict.require(wrong)
    verdict.require(dear)


def check_balances(verdict: Verdict, entries: list[Any], balances: list[Any]) -> None:
    """Balances are the sums of what entries say, and no dataset has more than its budget in both accounts."""
    last: dict[tuple[uuid.UUID, uuid.UUID], Any] = {}
    for dataset, release, *entry in entries:
        last[dataset, release] = entry
    sums: dict[uuid.UUID, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
    for (dataset, _), (kind, simple, renyi) in last.items():
        if kind != "void":
            posted = kind != "reserve"
            sums[dataset][posted] += simple
            sums[dataset][2 + posted] += renyi
    differ, over = [], []
    for dataset, *amounts in balances:
        if amounts != sums[dataset]:
            differ.append(f"dataset {dataset} has the balances {amounts} and entries of {sums[dataset]}")
        fullest = min(amounts[0] + amounts[1], amounts[2] + amounts[3])
        if fullest > ledger.NANO:
            over.append(f"dataset {dataset} is over its budget: {fullest} nano-shares")
        verdict.counts["datasets more than half spent"] += fullest > ledger.NANO // 2
    verdict.require(differ)
    verdict.require(over)
    verdict.counts["datasets"] = len(balances)


def check_ledgers(verdict: Verdict, stack: FaultyStack, datasets: list[str]) -> None:
    """Every chain is whole, as the service says and as its client finds."""

    def faults(dataset: str) -> str | None:
        with stack.client() as client:
            found = client.ledger(dataset)
        return None if found["verified"] else f"the ledger of {dataset} is not whole: {found['faults']}"

    with ThreadPoolExecutor(2) as pool:
        verdict.require([fault for fault in pool.map(faults, datasets) if fault is not None])
    verdict.counts["ledgers verified"] = len(datasets)
