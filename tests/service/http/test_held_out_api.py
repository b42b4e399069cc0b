"""An order with held-out units through the service: what is made never reads them, at no attempt; what they say is charged and published."""

import io
import json
import uuid
import zipfile

import pytest

from service.releases.models import Release
from tests.forced_outputs import heard
from tests.reservations import claim
from workers import run
from workers.mechanism.secure_random import SecureRandom
from workers.methods.marginals.measure import releases as measuring
from workers.reports import accuracy, charged, files
from workers.run import Attempt

pytestmark = pytest.mark.slow

ORDER = {
    "method": "marginals",
    "epsilon": 2.0,
    "steps": 5,
    "condition_on": "city",
    "pairs": "none",
    "tree_precision_share": 0,
    "report": {"share": 0.3, "held_out": 0.25},
}
UNITS, HELD_OUT = 200, 50


def attempt(context, release):
    with context.transaction() as session:
        lease = claim(session, uuid.UUID(release))
    with heard(measuring, charged, accuracy) as outputs:
        Attempt(context, lease).run()
    return outputs.sums


def totals(sums):
    """Rows in each counted table."""
    return [[int(value.sum()) for value in private.values] for private in sums]


def test_what_is_made_and_what_is_tested_are_of_different_units(api, context, dataset_id, signing_key, monkeypatch):  # noqa: ARG001 - what signs
    # Of 50 answers a third is right: fresh noise would make none of them once in a thousand releases.
    monkeypatch.setattr(files, "SecureRandom", lambda: SecureRandom.from_test_seed(1))
    quote = api.http.post(f"/v1/datasets/{dataset_id}/quotes", json=ORDER, headers=api.analyst)
    assert quote.status_code == 200, quote.text
    assert "50 of the 200 units are held out" in " ".join(quote.json()["forecast"]["sentences"])
    release = api.order(dataset_id, {**ORDER, "accept": {"accuracy": 0.01}}).json()["id"]
    *made, tables, answers = attempt(context, release)
    assert made
    assert all(total == UNITS - HELD_OUT for private in made for total in totals([private])[0])
    assert set(totals([tables])[0]) == {UNITS - HELD_OUT}
    assert totals([answers]) == [[HELD_OUT]]
    found = api.http.get(f"/v1/releases/{release}", headers=api.reader).json()
    assert found["state"] == "published", found
    certificate = api.http.get(f"/v1/releases/{release}/certificate", headers=api.reader).json()
    assert certificate["units"] == UNITS
    assert certificate["mechanisms"][-1]["purpose"] == "report_held_out"
    assert "held out" in certificate["mechanisms"][-1]["releases"]
    report = api.http.get(f"/v1/releases/{release}/report", headers=api.reader).json()
    assert certificate["report"]["accuracy"] == report["accuracy"]
    assert report["accuracy"]["held_out_units"] == HELD_OUT
    assert report["accuracy"]["target"] == "city"
    assert report["accuracy"]["low"] <= report["accuracy"]["accuracy"] <= report["accuracy"]["high"]
    assert report["accuracy"]["most_frequent"]["value"] in {"Rome", "Oslo", "Bonn"}
    assert "the held-out units" in report["says"]
    bundle = api.http.get(f"/v1/releases/{release}/generator", headers=api.reader).content
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        assert json.loads(archive.read("report.json")) == report
        assert "50 held-out units" in archive.read("report.html").decode()
        assert "50 held-out units" in archive.read("MODEL_CARD.md").decode()


def test_the_next_attempt_holds_out_the_same_units(api, context, dataset_id, signing_key, monkeypatch):  # noqa: ARG001 - what signs
    """The first one dies after it has measured both sides."""
    release = api.order(dataset_id, ORDER).json()["id"]
    real = run.with_report

    def dies(*given):
        real(*given)
        raise OSError

    monkeypatch.setattr(run, "with_report", dies)
    with context.transaction() as session:
        lease = claim(session, uuid.UUID(release))
    with heard(measuring, charged, accuracy) as first, pytest.raises(OSError):  # noqa: PT011 - it says nothing else
        Attempt(context, lease).run()
    monkeypatch.setattr(run, "with_report", real)
    with heard(charged, accuracy) as second:
        Attempt(context, lease).run()
    with context.transaction() as session:
        assert session.get_one(Release, lease.release_id).state == "published"
    tables = [next(s for s in outputs.sums if len(s.values) > 5) for outputs in (first, second)]
    assert all((one == other).all() for one, other in zip(tables[0].values, tables[1].values, strict=True))
    accounts = api.http.get(f"/v1/datasets/{dataset_id}/budget", headers=api.reader).json()["accounts"]
    assert accounts["simple"]["posted"] == pytest.approx(2.0 / 3.0 * 10**9, rel=1e-6)


def test_too_little_accuracy_is_not_published_and_stays_charged(api, context, dataset_id, signing_key):  # noqa: ARG001 - what signs
    release = api.order(dataset_id, {**ORDER, "accept": {"accuracy": 0.999, "by": "bound"}}).json()["id"]
    attempt(context, release)
    found = api.http.get(f"/v1/releases/{release}", headers=api.reader).json()
    assert (found["state"], found["failure"]) == ("failed", "not_accepted")
    report = api.http.get(f"/v1/releases/{release}/report", headers=api.reader).json()
    assert report["accepted"] is False
    assert report["accuracy"]["low"] < 0.999
    assert report["certificate"]["report"]["accuracy"] == report["accuracy"]
    accounts = api.http.get(f"/v1/datasets/{dataset_id}/budget", headers=api.reader).json()["accounts"]
    assert accounts["simple"]["posted"] == pytest.approx(2.0 / 3.0 * 10**9, rel=1e-6)


def test_what_cannot_be_tested_is_refused_before_a_charge(api, dataset_id):
    for order, says in (
        ({**ORDER, "condition_on": None}, "needs a column of categories to predict"),
        ({**ORDER, "report": {"held_out": 0.05}}, "10 of 200 units would be held out"),
        ({**ORDER, "report": {}, "accept": {"accuracy": 0.5}}, "held-out units"),
    ):
        refused = api.order(dataset_id, order)
        assert refused.status_code == 422, refused.text
        assert says in refused.json()["detail"]
