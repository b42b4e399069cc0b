"""Who may do what, for every operation of the OpenAPI document: a new one is tried without being listed here.

What a new operation does need here: a good body, and an id for a new kind of path parameter. Both fail clearly.
"""

import datetime as dt
import functools
import itertools
import re
import uuid

import pytest

from service.requests.rates import Rates
from tests.service.http.test_datasets_api import _assert_problem

ORDER = {"method": "idpgan", "epsilon": 0.1, "steps": 5}
OPEN_TO_ALL = {
    ("get", "/healthz"),
    ("get", "/readyz"),
    ("get", "/metrics"),
    ("get", "/v1/ledger/head"),
    ("get", "/v1/ledger/consistency"),
    ("get", "/v1/ledger/keys"),
}
JSON_BODIES = {
    ("post", "/v1/datasets/{dataset_id}/queries"): {"kind": "count", "epsilon": 0.01},
    ("post", "/v1/keys"): {"name": "one more", "scope": "reader"},
    ("post", "/v1/keys/{key_id}/replacement"): {"overlap_seconds": 60},
    ("patch", "/v1/datasets/{dataset_id}"): {"rows_expire_at": "2099-01-01T00:00:00Z"},
    ("put", "/v1/datasets/{dataset_id}/declaration"): {"name": "another"},
    ("post", "/v1/datasets/{dataset_id}/quotes"): ORDER,
    ("post", "/v1/datasets/{dataset_id}/releases"): ORDER,
}
SCOPES = ("owner", "analyst", "reader")
METHODS = {"get", "put", "post", "patch", "delete", "head", "options", "trace"}


class House:
    """Every operation, and what our tenant owns to try it on."""

    def __init__(self, api, dataset_id):
        self.api = api
        self.document = api.http.get("/openapi.json").json()
        keys = api.http.get("/v1/keys", headers=api.owner).json()["items"]
        self.ids = {
            "dataset_id": dataset_id,
            "release_id": api.order(dataset_id, ORDER).json()["id"],
            "key_id": next(key["id"] for key in keys if key["scope"] == "reader"),
        }

    def operations(self):
        for path, operations in self.document["paths"].items():
            for method, operation in operations.items():
                assert method in METHODS, f"{path}: {method} is no method this test knows how to call"
                yield method, path, operation

    def call(self, method, path, operation, *, headers, ids=None, query=None):
        """One good request; only the key and the ids differ from call to call."""
        ids = ids or self.ids
        unknown = set(re.findall(r"{(\w+)}", path)) - set(ids)
        assert not unknown, f"{method} {path}: give this test an id of our tenant for the path parameter {unknown}"
        content = operation.get("requestBody", {}).get("content", {})
        body = {}
        if "application/json" in content:
            assert (method, path) in JSON_BODIES, f"{method} {path}: add a good body to JSON_BODIES"
            body = {"json": JSON_BODIES[method, path]}
        elif "multipart/form-data" in content:
            body = {"files": {"file": ("t.csv", b"")}}
        elif "text/csv" in content:
            headers, body = {**headers, "Content-Type": "text/csv"}, {"content": b"age\n30\n"}
        else:
            assert not content, f"{method} {path}: this test cannot send {list(content)}"
        return self.api.http.request(method, path.format(**ids), headers=headers, params=query, **body)


@pytest.fixture
def house(api, dataset_id):
    return House(api, dataset_id)


def test_every_operation_needs_a_key_and_the_documented_scope(house):
    tried = 0
    for method, path, operation in house.operations():
        if (method, path) in OPEN_TO_ALL:
            assert "security" not in operation
            continue
        where = f"{method} {path}"
        assert operation["x-required-scope"] in SCOPES, where
        assert operation["security"] == [{"api_key": [operation["x-required-scope"]]}], where
        for wrong in ({}, {"Authorization": "Bearer imp_nobody"}, {"Authorization": "Basic abc"}):
            _assert_problem(house.call(method, path, operation, headers=wrong), 401, "unauthenticated")
        for weaker in SCOPES[SCOPES.index(operation["x-required-scope"]) + 1 :]:
            reply = house.call(method, path, operation, headers=getattr(house.api, weaker))
            _assert_problem(reply, 403, "forbidden")
            assert reply.json()["required_scope"] == operation["x-required-scope"], where
            tried += 1
    assert tried >= 15


