"""Who has the API's database role and writes to the object store, but has no secret key, copies objects to fresh names."""

import json
import uuid

import psycopg
import pytest

from service.base.errors import Tampered
from service.datasets.models import Dataset
from service.ledger import repository as ledger
from service.platform.crypto import HEADER_BYTES
from service.releases.models import Release
from tests.reservations import claim
from tests.stored_before import store_as_before
from workers.run import Attempt
from workers.stored_rows import StoredRows

TABLE = "visit,person,age\n" + "\n".join(f"v{i // 2},p{i % 40},{20 + i % 60}" for i in range(200))
AGE = {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 100}}


def units_are(column, other):
    fields = [{"name": other, "type": "string", "role": "ignore"}, AGE]
    return {"schema": {"fields": fields}, "privacy_unit": {"column": column, "max_rows_per_unit": 5}}


BY_VISIT, BY_PERSON = units_are("visit", "person"), units_are("person", "visit")
ORDER = {"method": "marginals", "epsilon": 0.5}


def say(url, statement, **names):
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        cursor = connection.execute(statement, names or None)
        return cursor.fetchall() if cursor.description else None


@pytest.fixture
def made(api):
    """A table whose units are visits, as its owner first said."""
    reply = api.upload(TABLE, **{name: json.dumps(value) for name, value in BY_VISIT.items()})
    assert reply.status_code == 201, reply.text
    return reply.json()["id"]


def stored(context, dataset):
    with context.transaction() as session:
        return session.get_one(Dataset, uuid.UUID(dataset))


def copied(context, content):
    """Its fresh name."""
    name = f"datasets/{uuid.uuid4()}/bound-rows-{uuid.uuid4().hex}"
    context.storage.put(name, content)
    return name


def declare_again(api, dataset, *, key=None):
    return api.http.put(f"/v1/datasets/{dataset}/declaration", json=BY_PERSON, headers=key or api.owner)


def attempt_at(api, context, dataset):
    with context.transaction() as session:
        return Attempt(context, claim(session, uuid.UUID(api.order(dataset, ORDER).json()["id"])))


RENAME = """
SELECT outcome FROM datasets AS d JOIN balances AS b ON b.dataset_id = d.id, LATERAL dataset_redeclare(
    d.id, b.declaration, d.name, d.schema, d.privacy_unit, d.units, d.delta, d.renyi_order, d.renyi_capacity, %(stored)s)
WHERE d.id = %(dataset)s
"""


def test_rows_under_another_unit_do_not_come_back_as_a_copy(api, context, database, made):
    """The certificate would say that a unit is a person, of rows that are grouped by visit."""
    by_visit = context.storage.get(stored(context, made).storage_key)
    assert declare_again(api, made).status_code == 200
    name = copied(context, by_visit)
    assert say(database.api_url, RENAME, dataset=made, stored=name) == [("done",)]
    attempt = attempt_at(api, context, made)
    attempt.handed_over = True  # it waits for no signing key, which is asked for next
    attempt.run()
    with context.transaction() as session:
        ended = session.get_one(Release, attempt.release.id)
        kinds = set(ledger.entries_of_release(session, ended.id))
    assert (ended.state, ended.failure, kinds) == ("voided", "tampered", {"reserve", "void"})


def test_a_copy_that_begins_like_the_rows_is_noticed_when_it_is_read(api, context, made):
    by_visit = context.storage.get(stored(context, made).storage_key)
    assert declare_again(api, made).status_code == 200
    name = stored(context, made).storage_key
    context.storage.put(name, context.storage.get(name)[:HEADER_BYTES] + by_visit[HEADER_BYTES:])
    rows = StoredRows(attempt_at(api, context, made))
    assert rows.are_its_own()
    for read in (lambda: rows.table(numeric_bins=4), lambda: rows.values(["age"])):
        with pytest.raises(Tampered):
            read()


@pytest.mark.parametrize("whose", ["another key's", "the same key's"])
def test_a_kept_upload_gets_no_fresh_readings_as_a_copy(api, context, database, made, whose):
    """Each reading counts cells, under a schema that its caller chooses."""
    other = api.http.post("/v1/keys", json={"name": "other", "scope": "owner"}, headers=api.owner).json()
    before = stored(context, made)
    name = copied(context, context.storage.get(before.upload_key))
    ours = before.upload_key_id if whose == "the same key's" else uuid.UUID(other["id"])
    change = (
        "UPDATE datasets SET upload_key = %(name)s, upload_key_id = %(key)s, upload_reads = 0 WHERE id = %(dataset)s"
    )
    say(database.api_url, change, name=name, key=ours, dataset=made)
    key = None if whose == "the same key's" else {"Authorization": f"Bearer {other['key']}"}
    refused = declare_again(api, made, key=key)
    assert (refused.status_code, refused.json()["code"]) == (500, "tampered")
    assert stored(context, made).declared_at is None


def test_what_was_stored_before_is_read_and_what_replaces_it_is_bound(api, context, database, made):
    old = store_as_before(context, database, made)
    rows = StoredRows(attempt := attempt_at(api, context, made))
    assert rows.are_its_own()
    assert len(rows.table(numeric_bins=4)[0].codes) == 200
    assert api.http.post(f"/v1/releases/{attempt.release.id}/cancel", headers=api.owner).status_code == 200
    copy = context.storage.get(old[0])
    assert declare_again(api, made).status_code == 200, "from the upload that was kept before"
    assert StoredRows(attempt_at(api, context, made)).are_its_own()
    now = stored(context, made)
    assert (now.storage_key == old[0], now.upload_key) == (False, old[1])
    rows = StoredRows(attempt_at(api, context, made))
    for content in (copy, copy[: HEADER_BYTES - 1], b""):
        context.storage.put(now.storage_key, content)
        assert not rows.are_its_own(), "a copy of an object from before, or less"
