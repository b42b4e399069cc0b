"""An order from the form to the release: priced while it is filled in, shown once more, placed once."""

import html
import json
import re
from types import SimpleNamespace

import pytest

import service.pages.releases as pages_of_releases
from service.methods.catalogue import NAMES, parse_order
from service.methods.report_noise import NoiseAlone, hidden_by_noise
from service.pages.knobs import document_of, fields_of, want_of
from service.requests.problems import STATUS
from tests.service.pages.test_upload_walk import values_of
from tests.tiny_images import image_schema, make_images, npz

FILLED = {"method": "marginals", "epsilon": "1", "knob.pairs": "none"}


def replaced(row, **values):
    names = [column.name for column in row.__table__.columns] + ["order"]
    return SimpleNamespace(**{name: getattr(row, name) for name in names} | values)


def hidden(page):
    return dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', page))


def test_the_form_shows_what_fits_and_every_method_that_takes_a_table(api, browser_of, dataset_id):
    page = browser_of(api.analyst).get(f"/datasets/{dataset_id}/order").text
    assert "One more release of at most ε = 3." in page
    assert 'value="marginals"' in page
    assert 'value="mixture"' not in page
    assert "city" in page
    assert "<option>age</option>" not in page


def test_a_script_gets_the_price_alone(api, browser_of, dataset_id):
    browser = browser_of(api.reader)
    part = browser.post(f"/datasets/{dataset_id}/order", FILLED, **{"HX-Request": "true"})
    assert part.status_code == 200
    assert "<html" not in part.text
    assert re.search(r"It costs \d+ % of the whole budget; \d+ % would be left", part.text)
    assert "at most 73.2 in 100" in part.text


def test_a_wrong_number_is_said_where_the_price_would_be(api, browser_of, dataset_id):
    browser = browser_of(api.reader)
    for epsilon in ("x", "-1", ""):
        part = browser.post(f"/datasets/{dataset_id}/order", {**FILLED, "epsilon": epsilon}, **{"HX-Request": "true"})
        assert part.status_code == 422
        assert part.text.strip().startswith('<p class="fault"')
        whole = browser.post(f"/datasets/{dataset_id}/order", {**FILLED, "epsilon": epsilon})
        assert whole.status_code == 422
        assert 'role="alert"' in whole.text


def test_without_scripts_too_an_order_is_confirmed_and_placed_once(api, browser_of, dataset_id):
    browser = browser_of(api.analyst)
    assert "It costs" in browser.post(f"/datasets/{dataset_id}/order", {**FILLED, "step": "quote"}).text
    confirm = browser.post(f"/datasets/{dataset_id}/order", {**FILLED, "step": "confirm", "name": "spring"})
    assert "cannot be taken back" in confirm.text
    assert facts_of(confirm.text) == {
        "Dataset": "people",
        "Method": "marginals",
        "Name of the release": "spring",
    }
    sent = hidden(confirm.text)
    assert sent["knob.pairs"] == "none"
    for reads_as_an_id in ("abcd1234", "marginals-0123abcd"):
        for path in ("order", "releases"):
            named = {**sent, "step": "confirm", "name": reads_as_an_id}
            refused = browser.post(f"/datasets/{dataset_id}/{path}", named)
            assert (refused.status_code, "Name of the release: this reads as an id" in refused.text) == (422, True)
    first = browser.post(f"/datasets/{dataset_id}/releases", sent)
    again = browser.post(f"/datasets/{dataset_id}/releases", sent)
    assert first.url.path == again.url.path
    assert "spring" in first.text
    listed = api.http.get(f"/v1/releases?dataset_id={dataset_id}", headers=api.reader).json()["items"]
    assert [each["order"]["pairs"] for each in listed] == ["none"]


def facts_of(page):
    """What is to be confirmed, before the button."""
    listed = page[page.index('<dl class="facts">') : page.index("</dl>")]
    assert page.index("</dl>") < page.index("<button>Order")
    return {
        html.unescape(name): html.unescape(text) for name, text in re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", listed)
    }


