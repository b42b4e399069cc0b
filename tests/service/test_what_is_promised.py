"""What the API's role may write of orders and promises: attacks of who has it, and the secret key file not (migration 0029)."""

import math
import uuid

import psycopg
import pytest

from service.audit import repository as audit
from service.base.errors import Unavailable
from service.datasets.stored_objects import is_from_before
from service.ledger import service as ledger
from service.platform.database import transaction
from service.privacy.filters import Shares, open_budget
from service.privacy.renyi import renyi_capacity
from service.privacy.statements import default_delta, largest_delta
from tests.bare_rows import add_bare_dataset, add_bare_key, add_bare_release
from tests.reservations import reserve

COST = Shares(1_000, 2_000)
UNITS = 100_000
DELTA = default_delta(UNITS)
BUDGET = open_budget(1.0, DELTA)
REFUSED = psycopg.errors.InsufficientPrivilege


@pytest.fixture
def dataset(settings):
    """Uncharged, with the default δ of its units, and a kept upload."""
    with transaction(settings) as session:
        tenant, made = add_bare_dataset(
            session, units=UNITS, delta=DELTA, upload_key="u", wrapped_upload_key=b"w", upload_reads=20,
            privacy_unit={"column": "who", "max_rows_per_unit": 5},
        )  # fmt: skip
        keys = [add_bare_key(session, tenant) for _ in range(2)]
        add_bare_key(session, add_bare_dataset(session)[0])
    return {"tenant": tenant, "dataset": made, "key": keys[0], "other_key": keys[1]}


def say(url, statement, **names):
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        cursor = connection.execute(statement, names or None)
        return cursor.fetchall() if cursor.description else None


# -- a release without its reservation


INSERT = """
INSERT INTO releases (id, tenant_id, dataset_id, order_, price, simple_cost, renyi_cost, body_digest, steps)
VALUES (%(release)s, %(tenant)s, %(dataset)s, '{}', '{}', %(simple)s, %(renyi)s, '', 1)
"""
RESERVE = "SELECT outcome FROM ledger_reserve(%(reserved_on)s, %(release)s, 1000, 2000, 1)"
FORGED = {
    "nothing": {},
    "on another dataset": {"reserved_on": "other"},
    "a smaller simple cost": {"reserved_on": "dataset", "simple": 999},
    "a smaller Rényi cost": {"reserved_on": "dataset", "renyi": 0},
    "by another tenant": {"reserved_on": "dataset", "tenant": "stranger"},
}


@pytest.mark.parametrize("how", FORGED)
def test_no_release_is_written_without_its_reservation(settings, database, dataset, how):
    """It stayed `reserved` for ever, and a worker stumbled over it once a lease."""
    with transaction(settings) as session:
        stranger, other = add_bare_dataset(session)
    named = {"stranger": stranger, "other": other, "dataset": dataset["dataset"]}
    forged = {name: named.get(value, value) for name, value in FORGED[how].items()}
    values = {**dataset, "release": uuid.uuid4(), "simple": 1_000, "renyi": 2_000, "reserved_on": None, **forged}
    before = RESERVE if values["reserved_on"] else "SELECT 'none'"
    with psycopg.connect(database.api_url.replace("+psycopg", "")) as connection:
        connection.execute(before, values)
        connection.execute(INSERT, values)
        with pytest.raises(REFUSED, match=r"nothing is reserved|another tenant"):
            connection.commit()
    assert say(database.owner_url, "SELECT count(*) FROM releases") == [(0,)]


@pytest.mark.parametrize("first", ["money", "order"])
def test_order_and_reservation_of_one_transaction_are_taken(database, dataset, first):
    values = {**dataset, "release": uuid.uuid4(), "simple": 1_000, "renyi": 2_000, "reserved_on": dataset["dataset"]}
    with psycopg.connect(database.api_url.replace("+psycopg", "")) as connection:
        for statement in (RESERVE, INSERT) if first == "money" else (INSERT, RESERVE):
            connection.execute(statement, values)
    assert say(database.api_url, "SELECT state FROM releases") == [("reserved",)]


# -- the promise


CAPACITIES = """
SELECT e, d, o, largest_capacity(e, d, o)
FROM unnest('{0.01, 1, 50}'::float8[]) AS e, unnest('{1e-15, 1e-12, 1e-6, 1e-3, 0.04}'::float8[]) AS d,
     unnest('{2, 3, 8, 64, 512, 65536}'::integer[]) AS o
"""


