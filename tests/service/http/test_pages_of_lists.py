"""Lists have pages: each item once, newest first, whatever is added meanwhile, and no page is larger than it may be."""

from __future__ import annotations

import base64
import datetime as dt
import json
import uuid

import psycopg
import pytest
from sqlalchemy import insert, text

from service.datasets.models import Dataset
from service.platform import paging
from service.privacy.filters import Shares
from service.upkeep.installation import owner_transaction
from tests.bare_rows import add_bare_release
from tests.reservations import reserve

COST = Shares(1, 1)
PRICE = {"epsilon": 1.0, "delta": 1e-7, "pld_epsilon": 0.99, "renyi_divergence": 0.1, "events": []}


def encoded(cursor):
    return base64.urlsafe_b64encode(cursor.encode()).decode()


def publish(database, release, certificate):
    """As no application can: the ledger has charged nothing."""
    with psycopg.connect(database.owner_url.replace("+psycopg", "")) as connection:
        connection.execute("SET session_replication_role = replica")
        values = (json.dumps(certificate), release)
        connection.execute(
            "UPDATE releases SET state = 'published', bundle_key = 'b', certificate = %s WHERE id = %s", values
        )


def tenant_of(context, dataset_id):
    with context.transaction() as session:
        return session.get_one(Dataset, uuid.UUID(dataset_id)).tenant_id


def add_releases(context, dataset_id, count, **values):
    """Of one moment, as a transaction makes them: their ids decide the order."""
    tenant = tenant_of(context, dataset_id)
    with context.transaction() as session:
        made = [
            add_bare_release(session, tenant, uuid.UUID(dataset_id), COST, **{"price": PRICE, **values})
            for _ in range(count)
        ]
        for release in made:
            reserve(session, uuid.UUID(dataset_id), release, COST)
        return made


def pages(api, path, limit, *, between=lambda: None, **query):
    before, found = query, []
    while True:
        reply = api.http.get(path, params={"limit": limit, **before}, headers=api.owner)
        assert reply.status_code == 200, reply.text
        found.append(reply.json()["items"])
        if reply.json()["next"] is None:
            return found
        before = {**query, "before": reply.json()["next"]}
        between()


def test_releases_come_in_pages_each_once_while_others_are_added(api, context, dataset_id):
    ids = add_releases(context, dataset_id, 25)
    found = pages(api, "/v1/releases", 10, between=lambda: add_releases(context, dataset_id, 3))
    assert [len(page) for page in found] == [10, 10, 5]
    assert sorted(item["id"] for page in found for item in page) == sorted(map(str, ids))
    times = [item["created_at"] for page in found for item in page]
    assert times == sorted(times, reverse=True)
    of_dataset = pages(api, "/v1/releases", 20, dataset_id=dataset_id)
    assert sum(map(len, of_dataset)) == 31
    assert pages(api, "/v1/releases", 20, dataset_id=str(uuid.uuid4())) == [[]]


def test_keys_and_datasets_come_in_pages(api, context, settings, dataset_id):
    for number in range(7):
        api.http.post("/v1/keys", json={"name": f"key {number}", "scope": "reader"}, headers=api.owner)
    keys = [key["name"] for page in pages(api, "/v1/keys", 3) for key in page]
    assert keys == [*(f"key {number}" for number in range(6, -1, -1)), "reader", "analyst", "first owner"]
    tenant = tenant_of(context, dataset_id)
    with owner_transaction(settings) as session:
        like = session.get_one(Dataset, uuid.UUID(dataset_id))
        row = {c.key: getattr(like, c.key) for c in Dataset.__table__.columns}
        for number in range(4):
            session.execute(insert(Dataset).values({**row, "id": uuid.uuid4(), "name": f"d{number}"}))
    assert tenant
    found = pages(api, "/v1/datasets", 2)
    assert [len(page) for page in found] == [2, 2, 1]
    assert {item["name"] for page in found for item in page} == {"people", "d0", "d1", "d2", "d3"}


def test_a_page_is_bounded_in_bytes_and_shows_at_least_one(api, context, dataset_id, monkeypatch):
    monkeypatch.setattr(paging, "MOST_PAGE_BYTES", 25_000)
    add_releases(context, dataset_id, 5, order_={"text": "x" * 10_000})
    assert [len(page) for page in pages(api, "/v1/releases", 100)] == [2, 2, 1]
    add_releases(context, dataset_id, 1, order_={"text": "x" * 100_000})
    assert [len(page) for page in pages(api, "/v1/releases", 100)] == [1, 2, 2, 1]


