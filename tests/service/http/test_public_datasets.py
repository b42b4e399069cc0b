"""A dataset that its owner declares public: when that can be said, who may begin an order from it, and what a worker asks again."""

from __future__ import annotations

import json
import uuid

import psycopg
import pytest
from sqlalchemy import text

from service.base.errors import Tampered
from service.ledger import repository as ledger
from service.methods.facts import PublicRows
from service.releases import service as releases
from service.releases.models import Release
from service.upkeep.installation import owner_transaction
from tests.reservations import claim
from tests.tiny_images import image_schema, make_images, npz
from workers.run import Attempt, StoredRows

pytestmark = pytest.mark.slow

SHAPE, CLASSES = (6, 5, 1), 3


@pytest.fixture
def upload(api):
    def send(*, key=None, shape=SHAPE, classes=CLASSES, public=None):
        reply = api.upload(
            npz(*make_images(40, shape, classes)),
            schema=json.dumps(image_schema(shape, classes)),
            key=key,
            rows_are_public=None if public is None else json.dumps(public),
        )
        assert reply.status_code == 201, reply.text
        assert reply.json()["rows_are_public"] is bool(public)
        return reply.json()["id"]

    return send


def order(api, private, public, key=None, **knobs):
    document = {"method": "dpgan", "epsilon": 1.0, "steps": 3, "public_dataset": public, "public_steps": 2, **knobs}
    return api.order(private, document, key=key)


def refused(reply):
    assert (reply.status_code, reply.json()["where"]) == (422, "public_dataset"), reply.text
    return reply.json()["detail"]


def acts(api):
    items = api.http.get("/v1/audit", headers=api.owner).json()["items"]
    return {(event["action"], event["object_id"], event["outcome"]) for event in items}


# -- when it can be said


def test_it_is_said_at_the_upload_and_everybody_of_the_tenant_reads_it(api, upload):
    public, private, silent = upload(public=True), upload(public=False), upload()
    declared = {
        each: api.http.get(f"/v1/datasets/{each}", headers=api.reader).json() for each in (public, private, silent)
    }
    assert [declared[each]["rows_are_public"] for each in (public, private, silent)] == [True, False, False]
    said = [any("protects no unit" in each for each in declared[one]["warnings"]) for one in (public, private)]
    assert said == [True, False]
    assert ("declare_public", public, "done") in acts(api)
    assert not {("declare_public", each, "done") for each in (private, silent)} & acts(api)


@pytest.mark.parametrize("said", ['"true"', "1", "yes", "null", ""])
def test_nothing_that_only_looks_like_true_declares_rows_public(api, said):
    reply = api.upload(rows_are_public=said)
    assert (reply.status_code, reply.json()["code"], reply.json()["where"]) == (422, "invalid_input", "rows_are_public")
    assert api.http.get("/v1/datasets", headers=api.reader).json()["items"] == []


def test_only_an_owner_uploads_and_no_request_says_it_later(api, upload):
    assert api.upload(key=api.analyst, rows_are_public="true").status_code == 403
    private = upload()
    said = {"rows_are_public": True}
    assert api.http.post(f"/v1/datasets/{private}/public", json=said, headers=api.owner).status_code == 404
    assert api.http.patch(f"/v1/datasets/{private}", json=said, headers=api.owner).status_code == 422
    declaration = {"name": "again", **said}
    reply = api.http.put(f"/v1/datasets/{private}/declaration", json=declaration, headers=api.owner)
    assert reply.status_code == 422
    assert "none of your datasets" in refused(order(api, upload(), private))


def test_rows_that_were_uploaded_as_private_are_not_uploaded_again_as_public(api, upload):
    pixels, labels = make_images(40, SHAPE, CLASSES)
    fields = {"schema": json.dumps(image_schema(SHAPE, CLASSES))}
    private = api.upload(npz(pixels, labels), **fields).json()["id"]
    again = api.upload(npz(pixels[::-1], labels[::-1]), **fields, rows_are_public="true")
    assert (again.status_code, again.json()["dataset_id"], again.json()["same_declaration"]) == (409, private, False)
    assert "stay private" in again.json()["detail"]
    theirs = api.upload(npz(pixels, labels), **fields, rows_are_public="true", key=api.stranger)
    assert (theirs.status_code, theirs.json()["code"]) == (409, "duplicate_rows")
    other = upload()
    alike = api.upload(
        npz(*make_images(40, SHAPE, CLASSES)), **fields, rows_are_public="true", distinct_from=json.dumps([other])
    )
    assert (alike.status_code, alike.json()["where"]) == (422, "rows_are_public")


