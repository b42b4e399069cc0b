"""Raw SQL as all three roles of the processes at once: nothing it can say makes room in a budget, or a second release of one charge."""

import uuid

import psycopg
import pytest

from service.base.errors import Tampered
from service.ledger import service as ledger
from service.platform.crypto import Secrets
from service.platform.database import transaction
from service.privacy.filters import LARGEST_COST, NANO, Shares
from tests.bare_rows import add_bare_dataset, add_bare_release
from tests.reservations import faults_of, reserve

COST = Shares(NANO - 10, NANO - 20)
MOVES = "ledger_reserve(uuid, uuid, bigint, bigint, bigint)"


@pytest.fixture
def victim(settings):
    """A dataset whose budget is all but spent by one charged release, and the attacker's own dataset beside it."""
    with transaction(settings) as session:
        tenant, dataset = add_bare_dataset(session)
        release = add_bare_release(session, tenant, dataset, COST)
        other = add_bare_dataset(session)[1]
        reserve(session, dataset, release, COST)
    with transaction(settings) as session:
        ledger.post(session, dataset, release)
        session.connection().exec_driver_sql("UPDATE releases SET state = 'charged', lease_token = 1")
    return {"dataset": dataset, "release": release, "other": other, "fresh": uuid.uuid4()}


def as_application(settings, *statements, **values):
    """Run statements one after another on one connection, as `psql` would."""
    url = settings.database_url.replace("+psycopg", "")
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement.format(**{name: f"'{value}'" for name, value in values.items()}))
        return cursor.fetchall() if cursor.description else None


def state_of_money(settings):
    with psycopg.connect(settings.migration_database_url.replace("+psycopg", "")) as connection:
        return (
            connection.execute("SELECT * FROM balances ORDER BY dataset_id").fetchall(),
            connection.execute("SELECT * FROM ledger_entries ORDER BY dataset_id, seq").fetchall(),
        )


