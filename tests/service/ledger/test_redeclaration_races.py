"""An order and a new declaration at the same moment, on real Postgres: one comes first, and the other sees it."""

import json
import random
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from sqlalchemy import text

from service.audit import repository as audit
from service.audit.models import DONE, AuditEvent
from service.base.errors import LedgerConflict, Redeclared
from service.datasets import repository as datasets
from service.ledger import service as ledger
from service.platform.database import driver, transaction
from service.privacy.filters import Shares, open_budget
from service.releases import repository
from service.releases.models import Release
from service.upkeep.installation import owner_transaction
from tests.bare_rows import add_bare_dataset, add_bare_key, add_bare_release
from tests.reservations import faults_of, reserve

COST = Shares(10, 10)
BUDGET = open_budget(1.0, 1e-6)


@pytest.fixture
def bare(settings):
    with transaction(settings) as session:
        tenant, dataset = add_bare_dataset(session)
        add_bare_key(session, tenant)
        return tenant, dataset


def redeclare(session, dataset, declaration, units):
    return datasets.redeclare(
        session,
        dataset,
        declaration=declaration,
        name="n",
        schema="{}",
        privacy_unit=None,
        units=units,
        delta=1e-6,
        renyi_order=BUDGET.renyi_order,
        renyi_capacity=BUDGET.renyi_capacity,
        storage_key=f"k{units}",
        key=None,
        request=uuid.uuid4(),
    ).outcome


def order(settings, tenant, dataset, ground):
    """Placed at the price of the n that was read; its id where it was."""
    release = uuid.uuid4()
    with driver(settings) as connection:
        (key,) = connection.execute("SELECT id FROM api_keys WHERE tenant_id = %s", (tenant,)).fetchone()
        placed = repository.place(
            connection,
            id=release,
            tenant_id=tenant,
            dataset_id=dataset,
            simple_cost=COST.simple,
            renyi_cost=COST.renyi,
            declaration=ground.declaration,
            idempotency_key=None,
            body_digest=b"",
            steps=1,
            order="{}",
            price=json.dumps({"units": ground.account.units}),
            key_id=key,
            priority=3,
            estimate="null",
            most_of_key=10_000,
            most_of_tenant=10_000,
            action="order_release",
            request_id=uuid.uuid4(),
            audit_outcome=DONE,
        )
    return placed.outcome, release


def ground_of(settings, tenant, dataset):
    with driver(settings) as connection:
        return repository.find_ground(connection, tenant, dataset)


