"""A wrong declaration is corrected until the first charge, by the one who has the rows, and never after it."""

import dataclasses
import json
import uuid

import psycopg
import pytest
from fastapi.testclient import TestClient

from service.datasets import redeclaration
from service.datasets.models import Dataset
from service.datasets.redeclaration import _budget_of
from service.http.app import create_app
from service.platform.context import open_context
from service.privacy.filters import open_budget
from service.privacy.statements import default_delta
from service.releases import service as releases
from service.releases.models import Release
from service.upkeep.sweep import sweep
from tests.orders import price_order
from tests.service.http.conftest import SCHEMA, TABLE
from tests.service.http.test_audit_log import acts
from tests.service.http.test_datasets_api import _assert_problem
from workers import lease as leases
from workers.run import Attempt

pytestmark = pytest.mark.slow

ORDER = {"method": "idpgan", "epsilon": 0.5, "steps": 5}
WRONG = {"fields": [{"name": "sex", "type": "string", "constraints": {"enum": ["f", "m"]}}, SCHEMA["fields"][0]]}
RIGHT = {"fields": [{"name": "sex", "type": "string", "constraints": {"enum": ["F", "M"]}}, SCHEMA["fields"][0]]}
SEX = '["sex"]'
PEOPLE = "sex,age\n" + "\n".join(f"{'FM'[i % 2]},{20 + i % 60}" for i in range(200))
VISITS = "who,age\n" + "\n".join(f"person{i % 40},{20 + i % 60}" for i in range(200))
WHO = {"name": "who", "type": "string", "constraints": {"enum": [f"person{i}" for i in range(40)]}}
BY_ROW = {"fields": [WHO, SCHEMA["fields"][0]]}
BY_PERSON = {"schema": {"fields": [SCHEMA["fields"][0]]}, "privacy_unit": {"column": "who", "max_rows_per_unit": 5}}


def put(api, dataset, *, file=None, key=None, **body):
    """As JSON, or with a file as a form."""
    path, headers = f"/v1/datasets/{dataset}/declaration", key or api.owner
    if file is None:
        return api.http.put(path, json=body, headers=headers)
    data = {name: value if isinstance(value, str) else json.dumps(value) for name, value in body.items()}
    return api.http.put(path, data=data, files={"file": ("t.csv", file.encode())}, headers=headers)


def upload(api, table, schema, **fields):
    reply = api.upload(table, schema=json.dumps(schema), **fields)
    assert reply.status_code == 201, reply.text
    return reply.json()


def columns(context, dataset):
    with context.transaction() as session:
        return session.get_one(Dataset, uuid.UUID(dataset))


def objects(context):
    return sorted(context.storage.list("datasets"))


def charge(context, release):
    """As a worker does, up to the moment before the first row."""
    lease = leases.claim_next(context.settings)
    assert str(lease.release_id) == release
    attempt = Attempt(context, lease)
    attempt.charge()
    return attempt


def test_a_wrong_enum_is_corrected_from_the_stored_upload(api, context):
    _assert_problem(api.upload(PEOPLE, schema=json.dumps(WRONG)), 422, "invalid_file")
    made = upload(api, PEOPLE, WRONG, accept_undeclared=SEX)
    assert any("200" in notice for notice in made["notices"])
    refused = api.upload(PEOPLE, schema=json.dumps(RIGHT))
    _assert_problem(refused, 409, "duplicate_rows")
    assert f"/v1/datasets/{made['id']}/declaration" in refused.json()["detail"]
    old = columns(context, made["id"]).storage_key
    reply = put(api, made["id"], schema=RIGHT)
    assert reply.status_code == 200, reply.text
    assert reply.json()["notices"] == []
    assert reply.json()["schema"] == RIGHT
    assert reply.json()["declared_at"] > made["declared_at"]
    for kept in ("id", "name", "units", "epsilon", "delta", "privacy_unit", "created_at"):
        assert reply.json()[kept] == made[kept]
    shown = api.http.get(f"/v1/datasets/{made['id']}", headers=api.reader).json()
    assert shown == {name: value for name, value in reply.json().items() if name != "notices"}
    assert acts(api)[-2:] == [(act, "dataset", made["id"], "done") for act in ("read_upload", "replace_declaration")]
    now = columns(context, made["id"])
    assert objects(context) == sorted([now.storage_key, now.upload_key])
    assert now.storage_key != old
    assert api.order(made["id"], ORDER).status_code == 202
    again = api.upload(PEOPLE, schema=json.dumps(RIGHT))
    _assert_problem(again, 409, "duplicate_rows")


