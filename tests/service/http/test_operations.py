"""What an operator is shown: the storage in /readyz, the queue and how releases end in /metrics, names in the audit log."""

import threading
import time

import pytest
from fastapi.testclient import TestClient

from service.base.errors import Unavailable
from service.http import operations, readiness
from service.http.app import create_app
from service.http.readiness import StorageProbe
from workers import lease as leases

ORDER = {"method": "idpgan", "epsilon": 1.0, "steps": 5}


class Store:
    """An object store that does as it is told, and counts how often it was asked."""

    def __init__(self, way):
        self.way, self.asked = way, 0

    def probe(self):
        self.asked += 1
        self.way()


def fail():
    raise Unavailable("The object storage could not write (SomeError); try again.")


def test_a_storage_that_fails_is_down_and_asked_once():
    store = Store(fail)
    probe = StorageProbe(store)
    assert [probe.state() for _ in range(5)] == ["down"] * 5
    assert store.asked == 1


def test_a_storage_that_hangs_holds_no_request_up_and_is_asked_once(monkeypatch):
    monkeypatch.setattr(readiness, "PROBE_SECONDS", 0.05)
    release = threading.Event()
    store = Store(release.wait)
    probe = StorageProbe(store)
    assert [probe.state() for _ in range(3)] == ["down"] * 3
    assert store.asked == 1
    release.set()
    monkeypatch.setattr(readiness, "PROBE_SECONDS", 30.0)
    while probe._look is not None:
        time.sleep(0.01)
    assert probe.state() == "ok"


def test_readyz_says_that_the_storage_is_gone(context, tmp_path):
    objects = tmp_path / "objects"
    with TestClient(create_app(context.settings)) as http:
        assert http.get("/readyz").json()["parts"]["storage"] == "ok"
        assert list(objects.iterdir()) == []  # a probe leaves nothing
    objects.rmdir()
    objects.write_text("no folder")
    with TestClient(create_app_on(context, objects)) as http:
        reply = http.get("/readyz")
        assert (reply.status_code, reply.json()["parts"]["storage"]) == (503, "down")


def create_app_on(context, objects):
    """The folder was there when the process began."""
    objects.unlink()
    objects.mkdir()
    app = create_app(context.settings)
    objects.rmdir()
    objects.write_text("no folder")
    return app


def value(text, name):
    return next((float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(f"{name} ")), None)


def test_the_queue_and_its_ends_are_counted_for_all_tenants_together(api, dataset_id, context, monkeypatch):
    monkeypatch.setattr(operations, "FRESH_SECONDS", 0.0)
    waiting = [api.order(dataset_id, {**ORDER, "epsilon": 0.5}).json()["id"] for _ in range(3)]
    api.http.post(f"/v1/releases/{waiting[0]}/cancel", headers=api.analyst)
    lease = leases.claim_next(context.settings)
    with context.transaction() as session:
        leases.charge(session, lease)
    text = api.http.get("/metrics").text
    assert (value(text, "imprimatur_releases_waiting"), value(text, "imprimatur_releases_running")) == (1.0, 1.0)
    assert value(text, "imprimatur_oldest_waiting_seconds") > 0
    ended = 'imprimatur_releases_ended_last_hour{outcome="%s"}'
    assert [value(text, ended % outcome) for outcome in ("published", "failed", "voided")] == [0.0, 0.0, 1.0]
    assert 'phase="running"' not in text
    with context.transaction() as session:
        leases.end_without_publishing(session, lease, failure="worker_lost")
    text = api.http.get("/metrics").text
    assert value(text, ended % "failed") == 1.0
    assert value(text, 'imprimatur_release_seconds_last_hour{phase="running",quantile="1"}') >= 0
    assert dataset_id not in text
    assert value(text, 'imprimatur_database_connections{of="limit"}') == context.settings.database_pool_size


def test_metrics_without_a_database_say_so(context):
    gone = context.settings.model_copy(update={"database_url": "postgresql+psycopg://nobody@/none?host=/nonexistent"})
    with TestClient(create_app(gone)) as http:
        text = http.get("/metrics").text
    assert value(text, "imprimatur_database_up") == 0.0
    assert "imprimatur_releases_waiting" not in text


@pytest.mark.parametrize("name", ["Anna", "=cmd() [bold]x[/bold] \x1b[2J"])
def test_lines_of_the_audit_log_have_the_name_of_their_key(api, name):
    made = api.http.post("/v1/keys", json={"name": name, "scope": "owner"}, headers=api.owner)
    if made.status_code == 422:  # a name with signs that a terminal would carry out is no name
        return
    bearer = {"Authorization": f"Bearer {made.json()['key']}"}
    api.http.post("/v1/keys", json={"name": "another", "scope": "reader"}, headers=bearer)
    newest, before = api.http.get("/v1/audit?limit=2", headers=api.owner).json()["items"]
    assert (newest["key_id"], newest["key_name"]) == (made.json()["id"], name)
    assert before["key_name"] == "first owner"
    theirs = api.http.get("/v1/audit", headers=api.stranger).json()["items"]
    assert {line["key_name"] for line in theirs} <= {None, "first owner"}
