"""A superuser of the database rewrites history as a whole and lets the service certify it; two certificates tell.

Both certificates are made by the worker's own code. Between them everything that the database holds is made to agree
with the new history: entries, chain, balance, release, nodes of the log; signed heads that contradict it are removed.
"""

import copy
import itertools
import json
import uuid

import psycopg
import pytest
from psycopg.rows import dict_row

from imprimatur import ApiError
from imprimatur.cli.output import Failure
from imprimatur.cli.target import Target
from imprimatur.cli.verification import known_key, verify_certificates, verify_in_log, verify_ledger
from imprimatur.verify.chain import entry_hash, totals_of
from imprimatur.verify.merkle import nodes_of
from service.ledger import log
from service.platform.signing import NoSigningKey, SigningKey
from service.upkeep.installation import replace_signing_key
from tests.imprimatur.verify.test_chain import Line
from tests.service.http.conftest import ROWS
from workers import lease as leases
from workers.run import Attempt

pytestmark = pytest.mark.slow

ORDER = {
    "method": "idpgan",
    "epsilon": 0.3,
    "steps": 2,
    "condition_on": "city",
    "networks": {"generator_hidden": [4], "critic_hidden": [4], "noise_dimension": 2},
    "warm_start": {"kind": "none"},
}
COLUMNS = ("dataset_id", "seq", "release_id", "kind", "simple", "renyi", "created_at", "previous_hash", "hash")


@pytest.fixture
def publish(api, context, signing_key, tmp_path):  # noqa: ARG001 - what signs certificates
    """Orders, trains and publishes a release here; gives the path of its certificate."""
    numbers = itertools.count()

    def publish_one(dataset):
        release = api.order(dataset, ORDER).json()["id"]
        lease = leases.claim_next(context.settings)
        assert str(lease.release_id) == release
        Attempt(context, lease).run()
        reply = api.http.get(f"/v1/releases/{release}/certificate", headers=api.reader)
        assert reply.status_code == 200, reply.text
        path = tmp_path / f"{'abcdef'[next(numbers)]}.json"
        path.write_text(json.dumps(reply.json()))
        return path

    return publish_one


@pytest.fixture
def other_dataset(api):
    lines = [row.replace("Rome", "Oslo") for row in ROWS[:150]]
    return api.upload("age,income,city,smoker,born\n" + "\n".join(lines) + "\n").json()["id"]


def check(signing_key, *paths):
    return verify_certificates(paths, None, [signing_key.public_bytes])


class Superuser:
    """Everything the owner of the database can do."""

    def __init__(self, settings):
        url = settings.migration_database_url.replace("+psycopg", "")
        self.connection = psycopg.connect(url, autocommit=True, row_factory=dict_row)
        self.connection.execute("SET session_replication_role = replica")

    def halve_the_first_charge(self, dataset):
        """The dataset's first release costs half; chain, balance and release agree."""
        rows = self.connection.execute(
            "SELECT * FROM ledger_entries WHERE dataset_id = %s ORDER BY seq", (dataset,)
        ).fetchall()
        release, previous, lines = rows[0]["release_id"], bytes(32), []
        for row in rows:
            row["renyi"] //= 2 if row["release_id"] == release else 1
            row["previous_hash"] = previous
            row["hash"] = previous = entry_hash(**{name: row[name] for name in COLUMNS if name != "hash"})
            lines.append(Line(**{name: row[name] for name in COLUMNS}))
            self.connection.execute(
                "UPDATE ledger_entries SET renyi = %s, previous_hash = %s, hash = %s WHERE (dataset_id, seq) = (%s, %s)",
                (row["renyi"], row["previous_hash"], row["hash"], dataset, row["seq"]),
            )
        totals = totals_of(lines)
        self.connection.execute(
            "UPDATE balances SET renyi_posted = %s, renyi_pending = %s, head_hash = %s WHERE dataset_id = %s",
            (totals.renyi_posted, totals.renyi_pending, previous, dataset),
        )
        self.connection.execute("UPDATE releases SET renyi_cost = renyi_cost / 2 WHERE id = %s", (release,))

    def rebuild_the_log(self):
        """Nodes of the rewritten entries in their old places; no head says otherwise."""
        rows = self.connection.execute(
            "SELECT e.hash FROM merkle_leaves JOIN ledger_entries e USING (dataset_id, seq) ORDER BY leaf_index"
        ).fetchall()
        self.connection.execute("DELETE FROM merkle_nodes")
        for (level, place), hash_ in nodes_of([row["hash"] for row in rows]).items():
            self.connection.execute("INSERT INTO merkle_nodes VALUES (%s, %s, %s)", (level, place, hash_))
        self.connection.execute("DELETE FROM tree_heads")

    def append_the_history_again(self, dataset):
        """The log is left as it is; the dataset's entries, as they are now, get new places at its end."""
        fillers = self.connection.execute(
            "UPDATE merkle_leaves SET dataset_id = gen_random_uuid() WHERE dataset_id = %s RETURNING leaf_index",
            (dataset,),
        ).fetchall()
        assert fillers
        self.connection.execute("DELETE FROM merkle_cursors WHERE dataset_id = %s", (dataset,))


