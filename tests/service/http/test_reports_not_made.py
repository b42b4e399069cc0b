"""Rows that are erased, or expire, while the charged report of a finished release is made: the release stays, the report does not."""

import io
import uuid
import zipfile

import pytest

from service.releases.models import Release
from tests.reservations import claim
from tests.service.http.test_audit_log import let_time_pass
from workers import run
from workers.reports import charged
from workers.run import Attempt

ORDER = {
    "method": "marginals",
    "epsilon": 2.0,
    "steps": 5,
    "condition_on": "city",
    "pairs": "none",
    "tree_precision_share": 0,
    "report": {"share": 0.3},
}


class KilledError(Exception):
    pass


@pytest.fixture
def release(api, dataset_id, signing_key):  # noqa: ARG001 - what signs
    return api.order(dataset_id, ORDER).json()["id"]


def claimed(context, release):
    with context.transaction() as session:
        return claim(session, uuid.UUID(release))


def dies(*_):
    raise KilledError


def dies_in_its_report(context, release, monkeypatch):
    """An attempt that has finished its generator, and kept it."""
    with monkeypatch.context() as patch:
        patch.setattr(run, "with_report", dies)
        with pytest.raises(KilledError):
            Attempt(context, claimed(context, release)).run()


def erase(api, dataset_id):
    assert api.http.delete(f"/v1/datasets/{dataset_id}", headers=api.owner).status_code == 204


def is_published_without_its_report(api, dataset_id, release):
    found = api.http.get(f"/v1/releases/{release}", headers=api.reader).json()
    assert (found["state"], found["failure"]) == ("published", None), found
    assert found["certificate"]["report"] == {"not_made": "rows_erased"}
    assert "has no report: its rows were erased" in found["warnings"][-1]
    refused = api.http.get(f"/v1/releases/{release}/report", headers=api.reader)
    assert refused.json()["code"] == "not_in_release"
    assert refused.json()["detail"] == found["warnings"][-1]
    with zipfile.ZipFile(
        io.BytesIO(api.http.get(f"/v1/releases/{release}/generator", headers=api.reader).content)
    ) as archive:
        assert "report.json" not in archive.namelist()
        assert "It was not measured" in archive.read("MODEL_CARD.md").decode()
    accounts = api.http.get(f"/v1/datasets/{dataset_id}/budget", headers=api.reader).json()["accounts"]
    assert (accounts["simple"]["posted"], accounts["simple"]["pending"]) == (666_666_667, 0)


def test_rows_erased_before_the_report_is_begun(api, context, dataset_id, release, monkeypatch):
    """By their date, too: nothing is read after it, even before the sweep."""
    real, read = run.Attempt.finish, []

    def finish(attempt, *given):
        finished = real(attempt, *given)
        let_time_pass(context, dataset_id)
        monkeypatch.setattr(run.StoredRows, "table", lambda *_, **__: read.append(1))
        return finished

    monkeypatch.setattr(run.Attempt, "finish", finish)
    Attempt(context, claimed(context, release)).run()
    is_published_without_its_report(api, dataset_id, release)
    assert not read


def test_rows_erased_while_the_report_reads_them(api, context, dataset_id, release, monkeypatch):
    real = charged.charged_report

    def erased_first(*given, **more):
        erase(api, dataset_id)
        return real(*given, **more)

    monkeypatch.setattr(charged, "charged_report", erased_first)
    Attempt(context, claimed(context, release)).run()
    is_published_without_its_report(api, dataset_id, release)


def test_an_attempt_after_a_crash_publishes_what_was_finished(api, context, dataset_id, release, monkeypatch):
    """The first one dies in its report; then the rows go. No row is needed any more, and nothing is made again."""

    dies_in_its_report(context, release, monkeypatch)
    erase(api, dataset_id)
    monkeypatch.setattr(run, "make_release", dies)
    lease = claimed(context, release)
    Attempt(context, lease).run()
    is_published_without_its_report(api, dataset_id, release)
    assert list(context.storage.list("checkpoints")) == []


def test_a_finished_release_that_the_store_lost_ends_as_erased_where_the_rows_are_gone_too(
    api, context, dataset_id, release, monkeypatch
):
    """Nothing can be made again. While the rows are there, an attempt breaks instead, for the store may find it."""

    dies_in_its_report(context, release, monkeypatch)
    for key in list(context.storage.list("checkpoints")):
        context.storage.delete(key)
    with pytest.raises(run.NotFound):
        Attempt(context, claimed(context, release)).run()
    erase(api, dataset_id)
    lease = claimed(context, release)
    Attempt(context, lease).run()
    with context.transaction() as session:
        found = session.get_one(Release, lease.release_id)
        assert (found.state, found.failure) == ("failed", "erased")


@pytest.mark.usefixtures("signing_key")
def test_without_its_accepted_figures_a_finished_release_is_not_published(api, context, dataset_id, monkeypatch):
    """Published is only what meets them, and they can no longer be measured: it ends as erased, and the charge stands."""
    release = api.order(dataset_id, {**ORDER, "accept": {"two_way_tv": 0.9}}).json()["id"]
    real = run.Attempt.finish

    def finish(attempt, *given):
        finished = real(attempt, *given)
        erase(api, dataset_id)
        return finished

    monkeypatch.setattr(run.Attempt, "finish", finish)
    with pytest.raises(run.NotFound):
        Attempt(context, claimed(context, release)).run()
    lease = claimed(context, release)
    Attempt(context, lease).run()
    with context.transaction() as session:
        found = session.get_one(Release, lease.release_id)
        assert (found.state, found.failure) == ("failed", "erased")


def test_rows_that_the_store_has_lost_are_no_reason_to_publish_without(context, dataset_id, release, monkeypatch):  # noqa: ARG001 - that of the release
    """That is a fault: the attempt breaks, and another one may find them."""
    real = charged.charged_report

    def lost(*given, **more):
        for key in list(context.storage.list("datasets")):
            context.storage.delete(key)
        return real(*given, **more)

    monkeypatch.setattr(charged, "charged_report", lost)
    lease = claimed(context, release)
    with pytest.raises(run.NotFound):
        Attempt(context, lease).run()
    with context.transaction() as session:
        assert session.get_one(Release, lease.release_id).state == "charged"
