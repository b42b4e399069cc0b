"""Reports on a release as pages: the charged one for everybody, the owner's for owners alone; by real processes."""

import html
import json
import re
import time

import httpx
import pytest

from imprimatur import Client
from service.base.errors import InvalidOrder
from service.methods.catalogue import parse_order
from service.pages.knobs import document_of
from service.pages.rendering import templates
from tests.service.pages.spoken import english_in
from tests.service.releases.test_owner_reports import once_there
from tests.workers.reports.test_owner_figures import SCHEMA, real_frame

pytestmark = pytest.mark.slow

FILLED = {"method": "marginals", "epsilon": "1"}
MARKED = "Not private: do not share."


@pytest.fixture(scope="module")
def stay(stack, new_tenant, tmp_path_factory):
    """A tenant with one release that has both reports, one that its report has refused, and one without any; keys by scope."""
    folder = tmp_path_factory.mktemp("reports")
    real_frame(seed=time.time_ns() % 2**32, rows=400).write_csv(folder / "rows.csv")
    with Client(stack.url, new_tenant()) as client:
        dataset = client.create_dataset(folder / "rows.csv", SCHEMA, epsilon=6)
        order = {"method": "marginals", "epsilon": 1, "report": {"share": 0.3, "held_out": 0.25}}
        both = dataset.order(**order, owner_report=True).wait()
        plain = dataset.order(method="marginals", epsilon=1).wait()
        refused = client.create_release(
            dataset.id, {**order, "accept": {"two_way_tv": 1e-6, "accuracy": 0.01, "by": "bound"}}
        )["id"]
        assert client.wait(refused)["failure"] == "not_accepted"
        report = once_there(both)
        keys = {scope: client.create_key(scope, scope)["key"] for scope in ("owner", "analyst", "reader")}
    return {
        "both": both.id,
        "plain": plain.id,
        "refused": refused,
        "dataset": dataset.id,
        "keys": keys,
        "owner": report,
    }


@pytest.fixture
def open_as(stack, stay):
    opened = []

    def open_one(scope):
        http = httpx.Client(base_url=stack.url, follow_redirects=True, timeout=600)
        opened.append(http)
        assert http.post("/sign-in", data={"key": stay["keys"][scope]}).url.path == "/"
        return http

    yield open_one
    for http in opened:
        http.close()


@pytest.mark.parametrize("scope", ["reader", "analyst", "owner"])
def test_the_charged_report_is_for_everybody_who_may_read_the_release(open_as, stay, scope):
    http = open_as(scope)
    here = f"/releases/{stay['both']}"
    assert f'href="{here}/report"' in http.get(here).text
    page = http.get(f"{here}/report").text
    report = http.get(f"{here}/report.json").json()
    assert "of the rows" in page
    assert "100 were held out: nothing was made of them" in page
    assert "predicts rich right in" in page
    assert re.search(r"the most frequent value would be right in about [\d.]+ % \(between", page.replace("\xa0", " "))
    for one in report["columns"]:
        assert f'<th scope="row">{one["column"]}</th>' in page
    assert all(" × ".join(one["columns"]) in page for one in report["pairs"])
    kept = http.get(f"{here}/report.html")
    assert kept.headers["content-disposition"].startswith("attachment")
    assert "<style>" in kept.text


def test_of_a_refused_release_the_figures_are_there_too(open_as, stay):
    http = open_as("reader")
    here = f"/releases/{stay['refused']}"
    release = http.get(here).text
    assert "not as exact as was asked for" in release
    assert f'href="{here}/report"' in release
    report = http.get(f"{here}/report").text
    assert "nothing was published; the charge stands" in report
    said = re.sub(r"\s+", " ", html.unescape(report))
    assert "off by at most 0.0001 %, at least 1 % of the held-out rows predicted right (by the worse bound)" in said


def test_a_release_without_a_report_links_to_none(open_as, stay):
    http = open_as("reader")
    here = f"/releases/{stay['plain']}"
    assert f"{here}/report" not in http.get(here).text
    assert http.get(f"{here}/report").status_code == 409