def until_somebody_waits(settings):
    """For a lock that the open transaction of this test holds."""
    with psycopg.connect(settings.migration_database_url.replace("+psycopg", ""), autocommit=True) as connection:
        for _ in range(1_000_000):
            query = (
                "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            )
            if connection.execute(query).fetchone()[0]:
                return
    pytest.fail("no transaction waits")


def test_an_order_that_waits_for_a_new_declaration_is_refused(settings, bare):
    tenant, dataset = bare
    priced = ground_of(settings, tenant, dataset)
    with ThreadPoolExecutor(1) as threads:
        with transaction(settings) as session:
            assert redeclare(session, dataset, 1, units=50) == "done"
            waiting = threads.submit(order, settings, tenant, dataset, priced)
            until_somebody_waits(settings)
        assert waiting.result()[0] == "redeclared"
    with transaction(settings) as session:
        assert session.query(Release).count() == 0
        assert ledger.repository.read_balance(session, dataset).entry_count == 0
    assert order(settings, tenant, dataset, ground_of(settings, tenant, dataset))[0] == "done"


@pytest.mark.parametrize(("move", "outcome"), [("reserve", "ordered"), ("post", "charged")])
def test_a_new_declaration_that_waits_for_an_order_or_a_charge_is_refused(settings, bare, move, outcome):
    tenant, dataset = bare
    with transaction(settings) as session:
        release = uuid.uuid4()
        if move == "post":
            release = add_bare_release(session, tenant, dataset, COST)
            reserve(session, dataset, release, COST)

    def replace():
        with transaction(settings) as session:
            return redeclare(session, dataset, 1, units=50)

    with ThreadPoolExecutor(1) as threads:
        with transaction(settings) as session:
            if move == "reserve":
                reserve(session, dataset, release, COST)
            else:
                ledger.post(session, dataset, release)
            waiting = threads.submit(replace)
            until_somebody_waits(settings)
        assert waiting.result() == outcome
    assert ground_of(settings, tenant, dataset).account.units == 100


def test_a_charge_that_waits_for_a_new_declaration_has_nothing_to_charge(settings, bare):
    """A reservation keeps the declaration as it is, so only a voided one's worker can come too late."""
    tenant, dataset = bare
    with transaction(settings) as session:
        release = add_bare_release(session, tenant, dataset, COST)
        reserve(session, dataset, release, COST)
        assert redeclare(session, dataset, 1, units=50) == "ordered"
        ledger.void(session, dataset, release)

    def charge():
        with transaction(settings) as session:
            ledger.post(session, dataset, release)

    with ThreadPoolExecutor(1) as threads:
        with transaction(settings) as session:
            assert redeclare(session, dataset, 1, units=50) == "done"
            waiting = threads.submit(charge)
            until_somebody_waits(settings)
        with pytest.raises(LedgerConflict):
            waiting.result()


def test_of_two_new_declarations_at_once_one_is_refused(settings, bare):
    _, dataset = bare

    def replace():
        with transaction(settings) as session:
            return redeclare(session, dataset, 1, units=70)

    with ThreadPoolExecutor(1) as threads:
        with transaction(settings) as session:
            assert redeclare(session, dataset, 1, units=50) == "done"
            waiting = threads.submit(replace)
            until_somebody_waits(settings)
        assert waiting.result() == "redeclared"


def test_a_snapshot_from_before_does_not_help(settings, bare):
    """Raw SQL in a transaction that looks at one moment: it is refused by Postgres, not let in under the old number."""
    tenant, dataset = bare
    url = settings.database_url.replace("+psycopg", "")
    with psycopg.connect(url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("SELECT 1 FROM datasets").fetchall()
        with transaction(settings) as session:
            assert redeclare(session, dataset, 1, units=50) == "done"
        with pytest.raises(psycopg.errors.SerializationFailure):
            connection.execute("SELECT outcome FROM ledger_reserve(%s, gen_random_uuid(), 1, 1, 1)", (dataset,))
    assert ground_of(settings, tenant, dataset).account.simple_pending == 0


def test_many_orders_and_declarations_at_once(settings, bare):
    """Every order that was placed was priced under the declaration that held: the audit lines are written under the lock."""
    tenant, dataset = bare
    begin, placed = threading.Barrier(6), []

    def orders(seed):
        random.seed(seed)
        begin.wait()
        for _ in range(40):
            outcome, release = order(settings, tenant, dataset, ground_of(settings, tenant, dataset))
            if outcome == "done":
                placed.append(release)
                with transaction(settings) as session:
                    ledger.void(session, dataset, release)

    def declarations(units):
        begin.wait()
        done = 0
        for number in range(400):
            with transaction(settings) as session:
                standing = datasets.standing(session, dataset)
                if redeclare(session, dataset, standing.declaration, units + number) == "done":
                    line = audit.Line(tenant, f"units {units + number}", object_kind="dataset", object_id=dataset)
                    audit.add(session, line)
                    done += 1
        return done

    with ThreadPoolExecutor(6) as threads:
        ordering = [threads.submit(orders, seed) for seed in range(4)]
        declaring = [threads.submit(declarations, units) for units in (1_000, 5_000)]
        for one in ordering:
            one.result()
        assert sum(one.result() for one in declaring) > 10
    assert len(placed) > 10
    held, seen = 100, 0
    with transaction(settings) as session:
        own = AuditEvent.action.not_in(["replace_declaration", "change_promise"])
        for line in session.query(AuditEvent).where(own).order_by(AuditEvent.id):
            if line.action == "order_release":
                assert session.get_one(Release, line.object_id).price == {"units": held}
                seen += 1
            else:
                held = int(line.action.removeprefix("units "))
        assert seen == len(placed)
        assert faults_of(session, dataset) == []


def reserve_as_before(session, dataset, release):
    """As the version that knew of one declaration only."""
    moved = text("SELECT outcome FROM ledger_reserve(:dataset, :release, :simple, :renyi)")
    values = {"dataset": dataset, "release": release, "simple": COST.simple, "renyi": COST.renyi}
    return session.scalar(moved, values)


def test_the_version_before_orders_under_the_first_declaration_only(settings, bare):
    (_, dataset), first = bare, uuid.uuid4()
    with owner_transaction(settings) as session:
        assert reserve_as_before(session, dataset, first) == "done"
        ledger.void(session, dataset, first)
        assert redeclare(session, dataset, 1, units=50) == "done"
        assert reserve_as_before(session, dataset, uuid.uuid4()) == "conflict"
    with pytest.raises(Redeclared), transaction(settings) as session:
        reserve(session, dataset, uuid.uuid4(), COST, declaration=1)
    with transaction(settings) as session:
        reserve(session, dataset, uuid.uuid4(), COST, declaration=2)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE datasets SET schema = '{}'",
        "UPDATE datasets SET units = 3",
        "UPDATE datasets SET delta = 0.5",
        "UPDATE datasets SET epsilon = 100",
        "UPDATE datasets SET privacy_unit = NULL",
        "UPDATE balances SET declaration = 2",
    ],
)
def test_the_role_of_the_application_changes_a_declaration_in_no_other_way(settings, bare, statement):
    assert bare
    url = settings.database_url.replace("+psycopg", "")
    with psycopg.connect(url) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(statement)