# -- with the rights of the API's role, and with the owner's


ATTACKS = {
    "alone": "UPDATE datasets SET rows_are_public = true WHERE id = %(id)s",
    "a new version of its row first": (
        "BEGIN; UPDATE datasets SET rows_expire_at = now() + interval '1 day' WHERE id = %(id)s; "
        "UPDATE datasets SET rows_are_public = true WHERE id = %(id)s; COMMIT"
    ),
    "upsert": (
        "INSERT INTO datasets (id, tenant_id, name, schema, units, epsilon, delta, renyi_order, renyi_capacity, rows_are_public) "
        "SELECT id, tenant_id, name, schema, units, epsilon, delta, renyi_order, renyi_capacity, true FROM datasets "
        "WHERE id = %(id)s ON CONFLICT (id) DO UPDATE SET rows_are_public = excluded.rows_are_public"
    ),
    "a line of the view": "INSERT INTO public_datasets (dataset_id) VALUES (%(id)s)",
    "a row of the view": "UPDATE public_datasets SET dataset_id = %(id)s",
    "delete and insert again": "DELETE FROM datasets WHERE id = %(id)s",
    "without the trigger": "ALTER TABLE datasets DISABLE TRIGGER USER",
    "another trigger": (
        "CREATE TRIGGER mine BEFORE UPDATE ON datasets FOR EACH ROW EXECUTE FUNCTION dataset_stays_private_or_public()"
    ),
}


def say(url, statement, **names):
    with psycopg.connect(
        url.replace("+psycopg", ""), autocommit=True, cursor_factory=psycopg.ClientCursor
    ) as connection:
        cursor = connection.execute(statement, names)
        return cursor.fetchall() if cursor.description else None


@pytest.mark.parametrize("role", ["api_url", "worker_url", "relay_url"])
def test_no_role_of_a_process_declares_rows_public_that_were_uploaded_as_private(api, database, upload, role):
    private, other = upload(), upload()
    for attack in ATTACKS.values():
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            say(getattr(database, role), attack, id=private)
    assert say(database.api_url, "SELECT rows_are_public FROM datasets WHERE id = %(id)s", id=private) == [(False,)]
    assert "none of your datasets" in refused(order(api, other, private))


@pytest.mark.parametrize("was", [False, True])
def test_what_was_said_at_the_upload_is_never_changed(database, upload, was):
    dataset = upload(public=was)
    for url in (database.owner_url, database.api_url):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            say(url, f"UPDATE datasets SET rows_are_public = {not was} WHERE id = %(id)s", id=dataset)
    say(
        database.owner_url,
        "UPDATE datasets SET rows_are_public = rows_are_public, name = 'b' WHERE id = %(id)s",
        id=dataset,
    )


COPY = """
INSERT INTO datasets (id, tenant_id, name, schema, units, epsilon, delta, renyi_order, renyi_capacity, storage_key,
                      wrapped_data_key, rows_are_public)
SELECT %(new)s, tenant_id, name, schema, units, epsilon, delta, renyi_order, renyi_capacity, storage_key,
       wrapped_data_key, true FROM datasets WHERE id = %(id)s
"""
BORROW = """
SELECT outcome FROM datasets p CROSS JOIN datasets d JOIN balances b ON b.dataset_id = d.id CROSS JOIN LATERAL dataset_redeclare(
    d.id, b.declaration, d.name, d.schema, d.privacy_unit, d.units, d.delta, d.renyi_order, d.renyi_capacity, p.storage_key)
WHERE p.id = %(id)s AND d.id = %(new)s
"""


