"""Which release is next: fair between tenants, then between keys, then by priority, then the oldest. Each claimed once."""

import threading
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from sqlalchemy import text

from service.ledger import service as ledger
from service.platform.database import statement, transaction
from service.privacy.filters import Shares
from service.upkeep.installation import owner_transaction
from tests.bare_rows import add_bare_dataset, add_bare_release
from tests.reservations import reserve
from workers import lease as leases

COST = Shares(1_000, 2_000)
CLAIM_OF_THE_VERSION_BEFORE = """
UPDATE releases SET lease_token = lease_token + 1, attempts = attempts + 1, updated_at = now(),
       lease_expires_at = clock_timestamp() + make_interval(secs => :lease_seconds)
WHERE id = :id AND state IN ('reserved', 'charged')
  AND (lease_expires_at IS NULL OR lease_expires_at < clock_timestamp())
RETURNING lease_token, attempts
"""
REQUEUE_OF_THE_VERSION_BEFORE = """
WITH stale AS (
    SELECT id FROM releases
    WHERE state IN ('reserved', 'charged')
      AND CASE WHEN lease_expires_at IS NOT NULL THEN lease_expires_at < now()
          ELSE :everything OR enqueued_at
               + make_interval(secs => :lease_seconds * power(2, least(sends - 1, 6))) < now() END
    ORDER BY enqueued_at LIMIT CASE WHEN :everything THEN NULL ELSE 1000 END FOR UPDATE SKIP LOCKED
), marked AS (
    UPDATE releases r SET lease_expires_at = NULL, enqueued_at = now(),
           sends = CASE WHEN r.lease_expires_at IS NULL THEN r.sends + 1 ELSE 1 END
    FROM stale WHERE r.id = stale.id RETURNING r.id
)
INSERT INTO outbox (task, release_id) SELECT :task, id FROM marked
"""


class Queue:
    """Orders of tenants and keys that are called by letters, and what is claimed of them, by the same names."""

    def __init__(self, settings):
        self.settings = settings
        self._ids, self._tenants, self._names = {}, {}, {}

    def order(self, tenant, key="k", priority=3, *, times=1):
        with transaction(self.settings) as session:
            if tenant not in self._tenants:
                self._tenants[tenant] = add_bare_dataset(session)
            owner, dataset = self._tenants[tenant]
            key_id = self._ids.setdefault((tenant, key), uuid.uuid4())
            made = []
            for _ in range(times):
                release = add_bare_release(session, owner, dataset, COST, key_id=key_id, priority=priority)
                reserve(session, dataset, release, COST)
                self._names[release] = (tenant, key, priority)
                made.append(release)
        return made

    def dataset(self, tenant):
        return self._tenants[tenant][1]

    def claim(self):
        return leases.claim_next(self.settings)

    def next(self):
        """Tenant, key and priority of the release that is claimed; None where none is."""
        lease = self.claim()
        return None if lease is None else self._names[lease.release_id]

    def run(self, lease):
        """To its end, as if it had been trained."""
        with transaction(self.settings) as session:
            leases.end_without_publishing(session, lease, failure="diverged")

    def run_one(self):
        lease = self.claim()
        self.run(lease)
        return self._names[lease.release_id]


@pytest.fixture
def queue(settings):
    return Queue(settings)


def test_tenants_take_turns_whatever_they_have_ordered(queue):
    queue.order("crowd", times=300)
    assert [queue.run_one()[0] for _ in range(3)] == ["crowd"] * 3
    queue.order("b")
    queue.order("c", times=2)
    served = [queue.run_one()[0] for _ in range(5)]
    assert sorted(served[:2]) == ["b", "c"]
    assert served[2:] == ["crowd", "c", "crowd"]


def test_the_tenant_with_the_fewest_claims_held_is_first(queue):
    queue.order("a", times=5)
    held = [queue.claim() for _ in range(3)]
    queue.order("b", times=3)
    assert [queue.next()[0] for _ in range(3)] == ["b"] * 3  # though b was served last, a holds three
    for lease in held:
        queue.run(lease)
    assert [queue.next()[0] for _ in range(2)] == ["a"] * 2
    assert queue.next() is None


def test_keys_of_a_tenant_take_turns_and_gain_nothing_over_another_tenant(queue):
    for key in "pqr":
        queue.order("a", key, times=20)
    queue.order("b", "s", times=4)
    served = [queue.run_one() for _ in range(8)]
    assert Counter(tenant for tenant, *_ in served) == {"a": 4, "b": 4}
    keys = [key for tenant, key, _ in served if tenant == "a"]
    assert sorted(keys[:3]) == ["p", "q", "r"]
    assert keys[3] == keys[0]