def test_the_unit_is_replaced_and_a_default_delta_follows_n(api, context):
    made = upload(api, VISITS, BY_ROW)
    assert (made["units"], made["delta"]) == (200, default_delta(200))
    reply = put(api, made["id"], name="visits", **BY_PERSON)
    assert reply.status_code == 200, reply.text
    changed = reply.json()
    assert (changed["units"], changed["delta"], changed["name"]) == (40, default_delta(40), "visits")
    assert any("200 units" in notice for notice in changed["notices"])
    stored, budget = columns(context, made["id"]), open_budget(3.0, default_delta(40))
    assert stored.budget == budget
    order = api.order(made["id"], ORDER).json()
    with context.transaction() as session:
        release = session.get_one(Release, uuid.UUID(order["id"]))
    shares = price_order(release.order, units=40, budget=budget).shares
    assert (release.simple_cost, release.renyi_cost) == (shares.simple, shares.renyi)
    api.http.post(f"/v1/releases/{order['id']}/cancel", headers=api.owner)
    back = put(api, made["id"], schema=BY_ROW, privacy_unit=None)
    assert back.status_code == 200, back.text
    assert (back.json()["units"], back.json()["privacy_unit"]) == (200, None)
    assert back.json()["delta"] == default_delta(200)
    was_default = Dataset(epsilon=3.0, delta=default_delta(2_000), units=2_000)
    assert _budget_of(was_default, 100_000).delta == default_delta(100_000) < default_delta(2_000)


def test_a_named_delta_stays_as_far_as_the_units_allow(api):
    budget = json.dumps({"epsilon": 3.0, "delta": 0.002})
    persons = api.upload(
        VISITS,
        schema=json.dumps(BY_PERSON["schema"]),
        privacy_unit=json.dumps(BY_PERSON["privacy_unit"]),
        budget=budget,
    ).json()
    unit = {"column": "who", "max_rows_per_unit": 2}
    reply = put(api, persons["id"], privacy_unit=unit).json()
    assert (reply["delta"], reply["units"], reply["privacy_unit"]) == (0.002, 40, unit)
    by_row = put(api, persons["id"], schema=BY_ROW, privacy_unit=None).json()
    assert (by_row["delta"], by_row["units"]) == (1 / 2_000, 200), "the largest that 200 units allow"


def test_what_is_left_out_stays(api):
    made = upload(api, VISITS, BY_PERSON["schema"], privacy_unit=json.dumps(BY_PERSON["privacy_unit"]))
    reply = put(api, made["id"], name="other")
    assert reply.status_code == 200, reply.text
    assert reply.json()["name"] == "other"
    for kept in ("units", "epsilon", "delta", "schema", "privacy_unit"):
        assert reply.json()[kept] == made[kept]


def test_it_is_refused_after_the_first_charge_and_the_upload_is_gone(api, context):
    made = upload(api, PEOPLE, WRONG, accept_undeclared=SEX)
    kept = columns(context, made["id"]).upload_key
    assert kept in objects(context)
    order = api.order(made["id"], ORDER).json()
    charge(context, order["id"])
    stored = columns(context, made["id"])
    assert (stored.upload_key, stored.wrapped_upload_key, stored.upload_key_id) == (None, None, None)
    assert objects(context) == [stored.storage_key]
    _assert_problem(put(api, made["id"], schema=RIGHT), 409, "already_charged")
    _assert_problem(put(api, made["id"], file=PEOPLE, schema=RIGHT), 409, "already_charged")
    assert columns(context, made["id"]).schema == WRONG
    assert acts(api)[-1] == ("replace_declaration", "dataset", made["id"], "already_charged")


def test_a_reserved_order_is_named_and_must_be_cancelled_first(api, context):
    made = upload(api, PEOPLE, WRONG, accept_undeclared=SEX)
    order = api.order(made["id"], ORDER).json()
    refused = put(api, made["id"], schema=RIGHT)
    _assert_problem(refused, 409, "open_orders")
    assert refused.json()["release_ids"] == [order["id"]]
    early = Attempt(
        context, leases.claim_next(context.settings)
    )  # a worker that has loaded the old declaration and is about to charge
    assert api.http.post(f"/v1/releases/{order['id']}/cancel", headers=api.owner).json()["state"] == "voided"
    assert put(api, made["id"], schema=RIGHT).status_code == 200
    with pytest.raises(leases.LeaseLost):
        early.run()
    assert columns(context, made["id"]).upload_key is not None
    later = charge(context, api.order(made["id"], ORDER).json()["id"])
    assert later.dataset.schema == RIGHT
    assert later.dataset.storage_key == columns(context, made["id"]).storage_key


