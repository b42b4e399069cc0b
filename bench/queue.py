"""The queue alone: how long one claim takes, and the check of an order's limits, beside many open orders.

    python -m bench.queue [--open 100000] [--tenants 100] [--keys 10] [--ended 100000] [--claims 300] [--write]

Open orders of many tenants and keys lie in a durable Postgres of its own, beside releases that have ended; 64 of them are
held. A claim is `release_claim` in a statement of its own, as a worker calls it, commit and flush included; without its
flush it is what the database works. Every claimed release ends at once, so that the next claim finds the same queue.
`one tenant` has all orders but one of them. `--write` records it in bench/results/queue.md.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import psycopg

from bench.pages import keep
from bench.servers import machine, percentile, private_postgres

HELD = 64
FILL = """
INSERT INTO tenants (id, name) SELECT gen_random_uuid(), 'tenant ' || n FROM generate_series(1, %(tenants)s) AS n;
INSERT INTO datasets (id, tenant_id, name, schema, units, epsilon, delta, renyi_order, renyi_capacity, storage_key,
                      wrapped_data_key)
    SELECT gen_random_uuid(), id, 'd', '{}', 100, 1, 1e-6, 32, 0.5, 'k', 'w' FROM tenants;
CREATE TABLE keys AS SELECT d.tenant_id, d.id AS dataset_id, gen_random_uuid() AS key_id,
    row_number() OVER () - 1 AS number FROM datasets AS d, generate_series(1, %(keys)s);
ANALYZE keys;
-- Nothing is reserved for these.
ALTER TABLE releases DISABLE TRIGGER releases_have_their_reservation;
INSERT INTO releases (id, tenant_id, dataset_id, key_id, priority, order_, price, simple_cost, renyi_cost, body_digest,
                      steps, state, created_at)
    SELECT gen_random_uuid(), k.tenant_id, k.dataset_id, k.key_id, n %% 8, '{}', '{}', 0, 0, '', 10,
           CASE WHEN n <= %(open)s THEN 'reserved' ELSE 'failed' END, now() - n * interval '1 second'
    FROM (SELECT n, CASE WHEN %(alone)s AND n > 1 THEN 0 ELSE n %% (%(tenants)s * %(keys)s) END::bigint AS number
          FROM generate_series(1, %(open)s + %(ended)s) AS n) AS numbered JOIN keys AS k USING (number);
UPDATE releases SET lease_expires_at = now() + interval '1 day'
    WHERE id IN (SELECT id FROM releases WHERE state = 'reserved' LIMIT %(held)s);
"""
CLAIM = "SELECT release, token, attempts FROM release_claim(60)"
LIMITS = """
SELECT count(*) FILTER (WHERE key_id = %(key)s), count(*) FROM releases
WHERE tenant_id = %(tenant)s AND state IN ('reserved', 'charged')
"""


def timed(call: Callable[[], object], times: int) -> list[float]:
    """Milliseconds of each call."""
    found = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        found.append(1e3 * (time.perf_counter() - began))
    return found


def row(name: str, found: list[float]) -> str:
    return f"| {name} | {statistics.median(found):.2f} | {percentile(found, 0.99):.2f} | {max(found):.2f} |"


def measure(options: argparse.Namespace, *, alone: bool, analyzed: bool) -> list[str]:
    """The rows of one queue."""
    tenants, keys = (2, 1) if alone else (options.tenants, options.keys)
    values = {
        "open": options.open,
        "ended": options.ended,
        "tenants": tenants,
        "keys": keys,
        "alone": alone,
        "held": HELD,
    }
    shape = "one tenant" if alone else f"{tenants} tenants of {keys} keys"
    shape += "" if analyzed else ", no statistics"
    with private_postgres({"autovacuum": "off"}) as server:
        url = server.url("imprimatur").replace("+psycopg", "")
        with psycopg.connect(url, autocommit=True) as connection:
            with connection.transaction(), psycopg.ClientCursor(connection) as cursor:
                cursor.execute(FILL, values)
            if analyzed:
                connection.execute("VACUUM ANALYZE")

            def claim() -> None:
                found = connection.execute(CLAIM).fetchone()
                assert found is not None
                assert found[0] is not None
                claimed.append(found[0])

            def end() -> None:
                connection.execute("UPDATE releases SET lease_expires_at = NULL WHERE id = %s", (claimed.pop(),))

            claimed: list[object] = []
            waits: dict[str, list[float]] = {"on": [], "off": []}
            for number in range(options.claims):
                flush = "off" if number % 2 else "on"
                connection.execute(f"SET synchronous_commit = {flush}")
                waits[flush] += timed(claim, 1)
                end()
            connection.execute("RESET synchronous_commit")
            some = connection.execute(
                "SELECT tenant_id, key_id FROM releases WHERE state = 'reserved' LIMIT 1"
            ).fetchone()
            assert some is not None
            limits = timed(lambda: connection.execute(LIMITS, {"tenant": some[0], "key": some[1]}), 20)
            state = timed(lambda: connection.execute("SELECT * FROM queue_state()"), 20)
            bell = timed(lambda: connection.execute("SELECT queue_claimable(16)"), 20)
    return [
        row(f"{shape}: claim", waits["on"]),
        row(f"{shape}: claim, not flushed", waits["off"]),
        row(f"{shape}: count of a tenant's open orders", limits),
        row(f"{shape}: a look of the relay", bell),
        row(f"{shape}: `queue_state()`", state),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--open", type=int, default=100_000)
    parser.add_argument("--tenants", type=int, default=100)
    parser.add_argument("--keys", type=int, default=10)
    parser.add_argument("--ended", type=int, default=100_000)
    parser.add_argument("--claims", type=int, default=300)
    parser.add_argument("--write", action="store_true", help="record the result in bench/results")
    options = parser.parse_args()
    lines = [
        f"{machine()}; {options.open:,} open orders, {HELD} of them held, {options.ended:,} that have ended; milliseconds.",
        *("", "| what | median | p99 | worst |", "|---|---|---|---|"),
    ]
    for alone, analyzed in ((False, True), (True, True), (False, False)):
        found = measure(options, alone=alone, analyzed=analyzed)
        print("\n".join(found), flush=True)
        lines += found
    page = "\n".join(lines)
    if options.write:
        keep("queue", page)


if __name__ == "__main__":
    main()
