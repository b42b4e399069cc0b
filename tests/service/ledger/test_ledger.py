"""The ledger's moves on real Postgres: what each does, once, and what it refuses."""

import datetime as dt
import uuid

import pytest
import sqlalchemy
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from imprimatur.verify.chain import entry_hash
from service.base.errors import BudgetExhausted, LedgerConflict, NotFound, Unpriceable
from service.ledger import repository
from service.ledger import service as ledger
from service.platform.database import get_engine, snapshot, transaction
from service.privacy.filters import NANO, Shares
from tests.bare_rows import add_bare_dataset
from tests.reservations import faults_of, reserve


def test_an_order_needs_room_in_one_account_only(settings, dataset_id):
    with transaction(settings) as session:
        reserve(session, dataset_id, uuid.uuid4(), Shares(NANO, 1))
        reserve(session, dataset_id, uuid.uuid4(), Shares(NANO, NANO - 1))
        with pytest.raises(BudgetExhausted):
            reserve(session, dataset_id, uuid.uuid4(), Shares(1, 1))


def test_a_void_gives_all_back_and_a_settlement_gives_renyi_back(settings, dataset_id):
    first, second = uuid.uuid4(), uuid.uuid4()
    with transaction(settings) as session:
        reserve(session, dataset_id, first, Shares(NANO, NANO))
        ledger.void(session, dataset_id, first)
        reserve(session, dataset_id, second, Shares(NANO, NANO))
        ledger.post(session, dataset_id, second)
        ledger.settle(session, dataset_id, second, renyi=NANO // 4)
        balance = repository.read_balance(session, dataset_id)
        assert (balance.simple_posted, balance.renyi_posted) == (NANO, NANO // 4)
        assert (balance.simple_pending, balance.renyi_pending) == (0, 0)
        assert faults_of(session, dataset_id) == []


def test_each_move_happens_once_and_contradictions_are_refused(settings, dataset_id):
    release = uuid.uuid4()
    with transaction(settings) as session:
        with pytest.raises(LedgerConflict):
            ledger.post(session, dataset_id, release)
        reserve(session, dataset_id, release, Shares(10, 20))
        first = ledger.post(session, dataset_id, release)
        assert ledger.post(session, dataset_id, release).seq == first.seq
        with pytest.raises(LedgerConflict):
            ledger.void(session, dataset_id, release)
        with pytest.raises(LedgerConflict):
            ledger.settle(session, dataset_id, release, renyi=21)
        with pytest.raises(LedgerConflict):
            ledger.settle(session, dataset_id, release, renyi=-1)
        assert repository.read_balance(session, dataset_id).renyi_posted == 20


def test_the_same_release_cannot_reserve_twice(settings, dataset_id):
    release = uuid.uuid4()
    with transaction(settings) as session:
        reserve(session, dataset_id, release, Shares(10, 20))
    with transaction(settings) as session:
        assert reserve(session, dataset_id, release, Shares(10, 20)).seq == 1
        with pytest.raises(LedgerConflict):
            reserve(session, dataset_id, release, Shares(11, 20))
        assert repository.read_balance(session, dataset_id).simple_pending == 10


def test_no_account_no_money(settings):
    with transaction(settings) as session, pytest.raises(NotFound):
        reserve(session, uuid.uuid4(), uuid.uuid4(), Shares(1, 1))


@pytest.mark.parametrize("cost", [(-1, 0), (0, -1), (10**19, 0), (0, 10**19)])
def test_costs_that_are_none_never_reach_the_ledger(cost):
    with pytest.raises(Unpriceable):
        Shares(*cost)


def test_a_move_of_another_dataset_finds_nothing(settings, dataset_id):
    """A release reserved on one dataset is paid for from that one, whatever the caller says."""
    release = uuid.uuid4()
    with transaction(settings) as session:
        other = add_bare_dataset(session)[1]
        reserve(session, other, release, Shares(10, 20))
        reserve(session, dataset_id, uuid.uuid4(), Shares(10, 20))
        for move in (
            lambda: ledger.post(session, dataset_id, release),
            lambda: ledger.void(session, dataset_id, release),
            lambda: ledger.settle(session, dataset_id, release, renyi=0),
            lambda: reserve(session, dataset_id, release, Shares(10, 20)),
        ):
            with pytest.raises(LedgerConflict):
                move()
        ledger.post(session, other, release)
        with pytest.raises(LedgerConflict):
            ledger.settle(session, dataset_id, release, renyi=0)
        assert faults_of(session, dataset_id) == faults_of(session, other) == []


def test_verifying_waits_for_no_one_and_no_one_waits_for_it(settings, dataset_id):
    """A writer holds the balance's row lock; a reader sees the moment before, whole, then the writer goes on."""
    with transaction(settings) as session:
        reserve(session, dataset_id, uuid.uuid4(), Shares(10, 20))
    with snapshot(settings) as reading:
        assert faults_of(reading, dataset_id) == []
        with transaction(settings) as writing:
            reserve(writing, dataset_id, uuid.uuid4(), Shares(10, 20))
            assert faults_of(reading, dataset_id) == []
        assert faults_of(reading, dataset_id) == []
        assert repository.read_balance(reading, dataset_id).entry_count == 1
        with pytest.raises(sqlalchemy.exc.InternalError, match="read-only"):
            reserve(reading, dataset_id, uuid.uuid4(), Shares(10, 20))


@given(
    st.uuids(),
    st.integers(1, 2**62),
    st.uuids(),
    st.sampled_from(["reserve", "post", "void", "settle"]),
    st.integers(0, 2**62),
    st.integers(0, 2**62),
    st.datetimes(dt.datetime(1970, 1, 1), dt.datetime(9999, 1, 1), timezones=st.timezones()),  # noqa: DTZ001 - a zone is added
    st.binary(min_size=32, max_size=32),
    st.sampled_from(["SET TimeZone = 'Asia/Kolkata'", "SET DateStyle = 'SQL, DMY'", "SET bytea_output = 'escape'"]),
)
@hypothesis_settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_database_hashes_as_the_verifier_does(
    database, dataset, seq, release, kind, simple, renyi, at, previous, setting
):
    with get_engine(database.owner_url).connect() as connection:
        connection.exec_driver_sql(setting)
        made = connection.execute(
            sqlalchemy.text(
                "SELECT public.ledger_hash(:dataset, :seq, :release, :kind, :simple, :renyi, :at, :previous)"
            ),
            {
                "dataset": dataset,
                "seq": seq,
                "release": release,
                "kind": kind,
                "simple": simple,
                "renyi": renyi,
                "at": at,
                "previous": previous,
            },
        ).scalar_one()
        connection.rollback()
    assert bytes(made) == entry_hash(
        dataset_id=dataset,
        seq=seq,
        release_id=release,
        kind=kind,
        simple=simple,
        renyi=renyi,
        created_at=at,
        previous_hash=previous,
    )


def test_what_other_releases_cost(settings, dataset_id):
    """Charged, settled and pending ones count, voided ones and the release itself do not."""
    this, posted, pending, voided, settled = (uuid.uuid4() for _ in range(5))
    with transaction(settings) as session:
        another_dataset = add_bare_dataset(session)[1]
        assert ledger.other_releases(session, dataset_id, this) == ledger.OtherReleases(0, 0, 0, 0, 0)
        costs = {this: (1, 2), posted: (10, 20), pending: (100, 200), voided: (1_000, 2_000), settled: (10_000, 20_000)}
        for release, cost in costs.items():
            reserve(session, dataset_id, release, Shares(*cost))
        for release in (this, posted, settled):
            ledger.post(session, dataset_id, release)
        ledger.void(session, dataset_id, voided)
        ledger.settle(session, dataset_id, settled, renyi=7)
        reserve(session, another_dataset, uuid.uuid4(), Shares(5, 5))
        found = ledger.other_releases(session, dataset_id, this)
        assert found == ledger.OtherReleases(charged=2, pending=1, simple=10_110, renyi=227, entries=10)
        balance = repository.read_balance(session, dataset_id)
        assert found.simple + 1 == balance.simple_pending + balance.simple_posted
        assert found.renyi + 2 == balance.renyi_pending + balance.renyi_posted