def test_a_release_without_a_name_is_told_what_it_will_be_called(api, browser_of, dataset_id):
    sent = {**FILLED, "method": "auto", "step": "confirm"}
    del sent["knob.pairs"]
    facts = facts_of(browser_of(api.analyst).post(f"/datasets/{dataset_id}/order", sent).text)
    assert facts["Method"] != "auto"
    assert facts["Name of the release"].startswith(f"none given: it will be called {facts['Method']} ")


TYPED = {
    "epsilon": "1,5",
    "method": "marginals",
    "group": "150",
    "within": "12,5",
    "purpose": "classifiers",
    "condition_on": "city",
    "report": "on",
    "owner_report": "on",
    "accept_two_way_tv": "95",
    "accept_one_way_tv": "90",
    "accept_by": "bound",
    "report_share": "7",
    "name": 'spring "2026" <&>',
    "knob.pairs": "none",
}


def back_of(browser, path, typed):
    """The page that follows the button `Back` of the confirm page."""
    confirm = browser.post(path, {**typed, "step": "confirm"})
    assert confirm.status_code == 200, confirm.text.partition('role="alert"')[2][:300]
    button = re.search(r'<button name="(\w+)" value="(\w+)" formaction="([^"]+)"[^>]*>Back<', confirm.text)
    sent = {field: html.unescape(text) for field, text in hidden(confirm.text).items()}
    return browser.post(button[3], {**sent, button[1]: button[2]})


def test_the_way_back_from_the_confirm_page_forgets_nothing(api, browser_of, dataset_id):
    path = f"/datasets/{dataset_id}/order"
    back = back_of(browser_of(api.owner), path, TYPED)
    assert (back.status_code, back.url.path) == (200, path)
    found = values_of(back.text)
    assert {name: found.get(name) for name in TYPED} == TYPED
    assert "It costs" in back.text
    assert re.search(r"<details open>\s*<summary>Knobs of the method", back.text)
    assert api.http.get(f"/v1/releases?dataset_id={dataset_id}", headers=api.reader).json()["items"] == []


def test_the_way_back_takes_a_form_of_this_session_alone(api, browser_of, dataset_id):
    browser = browser_of(api.analyst)
    path = f"/datasets/{dataset_id}/order"
    sent = {**hidden(browser.post(path, {**FILLED, "step": "confirm"}).text), "step": "back"}
    assert browser.http.post(path, data=sent).status_code == 200
    assert browser.http.post(path, data={**sent, "csrf_token": "0" * 64}).status_code == 403


def test_the_way_back_of_a_question_forgets_nothing(api, browser_of, dataset_id):
    path = f"/datasets/{dataset_id}/ask"
    typed = {"kind": "histogram", "column": "city", "second": "smoker", "where": "age>=40", "epsilon": "0,07"}
    back = back_of(browser_of(api.analyst), path, typed)
    found = values_of(back.text)
    assert {name: found.get(name) for name in typed} == typed


def test_a_reader_sees_prices_and_places_nothing(api, browser_of, dataset_id):
    browser = browser_of(api.reader)
    assert ">Continue<" not in browser.get(f"/datasets/{dataset_id}/order").text
    assert browser.post(f"/datasets/{dataset_id}/order", {**FILLED, "step": "confirm"}).status_code == 403
    assert browser.post(f"/datasets/{dataset_id}/releases", {**FILLED, "order_key": "a"}).status_code == 403


def test_a_reader_is_offered_prices_and_not_an_order(api, browser_of, dataset_id):
    for key, offered, other in (
        (api.reader, "Look at prices", "Order a release"),
        (api.analyst, "Order a release", "Look at prices"),
    ):
        browser = browser_of(key)
        pages = [browser.get(f"/datasets/{dataset_id}{path}").text for path in ("", "/order")]
        assert all(offered in page and other not in page for page in pages)
    page = browser_of(api.reader).get(f"/datasets/{dataset_id}/order").text
    assert "nothing is ordered" in page
    assert 'name="name"' not in page
    priced = browser_of(api.reader).post(f"/datasets/{dataset_id}/order", {**FILLED, "step": "quote"})
    assert "It costs" in priced.text


FOLD = re.compile(r"<details( open)?>\s*<summary>How the report is measured")