@pytest.fixture
def superuser(settings):
    made = Superuser(settings)
    yield made
    made.connection.close()


def test_untouched_history_verifies(publish, signing_key, dataset_id, other_dataset):
    """Any two certificates of a dataset, in any order; the log is the same for another dataset."""
    paths = [publish(dataset) for dataset in (dataset_id, other_dataset, dataset_id, dataset_id)]
    for first, second in itertools.permutations((paths[0], paths[2], paths[3]), 2):
        checks = check(signing_key, first, second)
        assert checks.verified, checks.faults
        assert sum("only grew" in text for text in checks.passed) == 2
    alone = check(signing_key, paths[1])
    assert alone.verified, alone.faults
    apart = check(signing_key, paths[0], paths[1])
    assert ["carries no proof" in fault for fault in apart.faults] == [True]


def test_a_log_rewritten_as_a_whole_is_found(publish, signing_key, superuser, dataset_id):
    before = publish(dataset_id)
    superuser.halve_the_first_charge(dataset_id)
    superuser.rebuild_the_log()
    after = publish(dataset_id)
    for alone in (before, after):
        assert check(signing_key, alone).verified, "each by itself is in order"
    faults = check(signing_key, before, after).faults
    assert len(faults) == 2
    assert "the log was REWRITTEN" in faults[0]
    assert "the dataset's ledger was REWRITTEN" in faults[1]


def test_a_second_history_at_the_end_of_the_log_is_found(publish, signing_key, superuser, dataset_id):
    before = publish(dataset_id)
    superuser.halve_the_first_charge(dataset_id)
    superuser.append_the_history_again(dataset_id)
    after = publish(dataset_id)
    assert check(signing_key, after).verified
    (fault,) = check(signing_key, before, after).faults
    assert "the dataset's ledger was REWRITTEN" in fault


@pytest.mark.parametrize("hidden", ["UPDATE merkle_certified SET entry_count = 1", "DELETE FROM merkle_certified"])
def test_hiding_what_was_certified_does_not_help(publish, signing_key, superuser, dataset_id, hidden):
    before = publish(dataset_id)
    superuser.halve_the_first_charge(dataset_id)
    superuser.append_the_history_again(dataset_id)
    superuser.connection.execute(hidden)
    assert not check(signing_key, before, publish(dataset_id)).verified


def test_a_history_with_fewer_entries_is_found(publish, signing_key, superuser, dataset_id):
    """As after an old backup: what was certified since never happened, and the log grew anew."""
    before = publish(dataset_id)
    for statement in (
        "DELETE FROM ledger_entries",
        "DELETE FROM merkle_leaves",
        "DELETE FROM merkle_nodes",
        "DELETE FROM merkle_cursors",
        "DELETE FROM tree_heads",
        "UPDATE balances SET renyi_posted = 0, simple_posted = 0, entry_count = 0, head_hash = decode(repeat('00', 32), 'hex')",
    ):
        superuser.connection.execute(statement)
    same, *faults = check(signing_key, before, publish(dataset_id)).faults
    assert f"two different certificates of entry 2 of dataset {dataset_id}" in same
    assert ["REWRITTEN" in fault for fault in faults] == [True, True]


def changed(path, edit, name):
    document = json.loads(path.read_text())
    edit(document)
    made = path.with_name(name)
    made.write_text(json.dumps(document))
    return made


def resigned(path, key, edit, name):
    """The service itself, with its key, signs something else."""

    def sign_again(document):
        edit(document)
        signed = {k: v for k, v in document.items() if k not in {"signature", "public_key", "consistency"}}
        document["signature"] = key.sign(signed)

    return changed(path, sign_again, name)


EDITS = {
    "another price": lambda c: c["ledger_entry"]["shares"].update(renyi=1),
    "another dataset": lambda c: c.update(dataset_id=str(uuid.uuid4())),
    "the proof of another leaf": lambda c: c["transparency"]["inclusion"].update(leaf_index=0),
    "another place among the dataset's": lambda c: c["ledger_entry"].update(seq=1),
    "no proof": lambda c: c["transparency"]["inclusion"].update(path=[]),
    "a larger log": lambda c: c["transparency"]["tree_head"].update(tree_size=7),
    "another root": lambda c: c["transparency"]["dataset"].update(root_hash="00" * 32),
    "another time": lambda c: c["transparency"]["entry"].update(created_at="2026-01-01T00:00:00.000000+00:00"),
}


