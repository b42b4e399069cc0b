"""Each process's database role: what it is granted, and raw SQL that it may not say."""

import re
import uuid
from pathlib import Path

import psycopg
import pytest

from service.audit import repository as audit
from service.audit.repository import Line
from service.ledger import service as ledger
from service.local.database_access import API_ROLE, PROCESS_ROLES, RELAY_ROLE, WORKER_ROLE
from service.platform.database import transaction
from service.privacy.filters import Shares
from tests.bare_rows import add_bare_dataset, add_bare_key, add_bare_release
from tests.conftest import TEMPLATE
from tests.database_roles import OLD_ROLE
from tests.reservations import claim, faults_of, reserve
from workers import lease as leases

PAGE = Path(__file__).parents[2] / "docs" / "decisions" / "0040-a-role-for-each-process.md"
COST = Shares(1_000, 2_000)
SEEN = 700
"""What the steps cost that were recorded."""


# -- what is granted --------------------------------------------------------------------------------------------------


def declared():
    """{role: {(object, right, columns or None)}} by the page."""
    rights = {role: set() for role in PROCESS_ROLES}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 4 and cells[0] != "object":
            for role, cell in zip(PROCESS_ROLES, cells[1:], strict=True):
                for right in filter(None, cell.split("; ")):
                    kind, _, columns = right.partition(" ")
                    rights[role].add((cells[0], kind, tuple(sorted(re.findall(r"\w+", columns))) or None))
    return rights


TABLES = """
SELECT c.relname, lower(a.privilege_type), NULL FROM pg_class c, aclexplode(c.relacl) a
WHERE c.relnamespace = 'public'::regnamespace AND a.grantee IN (%(role)s, 0)
UNION ALL
SELECT c.relname, lower(a.privilege_type), array_agg(t.attname::text ORDER BY t.attname::text)
FROM pg_class c JOIN pg_attribute t ON t.attrelid = c.oid, aclexplode(t.attacl) a
WHERE c.relnamespace = 'public'::regnamespace AND a.grantee IN (%(role)s, 0)
GROUP BY c.relname, a.privilege_type
UNION ALL
SELECT CASE WHEN count(*) OVER (PARTITION BY p.proname) > 1
            THEN p.proname || '(' || oidvectortypes(p.proargtypes) || ')' ELSE p.proname::text END,
       CASE WHEN has_function_privilege(%(role)s, p.oid, 'EXECUTE') THEN 'execute' END, NULL
FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace
UNION ALL
SELECT n.nspname, lower(a.privilege_type), NULL FROM pg_namespace n, aclexplode(n.nspacl) a
WHERE a.grantee = %(role)s AND a.privilege_type <> 'USAGE'
UNION ALL
SELECT r.rolname, 'member', NULL FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid WHERE m.member = %(role)s
UNION ALL
SELECT r.rolname, 'attribute', NULL FROM pg_roles r
WHERE r.oid = %(role)s AND (r.rolsuper OR r.rolcreaterole OR r.rolcreatedb OR r.rolreplication OR r.rolbypassrls)
UNION ALL
SELECT c.relname, 'owner', NULL FROM pg_class c WHERE c.relowner = %(role)s
"""


def granted(connection, role):
    """The same by the database; what everybody is granted counts, too."""
    (oid,) = connection.execute("SELECT oid FROM pg_roles WHERE rolname = %s", (role,)).fetchone()
    rows = connection.execute(TABLES, {"role": oid}).fetchall()
    return {(name, right, columns and tuple(columns)) for name, right, columns in rows if right is not None}


@pytest.mark.parametrize("role", PROCESS_ROLES)
def test_every_right_of_a_role_stands_in_the_table(database, role):
    with psycopg.connect(database.owner_url.replace("+psycopg", "")) as connection:
        found = granted(connection, role)
    assert found == declared()[role]