def test_the_database_knows_the_largest_capacity(database):
    found = say(database.owner_url, CAPACITIES)
    assert len(found) == 90
    for epsilon, delta, order, capacity in found:
        right = renyi_capacity(epsilon, delta / 2.0, order)
        assert math.isclose(capacity, right, rel_tol=1e-12, abs_tol=1e-12), (epsilon, delta, order)


def test_the_database_knows_the_default_delta(database):
    units = [1, 2, 3, 40, 999, 1_000, 1_001, 31_623, 999_999, 10**6, 10**7, 10**12, 2**62]
    found = say(database.owner_url, "SELECT default_delta(n) FROM unnest(%(units)s::bigint[]) AS n", units=units)
    for (mine,), n in zip(found, units, strict=True):
        assert math.isclose(mine, default_delta(n), rel_tol=1e-12), n


REDECLARE = """
SELECT outcome FROM datasets AS d JOIN balances AS b ON b.dataset_id = d.id, LATERAL dataset_redeclare(
    d.id, b.declaration, d.name, d.schema, coalesce(%(unit)s::jsonb, d.privacy_unit), coalesce(%(units)s::bigint, d.units),
    coalesce(%(delta)s::float8, d.delta), coalesce(%(order)s::integer, d.renyi_order),
    coalesce(%(capacity)s::float8, d.renyi_capacity), coalesce(%(stored)s::text, d.storage_key)) WHERE d.id = %(dataset)s
"""
NAMES = ("unit", "units", "delta", "order", "capacity", "stored")


def redeclare(url, dataset, **changed):
    values = {**dict.fromkeys(NAMES), "stored": f"rows-{uuid.uuid4().hex}", **changed, "dataset": dataset["dataset"]}
    return say(url, REDECLARE, **values)


ATTACKS = {
    "a million times the capacity": ({"capacity": 1e6}, "Rényi account"),
    "a little more capacity": ({"capacity": renyi_capacity(1.0, DELTA / 2.0, BUDGET.renyi_order) * (1 + 1e-6)}, "Rényi account"),
    "the capacity of another order": ({"order": 2}, "Rényi account"),
    "a larger δ": ({"delta": DELTA * 10}, "delta is given once"),
    "the largest δ of its units": ({"delta": largest_delta(UNITS)}, "delta is given once"),
    "δ near 1": ({"delta": 0.99}, "delta is given once"),
    "the default δ of fewer units": ({"delta": default_delta(1_000)}, "delta is given once"),
    "more than the default δ of fewer units": ({"units": 1_000, "delta": 2e-6}, "delta is given once"),
    "δ above 1/(10 n)": ({"units": 10**12}, "at most"),
    "its rows under another unit": ({"unit": "{}", "stored": None}, "rows of its own"),
    "its rows under a weaker unit": ({"unit": '{"column": "who", "max_rows_per_unit": 1}', "stored": None}, "rows of its own"),
}  # fmt: skip


@pytest.mark.parametrize("name", ATTACKS)
def test_a_promise_that_is_not_charged_yet_is_not_weakened(database, dataset, name):
    """Four releases of the whole ε were published; a δ of 0.99 or another unit would have been signed."""
    changed, why = ATTACKS[name]
    for url in (database.api_url, database.owner_url):
        with pytest.raises(REFUSED, match=why):
            redeclare(url, dataset, **changed)


def test_what_an_owner_may_declare_anew_is_taken(database, dataset):
    """As `service.datasets.redeclaration` asks: another unit, with rows of its own and the default δ of their number."""
    for units in (40, 2_000, UNITS):
        budget = open_budget(1.0, default_delta(units))
        changed = {"delta": budget.delta, "order": budget.renyi_order, "capacity": budget.renyi_capacity}
        assert redeclare(database.api_url, dataset, units=units, unit="null", **changed) == [("done",)]
    smaller = open_budget(1.0, DELTA / 2.0)
    changed = {"delta": smaller.delta, "order": smaller.renyi_order, "capacity": smaller.renyi_capacity}
    assert redeclare(database.api_url, dataset, **changed) == [("done",)]
    with pytest.raises(REFUSED, match="given once"):
        redeclare(database.api_url, dataset, delta=DELTA)


