"""What `imprimatur verify` says of a database whose owner rewrote it as a whole, with the service's own signing key.

Nothing that the service says can tell. What the command remembers from an earlier verify can; without it, the most that
is said is "consistent".
"""

import itertools
import json
import uuid
from types import SimpleNamespace

import pytest

from imprimatur.cli.verification import verify_certificates, verify_in_log, verify_ledger
from imprimatur.cli.verification.memory import Memory
from imprimatur.verify.signatures import UNSIGNED
from service.ledger import log
from service.ledger import repository as ledger_repository
from service.platform.signing import SigningKey
from service.upkeep.installation import replace_signing_key
from tests.reservations import claim
from tests.service.http.test_rewrites import ORDER, Service, Superuser
from workers.run import Attempt

SERVICE = "https://imprimatur.example.org"


@pytest.fixture
def publish(api, context, signing_key):  # noqa: ARG001 - what signs certificates
    def one(dataset):
        release = api.order(dataset, ORDER).json()["id"]
        with context.transaction() as session:
            lease = claim(session, uuid.UUID(release))
        Attempt(context, lease).run()
        log.sign_head(context)
        return release

    return one


@pytest.fixture
def insider(settings, context, signing_key):
    """The owner of the database, who has the service's signing key, too."""
    superuser = Superuser(settings)

    def certify_again(dataset):
        """Every certificate anew, for the history as it is now."""
        query = "SELECT id, certificate FROM releases WHERE dataset_id = %s AND certificate IS NOT NULL"
        for row in superuser.connection.execute(query, (dataset,)).fetchall():
            with context.transaction() as session:
                posted = ledger_repository.entries_of_release(session, row["id"])["post"]
                session.expunge(posted)
            transparency, consistency = log.transparency(context, signing_key, posted)
            document = {k: v for k, v in row["certificate"].items() if k not in UNSIGNED}
            document["transparency"] = transparency
            document["ledger_entry"].update(hash=bytes(posted.hash).hex(), seq=posted.seq)
            document["ledger_entry"]["shares"]["renyi"] = posted.renyi
            signed = {**document, "consistency": consistency, "public_key": signing_key.public_key}
            signed["signature"] = signing_key.sign(document)
            superuser.connection.execute(
                "UPDATE releases SET certificate = %s::jsonb WHERE id = %s", (json.dumps(signed), row["id"])
            )

    def rewrite(dataset):
        superuser.halve_the_first_charge(dataset)
        superuser.rebuild_the_log()
        superuser.connection.execute("DELETE FROM merkle_certified")
        certify_again(dataset)
        log.sign_head(context)

    def drop_the_last_entries(dataset, left):
        """The log stays as it is; the dataset's ledger ends earlier, and says so."""
        execute = superuser.connection.execute
        elsewhere = "UPDATE merkle_leaves SET dataset_id = gen_random_uuid() WHERE dataset_id = %s AND seq > %s"
        execute(elsewhere, (dataset, left))
        execute("DELETE FROM ledger_entries WHERE dataset_id = %s AND seq > %s", (dataset, left))
        last = execute("SELECT * FROM ledger_entries WHERE (dataset_id, seq) = (%s, %s)", (dataset, left)).fetchone()
        execute(
            "UPDATE balances SET entry_count = %s, head_hash = %s, renyi_posted = %s, simple_posted = %s,"
            " renyi_pending = 0, simple_pending = 0 WHERE dataset_id = %s",
            (left, last["hash"], last["renyi"], last["simple"], dataset),
        )
        execute("DELETE FROM releases WHERE dataset_id = %s AND id <> %s", (dataset, last["release_id"]))

    yield SimpleNamespace(
        rewrite=rewrite, drop_the_last_entries=drop_the_last_entries, execute=superuser.connection.execute
    )
    superuser.connection.close()