@pytest.fixture
def certificate(publish, dataset_id):
    publish(dataset_id)
    return publish(dataset_id)


@pytest.mark.parametrize("edit", EDITS)
def test_what_the_log_does_not_say_is_refused_although_it_is_signed(certificate, signing_key, edit):
    assert check(signing_key, certificate).verified
    assert not check(signing_key, resigned(certificate, signing_key, EDITS[edit], "x.json")).verified


def test_only_a_known_key_will_do(certificate, signing_key):
    unknown = SigningKey(b"u" * 32)
    alone = verify_certificates([certificate], None, [])
    assert (alone.result, alone.verified, alone.faults) == ("self_signed", False, [])
    assert {word for word, _ in alone.held} == {"consistent"}
    assert not verify_certificates([certificate], None, [unknown.public_bytes]).verified

    def by_a_stranger(document):
        document["public_key"] = unknown.public_key
        document["transparency"]["keys"][-1] = {
            "id": unknown.id,
            "public_key": unknown.public_key,
            "endorsed_by": signing_key.id,
            "endorsement": unknown.sign({"of": "myself"}),
        }

    forged = resigned(certificate, unknown, by_a_stranger, "forged.json")
    assert any("no endorsement leads to it" in fault for fault in check(signing_key, forged).faults)
    assert known_key(signing_key.public_key) == signing_key.public_bytes
    with pytest.raises(Failure, match="not a public key"):
        known_key("no key")


def test_a_replaced_key_is_followed_from_the_old_one_and_a_lost_one_is_not(publish, signing_key, settings, dataset_id):
    old = publish(dataset_id)
    second = replace_signing_key(settings)
    new = publish(dataset_id)
    assert SigningKey.load(settings.signing_key_path).id == second.id != signing_key.id
    assert json.loads(new.read_text())["public_key"] == second.public_key
    checks = check(signing_key, old, new)
    assert checks.verified, checks.faults
    assert not check(second, old).verified, "an old key is not believed because of a new one"
    assert check(second, new).verified
    third = replace_signing_key(settings, lost=True)
    last = publish(dataset_id)
    assert not check(signing_key, last).verified
    assert verify_certificates([old, new, last], None, [signing_key.public_bytes, third.public_bytes]).verified


def test_a_key_that_is_replaced_while_a_head_is_signed_costs_a_moment(
    publish, settings, signing_key, monkeypatch, dataset_id
):
    """The charge is made; the attempt reads the new key and goes on."""
    real, made = log.transparency, []

    def replaced_first(context, key, posted):
        if not made:
            made.append(replace_signing_key(settings))
            assert key.id == signing_key.id
        return real(context, key, posted)

    monkeypatch.setattr(log, "transparency", replaced_first)
    monkeypatch.setattr("workers.run.PAUSE_SECONDS", 0.0)
    certificate = publish(dataset_id)
    assert json.loads(certificate.read_text())["public_key"] == made[0].public_key
    assert check(signing_key, certificate).verified


class Service:
    """The client, on the application in this process."""

    def __init__(self, api):
        self.api = api

    def get(self, path, **query):
        reply = self.api.http.get(path, params=query, headers=self.api.reader)
        if reply.status_code != 200:
            raise ApiError(reply.status_code, reply.json()["code"], reply.json()["detail"])
        return reply.json()

    def releases(self, dataset):
        return self.get("/v1/releases", dataset_id=dataset)["items"]

    def ledger(self, dataset):
        return self.get(f"/v1/datasets/{dataset}/ledger")

    def signing_keys(self):
        return self.get("/v1/ledger/keys")["items"]

    def tree_head(self):
        return self.get("/v1/ledger/head")

    def consistency(self, first, second):
        return self.get("/v1/ledger/consistency", first=first, second=second)

    def inclusion(self, dataset, tree_size):
        return self.get("/v1/ledger/proof", dataset_id=dataset, tree_size=tree_size)


def test_online_every_entry_is_found_in_the_log(api, context, publish, superuser, dataset_id):
    service = Service(api)
    publish(dataset_id)
    log.sign_head(context)
    checks = verify_in_log(service, dataset_id, [])
    assert (checks.result, checks.faults) == ("consistent", [])
    superuser.halve_the_first_charge(dataset_id)
    assert verify_ledger(service, dataset_id).faults  # the certificate names the entry as it was
    faults = verify_in_log(service, dataset_id, []).faults
    assert [f"entry {seq} is not in the log as it is in the ledger: it was changed" for seq in (1, 2)] == faults
    superuser.append_the_history_again(dataset_id)
    log.sign_head(context)
    (fault,) = verify_in_log(service, dataset_id, []).faults
    assert fault.startswith("certificates name other places")
    superuser.connection.execute("UPDATE merkle_leaves SET dataset_id = gen_random_uuid()")
    superuser.connection.execute("UPDATE ledger_entries SET created_at = created_at - interval '1 hour'")
    assert any("kept out of the log: 1, 2" in fault for fault in verify_in_log(service, dataset_id, []).faults)


