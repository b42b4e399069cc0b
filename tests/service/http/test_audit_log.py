"""The audit log: what gets a line, what a line holds, who may read it, and that no one can change it."""

import datetime as dt
import uuid

import psycopg
import pytest

from service.audit.service import RECORDED_REFUSALS_PER_MINUTE
from service.upkeep.sweep import sweep
from tests.service.http.test_datasets_api import MARKER, _assert_problem

ORDER = {"method": "idpgan", "epsilon": 1.0, "steps": 5}


def lines(api, **query):
    reply = api.http.get("/v1/audit", params={"limit": 1000, **query}, headers=api.owner)
    assert reply.status_code == 200, reply.text
    return reply.json()["items"]


def acts(api):
    return [(e["action"], e["object_kind"], e["object_id"], e["outcome"]) for e in reversed(lines(api))]


def test_every_change_and_every_refusal_has_its_line(api, dataset_id):
    release = api.order(dataset_id, ORDER).json()["id"]
    made = api.http.post("/v1/keys", json={"name": MARKER, "scope": "reader"}, headers=api.owner)
    before = acts(api)
    assert ("create_dataset", "dataset", dataset_id, "done") in before
    assert before[-2:] == [
        ("order_release", "release", release, "done"),
        ("create_key", "key", made.json()["id"], "done"),
    ]
    elsewhere = str(uuid.uuid4())
    api.order(dataset_id, {**ORDER, "epsilon": 2.9})
    api.order(dataset_id, ORDER, key=api.reader)
    api.http.get(f"/v1/datasets/{elsewhere}", headers=api.reader)
    api.http.get(f"/v1/releases/{release}/sample", headers=api.reader)
    api.http.post(f"/v1/releases/{release}/cancel", headers=api.analyst)
    api.http.post(f"/v1/releases/{release}/cancel", headers=api.analyst)
    later = str(dt.datetime.now(dt.UTC) + dt.timedelta(days=1))
    api.http.patch(f"/v1/datasets/{dataset_id}", json={"rows_expire_at": later}, headers=api.owner)
    api.http.delete(f"/v1/datasets/{dataset_id}", headers=api.owner)
    api.order(dataset_id, ORDER)
    api.http.post(f"/v1/keys/{made.json()['id']}/replacement", json={}, headers=api.owner)
    last = api.http.delete(f"/v1/keys/{made.json()['id']}", headers=api.owner)
    assert acts(api)[len(before) :] == [
        ("order_release", "dataset", dataset_id, "budget_exhausted"),
        ("order_release", "dataset", dataset_id, "forbidden"),
        ("read_dataset", "dataset", elsewhere, "not_found"),
        ("read_sample", "release", release, "not_ready"),
        ("cancel_release", "release", release, "done"),
        ("cancel_release", "release", release, "not_cancellable"),
        ("change_dataset", "dataset", dataset_id, "done"),
        ("erase_dataset", "dataset", dataset_id, "done"),
        ("order_release", "dataset", dataset_id, "erased"),
        ("replace_key", "key", made.json()["id"], "done"),
        ("replace_key", "key", lines(api)[1]["object_id"], "done"),
        ("revoke_key", "key", made.json()["id"], "done"),
    ]
    newest = lines(api)[0]
    assert newest["request_id"] == last.headers["x-request-id"]
    keys = api.http.get("/v1/keys", headers=api.owner).json()["items"]
    assert newest["key_id"] == next(key["id"] for key in keys if key["scope"] == "owner")
    assert MARKER not in api.http.get("/v1/audit", headers=api.owner).text


def test_what_is_rolled_back_leaves_no_line(api, dataset_id, monkeypatch):
    from service.releases import service

    before = acts(api)
    monkeypatch.setattr(
        service, "_body_digest", lambda *_: None
    )  # the release cannot be written, its reservation could
    assert api.order(dataset_id, ORDER).status_code == 500
    assert acts(api) == before


def test_a_stranger_sees_only_his_own_lines_and_only_an_owner_sees_any(api, dataset_id):
    api.http.get(f"/v1/datasets/{dataset_id}", headers=api.stranger)
    theirs = api.http.get("/v1/audit", headers=api.stranger).json()["items"]
    assert [(e["action"], e["outcome"]) for e in theirs] == [("read_dataset", "not_found"), ("create_tenant", "done")]
    assert all(e["outcome"] == "done" for e in lines(api))
    _assert_problem(api.http.get("/v1/audit", headers=api.analyst), 403, "forbidden")


def test_pages_hold_every_line_once(api):
    for number in range(25):
        api.http.get(f"/v1/releases/{uuid.UUID(int=number)}", headers=api.reader)
    whole, paged, before = lines(api), [], None
    while True:
        page = api.http.get(
            "/v1/audit", params={"limit": 10} | ({"before": before} if before else {}), headers=api.owner
        )
        paged += page.json()["items"]
        before = page.json()["next"]
        if before is None:
            break
    assert paged == whole
    assert len(whole) >= 25


def test_an_attacker_does_not_fill_the_disk_and_what_is_left_out_is_counted(api):
    sent = RECORDED_REFUSALS_PER_MINUTE + 40
    for _ in range(sent):
        api.http.get(f"/v1/datasets/{uuid.uuid4()}", headers=api.reader)
    refused = [e for e in lines(api) if e["outcome"] == "not_found"]
    assert RECORDED_REFUSALS_PER_MINUTE <= len(refused) < sent
    assert api.http.get(f"/v1/datasets/{uuid.uuid4()}", headers=api.analyst).status_code == 404
    assert len([e for e in lines(api) if e["outcome"] == "not_found"]) > len(refused)  # another key has its own room


