"""The owner's report through the whole service: for owner keys alone, gone with the rows, and seen by no one else."""

import json
import time
import uuid

import httpx
import pytest

from imprimatur import Client
from imprimatur.errors import ApiError, NotReady
from service.auth.principal import Principal
from service.base.errors import Forbidden
from service.datasets import owner_reports
from service.platform.storage import Storage
from service.releases.report_endpoints import router
from service.releases.reports import read_owner_report
from tests.workers.reports.test_owner_figures import SCHEMA, real_frame

pytestmark = pytest.mark.slow

SECONDS = 600.0


@pytest.fixture
def release(client, tmp_path):
    """Published, with a report ordered."""
    file = tmp_path / "rows.csv"
    real_frame(seed=time.time_ns() % 2**32, rows=400).write_csv(file)
    dataset = client.create_dataset(file, SCHEMA, epsilon=4)
    return dataset.order(method="marginals", epsilon=1, steps=20, owner_report=True).wait()


def once_there(release):
    """The report. It is made beside other work, so a busy machine takes its time."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        try:
            return release.owner_report()
        except NotReady:
            time.sleep(0.3)
    raise AssertionError("no report was made")


def refusal_of(call):
    with pytest.raises(ApiError) as raised:
        call()
    return raised.value


def test_the_owner_gets_it_and_no_one_else(stack, client, release, tmp_path):
    report = once_there(release)
    assert report["not_private"].startswith("Not private")
    assert {column["column"] for column in report["columns"]} == {"sex", "age", "income", "rich"}
    client.save_report(release.id, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "Do not share." in page
    assert (tmp_path / "report.html").stat().st_mode & 0o077 == 0
    for scope in ("analyst", "reader"):
        other = Client(stack.url, client.create_key("other", scope)["key"])
        refused = refusal_of(lambda other=other: other.owner_report(release.id))
        assert (refused.status, refused.code) == (403, "forbidden")
        assert "owner_report" not in json.dumps(other.release(release.id)["certificate"])
    reply = httpx.get(f"{stack.url}/v1/releases/{release.id}/owner-report")
    assert reply.status_code == 401


def test_who_looks_while_it_is_not_there_has_read_nothing(stack, client, release):
    """The audit log says who has read what is not private, and no one who has not."""
    assert refusal_of(lambda: client.preview(release.id)).code == "not_ready"
    assert reads_of(client, release, "read_preview") == 0
    once_there(release)
    Storage.from_url(stack.settings.storage_url).delete(owner_reports.key_of(release.dataset_id, release.id))
    before = reads_of(client, release, "read_owner_report")
    assert refusal_of(release.owner_report).code == "not_ready"
    assert (before, reads_of(client, release, "read_owner_report")) == (1, 1)


def reads_of(client, release, action):
    """How often the release was read so, by the audit log."""
    lines = (each for each in client.audit_log() if each["object_id"] == release.id)
    return sum((each["action"], each["outcome"]) == (action, "done") for each in lines)


def test_it_lies_encrypted_and_goes_with_the_rows(stack, client, release):
    once_there(release)
    storage = Storage.from_url(stack.settings.storage_url)
    (key,) = storage.list(f"{owner_reports.FOLDER}/{release.dataset_id}/")
    sealed = storage.get(key)
    assert b"income" not in sealed
    assert b"not_private" not in sealed
    client.erase_dataset(release.dataset_id)
    assert not storage.exists(key)
    assert refusal_of(release.owner_report).code == "erased"


@pytest.mark.parametrize("scope", ["analyst", "reader"])
def test_no_other_scope_is_let_in(scope):
    """By the door, and once more behind it."""
    somebody = Principal(uuid.uuid4(), uuid.uuid4(), scope)
    with pytest.raises(Forbidden):
        read_owner_report(None, somebody, uuid.uuid4())
    (operation,) = (route for route in router.routes if route.name == "read_owner_report")
    assert [each.own_oauth_scopes for each in operation.dependant.dependencies if each.own_oauth_scopes] == [["owner"]]


def test_one_that_was_not_ordered_is_not_there(client, small_csv, small_schema, small_order):
    dataset = client.create_dataset(small_csv, small_schema, epsilon=4)
    published = dataset.order(small_order).wait()
    refused = refusal_of(published.owner_report)
    assert refused.code == "not_in_release"
    assert "owner_report" in refused.detail
