"""Even someone who can do anything to the database cannot do it unseen: `verify` names what was changed, removed or moved."""

import uuid

import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from service.ledger import service as ledger
from service.platform.database import transaction
from service.privacy.filters import Shares
from tests.reservations import faults_of, reserve

ENTRIES = 7


@pytest.fixture
def history(settings, dataset_id):
    """Three releases: one charged, one voided, one settled. Seven entries."""
    ids = [uuid.uuid4() for _ in range(3)]
    with transaction(settings) as session:
        for number, release in enumerate(ids, 1):
            reserve(session, dataset_id, release, Shares(10 * number, 20 * number))
        ledger.post(session, dataset_id, ids[0])
        ledger.void(session, dataset_id, ids[1])
        ledger.post(session, dataset_id, ids[2])
        ledger.settle(session, dataset_id, ids[2], renyi=5)
    return dataset_id


def faults_after(settings, dataset_id, *statements):
    """What `verify` finds once a superuser, triggers switched off, has run the statements; all is rolled back."""
    from sqlalchemy.orm import Session

    from service.platform.database import get_engine

    with get_engine(settings.migration_database_url).connect() as connection:
        connection.exec_driver_sql("SET session_replication_role = replica")
        for statement in statements:
            connection.exec_driver_sql(statement)
        found = faults_of(Session(connection), dataset_id)
        connection.rollback()
        connection.exec_driver_sql("SET session_replication_role = origin")
        connection.commit()
    return found


CHANGES = {
    "simple": "simple + 1",
    "renyi": "renyi + 1",
    "kind": """(SELECT other FROM unnest(ARRAY['void', 'settle', 'post']) other WHERE NOT EXISTS (SELECT
        FROM ledger_entries x WHERE x.release_id = ledger_entries.release_id AND x.kind = other) LIMIT 1)""",
    "release_id": "gen_random_uuid()",
    "created_at": "created_at + interval '1 microsecond'",
    "previous_hash": "sha256(previous_hash)",
    "hash": "sha256(hash)",
}


@pytest.mark.parametrize("column", CHANGES)
def test_a_changed_entry_is_named(settings, history, column):
    for seq in range(1, ENTRIES + 1):
        change = f"UPDATE ledger_entries SET {column} = {CHANGES[column]} WHERE seq = {seq}"
        found = faults_after(settings, history, change)
        assert f"entry {seq} was changed: its hash does not match its contents" in found
    assert faults_after(settings, history) == []


@given(st.sets(st.integers(1, ENTRIES), min_size=1))
@hypothesis_settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_removed_entries_are_named_the_last_ones_too(settings, history, gone):
    found = faults_after(settings, history, f"DELETE FROM ledger_entries WHERE seq IN ({','.join(map(str, gone))})")
    named = set()
    for fault in found:
        if "missing" in fault:
            numbers = [int(word) for word in fault.split() if word.isdigit()]
            named |= set(range(numbers[0], numbers[-1] + 1))
    assert named == gone


@given(st.permutations(range(1, ENTRIES + 1)))
@hypothesis_settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_reordered_entries_are_named(settings, history, order):
    assume(list(order) != sorted(order))
    new = " ".join(f"WHEN {old} THEN {100 + seq}" for seq, old in enumerate(order, 1))
    found = faults_after(
        settings,
        history,
        f"UPDATE ledger_entries SET seq = CASE seq {new} END",
        "UPDATE ledger_entries SET seq = seq - 100",
    )
    for seq, old in enumerate(order, 1):
        changed = f"entry {seq} was changed: its hash does not match its contents"
        assert (changed in found) == (seq != old)


@pytest.mark.parametrize("account", ["simple_pending", "simple_posted", "renyi_pending", "renyi_posted"])
def test_an_edited_balance_is_named_with_what_the_entries_say(settings, history, account):
    amounts = {"simple_pending": 0, "simple_posted": 40, "renyi_pending": 0, "renyi_posted": 25}
    found = faults_after(settings, history, f"UPDATE balances SET {account} = 77")
    assert found == [f"{account} is 77 but the entries add up to {amounts[account]}"]


def test_a_cut_tail_is_named_even_when_the_count_is_cut_with_it(settings, history):
    cut = f"DELETE FROM ledger_entries WHERE seq >= {ENTRIES - 1}"
    assert f"entries {ENTRIES - 1} to {ENTRIES} are missing at the end" in faults_after(settings, history, cut)
    found = faults_after(settings, history, cut, f"UPDATE balances SET entry_count = {ENTRIES - 2}")
    assert f"the balance's head is not the hash of entry {ENTRIES - 2}" in found
    everything = faults_after(settings, history, "DELETE FROM ledger_entries")
    assert f"entries 1 to {ENTRIES} are missing at the end" in everything


def test_an_entry_that_was_not_counted_is_named(settings, history):
    found = faults_after(settings, history, f"UPDATE balances SET entry_count = {ENTRIES - 2}")
    assert f"entries {ENTRIES - 1} to {ENTRIES} are unknown to the balance" in found


def test_a_forged_chain_is_named_by_the_head(settings, history):
    """A superuser who hashes the changed entry and all after it anew still has the balance against him."""
    found = faults_after(
        settings,
        history,
        f"UPDATE ledger_entries SET renyi = 0 WHERE seq = {ENTRIES}",
        "UPDATE ledger_entries e SET hash = public.ledger_hash(e.dataset_id, e.seq, e.release_id, e.kind, e.simple, "
        f"e.renyi, e.created_at, e.previous_hash) WHERE seq = {ENTRIES}",
    )
    assert f"the balance's head is not the hash of entry {ENTRIES}" in found