REFUSED = {
    # the tables themselves
    "lower a balance": ["UPDATE balances SET simple_posted = 0"],
    "raise a balance": ["UPDATE balances SET renyi_posted = renyi_posted + 1"],
    "move a balance": ["UPDATE balances SET dataset_id = gen_random_uuid()"],
    "cut the chain": ["UPDATE balances SET entry_count = 0, head_hash = '\\x00'"],
    "remove a balance": ["DELETE FROM balances"],
    "empty the balances": ["TRUNCATE balances CASCADE"],
    "a second balance": ["INSERT INTO balances (dataset_id) VALUES ({dataset})"],
    "copy a balance in": ["COPY balances (dataset_id) FROM STDIN"],
    "merge into balances": [
        "MERGE INTO balances b USING (SELECT 1) s ON true WHEN MATCHED THEN UPDATE SET simple_posted = 0"
    ],
    "lock and change": ["SELECT * FROM balances FOR UPDATE"],
    "write an entry": [
        "INSERT INTO ledger_entries SELECT dataset_id, 9, {fresh}, 'void', simple, renyi, now(), hash, hash FROM ledger_entries"
    ],
    "change an entry": ["UPDATE ledger_entries SET simple = 0"],
    "remove an entry": ["DELETE FROM ledger_entries"],
    "empty the entries": ["TRUNCATE ledger_entries"],
    # what guards them
    "drop a check": ["ALTER TABLE balances DROP CONSTRAINT ck_balances_one_account_has_room"],
    "drop the table": ["DROP TABLE ledger_entries"],
    "drop a trigger": ["DROP TRIGGER ledger_entries_append_only ON ledger_entries"],
    "disable the triggers": ["ALTER TABLE ledger_entries DISABLE TRIGGER ALL"],
    "disable the release's triggers": ["ALTER TABLE releases DISABLE TRIGGER ALL"],
    "be a replica": ["SET session_replication_role = replica"],
    "be a superuser": ["SET ROLE postgres"],
    "be the owner": ["SET SESSION AUTHORIZATION postgres"],
    "grant it to oneself": [
        "GRANT UPDATE ON balances TO imprimatur_worker WITH GRANT OPTION",
        "UPDATE balances SET simple_posted = 0",
    ],
    "a trigger of one's own": [
        "CREATE FUNCTION pg_temp.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
        "CREATE TRIGGER t BEFORE UPDATE ON balances FOR EACH ROW EXECUTE FUNCTION pg_temp.f()",
    ],
    "a rule": ["CREATE RULE r AS ON UPDATE TO balances DO INSTEAD NOTHING"],
    "an event trigger": [
        "CREATE FUNCTION pg_temp.e() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END'",
        "CREATE EVENT TRIGGER e ON ddl_command_start EXECUTE FUNCTION pg_temp.e()",
    ],
    "run a program": ["COPY (SELECT 1) TO PROGRAM 'true'"],
    "another language": ["CREATE FUNCTION pg_temp.c() RETURNS int LANGUAGE c AS 'x'"],
    # the functions
    "replace a function": [f"CREATE OR REPLACE FUNCTION public.{MOVES} RETURNS int LANGUAGE sql AS 'SELECT 1'"],
    "overload a function": [
        "CREATE FUNCTION public.ledger_has_room(text) RETURNS boolean LANGUAGE sql AS 'SELECT true'"
    ],
    "drop a function": [f"DROP FUNCTION public.{MOVES}"],
    "own a function": [f"ALTER FUNCTION public.{MOVES} OWNER TO imprimatur_worker"],
    "another search path": [f"ALTER FUNCTION public.{MOVES} SET search_path = pg_temp"],
    "with the caller's rights": [f"ALTER FUNCTION public.{MOVES} SECURITY INVOKER"],
    "append directly": [
        "SELECT ledger_append(b, {fresh}, 'void', 0, 0, 0, -b.simple_posted, 0, -b.renyi_posted) FROM balances b"
    ],
    "a table in the schema": ["CREATE TABLE public.shadow (x int)"],
    "a schema": ["CREATE SCHEMA evil"],
    # amounts that are none
    "negative simple": ["SELECT ledger_reserve({dataset}, {fresh}, -1, 0, 1)"],
    "negative rényi": ["SELECT ledger_reserve({dataset}, {fresh}, 0, -1, 1)"],
    "most negative": ["SELECT ledger_reserve({dataset}, {fresh}, -9223372036854775808, -9223372036854775808, 1)"],
    "no cost": ["SELECT ledger_reserve({dataset}, {fresh}, NULL, NULL, 1)"],
    "half a cost": ["SELECT ledger_reserve({dataset}, {fresh}, 0, NULL, 1)"],
    "no dataset": ["SELECT ledger_reserve(NULL, {fresh}, 0, 0, 1)"],
    "no release": ["SELECT ledger_reserve({dataset}, NULL, 0, 0, 1)"],
    "overflow": [f"SELECT ledger_reserve({{dataset}}, {{fresh}}, {LARGEST_COST + 1}, 0, 1)"],
    "overflow the sum": ["SELECT ledger_reserve({dataset}, {fresh}, 9223372036854775807, 0, 1)"],
    "not a number": ["SELECT ledger_reserve({dataset}, {fresh}, 'NaN'::float8::bigint, 0, 1)"],
    # the dataset and its promise
    "a larger budget": ["UPDATE datasets SET epsilon = 1000"],
    "a larger capacity": ["UPDATE datasets SET renyi_capacity = 1000"],
    "forget the rows": ["DELETE FROM dataset_fingerprints"],
    "forget the columns": ["DELETE FROM dataset_column_fingerprints"],
    "take the columns for others": ["UPDATE dataset_column_fingerprints SET fingerprint = 'x'"],
    "take the rows for others": ["UPDATE dataset_fingerprints SET fingerprint = 'x'"],
    "remove the dataset": ["DELETE FROM datasets"],
    # the release and its price
    "a cheaper release": ["UPDATE releases SET simple_cost = 0, renyi_cost = 0"],
    "longer events": ["UPDATE releases SET price = '{{}}'"],
    "another order": ["UPDATE releases SET order_ = '{{}}'"],
    "another dataset's release": ["UPDATE releases SET dataset_id = {other}"],
    "another release": ["UPDATE releases SET id = gen_random_uuid()"],
    "remove the release": ["DELETE FROM releases"],
    "a release that is charged already": [
        """INSERT INTO releases (id, tenant_id, dataset_id, state, order_, price, simple_cost, renyi_cost, body_digest, steps)
        SELECT {fresh}, tenant_id, id, 'charged', '{{}}', '{{}}', 0, 0, '', 1 FROM datasets WHERE id = {dataset}"""
    ],
    "a charged release back to reserved": ["UPDATE releases SET state = 'reserved'"],
    "a charged release voided": ["UPDATE releases SET state = 'voided'"],
    "a rule of the state put off": ["SET CONSTRAINTS ALL DEFERRED", "UPDATE releases SET state = 'reserved'"],
}
"""Each ends in an error of the database."""