def test_real_stands_beside_synthetic_for_owners_and_no_browser_keeps_it(open_as, stay):
    http = open_as("owner")
    here = f"/releases/{stay['both']}"
    assert f'href="{here}/owner-report"' in http.get(here).text
    reply = http.get(f"{here}/owner-report")
    assert reply.headers["cache-control"] == "no-store"
    assert reply.text.count(MARKED) >= 2
    charts = [
        json.loads(html.unescape(html.unescape(each))) for each in re.findall(r'data-beside="([^"]*)"', reply.text)
    ]
    cells = [one["cells"] for one in stay["owner"]["columns"]]
    assert [chart["labels"] for chart in charts] == [one["names"] for one in cells]
    assert [[s["counts"] for s in chart["series"]] for chart in charts] == [[c["real"], c["synthetic"]] for c in cells]
    assert all(" × ".join(one["columns"]) in reply.text for one in stay["owner"]["pairs"])
    attacks, said = stay["owner"]["attacks"], html.unescape(reply.text)
    assert attacks["rows"] == {"real": 300, "held_out": 100, "synthetic": 20_000}
    for one in (attacks, *(attacks[name] for name in ("likelihood", "exposure", "nearest"))):
        assert one["says"] in said
    assert f"the advantage is at most {attacks['likelihood']['most_advantage']:.2f}" in said
    for ending in ("html", "json"):
        kept = http.get(f"{here}/owner-report.{ending}")
        assert f'filename="not-private-owner-report-{stay["both"]}.{ending}"' in kept.headers["content-disposition"]
        assert kept.headers["cache-control"] == "no-store"
        assert "Do not share." in kept.text


@pytest.mark.parametrize("scope", ["reader", "analyst"])
def test_no_one_else_sees_any_of_it(open_as, stay, scope):
    http = open_as(scope)
    here = f"/releases/{stay['both']}"
    assert "owner-report" not in http.get(here).text
    assert "synthetic, for owners" not in http.get(f"/datasets/{stay['dataset']}/order").text
    for ending in ("", ".html", ".json", "/waiting"):
        reply = http.get(f"{here}/owner-report{ending}")
        assert reply.status_code == 403
        assert "hx-refresh" not in reply.headers
        assert "income" not in reply.text
        assert "Attacks" not in reply.text


def test_one_that_was_not_ordered_says_how_to_get_one(open_as, stay):
    http = open_as("owner")
    here = f"/releases/{stay['plain']}"
    assert "tick “Show real beside synthetic" in http.get(here).text
    reply = http.get(f"{here}/owner-report")
    assert reply.status_code == 409
    assert "tick “Show real beside synthetic" in reply.text


def test_who_waits_is_told_when_it_is_there(open_as, stay):
    waiting = open_as("owner").get(f"/releases/{stay['both']}/owner-report/waiting")
    assert waiting.headers["hx-refresh"] == "true"
    assert "hx-refresh" not in open_as("owner").get(f"/releases/{stay['plain']}/owner-report/waiting").headers


def test_reading_reports_is_in_the_audit_log(open_as, stay):
    http = open_as("owner")
    http.get(f"/releases/{stay['both']}/report")
    http.get(f"/releases/{stay['both']}/owner-report")
    page = http.get("/admin/audit").text
    assert 'title="read_report"' in page
    assert 'title="read_owner_report"' in page


def test_the_form_orders_what_was_ticked(open_as, stay):
    http = open_as("owner")
    form = http.get(f"/datasets/{stay['dataset']}/order").text
    assert 'name="report"' in form
    assert 'name="owner_report"' in form
    token = re.search(r'name="csrf-token" content="(\w+)"', form)[1]
    ticked = {**FILLED, "report": "on", "owner_report": "on", "accept_two_way_tv": "8", "step": "confirm"}
    ticked |= {"report_held_out": "20", "accept_accuracy": "70"}
    confirm = http.post(f"/datasets/{stay['dataset']}/order", data={**ticked, "csrf_token": token}).text
    assert "with 5 % of the precision" in confirm
    assert "nothing is published, and the charge stands" in confirm
    assert "20 % of the units are held out" in confirm
    assert "80 of the 400 units are held out" in confirm
    assert "for owners alone" in confirm
    assert '<input type="hidden" name="accept_two_way_tv" value="8">' in confirm