def test_a_priority_orders_the_releases_of_one_key_and_no_others(queue):
    queue.order("a", "urgent", priority=0, times=10)
    for priority in (7, 3, 0, 5):
        queue.order("a", "calm", priority=priority)
    queue.order("b", "calm", priority=7)
    served = [queue.run_one() for _ in range(9)]
    assert [priority for tenant, key, priority in served if (tenant, key) == ("a", "calm")] == [0, 3, 5, 7]
    assert ("b", "calm", 7) in served[:2]
    keys = [key for tenant, key, _ in served if tenant == "a"]
    assert keys in (["urgent", "calm"] * 4, ["calm", "urgent"] * 4)


def test_a_key_with_the_id_of_its_tenant_stops_no_queue(queue, settings):
    """No service makes one; who can write to the table could."""
    (release,) = queue.order("a")
    with transaction(settings) as session:
        tenant = session.execute(text("SELECT tenant_id FROM releases")).scalar_one()
        dataset = queue.dataset("a")
        reserve(session, dataset, add_bare_release(session, tenant, dataset, COST, key_id=tenant), COST)
    assert {queue.claim().release_id for _ in range(2)} > {release}


def test_of_equal_ones_the_oldest_is_first(queue):
    releases = [queue.order("a")[0] for _ in range(5)]
    assert [queue.claim().release_id for _ in range(5)] == releases


def test_cancelled_orders_cost_no_claim_and_the_other_tenant_is_next(queue, settings):
    for release in queue.order("pairs", times=250):
        with transaction(settings) as session:
            ledger.void(session, queue.dataset("pairs"), release)
            session.execute(text("UPDATE releases SET state = 'voided' WHERE id = :id"), {"id": release})
    with statement(settings) as session:
        assert session.execute(text("SELECT queue_claimable(16)")).scalar_one() == 0
    queue.order("other")
    assert queue.next()[0] == "other"
    assert queue.next() is None


def test_a_lapsed_lease_is_claimable_without_a_message_and_as_before_by_a_newer_token_only(queue, settings):
    queue.order("a")
    first = queue.claim()
    assert queue.claim() is None
    with transaction(settings) as session:
        session.execute(text("UPDATE releases SET lease_expires_at = clock_timestamp() - interval '1 second'"))
    second = queue.claim()
    assert (second.release_id, second.token) == (first.release_id, first.token + 1)
    with pytest.raises(leases.LeaseLost), transaction(settings) as session:
        leases.renew(session, first, lease_seconds=60)


def test_a_row_that_somebody_holds_is_passed_over(queue, database):
    (oldest,) = queue.order("a")
    queue.order("b")
    with psycopg.connect(database.owner_url.replace("+psycopg", "")) as connection:
        connection.execute("SELECT FROM releases WHERE id = %s FOR UPDATE", (oldest,))
        assert queue.next()[0] == "b"
        assert queue.next() is None
    assert queue.next()[0] == "a"


def test_old_and_new_workers_side_by_side_claim_each_release_once(queue, settings):
    """The version before: its relay marks and sends ids, its workers claim by id. Both at once on one queue."""
    ids = [release for tenant in "abcd" for release in queue.order(tenant, times=25)]
    start, claims, lock = threading.Barrier(6), Counter(), threading.Lock()

    def old(seed):
        start.wait()
        for release in ids if seed % 2 else reversed(ids):
            with owner_transaction(settings) as session:
                row = session.execute(
                    text(CLAIM_OF_THE_VERSION_BEFORE), {"id": release, "lease_seconds": 60}
                ).one_or_none()
            if row is not None:
                with lock:
                    claims[release] += 1

    def old_relay():
        start.wait()
        for _ in range(20):
            with owner_transaction(settings) as session:
                values = {"task": "imprimatur.train", "lease_seconds": 60, "everything": True}
                session.execute(text(REQUEUE_OF_THE_VERSION_BEFORE), values)

    def new():
        start.wait()
        while (lease := queue.claim()) is not None:
            with lock:
                claims[lease.release_id] += 1

    with ThreadPoolExecutor(6) as pool:
        running = [
            pool.submit(old, 0),
            pool.submit(old, 1),
            pool.submit(old_relay),
            *(pool.submit(new) for _ in range(3)),
        ]
        for each in running:
            each.result()
    assert claims == dict.fromkeys(ids, 1)


def test_the_queues_state_in_three_numbers(queue, settings):
    def state():
        with statement(settings) as session:
            return session.execute(text("SELECT * FROM queue_state()")).one()

    assert tuple(state()) == (0, 0, 0.0)
    queue.order("a", times=3)
    queue.order("b")
    lease = queue.claim()
    found = state()
    assert (found.waiting, found.running) == (3, 1)
    assert found.oldest_waiting_seconds > 0
    queue.run(lease)
    assert (state().waiting, state().running) == (3, 0)


@pytest.mark.parametrize("wrong", [0, -1, 86_401, "NaN", None])
def test_a_lease_has_an_end(settings, wrong):
    with pytest.raises(Exception, match="a lease is up to"), statement(settings) as session:
        session.execute(text("SELECT * FROM release_claim(:s)"), {"s": wrong})