CHANGES_NOTHING = {
    "void what is charged": ["SELECT ledger_void({dataset}, {release})"],
    "void from the other dataset": ["SELECT ledger_void({other}, {release})"],
    "charge twice": ["SELECT ledger_post({dataset}, {release})"],
    "charge the other dataset for it": ["SELECT ledger_post({other}, {release})"],
    "reserve again, dearer": [f"SELECT ledger_reserve({{dataset}}, {{release}}, 0, {LARGEST_COST}, 1)"],
    "settle above the charge": [f"SELECT ledger_settle({{dataset}}, {{release}}, {NANO})"],
    "settle below nothing": ["SELECT ledger_settle({dataset}, {release}, -1)"],
    "settle at nothing known": ["SELECT ledger_settle({dataset}, {release}, NULL)"],
    "charge what was never reserved": ["SELECT ledger_post({dataset}, {fresh})"],
    "void what was never reserved": ["SELECT ledger_void({dataset}, {fresh})"],
    "settle what was never charged": ["SELECT ledger_settle({dataset}, {fresh}, 0)"],
    "open it again": ["SELECT ledger_open({dataset})"],
    "a void that is rolled back, then a reservation": [
        "BEGIN", "SELECT ledger_void({dataset}, {release})", "ROLLBACK",
        f"SELECT ledger_reserve({{dataset}}, {{fresh}}, {NANO}, {NANO}, 1)",
    ],
    "temporary tables of the same names": [
        "CREATE TEMP TABLE balances AS SELECT * FROM public.balances",
        "CREATE TEMP TABLE ledger_entries AS SELECT * FROM public.ledger_entries",
        "UPDATE pg_temp.balances SET simple_posted = 0, renyi_posted = 0",
        "SET search_path = pg_temp, public",
        f"SELECT public.ledger_reserve({{dataset}}, {{fresh}}, {NANO}, {NANO}, 1)",
    ],
    "temporary functions and operators of the same names": [
        "CREATE FUNCTION pg_temp.ledger_has_room(public.balances, bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
        "CREATE FUNCTION pg_temp.greatest(bigint, bigint) RETURNS bigint LANGUAGE sql AS 'SELECT 0::bigint'",
        "CREATE FUNCTION pg_temp.less(bigint, bigint) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
        "CREATE OPERATOR pg_temp.<= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = pg_temp.less)",
        "SET search_path = pg_temp, pg_catalog, public",
        f"SELECT public.ledger_reserve({{dataset}}, {{fresh}}, {NANO}, {NANO}, 1)",
    ],
    "other settings of the session": [
        "SET DateStyle = 'SQL, DMY'", "SET TimeZone = 'Asia/Kathmandu'", "SET bytea_output = 'escape'",
        "SET default_transaction_isolation = 'repeatable read'",
        f"SELECT ledger_reserve({{dataset}}, {{fresh}}, {NANO}, {NANO}, 1)",
    ],
    "row security switched off": [
        "SET row_security = off", f"SELECT ledger_reserve({{dataset}}, {{fresh}}, {NANO}, {NANO}, 1)"
    ],
}  # fmt: skip
"""These are allowed to be said; the answer is no, or what happened before."""


@pytest.mark.parametrize("name", REFUSED)
def test_raw_sql_as_the_application_role_is_refused(settings, victim, name):
    before = state_of_money(settings)
    with pytest.raises(psycopg.Error):
        as_application(settings, *REFUSED[name], **victim)
    assert state_of_money(settings) == before


@pytest.mark.parametrize("name", CHANGES_NOTHING)
def test_what_the_application_role_may_say_changes_nothing_it_should_not(settings, victim, name):
    before = state_of_money(settings)
    as_application(settings, *CHANGES_NOTHING[name], **victim)
    assert state_of_money(settings) == before


def test_entries_made_under_strange_settings_verify(settings, victim):
    """What fits is reserved, with the same hash whatever the session is set to."""
    as_application(
        settings,
        "SET DateStyle = 'SQL, DMY'",
        "SET TimeZone = 'Asia/Kathmandu'",
        "SET bytea_output = 'escape'",
        "SET search_path = pg_temp",
        "SELECT public.ledger_reserve({dataset}, {fresh}, 10, 1000, 1)",
        **victim,
    )
    with transaction(settings) as session:
        assert faults_of(session, victim["dataset"]) == []
        assert ledger.repository.read_balance(session, victim["dataset"]).simple_pending == 10