@pytest.fixture
def verify(api):
    """As the command does, with what it remembers or with nothing."""

    def check(dataset, *, memory=True, known=(), head=None):
        remembered = Memory.of(SERVICE) if memory else None
        checks = verify_ledger(Service(api), dataset)
        checks.add(verify_in_log(Service(api), dataset, known, remembered, head))
        if remembered is not None and not checks.faults:
            remembered.save()
        return checks

    return check


def words(checks):
    return {word.value for word, _ in checks.held}


def test_the_first_time_is_consistent_and_the_next_is_verified(publish, verify, dataset_id):
    publish(dataset_id)
    first = verify(dataset_id)
    assert (first.result, first.verified, first.faults) == ("consistent", False, [])
    assert words(first) == {"consistent"}
    assert first.statement.startswith("consistent; not verified: nothing to compare with outside the service")
    assert first.head.tree_size == 2
    second = verify(dataset_id)
    assert (second.result, second.up_to) == ("verified", "")
    assert second.statement.startswith("verified: against the 2 entries remembered since")
    assert words(second) == {"consistent", "verified"}
    publish(dataset_id)
    third = verify(dataset_id)
    assert third.statement.startswith("verified up to entry 2 of 4: against ")
    assert any("2 of 4 entries are held against nothing" in text for text in third.notes)
    assert verify(dataset_id).up_to == ""


def test_a_key_that_is_named_does_not_vouch_for_the_history(publish, verify, dataset_id, signing_key):
    """Who has the database may have the key of the service."""
    publish(dataset_id)
    known = [signing_key.public_bytes]
    for checks in (verify(dataset_id, memory=False, known=known), verify(dataset_id, known=known)):
        assert (checks.result, checks.faults) == ("consistent", [])
    assert Memory.of(SERVICE).public_keys == known
    (fault,) = verify(dataset_id, memory=False, known=[SigningKey(b"u" * 32).public_bytes]).faults
    assert fault == "the head of the log is not signed by a key you know"


def test_a_history_rewritten_between_two_verifies_is_found(publish, verify, insider, dataset_id):
    publish(dataset_id)
    head = verify(dataset_id).head
    insider.rewrite(dataset_id)
    fresh = verify(dataset_id, memory=False)
    assert (fresh.result, fresh.verified, fresh.faults) == ("consistent", False, []), "nothing inside can tell"
    assert words(fresh) == {"consistent"}
    by_head, by_ledger = verify(dataset_id).faults
    assert "the log was REWRITTEN or rolled back since the head of 2 entries that is remembered since" in by_head
    assert "the ledger was REWRITTEN or rolled back: its first 2 entries are not those" in by_ledger
    (named,) = verify(dataset_id, memory=False, head=head).faults
    assert "since the head of 2 entries that you named" in named
    publish(dataset_id)
    assert len(verify(dataset_id).faults) == 2, "what failed is not remembered"


def test_a_rewritten_log_of_another_dataset_is_found_by_the_head(publish, verify, insider, api, dataset_id):
    """The ledger that was looked at is as it was; the log below the head that is remembered is not."""
    from tests.service.http.conftest import ROWS

    lines = "\n".join(row.replace("Rome", "Oslo") for row in ROWS[:150])
    other = api.upload(f"age,income,city,smoker,born\n{lines}\n").json()["id"]
    publish(other)
    publish(dataset_id)
    verify(dataset_id)
    insider.rewrite(other)
    (fault,) = [fault for fault in verify(dataset_id).faults if "certificates" not in fault]
    assert "the log was REWRITTEN or rolled back since the head of 4 entries" in fault


def test_a_ledger_that_ends_earlier_is_found_although_the_log_holds(publish, verify, insider, dataset_id):
    publish(dataset_id)
    publish(dataset_id)
    verify(dataset_id)
    insider.drop_the_last_entries(dataset_id, 2)
    assert verify(dataset_id, memory=False).faults == []
    (fault,) = verify(dataset_id).faults
    assert fault.startswith("the ledger was REWRITTEN or rolled back: its first 4 entries are not those")