def test_an_order_priced_under_the_old_declaration_is_refused(api, context, monkeypatch):
    """The declaration is replaced between the pricing of an order and its reservation."""
    made = upload(api, VISITS, BY_ROW)
    price = releases._price

    def slowly(*arguments):
        quoted = price(*arguments)
        monkeypatch.setattr(releases, "_price", price)
        assert put(api, made["id"], **BY_PERSON).status_code == 200
        return quoted

    monkeypatch.setattr(releases, "_price", slowly)
    _assert_problem(api.order(made["id"], ORDER, **{"Idempotency-Key": "k"}), 409, "redeclared")
    with context.transaction() as session:
        assert session.query(Release).count() == 0
    assert api.order(made["id"], ORDER, **{"Idempotency-Key": "k"}).status_code == 202


def test_only_the_key_that_sent_the_upload_has_it_read_again(api, context):
    """Its replies count cells: a holder of another key may never have had the rows."""
    made = upload(api, PEOPLE, WRONG, accept_undeclared=SEX)
    new = api.http.post("/v1/keys", json={"name": "second", "scope": "owner"}, headers=api.owner).json()["key"]
    second = {"Authorization": f"Bearer {new}"}
    _assert_problem(put(api, made["id"], key=second, schema=RIGHT), 409, "upload_needed")
    others = PEOPLE.replace("F,20", "M,20")
    _assert_problem(put(api, made["id"], key=second, file=others, schema=RIGHT), 409, "other_rows")
    assert columns(context, made["id"]).schema == WRONG
    reply = put(api, made["id"], key=second, file="\n".join(reversed(PEOPLE.split("\n")[1:])), schema=RIGHT)
    _assert_problem(reply, 422, "invalid_file")  # no header
    assert put(api, made["id"], key=second, file=PEOPLE, schema=RIGHT).status_code == 200
    assert (
        put(api, made["id"], key=second, schema=WRONG, accept_undeclared=["sex"]).status_code == 200
    )  # it has sent the rows now
    _assert_problem(put(api, made["id"], schema=RIGHT), 409, "upload_needed")
    assert len(objects(context)) == 2
    for key, status, code in (
        (api.analyst, 403, "forbidden"),
        (api.reader, 403, "forbidden"),
        (api.stranger, 404, "not_found"),
    ):
        _assert_problem(put(api, made["id"], key=key, schema=RIGHT), status, code)


def test_the_stored_upload_is_read_so_many_times_refused_or_not(api, monkeypatch):
    monkeypatch.setattr(redeclaration, "MOST_READS", 2)
    made = upload(api, PEOPLE, WRONG, accept_undeclared=SEX)
    narrow = {"fields": [{**RIGHT["fields"][0], "constraints": {"enum": ["F"], "required": True}}, RIGHT["fields"][1]]}
    _assert_problem(put(api, made["id"], schema=narrow), 422, "invalid_file")
    assert put(api, made["id"], name="two").status_code == 200
    _assert_problem(put(api, made["id"], schema=RIGHT), 409, "upload_needed")
    assert put(api, made["id"], schema=RIGHT, file=PEOPLE).status_code == 200
    assert put(api, made["id"], name="three").status_code == 200


def test_an_upload_that_is_too_large_to_keep_is_sent_again(api, context):
    settings = context.settings.model_copy(update={"kept_upload_limit_bytes": 10})
    with TestClient(create_app(settings), raise_server_exceptions=False) as http:
        small = dataclasses.replace(api, http=http)
        made = upload(small, PEOPLE, WRONG, accept_undeclared=SEX)
        assert columns(context, made["id"]).upload_key is None
        _assert_problem(put(small, made["id"], schema=RIGHT), 409, "upload_needed")
        assert put(small, made["id"], schema=RIGHT, file=PEOPLE).status_code == 200
    assert len(objects(context)) == 1