@pytest.mark.parametrize(
    ("filled", "is_open"),
    [
        ({}, False),
        ({"report": "on", "report_share": "5"}, False),
        ({"report": "on", "report_share": "7"}, True),
        ({"report": "on", "report_held_out": "10"}, True),
        ({"report": "on", "accept_by": "bound", "accept_one_way_tv": "50"}, True),
        ({"report": "on", "report_share": "x"}, True),
        ({"report": "on", "report_held_out": "1"}, True),
        ({"report_held_out": "10"}, True),
        ({"report": "on", "accept_accuracy": "200"}, True),
        ({"epsilon": "x"}, False),
    ],
)
def test_what_is_set_or_refused_of_a_report_is_not_folded_away(api, browser_of, dataset_id, filled, is_open):
    sent = {**FILLED, "condition_on": "city", "step": "quote", **filled}
    page = browser_of(api.analyst).post(f"/datasets/{dataset_id}/order", sent).text
    assert bool(FOLD.search(page)[1]) == is_open
    places = [page.index(f'name="{name}"') for name in ("report_share", "accept_accuracy", "accept_one_way_tv")]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("limits", "warned"),
    [
        ({"accept_one_way_tv": "0,1"}, "single columns"),
        ({"accept_two_way_tv": "0,1"}, "pairs of columns"),
        ({"accept_one_way_tv": "90", "accept_two_way_tv": "90"}, None),
    ],
)
def test_a_limit_below_the_noise_is_said_before_it_is_paid(api, browser_of, dataset_id, limits, warned):
    filled = {"method": "marginals", "epsilon": "1", "report": "on", "step": "confirm", **limits}
    confirm = browser_of(api.analyst).post(f"/datasets/{dataset_id}/order", filled).text
    assert ("may well be refused: then nothing is published" in confirm) == (warned is not None)
    assert warned is None or f"You accept {warned} that are off by at most 0.1 %" in confirm


@pytest.mark.parametrize(
    ("off", "said"), [((0.1, 0.2), None), ((0.1, 0.6), "pairs"), ((0.62, None), "about 62 % of its")]
)
def test_a_report_that_will_tell_something_is_not_warned_of(off, said):
    found = hidden_by_noise(NoiseAlone(*off), 1_000)
    assert (found is None) is (said is None)
    assert (said or "None") in str(found)


def test_a_preview_of_what_is_published_by_now_leads_to_the_release(api, browser_of, monkeypatch):
    """The picture on a page that is still open, and its address opened as a page."""
    pixels, labels = make_images()
    dataset = api.upload(npz(pixels, labels), schema=json.dumps(image_schema())).json()["id"]
    release_id = api.order(dataset, {"method": "mixture", "epsilon": 1.0}).json()["id"]
    copies_id = api.order(dataset, {"method": "image_release", "epsilon": 1.0}).json()["id"]
    browser, here = browser_of(api.reader), f"/releases/{release_id}"
    waiting = browser.get(f"{here}/preview.png", headers={"Accept": "text/html", "Accept-Language": "de"})
    assert (waiting.status_code, "keine Vorschau" in waiting.text) == (409, True)
    found = pages_of_releases.releases.find
    monkeypatch.setattr(
        pages_of_releases.releases, "find", lambda *which: replaced(found(*which), state="published", certificate={})
    )
    page = browser.get(f"{here}/preview.png", headers={"Accept": "text/html"})
    assert (page.url.path, page.status_code) == (here, 200)
    assert "It was published in this moment" in page.text
    assert "It was published in this moment" not in browser.get(here).text
    copies = browser.get(f"/releases/{copies_id}").text
    for said in ("Noisy images", "copy of one private image"):
        assert (said in copies, said in page.text) == (True, False)
    assert ("Synthetic images" in copies, "Synthetic images" in page.text) == (False, True)
    picture = browser.get(f"{here}/preview.png", headers={"Accept": "image/*"}, follow_redirects=False)
    assert (picture.status_code, picture.headers["location"]) == (303, f"{here}/download?rows=100&format=png&seed=1")