def test_the_documented_scope_is_enough(house):
    """With it, nothing is forbidden; what changes things for good comes last."""
    for method, path, operation in sorted(house.operations(), key=lambda o: (o[0] == "delete", o[1])):
        scope = operation.get("x-required-scope")
        if scope is not None and not path.endswith("/events"):  # a stream without an end
            reply = house.call(method, path, operation, headers=getattr(house.api, scope))
            assert reply.status_code not in {401, 403}, (method, path)
            if path.startswith("/v1/keys/") and reply.status_code in {201, 204}:  # it was the reader's key
                made = house.api.http.post("/v1/keys", json=JSON_BODIES["post", "/v1/keys"], headers=house.api.owner)
                house.ids["key_id"] = made.json()["id"]
                house.api.reader["Authorization"] = f"Bearer {made.json()['key']}"


def test_another_tenants_things_look_exactly_like_nothing(house):
    """Every operation × every id it takes, in path or query: the same reply for ours, seen by a stranger, and for none."""
    nothing = {name: str(uuid.uuid4()) for name in house.ids}
    tried = 0
    for method, path, operation in house.operations():
        if "{" in path:
            ours, none = (
                house.call(method, path, operation, headers=house.api.stranger, ids=ids) for ids in (house.ids, nothing)
            )
            _assert_problem(ours, 404, "not_found")
            assert ours.content == none.content, (method, path)
            assert visible(ours) == visible(none), (method, path)
            tried += 1
        names = [p["name"] for p in operation.get("parameters", []) if p["in"] == "query" and p["name"].endswith("_id")]
        for name in names:
            assert name in house.ids, f"{method} {path}: give this test an id of our tenant for the query's {name}"
            ours, none = (
                house.call(method, path, operation, headers=house.api.stranger, query={name: ids[name]})
                for ids in (house.ids, nothing)
            )
            assert (ours.status_code, ours.content) == (none.status_code, none.content), (method, path)
            tried += 1
    assert tried >= 15
    for listing in ("datasets", "releases"):
        assert house.api.http.get(f"/v1/{listing}", headers=house.api.stranger).json() == {"items": [], "next": None}
    still = house.api.http.get(f"/v1/releases/{house.ids['release_id']}", headers=house.api.reader)
    assert still.json()["state"] == "reserved"


def visible(reply):
    return {name: value for name, value in reply.headers.items() if name != "x-request-id"}


def test_every_refusal_that_follows_from_its_shape_is_documented(house):
    for method, path, operation in house.operations():
        wanted = {"413", "431", "500"}
        if operation.get("x-required-scope"):
            wanted |= {"401", "429", "503"}
        if operation.get("x-required-scope") in {"owner", "analyst"}:
            wanted.add("403")
        if "{" in path:
            wanted |= {"404", "422"}
        if "requestBody" in operation:
            wanted |= {"408", "422"}
        assert wanted <= set(operation["responses"]), (method, path)
        assert "default" not in operation["responses"], (method, path)
        for status, reply in operation["responses"].items():
            if status >= "400" and path != "/readyz":
                assert list(reply["content"]) == ["application/problem+json"], (method, path, status)


# -- keys -----------------------------------------------------------------------------------------------------------


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


def status_of(api, key):
    return api.http.get("/v1/datasets", headers=bearer(key)).status_code


def make_key(api, **fields):
    reply = api.http.post("/v1/keys", json={"name": "k", "scope": "reader", **fields}, headers=api.owner)
    assert reply.status_code == 201, reply.text
    return reply.json()


def end_now(context, key_id):
    """What the passing of time does to a key with an end."""
    import psycopg

    with psycopg.connect(context.settings.migration_database_url.replace("+psycopg", "")) as connection:
        connection.execute("UPDATE api_keys SET expires_at = now() WHERE id = %s", (key_id,))


def test_a_key_stops_at_its_end(api, context):
    made = make_key(api, expires_at="2030-01-01T00:00:00+02:00")
    assert made["expires_at"] == "2029-12-31T22:00:00Z"
    assert status_of(api, made["key"]) == 200
    end_now(context, made["id"])
    assert status_of(api, made["key"]) == 401
    for moment in ("2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z", "2030-01-01T00:00:00", "soon", 7e300):
        body = {"name": "k", "scope": "reader", "expires_at": moment}
        _assert_problem(api.http.post("/v1/keys", json=body, headers=api.owner), 422, "invalid_input")


