"""The ledger alone: reservations decided a second on one dataset, by 64 clients at once, on a durable Postgres.

    python -m bench.ledger [--quick] [--seconds 20] [--clients 64] [--write]

Each client is one connection of one asyncio process that calls `ledger_reserve` and waits until the answer is durable.
Three mixes: every order fits (each takes the lock and waits for a flush), one in ten fits, none fits (refused by a look).
Three rounds of each, interleaved. `--write` records them in bench/results/ledger.md.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
import uuid

import psycopg

from bench.pages import keep
from bench.servers import bare_dataset, machine, percentile, private_postgres
from service.local.database_access import API_ROLE
from service.releases.repository import MAKE_DURABLE
from tests.database_roles import TEST_ROLE

NANO = 1_000_000_000
MIXES = {"all fit": 1.0, "one in ten fits": 0.1, "none fits": 0.0}
GOAL = 1_500
RESERVE = """
SELECT outcome, outcome <> 'done' AND pg_current_wal_flush_lsn() >= pg_current_wal_insert_lsn()
FROM set_config('synchronous_commit', 'off', true), ledger_reserve(%s, %s, %s, %s, 1)
"""
"""As in `service.releases.repository.PLACE`: the lock is free before the flush, for which the answer waits."""


async def client(url: str, dataset: uuid.UUID, fits: float, until: float, waits: list[float], number: int) -> int:
    """Orders one after another; how many were admitted."""
    admitted, turn = 0, number
    async with await psycopg.AsyncConnection.connect(url, autocommit=True, prepare_threshold=1) as connection:
        while time.monotonic() < until:
            turn += 1
            cost = 1 if fits and turn % round(1 / fits) == 0 else 2 * NANO
            began = time.perf_counter()
            cursor = await connection.execute(RESERVE, (dataset, uuid.uuid4(), cost, cost))
            row = await cursor.fetchone()
            assert row is not None
            if not row[1]:
                await connection.execute(MAKE_DURABLE)
            waits.append(time.perf_counter() - began)
            admitted += row[0] == "done"
    return admitted


async def measure(
    url: str, dataset: uuid.UUID, fits: float, clients: int, seconds: float
) -> tuple[float, float, float]:
    """(decided a second, p50 ms, p99 ms)"""
    waits: list[float] = []
    began = time.monotonic()
    until = began + seconds
    admitted = await asyncio.gather(*(client(url, dataset, fits, until, waits, n) for n in range(clients)))
    lasted = time.monotonic() - began
    share = sum(admitted) / len(waits)
    assert abs(share - fits) < 0.02, share
    return len(waits) / lasted, 1e3 * percentile(waits, 0.5), 1e3 * percentile(waits, 0.99)


def flushes_per_second(url: str, seconds: float = 1.0) -> float:
    """What the disk allows one writer: commits a second that each wait for their flush."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS flushes (n int)")
        began, count = time.monotonic(), 0
        while time.monotonic() < began + seconds:
            connection.execute("INSERT INTO flushes VALUES (1)")
            count += 1
    return count / seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="three seconds, one round")
    parser.add_argument("--write", action="store_true", help="record the result in bench/results")
    options = parser.parse_args()
    seconds, rounds = (3.0, 1) if options.quick else (options.seconds, options.rounds)
    found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in MIXES}
    with private_postgres() as server:
        owner, app = (server.url("imprimatur", *user).replace("+psycopg", "") for user in ((), (API_ROLE,)))
        flushes = flushes_per_second(owner)
        for _ in range(rounds):
            for name, fits in MIXES.items():
                dataset = bare_dataset(server.url("imprimatur", TEST_ROLE))
                found[name].append(asyncio.run(measure(app, dataset, fits, options.clients, seconds)))
    lines = [
        (
            f"{machine()}. {options.clients} clients, one dataset, {seconds:g} s a run, {rounds} interleaved rounds; "
            f"`fsync` and `synchronous_commit` on. One writer alone makes {flushes:.0f} durable commits a second here. "
            f"Goal: {GOAL} decided a second."
        ),
        "",
        "| orders | decided/s, median (least – most) | p50 ms | p99 ms |",
        "|---|---|---|---|",
    ]
    for name, runs in found.items():
        rates, p50, p99 = zip(*runs, strict=True)
        lines.append(
            f"| {name} | {statistics.median(rates):,.0f} ({min(rates):,.0f} – {max(rates):,.0f}) "
            f"| {statistics.median(p50):.1f} | {statistics.median(p99):.1f} |"
        )
    lines += ["", LIMITS]
    text = "\n".join(lines) + "\n"
    print(text)
    if options.write:
        keep("ledger", text)


LIMITS = """\
What limits it. Orders that fit take turns: each holds the lock of the balance's row while the server checks, hashes and
writes entry and balance. It hands the lock over before the flush, and all that wait for one share it. So the rate is one
over (work + handing the lock over), as long as there are processors: two statements an order, and their client. Orders
that do not fit are refused by a look at the committed balance without the lock: they cost processor time only."""

if __name__ == "__main__":
    main()