def test_the_role_of_earlier_versions_has_no_right(database, postgres):
    with psycopg.connect(database.owner_url.replace("+psycopg", "")) as connection:
        assert granted(connection, OLD_ROLE) == set()
    with (
        psycopg.connect(postgres.url(database.name, OLD_ROLE).replace("+psycopg", "")) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute("SELECT 1 FROM datasets")


def test_the_comparison_notices_a_right_too_many(database):
    with psycopg.connect(database.owner_url.replace("+psycopg", "")) as connection:
        for more in (
            f"GRANT EXECUTE ON FUNCTION ledger_settle TO {API_ROLE}",
            f"GRANT UPDATE (price) ON releases TO {API_ROLE}",
            "GRANT SELECT ON tenants TO PUBLIC",
            "GRANT EXECUTE ON FUNCTION ledger_append TO PUBLIC",
        ):
            with connection.transaction(force_rollback=True):
                connection.execute(more)
                assert granted(connection, API_ROLE) != declared()[API_ROLE], more


def test_functions_with_the_owner_s_rights_look_nothing_up_for_the_caller(database):
    with psycopg.connect(database.owner_url.replace("+psycopg", "")) as connection:
        loose = connection.execute(
            "SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND p.prosecdef "
            "AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (p.proconfig), false)"
        ).fetchall()
    assert loose == []


# -- what each may not say --------------------------------------------------------------------------------------------


@pytest.fixture
def seen(settings):
    """A charged release with a checkpoint whose preview somebody has seen, a reserved one, and two tenants with a key each."""
    with transaction(settings) as session:
        tenant, dataset = add_bare_dataset(session, upload_key="u", wrapped_upload_key=b"w")
        key = add_bare_key(session, tenant)
        release, waiting = (add_bare_release(session, tenant, dataset, COST) for _ in range(2))
        stranger = add_bare_dataset(session)[0]
        add_bare_key(session, stranger)
        for one in (release, waiting):
            reserve(session, dataset, one, COST)
    with transaction(settings) as session:
        lease = claim(session, release)
        leases.charge(session, lease)
    with transaction(settings) as session:
        leases.record_steps(session, lease, steps=7, renyi=SEEN)
        leases.record_checkpoint(session, lease, key="checkpoints/seen")
    return {
        "tenant": tenant, "dataset": dataset, "key": key, "release": release, "waiting": waiting, "stranger": stranger,
        "fresh": uuid.uuid4(),
    }  # fmt: skip


def say(url, statement, **names):
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        cursor = connection.execute(statement.format(**{name: f"'{value}'" for name, value in names.items()}))
        return cursor.fetchall() if cursor.description else None


LINE = "INSERT INTO audit_events (tenant_id, action, outcome, request_id) VALUES ({tenant}, 'x', 'done', {fresh})"
HEAD = "INSERT INTO tree_heads SELECT 0, id, 0, sha256(''), public_key || public_key FROM signing_keys"
FORBIDDEN = {
    API_ROLE: [
        "SELECT ledger_settle({dataset}, {release}, 0)",
        "SELECT ledger_post({dataset}, {waiting})",
        "SELECT ledger_void({dataset}, {waiting})",
        "SELECT release_record_steps({release}, 1, 0, 0)",
        "SELECT merkle_integrate()",
        "SELECT merkle_certify({dataset})",
        "SELECT audit_integrate(1)",
        "SELECT dataset_expire({dataset})",
        "SELECT dataset_forget_upload({dataset})",
        *(f"UPDATE releases SET {change} WHERE id = {{release}}" for change in (
            "lease_token = lease_token + 1", "lease_expires_at = NULL", "attempts = 0", "checkpoint_key = 'mine'",
            "state = 'failed'", "state = 'published', bundle_key = 'b', certificate = '{{}}'", "recorded_steps = 0",
            "recorded_renyi = 0", "price = '{{}}'", "order_ = '{{}}'", "step = 0", "cancel_requested = false")),
        "UPDATE outbox SET sent_at = now()", "DELETE FROM outbox", "SELECT * FROM outbox",
        "UPDATE heartbeats SET beat_at = now()", "INSERT INTO heartbeats VALUES ('worker', now())",
        LINE, HEAD, "INSERT INTO audit_chain VALUES ({tenant}, 1, 1, '', '')", "DELETE FROM audit_pending",
        "INSERT INTO tenants (id, name) VALUES ({fresh}, 'mine')", "SELECT * FROM tenants",
        "UPDATE api_keys SET scope = 'owner'", "UPDATE api_keys SET tenant_id = {stranger}", "DELETE FROM api_keys",
        "UPDATE api_keys SET digest = ''", "UPDATE datasets SET storage_key = 'other'",
        "UPDATE datasets SET wrapped_data_key = ''", "UPDATE datasets SET erased_at = NULL",
    ],
    RELAY_ROLE: [
        "SELECT ledger_settle({dataset}, {release}, 0)", "SELECT ledger_post({dataset}, {waiting})",
        "SELECT ledger_void({dataset}, {waiting})", "SELECT ledger_open({fresh})",
        "SELECT ledger_reserve({dataset}, {fresh}, 0, 0, 1)", "SELECT release_record_steps({release}, 1, 0, 0)",
        "SELECT release_cancel({tenant}, {release})", "SELECT dataset_erase({dataset})",
        "UPDATE releases SET state = 'failed'", "UPDATE releases SET lease_token = 9", "SELECT price FROM releases",
        "UPDATE releases SET checkpoint_key = NULL", "SELECT certificate FROM releases", "SELECT * FROM datasets",
        "SELECT wrapped_data_key FROM datasets", "UPDATE datasets SET storage_key = NULL", "SELECT * FROM api_keys",
        "SELECT simple FROM ledger_entries", "SELECT * FROM balances", LINE, "SELECT * FROM audit_events",
        "SELECT audit_append({tenant}, {key}, 'x', NULL, NULL, 'done', 0, {fresh})",
    ],
    WORKER_ROLE: [
        "INSERT INTO api_keys (id, tenant_id, name, scope, digest) VALUES ({fresh}, {tenant}, 'm', 'owner', 'd')",
        "SELECT * FROM api_keys", "INSERT INTO tenants (id, name) VALUES ({fresh}, 'mine')", LINE,
        "INSERT INTO datasets (id, tenant_id, name) VALUES ({fresh}, {tenant}, 'mine')",
        "UPDATE datasets SET rows_expire_at = NULL", "UPDATE datasets SET storage_key = 'x'",
        "SELECT dataset_erase({dataset})", "SELECT dataset_redeclare({dataset}, 1, '', '{{}}', NULL, 9, 1e-6, 8, 1, 'k')",
        "INSERT INTO releases (id, steps) VALUES ({fresh}, 1)",
        "SELECT ledger_reserve({dataset}, {fresh}, 0, 0, 1)", "SELECT ledger_open({fresh})",
        "UPDATE releases SET recorded_renyi = 0", "UPDATE releases SET cancel_requested = true",
        "UPDATE releases SET price = '{{}}'", "UPDATE releases SET renyi_cost = 0",
        "SELECT release_cancel({tenant}, {release})", "SELECT * FROM audit_events",
        "SELECT audit_append({tenant}, {key}, 'x', NULL, NULL, 'done', 0, {fresh})",
        "DELETE FROM outbox", "SELECT * FROM outbox",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("role", "statement"), [(role, one) for role in PROCESS_ROLES for one in FORBIDDEN[role]])
def test_a_role_is_refused_what_is_not_its_own(postgres, database, seen, role, statement):
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied"):
        say(postgres.url(database.name, role), statement, **seen)


def charged(settings, dataset):
    with transaction(settings) as session:
        assert faults_of(session, dataset) == []
        balance = ledger.repository.read_balance(session, dataset)
        return balance.simple_posted, balance.renyi_posted


def test_what_was_seen_is_not_given_back_to_the_api(settings, database, seen):
    """A preview is looked at, the release cancelled, its charge settled at nothing: the way to as many as one likes."""
    assert say(database.api_url, "SELECT release_cancel({tenant}, {release})", **seen) == [("done",)]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        say(database.api_url, "SELECT ledger_settle({dataset}, {release}, 0)", **seen)
    assert charged(settings, seen["dataset"]) == (COST.simple, COST.renyi)


@pytest.mark.parametrize("renyi", [0, 1, SEEN - 1])
def test_nor_to_a_worker(settings, database, seen, renyi):
    outcome = f"SELECT outcome FROM ledger_settle({{dataset}}, {{release}}, {renyi})"
    assert say(database.worker_url, outcome, **seen) == [("conflict",)]
    assert charged(settings, seen["dataset"]) == (COST.simple, COST.renyi)


def test_a_release_is_settled_at_what_was_recorded_of_it_and_then_nothing_more_runs(settings, database, seen):
    settle = f"SELECT outcome FROM ledger_settle({{dataset}}, {{release}}, {SEEN})"
    assert say(database.worker_url, settle, **seen) == [("done",)]
    assert charged(settings, seen["dataset"]) == (COST.simple, SEEN)
    for more in (
        "SELECT release_record_steps({release}, 1, 8, 800)",
        "UPDATE releases SET checkpoint_key = 'checkpoints/more' WHERE id = {release}",
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            say(database.worker_url, more, **seen)


def test_an_attempt_that_knows_of_fewer_steps_than_were_recorded_settles_at_the_recorded_ones(settings, seen):
    """One recorded steps and died before it stored them: the next one stands at an older checkpoint."""
    with transaction(settings) as session:
        lease = leases.Lease(seen["release"], 1)
        leases.end_without_publishing(session, lease, failure="cancelled", settled_renyi=SEEN - 1)
    assert charged(settings, seen["dataset"]) == (COST.simple, SEEN)


def test_recorded_steps_only_ever_grow(database, seen):
    recorded = "SELECT recorded_steps, recorded_renyi FROM releases WHERE id = {release}"
    assert say(database.worker_url, "SELECT release_record_steps({release}, 1, 0, 0)", **seen) == [(True,)]
    assert say(database.worker_url, recorded, **seen) == [(7, SEEN)]
    assert say(database.worker_url, "SELECT release_record_steps({release}, 1, 9, 99999)", **seen) == [(True,)]
    assert say(database.worker_url, recorded, **seen) == [(9, COST.renyi)]
    for lower in ("recorded_steps = 0", "recorded_renyi = 0", "recorded_token = 0"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="never go down"):
            say(database.owner_url, f"UPDATE releases SET {lower} WHERE id = {{release}}", **seen)
    for wrong in ("-1, 0", "0, -1", "NULL, 0", "0, NULL"):
        with pytest.raises(psycopg.errors.CheckViolation):
            say(database.worker_url, f"SELECT release_record_steps({{release}}, 1, {wrong})", **seen)


def test_steps_are_recorded_by_the_holder_of_a_charged_release_alone(database, seen):
    for other in ("{release}, 0", "{release}, 2", "{waiting}, 0", "{fresh}, 1"):
        assert say(database.worker_url, f"SELECT release_record_steps({other}, 8, 800)", **seen) == [(False,)]


def test_no_checkpoint_is_named_before_its_steps_are_recorded(settings, database, seen):
    say(database.owner_url, "UPDATE releases SET lease_expires_at = NULL WHERE id = {release}", **seen)
    with transaction(settings) as session:
        lease = claim(session, seen["release"])
    name = "UPDATE releases SET checkpoint_key = 'checkpoints/next' WHERE id = {release}"
    for one in (name, name.replace("{release}", "{waiting}")):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="recorded before it is named"):
            say(database.worker_url, one, **seen)
    with transaction(settings) as session:
        leases.record_steps(session, lease, steps=8, renyi=SEEN)
        leases.record_checkpoint(session, lease, key="checkpoints/next")


# -- what everybody may do, and what all wait for -----------------------------------------------------------------------


@pytest.mark.parametrize("role", PROCESS_ROLES)
def test_no_role_makes_temporary_tables_or_large_objects(postgres, database, role):
    with psycopg.connect(database.owner_url.replace("+psycopg", "")) as connection:
        # The template is the database that migrations made: rights on a database are not copied with it.
        may = connection.execute("SELECT has_database_privilege(%s, %s, 'TEMPORARY')", (role, TEMPLATE)).fetchone()
    assert may == (False,)
    for one in ("lo_create(0)", "lo_creat(-1)", "lo_from_bytea(0, 'x')", "lo_import('/etc/hostname')"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for function"):
            say(postgres.url(database.name, role), f"SELECT {one}")


WAITED_FOR = {
    "release_claim(60)": ("imprimatur queue", WORKER_ROLE),
    "merkle_certify({dataset})": ("imprimatur merkle log", WORKER_ROLE),
    "merkle_integrate()": ("imprimatur merkle log", RELAY_ROLE),
    "audit_integrate(1)": ("imprimatur audit chain", RELAY_ROLE),
}
"""What waits for all others that do the same: the advisory lock it once took, and whose it is."""


@pytest.mark.parametrize("call", WAITED_FOR)
def test_no_role_holds_up_what_is_not_its_own(postgres, database, seen, call):
    name, whose = WAITED_FOR[call]
    connections = [psycopg.connect(postgres.url(database.name, role).replace("+psycopg", "")) for role in PROCESS_ROLES]
    try:
        for connection in connections:
            connection.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", (name,))
        limited = f"SET lock_timeout = '2s'; SELECT * FROM {call}"
        assert say(postgres.url(database.name, whose), limited, **seen) is None  # the first statement's: none fails
    finally:
        for connection in connections:
            connection.close()


LOCKS = {"queue_lock": "release_claim(60)", "merkle_lock": "merkle_integrate()", "audit_lock": "audit_integrate(1)"}


@pytest.mark.parametrize("table", LOCKS)
def test_one_call_at_a_time_by_a_lock_that_no_role_takes(postgres, database, table):
    for role in PROCESS_ROLES:
        for mode in ("ACCESS SHARE", "EXCLUSIVE"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                say(postgres.url(database.name, role), f"BEGIN; LOCK TABLE {table} IN {mode} MODE")
    with psycopg.connect(database.owner_url.replace("+psycopg", "")) as first:
        first.execute(f"SELECT * FROM {LOCKS[table]}")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            say(database.owner_url, f"SET lock_timeout = '100ms'; SELECT * FROM {LOCKS[table]}")


# -- keys, dates, uploads ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("who", ["api_url", "owner_url"])
def test_a_key_that_has_ended_stays_ended(database, seen, who):
    url = getattr(database, who)
    on_it = "WHERE id = {key}"
    say(url, f"UPDATE api_keys SET expires_at = now() + interval '1 day' {on_it}", **seen)
    say(url, f"UPDATE api_keys SET expires_at = now() + interval '1 hour', replaced_by = id {on_it}", **seen)
    say(url, f"UPDATE api_keys SET revoked_at = '2000-01-01' {on_it}", **seen)
    (when,) = say(url, f"SELECT revoked_at > now() - interval '1 minute' FROM api_keys {on_it}", **seen)
    assert when == (True,), "a key was good until it was revoked, whatever is written"
    for revival in ("revoked_at = NULL", "revoked_at = now()", "revoked_at = 'infinity'", "expires_at = NULL",
                    "expires_at = now() + interval '2 hours'", "replaced_by = NULL"):  # fmt: skip
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="keeps it"):
            say(url, f"UPDATE api_keys SET {revival} {on_it}", **seen)


def test_a_deletion_date_is_never_put_off_and_an_erasure_stays(database, seen):
    on_it = "WHERE id = {dataset}"
    say(database.api_url, f"UPDATE datasets SET rows_expire_at = now() + interval '1 hour' {on_it}", **seen)
    for later in ("NULL", "now() + interval '2 hours'", "'infinity'"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="never put off"):
            say(database.api_url, f"UPDATE datasets SET rows_expire_at = {later} {on_it}", **seen)
    assert say(database.relay_url, "SELECT * FROM dataset_expire({dataset})", **seen) == [(None, None)]
    assert say(database.api_url, "SELECT * FROM dataset_erase({dataset})", **seen) == [("k", None)]
    assert say(database.api_url, "SELECT * FROM dataset_erase({dataset})", **seen) == [(None, None)]
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="do not come back"):
        say(
            database.owner_url,
            f"UPDATE datasets SET storage_key = 'k', wrapped_data_key = 'w', erased_at = NULL {on_it}",
            **seen,
        )


def test_no_upload_is_kept_again_after_the_charge(database, seen):
    assert say(database.api_url, "SELECT upload_key FROM datasets WHERE id = {dataset}", **seen) == [(None,)]
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="no upload is kept"):
        say(
            database.api_url,
            "UPDATE datasets SET upload_key = 'x', wrapped_upload_key = 'x' WHERE id = {dataset}",
            **seen,
        )


def test_readings_of_an_upload_are_not_forgotten(settings, database):
    with transaction(settings) as session:
        _, dataset = add_bare_dataset(session, upload_key="u", wrapped_upload_key=b"w", upload_reads=3)
    for change in ("upload_reads = 0", "upload_key_id = gen_random_uuid()"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="belongs to its sender"):
            say(database.api_url, f"UPDATE datasets SET {change} WHERE id = '{dataset}'")
    assert say(database.relay_url, f"SELECT dataset_forget_upload('{dataset}')") == [(False,)], "it is still needed"


# -- the audit log ----------------------------------------------------------------------------------------------------

APPEND = "SELECT audit_append({tenant}, {key}, 'order_release', NULL, NULL, 'done', 0, {fresh})"


def test_a_line_names_a_key_of_its_own_tenant(database, seen):
    say(database.api_url, APPEND, **seen)
    for forged in (
        APPEND.replace("{tenant}", "{stranger}"),
        APPEND.replace("{key}", "NULL"),
        APPEND.replace("{key}", "{fresh}"),
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="names a key of its own tenant"):
            say(database.api_url, forged, **seen)


def test_the_time_of_a_line_is_the_database_s(database, seen):
    back_dated = LINE.replace("request_id)", "request_id, at)").replace("{fresh})", "{fresh}, '2001-01-01')")
    say(database.owner_url, back_dated, **seen)
    assert say(database.api_url, "SELECT at > now() - interval '1 minute' FROM audit_events", **seen) == [(True,)]


def test_lines_get_their_places_after_they_are_committed_and_without_waiting(settings, database, seen):
    """A request that is not done yet holds up no one, and its line comes later."""
    unfinished = psycopg.connect(database.api_url.replace("+psycopg", ""))
    unfinished.execute(APPEND.format(**{name: f"'{value}'" for name, value in seen.items()}))
    for _ in range(3):
        say(database.api_url, APPEND, **seen)
    assert say(database.relay_url, "SELECT audit_integrate(2)") == [(2,)]
    assert say(database.relay_url, "SELECT audit_integrate(100)") == [(1,)]
    unfinished.commit()
    unfinished.close()
    assert say(database.relay_url, "SELECT audit_integrate(100)") == [(1,)]
    with transaction(settings) as session:
        placed = audit.page(session, seen["tenant"], before=None, limit=10)
    assert sorted(place.seq for _, place, _ in placed) == [1, 2, 3, 4]
    assert [line.id for line, place, _ in placed if place.seq == 4] == [min(line.id for line, _, _ in placed)]


def test_the_version_before_writes_lines_that_are_placed_too(settings, seen):
    with transaction(settings) as session:
        audit.add(session, Line(seen["tenant"], "create_tenant"))
        assert audit.integrate(session) == 1