def test_a_log_that_was_rolled_back_is_found(publish, verify, insider, context, dataset_id):
    publish(dataset_id)
    small = verify(dataset_id).head
    publish(dataset_id)
    assert verify(dataset_id).head.tree_size == 4
    insider.drop_the_last_entries(dataset_id, 2)
    for table in ("merkle_nodes", "merkle_leaves", "merkle_cursors", "tree_heads", "merkle_certified"):
        insider.execute(f"DELETE FROM {table}")
    insider.execute("UPDATE releases SET certificate = certificate - 'transparency'")
    assert log.sign_head(context).tree_size == 2
    assert any("rolled back since the head of 4 entries" in fault for fault in verify(dataset_id).faults)
    assert verify(dataset_id, memory=False, head=small).verified, "the head that one keeps is all that one knows"


def test_a_head_that_covers_nothing_of_the_dataset_verifies_nothing(publish, verify, api, context, dataset_id):
    from tests.service.http.conftest import ROWS

    publish(dataset_id)
    head = log.sign_head(context)
    lines = "\n".join(row.replace("Rome", "Oslo") for row in ROWS[:150])
    other = api.upload(f"age,income,city,smoker,born\n{lines}\n").json()["id"]
    publish(other)
    checks = verify(other, memory=False, head=head)
    assert (checks.result, checks.faults) == ("consistent", [])
    assert verify(dataset_id, memory=False, head=head).statement == (
        "verified: against the head of 2 entries that you named"
    )


def test_a_changed_key_is_refused_unless_the_pinned_one_endorses_it(publish, verify, settings, dataset_id):
    publish(dataset_id)
    verify(dataset_id)
    replace_signing_key(settings)
    publish(dataset_id)
    assert verify(dataset_id).verified
    assert len(Memory.of(SERVICE).keys) == 2, "the endorsed one is pinned, too"
    third = replace_signing_key(settings, lost=True)
    publish(dataset_id)
    (fault,) = verify(dataset_id).faults
    assert fault.startswith(f"THE SIGNING KEY OF {SERVICE} HAS CHANGED")
    assert "give the new one with --public-key" in fault
    assert verify(dataset_id, known=[third.public_bytes]).verified, "its operator said so by another way"
    assert Memory.of(SERVICE).public_keys == [third.public_bytes]
    assert verify(dataset_id).verified


def test_certificates_are_held_against_the_pinned_key_and_the_log_of_the_service(
    api, publish, insider, settings, monkeypatch, tmp_path, dataset_id
):
    from imprimatur.cli.target import Target

    class Connected(Service):
        def __init__(self, *_):
            super().__init__(api)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def certificate(self, release):
            return self.get(f"/v1/releases/{release}/certificate")

    monkeypatch.setattr("imprimatur.client.Client", Connected)
    numbers, target = itertools.count(), Target(SERVICE, None)

    def check(*releases):
        paths = []
        for release in releases:
            paths.append(tmp_path / f"{next(numbers)}.json")
            paths[-1].write_text(json.dumps(Connected().certificate(release)))
        memory = Memory.of(target.service)
        checks = verify_certificates(paths, target, [], memory)
        if not checks.faults:
            memory.save()
        return checks, paths

    release = publish(dataset_id)
    checks, (kept,) = check(release)
    assert (checks.result, words(checks)) == ("consistent", {"consistent"})
    checks, _ = check(release)
    assert checks.verified
    assert "pinned on" in checks.statement

    insider.rewrite(dataset_id)
    checks, _ = check(release)
    assert any("rolled back since the head of 2 entries" in fault for fault in checks.faults)
    checks = verify_certificates([kept], target, [])
    assert any(f"rolled back since the certificate {kept.name}" in fault for fault in checks.faults)

    replace_signing_key(settings, lost=True)
    checks, _ = check(release)
    assert [fault.partition(" HAS ")[0] for fault in checks.faults] == [f"THE SIGNING KEY OF {SERVICE}"]