def publish(settings, victim):
    as_application(
        settings, "UPDATE releases SET state = 'published', bundle_key = 'b', certificate = '{{}}'", **victim
    )


def test_a_published_release_is_never_trained_again_and_never_settled(settings, victim):
    """Back to `charged`, a worker would find the charge posted and publish a second generator for one price."""
    publish(settings, victim)
    before = state_of_money(settings)
    for change in ("state = 'charged', bundle_key = NULL, certificate = NULL", "bundle_key = 'c'", "lease_token = 9"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="never changes"):
            as_application(settings, f"UPDATE releases SET {change}")
    as_application(settings, "SELECT ledger_settle({dataset}, {release}, 0)", **victim)
    assert state_of_money(settings) == before


def test_a_settled_release_is_never_published(settings, victim):
    as_application(settings, "SELECT ledger_settle({dataset}, {release}, 0)", **victim)
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="the ledger does not say"):
        publish(settings, victim)


def test_nothing_is_charged_or_published_without_its_entries(settings):
    with transaction(settings) as session:
        tenant, dataset = add_bare_dataset(session)
        release = add_bare_release(session, tenant, dataset, COST)
        reserve(session, dataset, release, COST)
    on_it = f"WHERE id = '{release}'"
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="does not go from"):
        as_application(
            settings, f"UPDATE releases SET state = 'published', bundle_key = 'b', certificate = '{{{{}}}}' {on_it}"
        )
    for state in ("charged", "voided"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="the ledger does not say"):
            as_application(settings, f"UPDATE releases SET state = '{state}' {on_it}")


def test_a_copied_dataset_cannot_be_read(settings, victim):
    """The same encrypted rows under a new id would have a new budget; their key is bound to the old id."""
    secrets = Secrets.load(settings.secret_key_file)
    wrapped = secrets.wrap_data_key(secrets.new_data_key(), victim["dataset"])
    with psycopg.connect(settings.migration_database_url.replace("+psycopg", "")) as connection:
        connection.execute("UPDATE datasets SET wrapped_data_key = %s WHERE id = %s", (wrapped, victim["dataset"]))
    columns = (
        "tenant_id, name, schema, units, epsilon, delta, renyi_order, renyi_capacity, storage_key, wrapped_data_key"
    )
    copy = as_application(
        settings,
        f"INSERT INTO datasets (id, {columns}) SELECT {{fresh}}, {columns} FROM datasets WHERE id = {{dataset}} "
        "RETURNING id, wrapped_data_key",
        **victim,
    )
    assert copy == [(victim["fresh"], wrapped)]
    with pytest.raises(Tampered):
        secrets.unwrap_data_key(wrapped, victim["fresh"])


TRIGGERS = ["UPDATE ledger_entries SET simple = 0", "DELETE FROM ledger_entries", "TRUNCATE ledger_entries",
            "TRUNCATE balances CASCADE", "DELETE FROM balances"]  # fmt: skip


@pytest.mark.usefixtures("victim")
@pytest.mark.parametrize("statement", TRIGGERS)
def test_even_the_owning_role_meets_the_triggers(settings, statement):
    url = settings.migration_database_url.replace("+psycopg", "")
    with psycopg.connect(url) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
        connection.execute(statement)


@pytest.mark.usefixtures("victim")
@pytest.mark.parametrize("statement", ["simple_pending = -1", f"simple_posted = {NANO + 1}, renyi_posted = {NANO + 1}"])
def test_even_the_owning_role_meets_the_checks(settings, statement):
    url = settings.migration_database_url.replace("+psycopg", "")
    with psycopg.connect(url) as connection, pytest.raises(psycopg.errors.CheckViolation):
        connection.execute(f"UPDATE balances SET {statement}")


def test_sums_stay_inside_64_bits(settings):
    """One account open, the other closed ever deeper: the sums end long before they could overflow."""
    with transaction(settings) as session:
        dataset = add_bare_dataset(session)[1]
    owner = settings.migration_database_url.replace("+psycopg", "")
    with psycopg.connect(owner) as connection:
        connection.execute("UPDATE balances SET simple_pending = 4 * 10::numeric ^ 18, simple_posted = 1")
    outcome = as_application(settings, f"SELECT outcome FROM ledger_reserve('{dataset}', gen_random_uuid(), 0, 0, 1)")
    assert outcome == [("exhausted",)]