ATTACKS = [
    "UPDATE audit_events SET outcome = 'done'",
    "DELETE FROM audit_events",
    "TRUNCATE audit_events",
    "ALTER TABLE audit_events DISABLE TRIGGER ALL",
    "DROP TABLE audit_events",
    "INSERT INTO audit_events OVERRIDING SYSTEM VALUE SELECT * FROM audit_events LIMIT 1",
]


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_application_role_cannot_change_a_line(context, attack, api):
    before = lines(api)
    with (
        psycopg.connect(context.settings.database_url.replace("+psycopg", "")) as connection,
        pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.UniqueViolation)),
    ):
        connection.execute(attack)
    assert lines(api) == before


@pytest.mark.parametrize("attack", ATTACKS[:3])
def test_not_even_the_owning_role_changes_a_line_by_accident(context, attack, api):
    before = lines(api)
    with (
        psycopg.connect(context.settings.migration_database_url.replace("+psycopg", "")) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege, match="append-only"),
    ):
        connection.execute(attack)
    assert lines(api) == before


# -- the deletion date of raw rows ----------------------------------------------------------------------------------


def moment(**ahead):
    return (dt.datetime.now(dt.UTC) + dt.timedelta(**ahead)).isoformat()


def date_of(api, dataset_id):
    return api.http.get(f"/v1/datasets/{dataset_id}", headers=api.reader).json()["rows_expire_at"]


def let_time_pass(context, dataset_id):
    with psycopg.connect(context.settings.migration_database_url.replace("+psycopg", "")) as connection:
        connection.execute("UPDATE datasets SET rows_expire_at = now() WHERE id = %s", (dataset_id,))


def test_rows_go_with_their_key_when_their_date_has_come(api, context):
    """Ordered before, ordered after, and the sweep itself, which runs without the API."""
    made = api.upload(rows_expire_at=moment(days=30))
    assert made.status_code == 201, made.text
    dataset = made.json()["id"]
    assert made.json()["rows_expire_at"] == date_of(api, dataset) is not None
    assert sweep(context) == 0
    assert len(list(context.storage.list("datasets"))) == 2  # the rows, and the upload as it came
    let_time_pass(context, dataset)
    assert api.http.get(f"/v1/datasets/{dataset}", headers=api.reader).json()["state"] == "erased"
    _assert_problem(api.order(dataset, ORDER), 410, "erased")
    sweep(context)
    assert list(context.storage.list("datasets")) == []
    with psycopg.connect(context.settings.database_url.replace("+psycopg", "")) as connection:
        (kept,) = connection.execute("SELECT wrapped_data_key FROM datasets").fetchone()
    assert kept is None
    assert acts(api)[-1] == ("expire_rows", "dataset", dataset, "done")
    assert lines(api)[0]["key_id"] is None
    assert api.http.get(f"/v1/datasets/{dataset}/ledger", headers=api.reader).json()["verified"] is True
    assert api.upload().status_code == 201, "nothing was ever ordered of these rows"


def test_a_deletion_date_is_set_or_brought_forward_never_put_off(api, dataset_id):
    address = f"/v1/datasets/{dataset_id}"
    assert date_of(api, dataset_id) is None
    for ahead in ({"days": 10}, {"days": 5}, {"hours": 1}):
        reply = api.http.patch(address, json={"rows_expire_at": moment(**ahead)}, headers=api.owner)
        assert reply.status_code == 200, reply.text
        assert reply.json()["rows_expire_at"] == date_of(api, dataset_id)
    put_off = api.http.patch(address, json={"rows_expire_at": moment(hours=2)}, headers=api.owner)
    _assert_problem(put_off, 409, "not_postponable")
    for wrong in (None, moment(hours=-1), "2999-01-01T00:00:00Z", "tomorrow", "2030-01-01T00:00:00", 5e300):
        reply = api.http.patch(address, json={"rows_expire_at": wrong}, headers=api.owner)
        _assert_problem(reply, 422, "invalid_input")
    for wrong in ("", "tomorrow", moment(hours=-1), "2030-01-01", MARKER):
        _assert_problem(api.upload(rows_expire_at=wrong), 422, "invalid_input")
    assert api.http.delete(address, headers=api.owner).status_code == 204
    _assert_problem(
        api.http.patch(address, json={"rows_expire_at": moment(minutes=5)}, headers=api.owner), 410, "erased"
    )


def test_a_worker_does_not_touch_expired_rows_even_before_the_sweep(api, context, dataset_id):
    from workers import lease as leases
    from workers.run import Attempt

    release = api.order(dataset_id, ORDER).json()["id"]
    let_time_pass(context, dataset_id)
    lease = leases.claim_next(context.settings)
    Attempt(context, lease).run()
    ended = api.http.get(f"/v1/releases/{release}", headers=api.reader).json()
    assert (ended["state"], ended["failure"]) == ("voided", "erased")
    budget = api.http.get(f"/v1/datasets/{dataset_id}/budget", headers=api.reader).json()
    assert budget["accounts"]["simple"]["remaining"] == 10**9


def test_the_owner_alone_sets_a_date(api, dataset_id):
    body = {"rows_expire_at": moment(days=1)}
    _assert_problem(api.http.patch(f"/v1/datasets/{dataset_id}", json=body, headers=api.analyst), 403, "forbidden")
    assert date_of(api, dataset_id) is None
