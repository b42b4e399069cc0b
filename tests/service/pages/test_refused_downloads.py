"""A download that cannot be had leads back to its release, with what was typed; a cancelled release is called so."""

import datetime as dt
import html
import re
import urllib.parse
import uuid

import pytest

from service.pages.rendering import templates
from service.pages.words import shown_state
from service.releases.models import Release
from tests.service.http.conftest import context  # noqa: F401 - the fixture
from tests.service.http.test_bought_declarations import carried_out
from tests.service.pages.spoken import english_in
from tests.service.pages.test_orders_pages import FILLED
from workers import lease as leases
from workers.run import Attempt

CONDITION = 'city="Rome" & age>=200'
TYPED = {"rows": "70", "format": "jsonl", "formulas": "escape", "where": CONDITION}


@pytest.fixture
def ordered(api, dataset_id):
    return api.order(dataset_id, {"method": "marginals", "epsilon": 1.0, "pairs": "none"}).json()


def back_from(reply):
    """Where the button of a refusal leads."""
    (address,) = re.findall(r'<a href="([^"]+)" role="button"[^>]*>Back to the release</a>', reply.text)
    return html.unescape(address)


def assert_form_says(page, typed):
    form = page[page.index('id="download"') : page.index("Drawing rows costs no budget")]
    for name in ("rows", "where"):
        (value,) = re.findall(rf'name="{name}"[^>]* value="([^"]*)"', form)
        assert html.unescape(value) == typed[name]
    assert re.findall(r'<option value="(\w+)" selected', form) == [typed["format"], typed["formulas"]]


def test_a_wrong_condition_leads_back_to_the_form_with_everything_typed(
    api,
    context,  # noqa: F811 - the fixture
    browser_of,
    ordered,
    signing_key,  # noqa: ARG001 - what signs certificates
):
    assert carried_out(api, context, ordered)["state"] == "published"
    browser, release = browser_of(api.reader), f"/releases/{ordered['id']}"
    for wrong in ({}, {"rows": "many", "where": "age>1"}, {"rows": "999999999", "where": ""}):
        asked = TYPED | wrong
        refused = browser.get(f"{release}/download", params=asked)
        assert refused.status_code == 422
        assert "What you typed is kept" in refused.text
        german = browser.get(f"{release}/download", params=asked, headers={"Accept-Language": "de"})
        assert english_in(german.text) == []
        assert_form_says(browser.get(back_from(refused)).text, asked)
    assert_form_says(browser.get(release, params=TYPED).text, TYPED)
    certificate = browser.get(f"{release}/certificate", headers={"Accept-Language": "de"}).text
    assert re.search(r"\(ε, δ\) = \(\d(,\d+)?; \d", certificate)
    for typed in ("many", "", "1,5", "-3"):
        refused = browser.get(f"{release}/download", params={"rows": typed}, headers={"Accept-Language": "de"})
        assert "Zeilen: Schreiben Sie eine ganze Zahl, zum Beispiel 1000" in refused.text
    for wrong in (CONDITION, "nosuch=1", 'city="Rome" & city="Oslo"'):
        rows = browser.get(f"{release}/rows", params={"where": wrong}, headers={"Accept-Language": "de"})
        assert (rows.status_code, english_in(rows.text)) == (422, [])
    for typed in ("1.000", "1,000", "1 000"):  # and not one row
        rows = browser.get(f"{release}/download", params={"rows": typed, "format": "csv"}).text
        assert len(rows.splitlines()) == 1_001
    for sent in (
        "1.000",
        "1.0",
        "1_000",
        "1,000",
        "1 000",
    ):  # a program means one of two things by it, or sends a mistake
        refused = api.http.get(f"/v1{release}/sample", params={"rows": sent}, headers=api.reader)
        assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input"), refused.text
    assert api.http.get(f"/v1{release}/sample", params={"rows": "1000"}, headers=api.reader).status_code == 200


def test_before_anything_is_published_every_file_leads_back(api, browser_of, ordered):
    browser, release = browser_of(api.reader), f"/releases/{ordered['id']}"
    for file in ("download", "generator.zip", "certificate", "rows", "charts"):
        refused = browser.get(f"{release}/{file}")
        assert refused.status_code == 409
        assert back_from(refused) == release
        assert ("Nothing was downloaded" in refused.text) == (file == "download")
    assert browser.get(release).status_code == 200