def test_a_replaced_key_works_on_for_its_overlap_and_no_longer(api, context):
    old = make_key(api)
    address = f"/v1/keys/{old['id']}/replacement"
    new = api.http.post(address, json={"overlap_seconds": 3600}, headers=api.owner).json()
    assert status_of(api, old["key"]) == status_of(api, new["key"]) == 200
    listed = {key["id"]: key for key in api.http.get("/v1/keys", headers=api.owner).json()["items"]}
    assert listed[old["id"]]["replaced_by"] == new["id"]
    assert listed[old["id"]]["expires_at"] is not None
    assert (listed[new["id"]]["scope"], listed[new["id"]]["name"]) == ("reader", "k")
    _assert_problem(api.http.post(address, json={}, headers=api.owner), 409, "not_replaceable")
    end_now(context, old["id"])
    assert (status_of(api, old["key"]), status_of(api, new["key"])) == (401, 200)


def test_a_key_replaced_at_once_is_dead_and_its_successor_lives_as_long(api):
    old = make_key(api, expires_at="2030-01-01T00:00:00Z")
    new = api.http.post(f"/v1/keys/{old['id']}/replacement", json={"overlap_seconds": 0}, headers=api.owner).json()
    assert (status_of(api, old["key"]), status_of(api, new["key"])) == (401, 200)
    assert dt.datetime.fromisoformat(new["expires_at"]) >= dt.datetime.fromisoformat(old["expires_at"])
    _assert_problem(
        api.http.post(f"/v1/keys/{old['id']}/replacement", json={}, headers=api.owner), 409, "not_replaceable"
    )


def test_a_key_makes_none_that_outlives_it(api):
    """Neither by asking for a later end, nor for none, nor in place of a key that has none."""
    end = "2030-01-01T00:00:00Z"
    maker = make_key(api, scope="owner", expires_at=end)
    lasting = make_key(api, scope="owner")
    headers = bearer(maker["key"])

    def asked(path, **body):
        return api.http.post(path, json=body, headers=headers)

    later = {"expires_at": "2030-01-01T00:00:01Z"}
    _assert_problem(asked("/v1/keys", name="k", scope="owner", **later), 422, "invalid_input")
    assert asked("/v1/keys", name="k", scope="owner").json()["expires_at"] == end
    assert asked("/v1/keys", name="k", scope="reader", expires_at=None).json()["expires_at"] == end
    sooner = asked("/v1/keys", name="k", scope="reader", expires_at="2029-01-01T00:00:00Z").json()
    assert sooner["expires_at"] == "2029-01-01T00:00:00Z"

    for key_id in (lasting["id"], maker["id"]):
        replacement = f"/v1/keys/{key_id}/replacement"
        _assert_problem(asked(replacement, **later), 422, "invalid_input")
        assert asked(replacement, overlap_seconds=60).json()["expires_at"] == end
    ends = {key["id"]: key["expires_at"] for key in api.http.get("/v1/keys", headers=api.owner).json()["items"]}
    assert ends[maker["id"]] < end, "in its overlap a key ends sooner"
    last_hour = asked("/v1/keys", name="k", scope="owner").json()
    assert last_hour["expires_at"] == ends[maker["id"]]


def test_a_key_with_an_end_does_not_replace_the_last_owner_key_without_one(api):
    mine = next(k["id"] for k in api.http.get("/v1/keys", headers=api.owner).json()["items"] if k["scope"] == "owner")
    ending = bearer(make_key(api, scope="owner", expires_at="2030-01-01T00:00:00Z")["key"])
    reply = api.http.post(f"/v1/keys/{mine}/replacement", json={"overlap_seconds": 0}, headers=ending)
    _assert_problem(reply, 409, "last_owner_key")
    assert api.http.get("/v1/keys", headers=api.owner).status_code == 200


def test_a_key_that_was_revoked_meanwhile_makes_none(api, context):
    """The request had passed the door when the key was revoked."""
    from service.auth import service as auth
    from service.base.errors import Unauthenticated

    maker = make_key(api, scope="owner")
    with context.driver() as connection:
        principal = auth.authenticate(connection, context.secrets, maker["key"])
    assert api.http.delete(f"/v1/keys/{maker['id']}", headers=api.owner).status_code == 204
    with context.transaction() as session, pytest.raises(Unauthenticated):
        auth.make_key(session, context.secrets, principal, name="k", scope="owner", expires_at=None)