def test_rows_do_not_come_back_under_another_declaration(database, dataset):
    """By way of a name that is nothing's: back to the rows that were stored under the unit before."""
    assert redeclare(database.api_url, dataset, unit="{}") == [("done",)]
    with pytest.raises(REFUSED, match="name of their own"):
        redeclare(database.api_url, dataset, stored="k")


def test_every_new_declaration_has_its_lines_whoever_makes_it(settings, database, dataset):
    """The API writes lines of what it does; raw SQL would have left none."""
    assert redeclare(database.api_url, dataset) == [("done",)]
    assert redeclare(database.api_url, dataset, unit="{}") == [("done",)]
    with transaction(settings) as session:
        audit.integrate(session)
        found = audit.page(session, dataset["tenant"], before=None, limit=10)
    lines = [(line.action, line.object_id, line.outcome, place is not None) for line, place, _ in reversed(found)]
    its = (dataset["dataset"], "done", True)
    assert lines == [("replace_declaration", *its), ("replace_declaration", *its), ("change_promise", *its)]


def test_a_new_declaration_names_a_key_of_its_own_tenant(database, dataset):
    forged = REDECLARE.replace("coalesce(%(stored)s::text, d.storage_key))", "%(stored)s, %(key)s)")
    ((stranger,),) = say(
        database.api_url, "SELECT id FROM api_keys WHERE tenant_id <> %(tenant)s", tenant=dataset["tenant"]
    )
    values = {**dict.fromkeys(NAMES), "stored": "rows", "dataset": dataset["dataset"]}
    with pytest.raises(REFUSED, match="its own tenant"):
        say(database.api_url, forged, **values, key=stranger)
    assert say(database.api_url, forged, **values, key=dataset["key"]) == [("done",)]


WRITE = """
INSERT INTO datasets (id, tenant_id, name, schema, units, epsilon, delta, renyi_order, renyi_capacity, storage_key, wrapped_data_key)
VALUES (%(id)s, %(tenant)s, 'd', '{}', %(units)s, 1, %(delta)s, %(order)s, %(capacity)s, 'k', 'w')
"""


@pytest.mark.parametrize("changed", [{"capacity": 1e6}, {"delta": 0.5}, {"units": 10**9, "delta": 1e-6}], ids=str)
def test_no_dataset_is_written_with_more_than_it_promises(database, dataset, changed):
    honest = {"units": UNITS, "delta": DELTA, "order": BUDGET.renyi_order, "capacity": BUDGET.renyi_capacity}
    values = {"tenant": dataset["tenant"], **honest}
    say(database.api_url, WRITE, id=uuid.uuid4(), **values)
    with pytest.raises(REFUSED):
        say(database.api_url, WRITE, id=uuid.uuid4(), **{**values, **changed})


def test_epsilon_is_given_once_even_for_the_owning_role(database, dataset):
    with pytest.raises(REFUSED, match="epsilon is given once"):
        say(database.owner_url, "UPDATE datasets SET epsilon = 2")
    assert dataset


def test_a_promise_from_before_is_erased_and_corrected(database, dataset):
    """What was written before there was a check stays, and nothing of it hinders what is legitimate."""
    forge = "SET session_replication_role = replica; UPDATE datasets SET renyi_capacity = 1e6, delta = 0.5"
    say(database.owner_url, forge)
    assert redeclare(database.api_url, dataset, delta=DELTA, capacity=BUDGET.renyi_capacity) == [("done",)]
    say(database.owner_url, forge)
    say(database.api_url, "UPDATE datasets SET rows_expire_at = now() + interval '1 day'")
    ((stored, upload),) = say(database.api_url, "SELECT * FROM dataset_erase(%(dataset)s)", **dataset)
    assert (stored is not None, upload) == (True, "u")


FROM_BEFORE = "UPDATE datasets SET upload_key = %(name)s WHERE id = %(dataset)s"
NAMES_OF_OBJECTS = (
    "rows",
    "rows-1",
    "upload",
    "upload-1",
    "rowsand",
    "bound-rows-1",
    "Rows",
    " rows",
    "x/rows",
    "\nrows",
    "",
)