def test_a_release_that_is_not_there_is_not_led_back_to(api, browser_of, ordered):
    for browser, address in (
        (browser_of(api.stranger), f"/releases/{ordered['id']}/download"),
        (browser_of(api.reader), f"/releases/{uuid.uuid4()}/download"),
        (browser_of(api.reader), f"/releases/{uuid.uuid4()}"),
    ):
        refused = browser.get(address)
        assert refused.status_code == 404
        assert "Back to the release" not in refused.text
        assert 'href="/">' in refused.text


def test_after_a_session_has_ended_one_comes_back_to_the_form_and_not_to_a_file(browser_of, ordered):
    release = f"/releases/{ordered['id']}"
    sent = browser_of().get(f"{release}/download", params=TYPED, follow_redirects=False).headers["location"]
    (path,) = urllib.parse.parse_qs(urllib.parse.urlsplit(sent).query)["next"]
    assert urllib.parse.urlsplit(path).path == release
    assert dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(path).query)) == TYPED
    sent = browser_of().get(f"{release}/rows?where=age>1&part=2", follow_redirects=False).headers["location"]
    assert urllib.parse.parse_qs(urllib.parse.urlsplit(sent).query)["next"][0].endswith("/rows?where=age%3E1&part=2")
    long = browser_of().get(f"{release}/rows?where={'x' * 2_000}", follow_redirects=False).headers["location"]
    assert long == f"/sign-in?next={release}/rows"


def state_shown(page):
    return re.search(r'<span class="state [^"]*">([^<]*)</span>', page)[1]


def test_a_release_that_is_cancelled_while_it_runs_is_called_so_until_and_after_it_has_stopped(
    api,
    context,  # noqa: F811 - the fixture
    browser_of,
    dataset_id,
    ordered,
):
    browser, release = browser_of(api.analyst), f"/releases/{ordered['id']}"
    lease = leases.claim_next(context.settings)
    attempt = Attempt(context, lease)
    attempt.charge()
    assert "It is charged and runs" in browser.get(release).text
    between = browser.post(f"{release}/cancel").text
    for page in (between, browser.get(f"{release}/progress").text):
        assert state_shown(page) == "being cancelled"
        assert "It is being cancelled: what was spent until then stays spent." in page
        assert "It is charged and runs" not in page
        assert f'href="{release}/cancel"' not in page
    assert "disabled" in browser.get(f"{release}/cancel").text
    assert ">being cancelled<" in browser.get(f"/datasets/{dataset_id}").text
    Attempt(context, lease).run()
    page = browser.get(release).text
    assert state_shown(page) == "cancelled"
    assert "It was cancelled: what was spent until then stays spent." in page
    assert "It ended without a result" not in page
    assert ">cancelled<" in browser.get(f"/datasets/{dataset_id}").text
    assert api.http.get(f"/v1{release}", headers=api.reader).json()["state"] == "failed"


def test_a_release_that_is_cancelled_before_it_begins_is_called_so(api, browser_of, dataset_id):
    browser = browser_of(api.analyst)
    release = browser.post(f"/datasets/{dataset_id}/releases", {**FILLED, "order_key": "k"}).url.path
    page = browser.post(f"{release}/cancel").text
    assert state_shown(page) == "cancelled"
    assert "It was cancelled before it had begun, and cost nothing." in page


@pytest.mark.parametrize(
    ("state", "failure", "wanted", "word"),
    [
        ("charged", None, False, "charged"),
        ("published", None, True, "published"),  # the cancel came too late
        ("failed", "worker_lost", True, "failed"),
        ("voided", "erased", False, "voided"),
    ],
)
def test_what_was_not_cancelled_is_not_called_so(state, failure, wanted, word):
    assert shown_state(Release(state=state, failure=failure, cancel_requested=wanted)) == word


@pytest.mark.parametrize(
    ("language", "failure", "says"),
    [
        ("en", "erased", "cost nothing: erased."),
        ("de", "erased", "gekostet: gelöscht."),
        ("en", "no_device", "it was ordered for a GPU alone, and no worker that took it has one"),
    ],
)
def test_why_a_release_was_never_charged_is_said_in_the_language_of_the_page(language, failure, says):
    release = Release(state="voided", failure=failure, cancel_requested=False, order_={"method": "marginals"})
    release.price, release.created_at = {"epsilon": 1.0}, dt.datetime(2027, 1, 31, tzinfo=dt.UTC)
    page = (
        templates(language).get_template("progress.html").render(release=release, is_active=False, lacks_public=False)
    )
    assert says in page