def test_what_is_filled_in_is_the_order_of_the_api():
    filled = {**FILLED, "report": "on", "report_share": "10", "accept_one_way_tv": "2,5", "accept_by": "bound"}
    document = document_of(filled)
    assert document["report"] == {"share": 0.1}
    assert document["accept"] == {"one_way_tv": 0.025, "by": "bound"}
    assert "owner_report" not in document
    tested = document_of({**FILLED, "report": "on", "report_held_out": "12,5", "accept_accuracy": "80"})
    assert tested["report"] == {"share": 0.05, "held_out": 0.125}
    assert parse_order(tested).accept.accuracy == 0.8
    assert parse_order(document).accept.one_way_tv == 0.025
    assert document_of({**FILLED, "owner_report": "on"})["owner_report"] is True
    with pytest.raises(InvalidOrder, match="tick the report"):
        document_of({**FILLED, "accept_two_way_tv": "8"})
    with pytest.raises(InvalidOrder, match=r"report\.held_out: write a number"):
        document_of({**FILLED, "report": "on", "report_held_out": "some"})
    with pytest.raises(InvalidOrder, match=r"report\.share: write a number"):
        document_of({**FILLED, "report": "on", "report_share": "x"})


@pytest.mark.parametrize(
    "path",
    [
        "/releases/{both}",
        "/releases/{both}/report",
        "/releases/{both}/owner-report",
        "/releases/{both}/certificate",
        "/releases/{both}/rows",
        "/releases/{both}/charts",
        "/releases/{plain}/owner-report",
        "/releases/{plain}/cancel",
        "/releases/{refused}",
        "/releases/{refused}/report",
        "/datasets/{dataset}",
    ],
)
def test_pages_of_a_release_are_german_where_german_is_asked_for(open_as, stay, path):
    http = open_as("owner")
    page = http.get(path.format(**stay), headers={"Accept-Language": "de"})
    assert page.status_code == 200 or path.endswith("owner-report")
    assert '<html lang="de">' in page.text
    assert english_in(page.text) == []
    assert 'lang="en">' not in page.text.replace('hreflang="en">', "").partition("<footer")[0]


def test_figures_of_a_report_have_commas_in_german_and_points_in_its_json(open_as, stay):
    http = open_as("owner")
    here = f"/releases/{stay['both']}/owner-report"
    page = http.get(here, headers={"Accept-Language": "de"}).text
    figures = re.findall(r'<td class="number">([^<]*)</td>', page)
    assert not any("." in figure for figure in figures)
    assert any(re.fullmatch(r"0,\d\d", figure) for figure in figures)  # an AUROC
    assert http.get(f"{here}.json", headers={"Accept-Language": "de"}).json()["learning"][0]["auroc"] < 1.0


def shares(tv, low, high):
    return {"tv": tv, "low": low, "high": high}


@pytest.mark.parametrize(
    ("one_way", "two_way", "said"),
    [
        (shares(0.3, 0.2, 0.4), shares(0.5, 0.4, 0.6), ["30 % of the rows", "between 20 % and 40 %", "40 % and 60 %"]),
        (shares(0.1, -0.1, 0.3), shares(0.2, 0.0, 0.4), ["at most 30 % of the rows", "at most 40 %"]),
        (shares(1.7, 0.3, 3.5), shares(1.9, 0.4, 3.6), ["at least 30 % of the rows", "at least 40 %"]),
        (
            shares(0.9, -0.9, 2.7),
            shares(0.8, -0.8, 2.6),
            ["single column is off, noise hides", "pair of columns is off, noise"],
        ),
        (shares(1.7, 1.1, 2.3), None, ["at least 100 % of the rows"]),
    ],
)
def test_no_sentence_says_that_more_than_all_rows_are_off(one_way, two_way, said):
    for language in ("en", "de"):
        template = templates(language).get_template("report_words.html")
        words = template.render(report={"one_way": one_way, "two_way": two_way})
        assert all(int(share) <= 100 for share in re.findall(r"(\d+)\s%", words)), words
        assert language == "de" or all(part in words for part in said), words
        assert language == "en" or english_in(words) == []
