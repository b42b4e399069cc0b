"""Every migration of the ledger works beside the version before it, and the last one takes its rights away."""

import datetime as dt
import uuid

import psycopg
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session

from imprimatur.verify.chain import entry_hash
from service.ledger import service as ledger
from service.platform.database import migrate
from service.privacy.filters import Shares
from tests.private_servers import drop_database
from tests.reservations import faults_of

OWNER = """
INSERT INTO tenants (id, name) VALUES (%(id)s, 't');
"""
DATASET = """
INSERT INTO datasets (id, tenant_id, name, schema, units, epsilon, delta, renyi_order, renyi_capacity, fingerprint,
                      storage_key, wrapped_data_key)
VALUES (%(id)s, %(id)s, 'd', '{}', 100, 1, 1e-6, 8, 0.5, 'f', 'k', 'w')
"""


@pytest.fixture
def old_database(postgres):
    """A database at revision 0001, with one dataset that a process of that version has opened."""
    name = f"old_{uuid.uuid4().hex}"
    postgres.create_database(name)
    migrate(postgres.url(name), "0001")
    dataset = uuid.uuid4()
    with psycopg.connect(postgres.url(name, "imprimatur_app").replace("+psycopg", "")) as connection:
        connection.execute(OWNER, {"id": dataset})
        connection.execute(DATASET, {"id": dataset})
        connection.execute("INSERT INTO balances (dataset_id) VALUES (%s)", (dataset,))
    yield postgres.url(name), postgres.url(name, "imprimatur_app"), dataset
    drop_database(postgres, name)


def reserve_as_before(app_url, dataset, cost):
    """What the version of revision 0001 did, statement by statement."""
    with psycopg.connect(app_url.replace("+psycopg", "")) as connection:
        connection.execute(
            "UPDATE balances SET simple_pending = simple_pending + %s, renyi_pending = renyi_pending + %s "
            "WHERE dataset_id = %s",
            (cost.simple, cost.renyi, dataset),
        )
        count, head = connection.execute(
            "SELECT entry_count, head_hash FROM balances WHERE dataset_id = %s FOR UPDATE", (dataset,)
        ).fetchone()
        fields = {
            "dataset_id": dataset,
            "seq": count + 1,
            "release_id": uuid.uuid4(),
            "kind": "reserve",
            "simple": cost.simple,
            "renyi": cost.renyi,
            "created_at": dt.datetime.now(dt.UTC),
            "previous_hash": head,
        }
        made = entry_hash(**fields)
        connection.execute(
            "INSERT INTO ledger_entries VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)", (*fields.values(), made)
        )
        connection.execute("UPDATE balances SET entry_count = %s, head_hash = %s", (count + 1, made))


def reserve_by_function(session, dataset, cost):
    """What every version since revision 0002 may call; returns the release's id."""
    values = {"dataset": dataset, "release": uuid.uuid4(), "simple": cost.simple, "renyi": cost.renyi}
    moved = text("SELECT outcome FROM ledger_reserve(:dataset, :release, :simple, :renyi)")
    assert session.scalar(moved, values) == "done"
    return values["release"]


def test_the_version_before_works_on_until_its_rights_are_taken(old_database):
    owner_url, app_url, dataset = old_database
    engine = create_engine(app_url)
    cost = Shares(10, 20)
    reserve_as_before(app_url, dataset, cost)
    migrate(owner_url, "0002")
    reserve_as_before(app_url, dataset, cost)  # old and new side by side, one chain
    with Session(engine) as session, session.begin():
        ledger.post(session, dataset, reserve_by_function(session, dataset, cost))
    reserve_as_before(app_url, dataset, cost)
    migrate(owner_url, "0003")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        reserve_as_before(app_url, dataset, cost)
    with Session(engine) as session, session.begin():
        reserve_by_function(session, dataset, cost)
        assert faults_of(session, dataset) == []
        assert ledger.repository.read_balance(session, dataset).entry_count == 6
    engine.dispose()