@pytest.mark.parametrize("folder", ["datasets/{}/", "datasets//", "datasets/a\nb/", "datasets/", "/datasets/{}/", ""])
def test_names_of_what_was_stored_before_are_taken_on_by_no_row(database, dataset, folder):
    """What has such a name opens whatever it is a copy of (`service.datasets.stored_objects`)."""
    for name in (folder.format(dataset["dataset"]) + rest for rest in NAMES_OF_OBJECTS):
        for url in (database.api_url, database.owner_url):
            values = {"dataset": dataset["dataset"], "name": name}
            if is_from_before(name):
                with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
                    say(url, FROM_BEFORE, **values)
                with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
                    redeclare(url, dataset, stored=name)
    if not is_from_before(name := folder.format(dataset["dataset"]) + "rows"):
        say(database.api_url, FROM_BEFORE, dataset=dataset["dataset"], name=name)


def test_to_a_version_that_stores_as_before_the_database_does_not_answer(settings, dataset):
    """Its caller is told to ask again, and nothing is kept that no worker could read."""
    with pytest.raises(Unavailable), transaction(settings) as session:
        add_bare_dataset(session, storage_key=f"datasets/{dataset['dataset']}/rows")


# -- what a function does leaves its line by itself


ACTS = {
    "erase_dataset": "SELECT storage_key FROM dataset_erase(%(dataset)s{})",
    "cancel_release": "SELECT release_cancel(%(tenant)s, %(release)s{})",
}


@pytest.mark.parametrize("act", ACTS)
def test_erasing_and_cancelling_have_their_lines_whoever_asks(settings, database, dataset, act):
    """By raw SQL they left none, not even of another tenant's."""
    with transaction(settings) as session:
        release = add_bare_release(session, dataset["tenant"], dataset["dataset"], COST)
        reserve(session, dataset["dataset"], release, COST)
    ((stranger,),) = say(
        database.api_url, "SELECT id FROM api_keys WHERE tenant_id <> %(tenant)s", tenant=dataset["tenant"]
    )
    values = {**dataset, "release": release, "request": uuid.uuid4()}
    with pytest.raises(REFUSED, match="its own tenant"):
        say(database.api_url, ACTS[act].format(", %(key)s"), **values | {"key": stranger})
    assert say(database.api_url, ACTS[act].format(""), **values)[0][0] in {"k", "done"}
    say(database.api_url, ACTS[act].format(", %(key)s, %(request)s"), **values)
    unknown = {**values, "dataset": uuid.uuid4(), "release": uuid.uuid4()}
    assert say(database.api_url, ACTS[act].format(""), **unknown) == [(None,)]
    with transaction(settings) as session:
        audit.integrate(session)
        found = [line for line, _, _ in reversed(audit.page(session, dataset["tenant"], before=None, limit=10))]
    what = dataset["dataset"] if act == "erase_dataset" else release
    assert {(line.action, line.object_id, line.outcome) for line in found} == {(act, what, "done")}
    asked = [(line.key_id, line.request_id == values["request"]) for line in found]
    again = [(dataset["key"], True)] if act == "erase_dataset" else []
    assert asked == [(None, False), *again], "an erasure that is asked for again is noted, as it always was"


# -- the kept upload


def test_an_upload_does_not_come_back_as_that_of_another_key(database, dataset):
    """Its readings count cells under a schema that the caller chooses: twenty, for the key that has sent it."""
    change = "UPDATE datasets SET upload_key = %(upload)s, wrapped_upload_key = 'w', upload_key_id = %(other_key)s, upload_reads = 0"
    for way in ("UPDATE datasets SET upload_key = NULL, wrapped_upload_key = NULL", change):
        say(database.api_url, way, **dataset, upload="another")
        with pytest.raises(REFUSED, match="name of their own"):
            say(database.api_url, change, **dataset, upload="u")


def test_the_list_of_names_is_no_role_s_business(database, dataset):
    for statement in ("DELETE FROM dataset_objects", "SELECT * FROM dataset_objects", "TRUNCATE dataset_objects"):
        for url in (database.api_url, database.relay_url, database.worker_url):
            with pytest.raises(REFUSED, match="permission denied"):
                say(url, statement)
    assert dataset


def test_a_charged_dataset_keeps_all_of_it(settings, database, dataset):
    with transaction(settings) as session:
        release = add_bare_release(session, dataset["tenant"], dataset["dataset"], COST)
        reserve(session, dataset["dataset"], release, COST)
        ledger.post(session, dataset["dataset"], release)
    assert redeclare(database.api_url, dataset, delta=DELTA / 2.0) == [("charged",)]
    assert say(database.api_url, "SELECT delta FROM datasets WHERE id = %(dataset)s", **dataset) == [(DELTA,)]