def test_the_last_owner_key_can_only_be_replaced(api):
    keys = api.http.get("/v1/keys", headers=api.owner).json()["items"]
    mine = next(key["id"] for key in keys if key["scope"] == "owner")
    make_key(api, scope="owner", expires_at="2030-01-01T00:00:00Z")  # it ends, so it does not count
    _assert_problem(api.http.delete(f"/v1/keys/{mine}", headers=api.owner), 409, "last_owner_key")
    ending = {"expires_at": "2030-01-01T00:00:00Z"}
    _assert_problem(
        api.http.post(f"/v1/keys/{mine}/replacement", json=ending, headers=api.owner), 409, "last_owner_key"
    )
    new = api.http.post(f"/v1/keys/{mine}/replacement", json={"overlap_seconds": 60}, headers=api.owner).json()
    assert api.http.delete(f"/v1/keys/{mine}", headers=bearer(new["key"])).status_code == 204
    assert status_of(api, new["key"]) == 200


def test_neither_database_nor_listing_holds_a_key(api, context):
    import psycopg

    made = make_key(api)
    secret = made["key"].removeprefix("imp_")
    assert secret not in api.http.get("/v1/keys", headers=api.owner).text
    with psycopg.connect(context.settings.migration_database_url.replace("+psycopg", "")) as connection:
        rows = connection.execute("SELECT k::text FROM api_keys k").fetchall()
        rows += connection.execute("SELECT e::text FROM audit_events e").fetchall()
    assert len(rows) >= 5
    assert not any(secret in row or secret.encode().hex() in row for (row,) in rows)


# -- how often ------------------------------------------------------------------------------------------------------


@pytest.fixture
def narrow(context, monkeypatch):
    """The same service with small limits, for which no time passes."""
    from fastapi.testclient import TestClient

    from service.http.app import create_app

    monkeypatch.setattr("service.auth.limits.Rates", functools.partial(Rates, clock=lambda: 0.0))

    def make(**limits):
        settings = context.settings.model_copy(update={"rate_limit_burst_seconds": 60.0, **limits})
        return TestClient(create_app(settings), raise_server_exceptions=False)

    return make


def test_a_key_over_its_limit_waits_and_the_others_do_not(api, narrow):
    http = narrow(rate_limit_requests_per_minute=5)
    codes = [http.get("/v1/datasets", headers=api.reader).status_code for _ in range(8)]
    assert codes == [200] * 5 + [429] * 3
    reply = http.get("/v1/datasets", headers=api.reader)
    _assert_problem(reply, 429, "rate_limited")
    assert 1 <= int(reply.headers["retry-after"]) <= 12
    assert reply.json()["retry_after_seconds"] == int(reply.headers["retry-after"])
    assert http.get("/v1/datasets", headers=api.analyst).status_code == 200
    assert http.get("/healthz").status_code == 200


def test_a_tenants_keys_share_a_limit(api, narrow):
    http = narrow(rate_limit_tenant_requests_per_minute=4)
    keys = itertools.cycle([api.owner, api.analyst, api.reader])
    assert [http.get("/v1/datasets", headers=next(keys)).status_code for _ in range(6)] == [200] * 4 + [429] * 2
    assert http.get("/v1/datasets", headers=api.stranger).status_code == 200


def test_who_has_no_key_is_slowed_down_and_locks_out_no_one_who_was_there(api, narrow):
    http = narrow(rate_limit_failures_per_minute=3)
    assert http.get("/v1/datasets", headers=api.reader).status_code == 200
    codes = [http.get("/v1/datasets", headers=bearer(f"guess {i}")).status_code for i in range(5)]
    assert codes == [401] * 3 + [429] * 2
    new = make_key(api)
    assert http.get("/v1/datasets", headers=bearer(new["key"])).status_code == 429
    assert http.get("/v1/datasets").status_code == 429
    assert http.get("/v1/datasets", headers=api.reader).status_code == 200
    _assert_problem(http.get("/v1/datasets", headers=api.stranger), 429, "rate_limited")


def test_a_key_that_has_ended_is_slowed_down_like_an_unknown_one(api, narrow):
    http = narrow(rate_limit_failures_per_minute=3)
    made = make_key(api)
    assert http.get("/v1/datasets", headers=bearer(made["key"])).status_code == 200
    assert api.http.delete(f"/v1/keys/{made['id']}", headers=api.owner).status_code == 204
    codes = [http.get("/v1/datasets", headers=bearer(made["key"])).status_code for _ in range(5)]
    assert codes == [401] * 3 + [429] * 2