def test_the_kept_upload_is_encrypted_and_goes_with_the_rows(api, context):
    made = upload(api, PEOPLE, WRONG, accept_undeclared=SEX)
    stored = [context.storage.get(key) for key in objects(context)]
    assert len(stored) == 2
    assert not any(b"F,20" in content or b"sex" in content for content in stored)
    assert api.http.delete(f"/v1/datasets/{made['id']}", headers=api.owner).status_code == 204
    assert objects(context) == []
    assert columns(context, made["id"]).wrapped_upload_key is None
    for file in (None, PEOPLE):
        _assert_problem(put(api, made["id"], schema=RIGHT, file=file), 410, "erased")


def test_the_sweep_destroys_an_upload_that_another_version_has_left(api, context):
    """A worker of the version before charges, or erases, and knows nothing of uploads."""
    charged, erased = upload(api, PEOPLE, WRONG, accept_undeclared=SEX), upload(api, TABLE, SCHEMA)
    before = {made["id"]: columns(context, made["id"]) for made in (charged, erased)}
    charge(context, api.order(charged["id"], ORDER).json()["id"])
    api.http.delete(f"/v1/datasets/{erased['id']}", headers=api.owner)
    with psycopg.connect(context.settings.migration_database_url.replace("+psycopg", "")) as connection:
        connection.execute("SET session_replication_role = replica")  # written before there was a trigger
        for dataset, row in before.items():
            context.storage.put(row.upload_key, b"x")
            connection.execute(
                "UPDATE datasets SET upload_key = %s, wrapped_upload_key = 'w' WHERE id = %s", (row.upload_key, dataset)
            )
    untouched = upload(api, VISITS, BY_ROW)
    sweep(open_context(context.settings))
    for dataset in before:
        assert (columns(context, dataset).upload_key, columns(context, dataset).wrapped_upload_key) == (None, None)
    kept = {columns(context, charged["id"]).storage_key}
    kept |= {columns(context, untouched["id"]).storage_key, columns(context, untouched["id"]).upload_key}
    assert set(objects(context)) == kept


def test_rows_that_would_become_those_of_another_dataset_are_refused(api):
    """As they are declared now they are another dataset's, which has a budget already."""
    narrow, wide = ([{**SCHEMA["fields"][0], "constraints": {"minimum": 0, "maximum": most}}] for most in (50, 10_000))
    ages = [20 + i * i % 61 for i in range(200)]
    first = upload(api, "\n".join(["age", *map(str, ages)]), {"fields": narrow})
    unclamped = [age + 1_000 * (age > 50) for age in ages]
    second = upload(api, "\n".join(["age", *map(str, unclamped)]), {"fields": wide})
    refused = put(api, second["id"], schema={"fields": narrow})
    _assert_problem(refused, 409, "duplicate_rows")
    assert refused.json()["dataset_id"] == first["id"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "invalid_input"),
        ({"budget": {"epsilon": 100}}, "invalid_input"),
        ({"name": 3}, "invalid_input"),
        ({"name": " "}, "invalid_input"),
        ({"schema": 7}, "invalid_schema"),
        ({"schema": None}, "invalid_schema"),
        ({"privacy_unit": {"column": "sex"}}, "invalid_input"),
        ({"privacy_unit": {"column": "sex", "max_rows_per_unit": 2}}, "invalid_input"),
    ],
    ids=str,
)
def test_what_is_no_declaration_is_refused(api, body, code):
    made = upload(api, PEOPLE, RIGHT)
    _assert_problem(put(api, made["id"], **body), 422, code)
    _assert_problem(put(api, uuid.uuid4(), name="x"), 404, "not_found")


def test_broken_bodies_are_refused_and_events_are_heard(api):
    made = upload(api, PEOPLE, WRONG, accept_undeclared=SEX)
    path = f"/v1/datasets/{made['id']}/declaration"
    for body in ({"content": b"[1]"}, {"content": b"{"}, {"content": b"x", "headers": {"Content-Type": "text/plain"}}):
        headers = {**api.owner, "Content-Type": "application/json", **body.get("headers", {})}
        _assert_problem(api.http.put(path, content=body["content"], headers=headers), 422, "invalid_input")
    _assert_problem(api.http.put(path, files={"file": (None, "text")}, headers=api.owner), 422, "invalid_input")
    headers = {**api.owner, "Accept": "text/event-stream"}
    heard = api.http.put(path, files={"schema": (None, json.dumps(RIGHT))}, headers=headers).text
    assert "event: dataset" in heard
    assert '"phase": "storing"' in heard or "event: progress" in heard
    metrics = api.http.get("/metrics").text
    line = (
        'imprimatur_http_requests_total{method="PUT",route="/v1/datasets/{dataset_id}/declaration",status="answered"}'
    )
    assert line in metrics