def test_a_large_price_or_certificate_of_an_earlier_version_is_not_read_for_a_list(api, context, database, dataset_id):
    """A price of a million events was 63 MB."""
    huge = {**PRICE, "events": [{"kind": "gaussian", "text": "x" * 1_000}] * 5_000}
    (release,) = add_releases(context, dataset_id, 1, price=huge)
    small = {"consistency": ["y" * 100_000], "ledger_entry": {"seq": 1}}
    publish(database, release, small)
    reply = api.http.get("/v1/releases", headers=api.reader)
    (item,) = reply.json()["items"]
    assert len(reply.content) < 5_000
    assert item["price"] == {"epsilon": 1.0, "delta": 1e-7, "shares": {"simple": 1, "renyi": 1}}
    assert item["certificate"] == {"ledger_entry": {"seq": 1}}
    publish(database, release, {"events": "z" * 70_000})
    (item,) = api.http.get("/v1/releases", headers=api.reader).json()["items"]
    assert item["certificate"] is None
    one = api.http.get(f"/v1/releases/{release}", headers=api.reader).json()
    assert one["certificate"] == {"events": "z" * 70_000}


def test_the_ledger_comes_in_pages_and_is_checked_as_a_whole(api, dataset_id):
    for _ in range(6):
        order = {"method": "marginals", "epsilon": 0.01, "pairs": "all"}
        release = api.order(dataset_id, order).json()["id"]
        api.http.post(f"/v1/releases/{release}/cancel", headers=api.analyst)
    path = f"/v1/datasets/{dataset_id}/ledger"
    first = api.http.get(path, params={"limit": 5}, headers=api.reader).json()
    assert [e["seq"] for e in first["items"]] == [8, 9, 10, 11, 12]
    assert (first["verified"], first["faults"], first["next"]) == (True, [], 8)
    second = api.http.get(path, params={"limit": 5, "before": 8}, headers=api.reader).json()
    assert [e["seq"] for e in second["items"]] == [3, 4, 5, 6, 7]
    assert second["verified"] is None
    last = api.http.get(path, params={"limit": 5, "before": second["next"]}, headers=api.reader).json()
    assert ([e["seq"] for e in last["items"]], last["next"]) == ([1, 2], None)


@pytest.mark.parametrize(
    "before",
    ["", "nonsense", "é", encoded("2026-01-01 x"), "A" * 90, encoded(f"0001-01-01T00:00:00+14:00 {uuid.UUID(int=1)}")],
)
@pytest.mark.parametrize("path", ["/v1/releases", "/v1/datasets", "/v1/keys"])
def test_what_is_no_cursor_is_refused(api, path, before):
    reply = api.http.get(path, params={"before": before}, headers=api.owner)
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_input"), reply.text


@pytest.mark.parametrize("limit", [0, -1, 1_001, "x"])
@pytest.mark.parametrize(
    "path", ["/v1/releases", "/v1/datasets", "/v1/keys", f"/v1/datasets/{uuid.UUID(int=1)}/ledger"]
)
def test_a_limit_that_is_none_is_refused(api, path, limit):
    assert api.http.get(path, params={"limit": limit}, headers=api.owner).status_code == 422


def test_a_cursor_is_read_as_it_was_written():
    cursor = paging.Cursor(dt.datetime(2026, 3, 1, 12, 0, 0, 123_456, dt.UTC), uuid.uuid4())
    assert paging.Cursor.read(str(cursor)) == cursor


def test_every_page_is_found_by_an_index(context):
    """Without sorting a tenant's whole list."""
    queries = [
        "SELECT id FROM releases WHERE tenant_id = gen_random_uuid() ORDER BY created_at DESC, id DESC LIMIT 10",
        "SELECT id FROM releases WHERE dataset_id = gen_random_uuid() ORDER BY created_at DESC, id DESC LIMIT 10",
        "SELECT id FROM datasets WHERE tenant_id = gen_random_uuid() ORDER BY created_at DESC, id DESC LIMIT 10",
        "SELECT id FROM api_keys WHERE tenant_id = gen_random_uuid() ORDER BY created_at DESC, id DESC LIMIT 10",
    ]
    with context.transaction() as session:
        session.execute(text("SET LOCAL enable_seqscan = off"))
        session.execute(text("SET LOCAL enable_bitmapscan = off"))
        for query in (each.replace("gen_random_uuid()", "'00000000-0000-0000-0000-000000000001'") for each in queries):
            plan = "\n".join(session.scalars(text(f"EXPLAIN {query}")))
            assert "Index" in plan, plan
            assert "Sort" not in plan, plan