@pytest.mark.parametrize("how", ["a copy of its row", "a public dataset that names its rows"])
def test_a_public_dataset_made_to_name_private_rows_does_not_open_them(api, context, database, upload, how):
    """The API's role can write such a row; the key of the rows is bound to the id of their dataset."""
    private, victim = upload(), upload()
    if how == "a copy of its row":
        named = str(uuid.uuid4())
        say(database.api_url, COPY, id=victim, new=named)
    else:
        named = upload(public=True)
        ((outcome,),) = say(database.api_url, BORROW, id=victim, new=named)
        assert outcome == "done"
    reply = order(api, private, named)
    assert reply.status_code == 202, "its declaration fits"
    with context.transaction() as session:
        lease = claim(session, uuid.UUID(reply.json()["id"]))
    attempt = Attempt(context, lease)
    assert str(attempt.public.id) == named
    with pytest.raises(Tampered):
        StoredRows(attempt).public_images()
    attempt.run()  # it is found out before anything is charged
    with context.transaction() as session:
        ended = session.get_one(Release, lease.release_id)
        assert (ended.state, ended.failure) == ("voided", "tampered")
        assert set(ledger.entries_of_release(session, ended.id)) == {"reserve", "void"}


# -- who begins from it


def test_what_is_read_and_held_of_it_is_estimated_and_the_price_stays(api, upload, monkeypatch):
    asked, estimate = [], releases.estimate_of
    monkeypatch.setattr(releases, "estimate_of", lambda *of: asked.append(of[1]) or estimate(*of))
    private, public = upload(), upload(public=True)
    document = {"method": "dpgan", "epsilon": 1.0, "steps": 3}
    prices = [
        api.http.post(f"/v1/datasets/{private}/quotes", json=document | more, headers=api.analyst).json()["price"]
        for more in ({}, {"public_dataset": public})
    ]
    assert prices[0] == prices[1]
    assert [each.public for each in asked] == [None, PublicRows(40, 40 * 6 * 5)]


def test_an_order_begins_from_declared_images_of_its_own_tenant_alone(api, upload):
    private, public, undeclared = upload(), upload(public=True), upload()
    assert "none of your datasets" in refused(order(api, private, undeclared))
    theirs = upload(key=api.stranger, public=True)
    unknown = refused(order(api, private, str(uuid.uuid4())))
    assert refused(order(api, private, theirs)) == unknown, "another tenant's looks like none"
    assert "the dataset itself" in refused(order(api, public, public))
    for other in (upload(shape=(6, 6, 1), public=True), upload(classes=2, public=True)):
        assert "same height" in refused(order(api, private, other))
    quoted = api.http.post(
        f"/v1/datasets/{private}/quotes",
        json={"method": "dpgan", "epsilon": 1.0, "public_dataset": theirs},
        headers=api.analyst,
    )
    assert refused(quoted) == unknown
    assert order(api, private, public).status_code == 202
    table = api.upload().json()["id"]
    assert "both must be tables" in refused(order(api, table, public))
    api.http.delete(f"/v1/datasets/{public}", headers=api.owner)
    assert "erased" in refused(order(api, private, public))


def test_an_order_on_a_table_begins_from_rows_of_the_same_columns_alone(api):
    private = api.upload(b"colour,size\nr,1\ng,2\n", schema=table_of(["r", "g"])).json()["id"]
    public = api.upload(b"size,colour\n1,g\n0,g\n2,r\n", schema=table_of(["r", "g"]), rows_are_public="true").json()[
        "id"
    ]
    other = api.upload(b"colour,size\nr,0\ng,0\n", schema=table_of(["g", "r"]), rows_are_public="true").json()["id"]
    undeclared = api.upload(b"colour,size\nr,2\nr,2\n", schema=table_of(["r", "g"])).json()["id"]
    assert order(api, private, public).status_code == 202
    assert "'colour' has another list of categories there" in refused(order(api, private, other))
    assert "none of your datasets" in refused(order(api, private, undeclared))
    assert "none of your datasets" in refused(order(api, private, undeclared, public_mask_share=0.2))


