"""The ledger on real Postgres: it never overspends, and raw SQL as the application role cannot make it."""

import random
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
import sqlalchemy
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from service.db import get_engine, transaction
from service.errors import BudgetExhausted, NotFound, Unpriceable
from service.ledger import repository
from service.ledger import service as ledger
from service.ledger.service import LedgerConflict
from service.privacy.filters import NANO, Shares


def test_sixty_four_clients_cannot_overspend(settings, dataset_id):
    cost = Shares(simple=NANO // 100, renyi=NANO // 50)
    settings = settings.model_copy(update={"database_pool_size": 32})
    admitted, refused = [], []
    start = threading.Barrier(32)

    def orders(_):
        start.wait()
        for _ in range(10):
            release = uuid.uuid4()
            try:
                with transaction(settings) as session:
                    ledger.reserve(session, dataset_id, release, cost)
                admitted.append(release)
            except BudgetExhausted as error:
                refused.append(error)

    with ThreadPoolExecutor(32) as pool:
        list(pool.map(orders, range(32)))
    assert len(admitted) == 100
    assert len(refused) == 220
    assert refused[-1].values == {
        "remaining": {"simple": 0, "renyi": 0},
        "requested": {"simple": cost.simple, "renyi": cost.renyi},
    }
    with transaction(settings) as session:
        assert ledger.verify(session, dataset_id) == []
        assert repository.read_balance(session, dataset_id).simple_pending == NANO


def test_an_order_needs_room_in_one_account_only(settings, dataset_id):
    with transaction(settings) as session:
        ledger.reserve(session, dataset_id, uuid.uuid4(), Shares(NANO, 1))
        ledger.reserve(session, dataset_id, uuid.uuid4(), Shares(NANO, NANO - 1))
        with pytest.raises(BudgetExhausted):
            ledger.reserve(session, dataset_id, uuid.uuid4(), Shares(1, 1))


def test_a_void_gives_all_back_and_a_settlement_gives_renyi_back(settings, dataset_id):
    first, second = uuid.uuid4(), uuid.uuid4()
    with transaction(settings) as session:
        ledger.reserve(session, dataset_id, first, Shares(NANO, NANO))
        ledger.void(session, dataset_id, first)
        ledger.reserve(session, dataset_id, second, Shares(NANO, NANO))
        ledger.post(session, dataset_id, second)
        ledger.settle(session, dataset_id, second, renyi=NANO // 4)
        balance = repository.read_balance(session, dataset_id)
        assert (balance.simple_posted, balance.renyi_posted) == (NANO, NANO // 4)
        assert (balance.simple_pending, balance.renyi_pending) == (0, 0)
        assert ledger.verify(session, dataset_id) == []


def test_each_move_happens_once_and_contradictions_are_refused(settings, dataset_id):
    release = uuid.uuid4()
    with transaction(settings) as session:
        with pytest.raises(LedgerConflict):
            ledger.post(session, dataset_id, release)
        ledger.reserve(session, dataset_id, release, Shares(10, 20))
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
        ledger.reserve(session, dataset_id, release, Shares(10, 20))
    with pytest.raises(sqlalchemy.exc.IntegrityError), transaction(settings) as session:
        ledger.reserve(session, dataset_id, release, Shares(10, 20))
    with transaction(settings) as session:
        assert repository.read_balance(session, dataset_id).simple_pending == 10


def test_no_account_no_money(settings):
    with transaction(settings) as session, pytest.raises(NotFound):
        ledger.reserve(session, uuid.uuid4(), uuid.uuid4(), Shares(1, 1))


@pytest.mark.parametrize("cost", [(-1, 0), (0, -1), (10**19, 0), (0, 10**19)])
def test_costs_that_are_none_never_reach_the_ledger(cost):
    with pytest.raises(Unpriceable):
        Shares(*cost)


ATTACKS = [
    "UPDATE ledger_entries SET simple = 0",
    "DELETE FROM ledger_entries",
    "TRUNCATE ledger_entries",
    "TRUNCATE balances CASCADE",
    "DELETE FROM balances",
    "DELETE FROM datasets",
    "DELETE FROM releases",
    "UPDATE balances SET simple_pending = -1",
    "UPDATE balances SET simple_posted = 1000000001, renyi_posted = 1000000001",
    "UPDATE balances SET dataset_id = gen_random_uuid()",
    "UPDATE datasets SET epsilon = 1000",
    "UPDATE datasets SET renyi_capacity = 1000",
    "UPDATE datasets SET fingerprint = 'x'",
    "ALTER TABLE balances DROP CONSTRAINT ck_balances_one_account_has_room",
    "ALTER TABLE ledger_entries DISABLE TRIGGER ALL",
    "DROP TABLE ledger_entries",
    "DROP TRIGGER ledger_entries_append_only ON ledger_entries",
    "CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
    "SET session_replication_role = replica",
]


@pytest.mark.parametrize("statement", ATTACKS)
def test_raw_sql_as_the_application_role_is_refused(settings, dataset_id, statement):
    with transaction(settings) as session:
        ledger.reserve(session, dataset_id, uuid.uuid4(), Shares(10, 20))
    with get_engine(settings.database_url).connect() as connection, pytest.raises(sqlalchemy.exc.DBAPIError):
        connection.exec_driver_sql(statement)
    with transaction(settings) as session:
        assert ledger.verify(session, dataset_id) == []


@pytest.mark.parametrize("statement", ATTACKS[:5])
def test_even_the_owning_role_meets_the_triggers(settings, dataset_id, statement):
    with transaction(settings) as session:
        ledger.reserve(session, dataset_id, uuid.uuid4(), Shares(10, 20))
    url = settings.migration_database_url.replace("+psycopg", "")
    with psycopg.connect(url) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(statement)


def test_verify_names_what_was_tampered_with_behind_the_triggers(settings, dataset_id):
    for _ in range(3):
        with transaction(settings) as session:
            ledger.reserve(session, dataset_id, uuid.uuid4(), Shares(10, 20))
    url = settings.migration_database_url.replace("+psycopg", "")
    with psycopg.connect(url) as connection:  # a database administrator can do anything, but not unseen
        connection.execute("SET session_replication_role = replica")
        connection.execute("UPDATE ledger_entries SET simple = 1 WHERE seq = 2")
        connection.execute("UPDATE balances SET simple_pending = 21")
    with transaction(settings) as session:
        faults = ledger.verify(session, dataset_id)
    assert faults == ["entry 2 was changed: its hash does not match its contents"]
    with psycopg.connect(url) as connection:
        connection.execute("SET session_replication_role = replica")
        connection.execute("DELETE FROM ledger_entries WHERE seq = 3")
    with transaction(settings) as session:
        faults = ledger.verify(session, dataset_id)
    assert "the balance counts 3 entries, the ledger holds 2" in faults


@given(
    st.lists(st.tuples(st.sampled_from("rpvs"), st.integers(0, 5), st.integers(0, 6), st.integers(0, 6)), max_size=25)
)
@hypothesis_settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_history_leaves_entries_and_balances_in_agreement(settings, dataset_id, moves):
    """An exact model beside the real thing; amounts are sixths of a budget, so refusals are common."""
    rng = random.Random(0)
    with transaction(settings) as session:
        start = repository.read_balance(session, dataset_id)
        model = {
            "simple": start.simple_pending + start.simple_posted,
            "renyi": start.renyi_pending + start.renyi_posted,
        }
    state = {slot: (uuid.uuid4(), "new", 0, 0) for slot in range(6)}
    for kind, slot, simple, renyi in moves:
        release, at, held_simple, held_renyi = state[slot]
        cost = Shares(simple * NANO // 6, renyi * NANO // 6)
        with transaction(settings) as session:
            if kind == "r" and at == "new":
                fits = model["simple"] + cost.simple <= NANO or model["renyi"] + cost.renyi <= NANO
                try:
                    ledger.reserve(session, dataset_id, release, cost)
                except BudgetExhausted:
                    assert not fits
                    continue
                assert fits
                state[slot] = (release, "pending", cost.simple, cost.renyi)
                model["simple"] += cost.simple
                model["renyi"] += cost.renyi
            elif kind == "p" and at in {"pending", "posted"}:
                ledger.post(session, dataset_id, release)
                state[slot] = (release, "posted", held_simple, held_renyi)
            elif kind == "v" and at == "pending":
                ledger.void(session, dataset_id, release)
                state[slot] = (uuid.uuid4(), "new", 0, 0)
                model["simple"] -= held_simple
                model["renyi"] -= held_renyi
            elif kind == "s" and at == "posted":
                kept = rng.randint(0, held_renyi)
                ledger.settle(session, dataset_id, release, renyi=kept)
                state[slot] = (uuid.uuid4(), "new", 0, 0)
                model["renyi"] -= held_renyi - kept
    with transaction(settings) as session:
        balance = repository.read_balance(session, dataset_id)
        assert balance.simple_pending + balance.simple_posted == model["simple"]
        assert balance.renyi_pending + balance.renyi_posted == model["renyi"]
        assert ledger.verify(session, dataset_id) == []
        for release, at, _, _ in state.values():  # leave the account as it was for the next example
            if at == "pending":
                ledger.void(session, dataset_id, release)
