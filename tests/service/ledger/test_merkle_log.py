"""The log in the database: every committed entry once, in the order of its chain, under heads that never contradict."""

import threading
import uuid
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from imprimatur.verify import merkle
from service.base.errors import NotFound, Tampered
from service.ledger import log, signing_keys
from service.ledger.models import LedgerEntry
from service.platform.context import open_context
from service.platform.database import migrate, transaction
from service.platform.signing import NoSigningKey
from service.privacy.filters import Shares
from service.upkeep import relay
from service.upkeep.installation import replace_signing_key
from tests.bare_rows import add_bare_dataset
from tests.imprimatur.verify.test_merkle import tree_hash
from tests.private_servers import drop_database
from tests.reservations import reserve
from tests.service.ledger.test_ledger_migrations import DATASET, OWNER

COST = Shares(1, 2)


@pytest.fixture
def context(settings, signing_key):  # noqa: ARG001 - what signs heads
    return open_context(settings)


def new_dataset(context):
    with context.transaction() as session:
        return add_bare_dataset(session)[1]


def reserve_times(context, dataset, times=1):
    for _ in range(times):
        with context.transaction() as session:
            reserve(session, dataset, uuid.uuid4(), COST)


def leaves_of(context):
    """Entries in the order of the log: (dataset, seq, hash)."""
    with context.transaction() as session:
        rows = session.execute(
            text(
                "SELECT l.leaf_index, e.dataset_id, e.seq, e.hash FROM merkle_leaves l JOIN ledger_entries e"
                " USING (dataset_id, seq) ORDER BY l.leaf_index"
            )
        ).all()
    assert [row.leaf_index for row in rows] == list(range(len(rows)))
    return [(row.dataset_id, row.seq, bytes(row.hash)) for row in rows]


def test_an_empty_log_has_a_head(context):
    with context.transaction() as session, pytest.raises(NotFound, match="no tree head"):
        log.newest_head(session)
    head = log.sign_head(context)
    assert (head.tree_size, head.root_hash) == (0, merkle.EMPTY_ROOT)
    assert log.sign_head(context) == head


def test_every_head_and_every_proof_is_that_of_the_entries(context, signing_key):
    datasets = [new_dataset(context) for _ in range(3)]
    heads = [log.sign_head(context)]
    for grown in (1, 2, 1, 5, 3, 9, 1):
        for number in range(grown):
            reserve_times(context, datasets[number % 3])
        heads.append(log.sign_head(context))
    leaves = leaves_of(context)
    assert [head.tree_size for head in heads] == [0, 1, 3, 4, 9, 12, 21, 22]
    hashes = [hash_ for *_, hash_ in leaves]
    for head in heads:
        assert head.root_hash == tree_hash(hashes[: head.tree_size])
        assert head.is_signed_by(signing_key.public_bytes)
    with context.transaction() as session:
        assert log.newest_head(session) == heads[-1]
        for earlier in heads:
            for later in heads[heads.index(earlier) :]:
                (path,) = log.consistencies(session, [earlier.tree_size], later.tree_size)
                assert merkle.verify_consistency(
                    earlier.tree_size, later.tree_size, path, earlier.root_hash, later.root_hash
                )
        for head in heads[1:]:
            for dataset in datasets:
                for proof in log.inclusions(session, dataset, head.tree_size):
                    assert leaves[proof.leaf_index][:2] == (dataset, proof.seq)
                    entry = hashes[proof.leaf_index]
                    assert merkle.verify_inclusion(entry, proof.leaf_index, head.tree_size, proof.path, head.root_hash)
        with pytest.raises(NotFound):
            log.inclusions(session, datasets[0], heads[1].tree_size, seqs=[2])


def test_an_entry_that_is_not_committed_gets_its_place_later(context):
    first, second = new_dataset(context), new_dataset(context)
    with context.transaction() as session:
        reserve(session, first, uuid.uuid4(), COST)
        reserve_times(context, second)
        assert log.sign_head(context).tree_size == 1
    head = log.sign_head(context)
    assert [dataset for dataset, *_ in leaves_of(context)] == [second, first]
    assert head.root_hash == tree_hash([hash_ for *_, hash_ in leaves_of(context)])


def test_a_crowd_of_moves_and_of_signers(context):
    """Nothing is left out, given two places or moved, however many come at once."""
    datasets = [new_dataset(context) for _ in range(4)]
    done = threading.Event()

    def sign():
        heads = [log.sign_head(context)]
        while not done.is_set():
            heads.append(log.sign_head(context))
        return heads

    with ThreadPoolExecutor(6) as pool:
        signers = [pool.submit(sign) for _ in range(2)]
        movers = [pool.submit(reserve_times, context, dataset, 15) for dataset in datasets]
        try:
            for mover in movers:
                mover.result()
        finally:
            done.set()  # or the signers would go on for ever
        heads = [head for signer in signers for head in signer.result()]
    assert log.sign_head(context).tree_size == 60
    leaves = leaves_of(context)
    for dataset in datasets:
        assert [seq for where, seq, _ in leaves if where == dataset] == list(range(1, 16))
    hashes = [hash_ for *_, hash_ in leaves]
    assert len({head.tree_size for head in heads}) > 1
    for head in heads:
        assert head.root_hash == tree_hash(hashes[: head.tree_size])