def test_online_a_rewritten_log_contradicts_the_heads_of_certificates(api, context, publish, superuser, dataset_id):
    publish(dataset_id)
    superuser.halve_the_first_charge(dataset_id)
    superuser.rebuild_the_log()
    for grown in (False, True):
        if grown:
            assert api.order(dataset_id, ORDER).status_code == 202
        log.sign_head(context)
        (fault,) = verify_in_log(Service(api), dataset_id, []).faults
        assert fault == "the log was REWRITTEN since certificates of entries 2"


def test_what_the_files_lack_a_service_proves(api, publish, signing_key, monkeypatch, dataset_id, other_dataset):
    """Two datasets have no proof of one another; an untrusted service may give it."""

    class Connected(Service):
        def __init__(self, *_):
            super().__init__(api)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def certificate(self, release):
            return self.get(f"/v1/releases/{release}/certificate")

    first, second = publish(dataset_id), publish(other_dataset)
    third = publish(dataset_id)
    bare = changed(third, lambda c: c.update(consistency=[]), "bare.json")
    assert not check(signing_key, first, bare).verified
    monkeypatch.setattr("imprimatur.client.Client", Connected)
    target = Target("http://service", None)
    for pair in ((first, second), (second, first), (first, third)):
        checks = verify_certificates(pair, target, [])
        assert (checks.result, checks.faults) == ("consistent", [])
        assert verify_certificates(pair, target, [signing_key.public_bytes]).verified
    faults = verify_certificates((first, bare), target, []).faults
    assert ["publishes another certificate" in fault for fault in faults] == [True]


def test_nothing_is_charged_where_nothing_could_be_signed(api, context, signing_key, settings, dataset_id):
    api.order(dataset_id, ORDER)
    lease = leases.claim_next(context.settings)
    settings.signing_key_path.rename(settings.signing_key_path.with_name("elsewhere"))
    attempt = Attempt(context, lease)
    attempt.handed_over = True  # it would wait for the file
    with pytest.raises(NoSigningKey):
        attempt.run()
    ledger = api.http.get(f"/v1/datasets/{dataset_id}/ledger", headers=api.reader).json()
    assert [entry["kind"] for entry in ledger["items"]] == ["reserve"]
    assert signing_key.id == SigningKey.load(settings.signing_key_path.with_name("elsewhere")).id


def test_lists_leave_the_proofs_out(api, publish, dataset_id):
    publish(dataset_id)
    document = json.loads(publish(dataset_id).read_text())
    assert len(document["consistency"]) == 1
    listed = api.http.get("/v1/releases", headers=api.reader).json()["items"][0]["certificate"]
    assert listed == {name: value for name, value in copy.deepcopy(document).items() if name != "consistency"}


def test_proofs_are_for_ones_own_entries_and_heads_for_everybody(api, context, publish, dataset_id):
    publish(dataset_id)
    size = log.sign_head(context).tree_size
    proof = {"dataset_id": dataset_id, "tree_size": size}
    assert len(api.http.get("/v1/ledger/proof", params=proof, headers=api.reader).json()["items"]) == size
    one = api.http.get("/v1/ledger/proof", params={**proof, "seq": 2}, headers=api.reader).json()
    assert [item["seq"] for item in one["items"]] == [2]
    for wrong, status in (
        ({**proof, "seq": 9}, 404),
        ({**proof, "tree_size": size + 1}, 422),
        ({**proof, "dataset_id": str(uuid.uuid4())}, 404),
    ):
        assert api.http.get("/v1/ledger/proof", params=wrong, headers=api.reader).status_code == status
    assert api.http.get("/v1/ledger/proof", params=proof, headers=api.stranger).status_code == 404
    assert api.http.get("/v1/ledger/head").json()["tree_size"] == size
    keys = api.http.get("/v1/ledger/keys").json()["items"]
    assert [key["endorsed_by"] for key in keys] == [None, keys[0]["id"]], "first the key from before there was a file"
    for query, status in (
        ({"first": 1, "second": size}, 200),
        ({"first": 2, "second": 1}, 422),
        ({"first": 0, "second": 99}, 422),
    ):
        assert api.http.get("/v1/ledger/consistency", params=query).status_code == status
