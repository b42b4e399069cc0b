"""The charged report through the whole service, and a release that its own noisy figures refuse."""

import io
import json
import time
import zipfile
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from imprimatur import Client
from imprimatur.cli.application import app
from imprimatur.errors import ApiError
from imprimatur.verify.signatures import UNSIGNED, verify_signature
from tests.workers.reports.test_owner_figures import SCHEMA, real_frame

pytestmark = pytest.mark.slow

ORDER = {"method": "marginals", "epsilon": 2, "steps": 20, "report": {"share": 0.2}}


@pytest.fixture
def dataset(client, tmp_path):
    file = tmp_path / "rows.csv"
    real_frame(seed=time.time_ns() % 2**32, rows=500).write_csv(file)
    return client.create_dataset(file, SCHEMA, epsilon=8)


def fetched(stack, key, path):
    return httpx.get(f"{stack.url}{path}", headers={"Authorization": f"Bearer {key}"}, timeout=600)


def is_signed(certificate):
    signed = {name: value for name, value in certificate.items() if name not in UNSIGNED}
    return verify_signature(signed, certificate["signature"], certificate["public_key"])


def test_a_report_is_charged_shown_to_readers_and_in_the_zip(stack, client, dataset):
    release = dataset.order({**ORDER, "accept": {"two_way_tv": 0.9}}).wait()
    certificate = client.certificate(release.id)
    assert certificate["events"][-1]["purpose"] == "report"
    assert certificate["mechanisms"][-1]["purpose"] == "report"
    assert "publicly chosen pairs" in certificate["mechanisms"][-1]["releases"]
    key = client.create_key("reader", "reader")["key"]
    report = fetched(stack, key, f"/v1/releases/{release.id}/report").json()
    assert report["accepted"] is True
    assert certificate["report"] == {name: report[name] for name in ("one_way", "two_way", "accept", "accepted")}
    assert len(report["columns"]) == 4
    assert len(report["pairs"]) == 6
    assert report["pairs"][0]["columns"][1] == "rich"  # those with the target first
    page = fetched(stack, key, f"/v1/releases/{release.id}/report?format=html")
    assert page.headers["content-type"].startswith("text/html")
    assert page.headers["cache-control"] == "no-store"
    archive = zipfile.ZipFile(io.BytesIO(fetched(stack, key, f"/v1/releases/{release.id}/generator").content))
    assert json.loads(archive.read("report.json")) == report
    assert archive.read("report.html").decode() == page.text
    assert "How far off it is" in archive.read("MODEL_CARD.md").decode()
    assert set(certificate["members"]) >= {"report.json", "report.html"}
    assert is_signed(certificate)
    other = dataset.order(method="marginals", epsilon=1, steps=20).wait()
    assert fetched(stack, key, f"/v1/releases/{other.id}/report").json()["code"] == "not_in_release"


def test_what_is_not_accepted_is_not_published_and_stays_charged(stack, client, dataset):
    ordered = dataset.order({**ORDER, "owner_report": True, "accept": {"two_way_tv": 1e-6, "by": "bound"}})
    ended = client.wait(ordered.id)
    assert (ended.state, ended.failure) == ("failed", "not_accepted")
    posted = client.budget(dataset.id)["accounts"]["simple"]
    assert (posted["posted"], posted["pending"]) == (250_000_000, 0)
    analyst = Client(stack.url, client.create_key("analyst", "analyst")["key"])
    for fetch in (analyst.certificate, analyst.owner_report, lambda id_: analyst.save_generator(id_, "generator.zip")):
        with pytest.raises(ApiError):
            fetch(ordered.id)
    with pytest.raises(ApiError, match="is failed, so no report of it will be made"):
        client.owner_report(ordered.id, timeout=10_000)  # it is not waited for
    record = client.report(ordered.id)
    assert record["accepted"] is False
    assert record["two_way"]["high"] > 1e-6
    certificate = record["certificate"]
    assert certificate["release_id"] == ordered.id
    assert certificate["members"] == {}
    assert certificate["report"]["accepted"] is False
    assert is_signed(certificate)


def test_the_command_does_not_write_one_report_over_the_other(stack, api_key, dataset, tmp_path, monkeypatch):
    """One is not private, the other is for everybody: they have names of their own."""
    monkeypatch.chdir(tmp_path)
    release = dataset.order({**ORDER, "owner_report": True}).wait()
    deadline = time.monotonic() + 600.0
    arguments = ["report", release.id, "--url", stack.url, "--key", api_key]
    while (own := CliRunner().invoke(app, arguments)).exit_code and time.monotonic() < deadline:
        time.sleep(0.3)
    assert own.exit_code == 0, own.output
    assert CliRunner().invoke(app, [*arguments, "--charged"]).exit_code == 0
    owner, charged = (Path(name).read_text() for name in ("owner-report.html", "report.html"))
    assert "Do not share." in owner
    assert "Do not share." not in charged