def test_a_choice_begins_from_a_dataset_that_each_order_by_itself_may(api, context, signing_key, monkeypatch):  # noqa: ARG001 - what signs
    private = api.upload(b"colour,size\n" + b"r,1\ng,2\n" * 40, schema=table_of(["r", "g"])).json()["id"]
    public = api.upload(b"colour,size\ng,1\ng,0\n", schema=table_of(["r", "g"]), rows_are_public="true").json()["id"]
    undeclared = api.upload(b"colour,size\nr,2\nr,2\n", schema=table_of(["r", "g"])).json()["id"]

    def chosen(dataset):
        idpgan = {"method": "idpgan", "steps": 2, "warm_start": {"kind": "none"}}
        candidates = [idpgan, *[{**idpgan, "public_dataset": dataset, "public_steps": 2}] * 2]
        return api.order(private, {"method": "choose", "epsilon": 1.0, "target": "colour", "candidates": candidates})

    assert "none of your datasets" in refused(chosen(undeclared))
    reply = chosen(public)
    assert reply.status_code == 202, reply.text
    release_id = reply.json()["id"]
    with context.transaction() as session:
        lease = claim(session, uuid.UUID(release_id))
    read, encoded = [], StoredRows._encoded
    monkeypatch.setattr(StoredRows, "_encoded", lambda rows, *of, **how: read.append(rows) or encoded(rows, *of, **how))
    Attempt(context, lease).run()
    assert [rows._dataset.rows_are_public for rows in read].count(True) == 1, "once for all tries"
    certificate = api.http.get(f"/v1/releases/{release_id}/certificate", headers=api.reader).json()
    assert certificate["public_dataset"]["id"] == public, certificate


def table_of(colours):
    size = {"name": "size", "type": "integer", "constraints": {"minimum": 0, "maximum": 5, "required": True}}
    colour = {"name": "colour", "type": "string", "constraints": {"enum": colours, "required": True}}
    return json.dumps({"fields": [colour, size]})


def test_an_order_on_a_public_dataset_is_charged_as_any_other(api, upload):
    public = upload(public=True)
    reply = api.order(public, {"method": "mixture", "epsilon": 1.5})
    assert reply.status_code == 202, reply.text
    accounts = api.http.get(f"/v1/datasets/{public}/budget", headers=api.reader).json()["accounts"]
    assert accounts["simple"]["pending"] == 500_000_000
    refused = api.order(public, {"method": "mixture", "epsilon": 4.0})
    assert (refused.status_code, refused.json()["code"]) == (409, "budget_exhausted"), refused.text


@pytest.mark.parametrize("wrong", ["undeclared", "another tenant's", "erased since"])
def test_a_worker_asks_again_and_charges_nothing(api, context, upload, wrong):
    """No matter who wrote the order: the rows of a dataset that is not declared public are never read as if it were."""
    private, public = upload(), upload(public=True)
    release_id = uuid.UUID(order(api, private, public).json()["id"])
    other = upload(key=api.stranger, public=True) if wrong == "another tenant's" else upload()
    with context.transaction() as session:
        lease = claim(session, release_id)
    attempt = Attempt(context, lease)
    assert str(attempt.public.id) == public
    if wrong == "erased since":
        assert api.http.delete(f"/v1/datasets/{public}", headers=api.owner).status_code == 204
    else:
        named = {**attempt.release.order_, "public_dataset": other}
        with owner_transaction(context.settings) as session:
            session.execute(text("ALTER TABLE releases DISABLE TRIGGER USER"))
            session.execute(
                text("UPDATE releases SET order_ = CAST(:named AS jsonb) WHERE id = :id"),
                {"named": json.dumps(named), "id": release_id},
            )
            session.execute(text("ALTER TABLE releases ENABLE TRIGGER USER"))
    again = Attempt(context, lease)
    assert again.public is None
    again.run()
    with context.transaction() as session:
        release = session.get_one(Release, release_id)
        assert (release.state, release.failure) == ("voided", "erased")
    accounts = api.http.get(f"/v1/datasets/{private}/budget", headers=api.reader).json()["accounts"]
    assert accounts["simple"]["posted"] == accounts["simple"]["pending"] == 0