def test_a_report_that_noise_would_hide_is_warned_of_beside_its_tick(api, browser_of, dataset_id):
    """From public figures alone; 200 units are few at ε = 0.1, and the text is of who has not ticked it yet, too."""
    browser, path = browser_of(api.analyst), f"/datasets/{dataset_id}/order"
    part = browser.post(path, {**FILLED, "epsilon": "0.1"}, **{"HX-Request": "true"}).text
    (said,) = re.findall(r'<p id="report-noise"[^>]* hx-swap-oob="true">([^<]+)</p>', part)
    assert "Noise would hide all of it: with 200 units at this ε" in said
    assert "a larger ε or a larger part of the precision" in said
    pairs = {**FILLED, "epsilon": "3", "report": "on", "report_share": "30"}
    assert "what it says of pairs of columns" in browser.post(path, pairs, **{"HX-Request": "true"}).text
    assert re.search(r'<p id="report-noise"[^>]* hidden></p>', browser.get(path).text)
    whole = browser.post(path, {**FILLED, "epsilon": "0.1", "step": "quote"}).text
    assert f'<p id="report-noise" class="warning" role="status">{said}</p>' in whole
    confirm = browser.post(path, {**FILLED, "epsilon": "0.1", "report": "on", "step": "confirm"}).text
    assert f'<p class="warning">{said}</p>' in confirm
    assert "Noise would hide" not in browser.post(path, {**FILLED, "epsilon": "0.1", "step": "confirm"}).text


def test_what_does_not_fit_says_so_and_is_refused(api, browser_of, dataset_id):
    browser = browser_of(api.analyst)
    confirm = browser.post(f"/datasets/{dataset_id}/order", {**FILLED, "epsilon": "9", "step": "confirm"})
    assert re.search(r"would be refused: it needs [\d.]+ times the whole budget of the dataset", confirm.text)
    assert "At most ε = 3" in confirm.text
    assert "disabled" in confirm.text
    assert browser.post(f"/datasets/{dataset_id}/releases", hidden(confirm.text)).status_code == 409


def test_an_order_is_cancelled_before_it_costs_anything(api, browser_of, dataset_id):
    browser = browser_of(api.analyst)
    release = browser.post(f"/datasets/{dataset_id}/releases", {**FILLED, "order_key": "k"}).url.path
    assert "cancelling costs nothing" in browser.get(f"{release}/cancel").text
    assert "state-voided" in browser.post(f"{release}/cancel").text
    assert (
        browser.post(f"{release}/cancel").status_code
        == STATUS[next(e for e in STATUS if e.__name__ == "NotCancellable")]
    )


def test_a_cancel_that_was_to_cost_nothing_is_asked_again_once_the_work_has_begun(
    api, browser_of, dataset_id, monkeypatch
):
    browser = browser_of(api.analyst)
    release = browser.post(f"/datasets/{dataset_id}/releases", {**FILLED, "order_key": "k"}).url.path
    seen = hidden(browser.get(f"{release}/cancel").text)["seen"]
    shown_of = pages_of_releases.shown_of

    def begun(*asked):
        shown = shown_of(*asked)
        return shown | {
            "release": replaced(shown["release"], state="charged", recorded_steps=1, recorded_renyi=40_000_000)
        }

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(pages_of_releases, "shown_of", begun)
        asked_again = browser.post(f"{release}/cancel", {"seen": seen})
    assert "The work has begun meanwhile" in asked_again.text
    assert "at least 4.0 % stays spent by Rényi composition, where its full price is" in asked_again.text
    assert hidden(asked_again.text)["seen"] == "charged"
    assert "state-voided" in browser.post(f"{release}/cancel", {"seen": seen}).text  # it had not, really


def test_what_is_confirmed_names_its_limits_and_the_way_back(api, browser_of, dataset_id):
    browser = browser_of(api.analyst)
    limits = {"report": "1", "report_share": "5", "accept_one_way_tv": "0.6"}
    confirm = browser.post(f"/datasets/{dataset_id}/order", {**FILLED, **limits, "step": "confirm"}).text
    assert "off by at most 0.6 %" in confirm
    exact = {**limits, "accept_two_way_tv": "20.5", "report_share": "12.5"}
    confirm = browser.post(f"/datasets/{dataset_id}/order", {**FILLED, **exact, "step": "confirm"}).text
    assert "off by at most 20.5 %" in confirm  # as typed, since that is what decides
    assert "measured with 12.5 % of the precision" in confirm
    assert f'formaction="/datasets/{dataset_id}/order"' in confirm