def test_entries_from_before_the_log_are_in_it(postgres):
    """A database of the version before, with its history; its processes work on beside the new revision."""
    name = f"old_{uuid.uuid4().hex}"
    postgres.create_database(name)
    try:
        migrate(postgres.url(name), "0005")
        dataset = uuid.uuid4()
        with psycopg.connect(postgres.url(name).replace("+psycopg", "")) as connection:
            connection.execute(OWNER, {"id": dataset})
            connection.execute(DATASET, {"id": dataset})
            connection.execute("SELECT ledger_open(%s)", (dataset,))
            for _ in range(5):
                connection.execute("SELECT ledger_reserve(%s, %s, 1, 2)", (dataset, uuid.uuid4()))
        migrate(postgres.url(name), "0010")
        with psycopg.connect(postgres.url(name, "imprimatur_app").replace("+psycopg", "")) as connection:
            assert connection.execute("SELECT count(*) FROM merkle_leaves").fetchone() == (5,)
            connection.execute("SELECT ledger_reserve(%s, %s, 1, 2)", (dataset, uuid.uuid4()))
            connection.commit()
            assert connection.execute("SELECT merkle_integrate()").fetchone() == (6,)
    finally:
        drop_database(postgres, name)


APPLICATION_MAY_NOT = [
    "INSERT INTO merkle_leaves VALUES (99, gen_random_uuid(), 1)",
    "INSERT INTO merkle_nodes VALUES (0, 99, sha256(''))",
    "UPDATE merkle_nodes SET hash = sha256('')",
    "DELETE FROM merkle_nodes",
    "UPDATE merkle_cursors SET entry_count = 0",
    "DELETE FROM merkle_certified",
    "INSERT INTO signing_keys (id, public_key) VALUES ('ours', sha256(''))",
    "UPDATE signing_keys SET public_key = sha256('')",
    "UPDATE tree_heads SET root_hash = sha256('')",
    "DELETE FROM tree_heads",
    "TRUNCATE tree_heads",
    "INSERT INTO tree_heads SELECT 99, id, 0, sha256(''), public_key || public_key FROM signing_keys",
    "INSERT INTO tree_heads SELECT 0, 'unknown', 0, sha256(''), public_key || public_key FROM signing_keys",
]


@pytest.mark.parametrize("statement", APPLICATION_MAY_NOT)
def test_the_application_grows_the_log_and_nothing_else(context, settings, statement):
    reserve_times(context, new_dataset(context))
    log.sign_head(context)
    with pytest.raises(DBAPIError) as refused, transaction(settings) as session:
        session.connection().exec_driver_sql(statement)
    assert isinstance(refused.value.orig, psycopg.errors.InsufficientPrivilege | psycopg.errors.CheckViolation)


OWNER_CHANGES = {
    "an entry": "UPDATE ledger_entries SET renyi = 1 WHERE seq = 1",
    "an entry and its hash": """UPDATE ledger_entries e SET renyi = 1, hash = public.ledger_hash(
        e.dataset_id, e.seq, e.release_id, e.kind, e.simple, 1, e.created_at, e.previous_hash) WHERE seq = 3""",
    "a leaf": "UPDATE merkle_nodes SET hash = sha256('') WHERE (level, place) = (0, 0)",
    "an entry is gone": "DELETE FROM ledger_entries WHERE seq = 2",
    "a node is gone": "DELETE FROM merkle_nodes WHERE level = 1",
    "the root of an earlier head": "UPDATE merkle_nodes SET hash = sha256('') WHERE level = 1",
}


@pytest.mark.parametrize("change", OWNER_CHANGES)
def test_nothing_is_certified_from_a_ledger_that_was_changed(context, settings, signing_key, change):
    dataset = new_dataset(context)
    reserve_times(context, dataset, 3)
    log.sign_head(context)
    as_owner(settings, OWNER_CHANGES[change])
    with context.transaction() as session:
        posted = session.get_one(LedgerEntry, (dataset, 3))
    with pytest.raises(Tampered):
        log.transparency(context, signing_key, posted)


def as_owner(settings, *statements):
    """A superuser, triggers switched off."""
    with psycopg.connect(settings.migration_database_url.replace("+psycopg", "")) as connection:
        connection.execute("SET session_replication_role = replica")
        for statement in statements:
            connection.execute(statement)


def test_a_worker_without_the_newest_key_signs_nothing(context, settings):
    settings.signing_key_path.write_bytes(b"1" * 32)
    with pytest.raises(NoSigningKey, match="newest"):
        log.sign_head(context)
    settings.signing_key_path.unlink()
    with pytest.raises(NoSigningKey, match="cannot be read"):
        log.sign_head(context)


def test_a_key_that_is_replaced_between_reading_and_signing_is_read_again(context, settings, signing_key, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(signing_keys, "current", lambda *_: signing_key)
        new = replace_signing_key(settings)
        with pytest.raises(NoSigningKey, match="replaced just now"):
            log.sign_head(context)
    assert log.sign_head(context).key_id == new.id


def test_nothing_ends_the_thread_that_signs_heads(monkeypatch, caplog):
    """An unexpected error is named by its class only, and the head is tried again."""
    stop, tries = threading.Event(), []

    def fails_twice(_):
        tries.append(None)
        if len(tries) < 3:
            raise RuntimeError("secret")
        stop.set()

    monkeypatch.setattr(relay, "open_context", lambda: None)
    monkeypatch.setattr(relay, "sign_head", fails_twice)
    monkeypatch.setattr(relay, "HEAD_SECONDS", 0.0)
    relay._sign_heads_until(stop)
    assert len(tries) == 3
    assert [record.getMessage() for record in caplog.records] == [
        "no tree head signed (RuntimeError); trying again"
    ] * 2
    assert "secret" not in caplog.text
