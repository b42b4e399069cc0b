"""Claims on real Postgres: one holder at a time, fenced writes, bounded attempts, costs charged exactly once."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from service.ledger import repository as ledger_repository
from service.platform.database import transaction
from service.privacy.filters import Shares
from service.releases.models import Release
from service.releases.repository import any_published
from tests.bare_rows import add_bare_dataset, add_bare_release
from tests.reservations import reserve
from workers import lease as leases
from workers.lease import LeaseLost

COST = Shares(1_000, 2_000)


@pytest.fixture
def release_id(settings):
    with transaction(settings) as session:
        tenant, dataset = add_bare_dataset(session)
        release = add_bare_release(session, tenant, dataset, COST)
        reserve(session, dataset, release, COST)
    return release


def claim(settings):
    return leases.claim_next(settings)


def read(settings, release_id):
    with transaction(settings) as session:
        release = session.get_one(Release, release_id)
        balance = ledger_repository.read_balance(session, release.dataset_id)
        kinds = set(ledger_repository.entries_of_release(session, release_id))
    return release, balance, kinds


def lapse(settings, release_id):
    with transaction(settings) as session:
        session.execute(
            text("UPDATE releases SET lease_expires_at = now() - interval '1 second' WHERE id = :id"),
            {"id": release_id},
        )


def test_of_many_looks_one_claims(settings, release_id):
    start = threading.Barrier(8)

    def look(_):
        start.wait()
        return claim(settings)

    with ThreadPoolExecutor(8) as pool:
        claims = list(pool.map(look, range(8)))
    assert len([c for c in claims if c is not None]) == 1
    assert read(settings, release_id)[0].attempts == 1


def test_a_worker_frozen_past_its_lease_can_write_nothing(settings, release_id):
    frozen = claim(settings)
    lapse(settings, release_id)
    fresh = claim(settings)
    assert fresh.token == frozen.token + 1
    for write in (
        lambda s: leases.renew(s, frozen, lease_seconds=60),
        lambda s: leases.report(s, frozen, step=1, phase="training"),
        lambda s: leases.charge(s, frozen),
        lambda s: leases.record_steps(s, frozen, steps=1, renyi=1),
        lambda s: leases.record_checkpoint(s, frozen, key="checkpoints/old"),
        lambda s: leases.publish(s, frozen, bundle_key="b", certificate_json="{}"),
        lambda s: leases.end_without_publishing(s, frozen, failure="diverged"),
        lambda s: leases.give_back(s, frozen, spent=True),
    ):
        with pytest.raises(LeaseLost), transaction(settings) as session:
            write(session)
    release, balance, kinds = read(settings, release_id)
    assert (release.state, balance.simple_pending, kinds) == ("reserved", COST.simple, {"reserve"})


def test_charge_and_publish_happen_once_and_only_in_this_order(settings, release_id):
    lease = claim(settings)
    with pytest.raises(LeaseLost), transaction(settings) as session:
        leases.publish(session, lease, bundle_key="b", certificate_json="{}")
    for _ in range(2):
        with transaction(settings) as session:
            leases.charge(session, lease)
    with transaction(settings) as session:
        assert not any_published(session)
        leases.publish(session, lease, bundle_key="b", certificate_json=json.dumps({"format": 1}))
        assert any_published(session)
    release, balance, kinds = read(settings, release_id)
    assert (release.state, release.step, release.certificate) == ("published", 10, {"format": 1})
    assert (balance.simple_pending, balance.simple_posted, balance.renyi_posted) == (0, COST.simple, COST.renyi)
    assert kinds == {"reserve", "post"}
    assert claim(settings) is None


def test_after_the_last_attempt_the_charge_stands(settings, release_id):
    for _ in range(3):
        lease = claim(settings)
        with transaction(settings) as session:
            leases.charge(session, lease)
            leases.give_back(session, lease, spent=True)
    assert claim(settings) is None
    release, balance, kinds = read(settings, release_id)
    assert (release.state, release.failure, kinds) == ("failed", "worker_lost", {"reserve", "post"})
    assert balance.simple_posted == COST.simple


def test_an_attempt_that_was_handed_over_does_not_count(settings, release_id):
    for _ in range(5):
        lease = claim(settings)
        with transaction(settings) as session:
            leases.give_back(session, lease, spent=False)
    assert claim(settings).token == 6
    assert read(settings, release_id)[0].attempts == 1


def test_the_last_recorded_checkpoint_counts_until_the_end(settings, release_id):
    lease = claim(settings)
    for key in ("checkpoints/1", "checkpoints/2"):
        with transaction(settings) as session:
            leases.charge(session, lease)
            leases.record_steps(session, lease, steps=1, renyi=1)
            leases.record_checkpoint(session, lease, key=key)
        assert read(settings, release_id)[0].checkpoint_key == key
    with transaction(settings) as session:
        leases.end_without_publishing(session, lease, failure="diverged")
    assert read(settings, release_id)[0].checkpoint_key is None


def test_attempts_that_never_reached_the_charge_cost_nothing(settings, release_id):
    for _ in range(3):
        claim(settings)
        lapse(settings, release_id)
    assert claim(settings) is None
    release, balance, kinds = read(settings, release_id)
    assert (release.state, kinds) == ("voided", {"reserve", "void"})
    assert (balance.simple_pending, balance.simple_posted) == (0, 0)


def test_an_early_stop_keeps_the_simple_share_and_settles_the_renyi_one(settings, release_id):
    lease = claim(settings)
    with transaction(settings) as session:
        leases.charge(session, lease)
        leases.end_without_publishing(session, lease, failure="cancelled", settled_renyi=500)
    release, balance, _ = read(settings, release_id)
    assert (release.state, release.failure) == ("failed", "cancelled")
    assert (balance.simple_posted, balance.renyi_posted) == (COST.simple, 500)