def test_held_out_units_without_a_report_are_not_dropped_silently(api, browser_of, dataset_id):
    part = browser_of(api.analyst).post(f"/datasets/{dataset_id}/order", {**FILLED, "report_held_out": "10"})
    assert part.status_code == 422
    assert "tick the report as well" in part.text


@pytest.mark.parametrize("method", [name for name in NAMES if name not in {"queries", "choose"}])
def test_every_knob_has_a_field_and_a_default_that_is_left_empty_is_left_out(method):
    fields = fields_of(method)
    assert {field.kind for field in fields} <= {"choice", "count", "number", "text", "json", "dataset"}
    document = document_of({"method": method, "epsilon": "1,5", **{f"knob.{field.name}": "" for field in fields}})
    assert document == {"method": method, "epsilon": 1.5}
    filled = {f"knob.{each.name}": each.default for each in fields if each.default and each.kind != "json"}
    assert parse_order(document_of({"method": method, "epsilon": "1", **filled}))


def test_what_must_be_filled_in_of_a_method_has_an_example(api, browser_of, dataset_id):
    knobs = {each.name: each for each in fields_of("choose")}
    assert [name for name, each in knobs.items() if each.is_required] == ["candidates"]
    assert "trials" not in knobs  # what may not be ordered has no field
    filled = {f"knob.{name}": each.example for name, each in knobs.items() if each.is_required}
    assert parse_order(document_of({"method": "choose", "epsilon": "1", **filled}))
    page = browser_of(api.reader).get(f"/datasets/{dataset_id}/order/knobs?method=choose").text
    assert "(must be filled in)" in page
    assert "data-must" in page


@pytest.mark.parametrize("typed", ["2.048", "2,048", "2 048", "2\u202f048", "2048"])
def test_a_count_with_signs_between_its_thousands_is_that_count(typed):
    assert document_of({"method": "marginals", "epsilon": "1", "knob.components": typed})["components"] == 2048
    assert want_of({"group": typed, "within": "5"})["group"] == 2048


def test_a_knob_that_is_no_count_keeps_its_fraction():
    assert document_of({"method": "marginals", "epsilon": "1", "knob.learning_rate": "1,125"})["learning_rate"] == 1.125


def test_a_field_that_is_no_knob_is_not_passed_on():
    form = {"method": "marginals", "epsilon": "1", "knob.nonsense": "1", "chosen_because": "me", "knob.method": "x"}
    assert document_of(form) == {"method": "marginals", "epsilon": 1.0}


def test_the_forecast_is_beside_the_price_and_the_least_epsilon_is_found(api, browser_of, dataset_id):
    browser = browser_of(api.reader)
    part = browser.post(f"/datasets/{dataset_id}/order", FILLED, **{"HX-Request": "true"}).text
    assert "How exact it will be" in part
    assert part.count("<li>") >= 2
    found = browser.post(f"/datasets/{dataset_id}/order", {**FILLED, "step": "want", "group": "100", "within": "50"})
    (epsilon,) = re.findall(r'id="epsilon"[^>]*value="([^"]+)"', found.text)
    assert 0 < float(epsilon) <= 3
    assert 'role="status"' in found.text
    none = browser.post(
        f"/datasets/{dataset_id}/order", {**FILLED, "step": "want", "group": "1", "within": "0.001"}
    ).text
    assert "No ε that this dataset can still pay" in none
    assert re.findall(r'id="epsilon"[^>]*value="([^"]+)"', none) == [FILLED["epsilon"]]  # and not the whole budget
    assert "of the whole budget; 0 % would be left" not in none
    wrong = browser.post(f"/datasets/{dataset_id}/order", {**FILLED, "step": "want", "group": "x", "within": "50"})
    assert "A group of so many rows: write a number" in wrong.text
