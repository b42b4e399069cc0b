"""Bounds and categories that are bought: from the column editor to the dataset that says so, through the page alone."""

import json
import re

import pytest

from service.domain.image_schema import parse_schema
from service.pages.declared import COLUMNS_SHOWN, shown_of
from tests.service.http.test_bought_declarations import OPEN, PEOPLE, TOTAL, bought, carried_out, uploaded
from tests.service.pages.test_orders_pages import hidden
from tests.service.pages.test_upload_walk import WAYS, all_public, owner, staged, values_of

pytestmark = pytest.mark.slow

__all__ = ["owner", "staged"]


@pytest.fixture
def open_dataset(api, signing_key):  # noqa: ARG001 - what signs certificates
    return uploaded(api)


def bought_form(page, **more):
    return {**values_of(page.text), **all_public(page.text), **WAYS, "step": "continue", **more}


# -- the column editor --------------------------------------------------------------------------------------------------


def test_what_the_draft_read_of_a_column_that_is_bought_is_not_declared(api, owner, staged):
    buys = {"c0.buy": "on", "c0.price": "0,5", "c2.buy": "on", "c2.price": "1"}
    ends = {"c1.buy": "on", "c1.price": "0.2", "c1.low": "0"}  # typed, so that the other end alone is bought
    budget = owner.post(staged.url.path, bought_form(staged, **buys, **ends))
    assert budget.url.path.endswith("/budget"), budget.text
    assert "age, income, city are bought, for ε = 1.7 in all" in budget.text
    done = owner.post(budget.url.path, {**values_of(budget.text), "step": "publish"})
    assert "Published: people" in done.text
    assert "age, income, city are to be bought" in done.text
    (dataset,) = api.http.get("/v1/datasets", headers=api.owner).json()["items"]
    age, income, city, *_ = dataset["schema"]["fields"]
    assert (age["infer"], age["constraints"]) == ({"epsilon": 0.5}, {"required": True})
    assert (income["infer"], income["constraints"]) == ({"epsilon": 0.2}, {"minimum": 0, "required": True})
    assert (city["infer"], city["constraints"]) == ({"epsilon": 1.0}, {"required": True})
    for read in ("Oslo", "1017"):
        assert read not in json.dumps(dataset)


def test_what_was_set_aside_comes_back(owner, staged):
    page = owner.post(staged.url.path, {**values_of(staged.text), "c2.buy": "on", "c0.buy": "on", "step": "save"})
    form = values_of(page.text)
    assert (form["c2.categories"], form["c0.low"], form["c0.high"], form["c0.buy"]) == ("", "", "", "on")
    del form["c2.buy"], form["c0.buy"]
    form = values_of(owner.post(page.url.path, {**form, "step": "save"}).text)
    before = values_of(staged.text)
    assert [form[name] for name in ("c2.categories", "c0.low", "c0.high")] == [
        before[name] for name in ("c2.categories", "c0.low", "c0.high")
    ]
    assert "c0.buy" not in form


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"c0.buy": "on", "c0.price": "a little"}, "&#39;age&#39;: write for how much"),
        ({"c0.buy": "on", "c0.price": ""}, "&#39;age&#39;: write for how much"),
        ({"c0.buy": "on", "c0.low": "0", "c0.high": "130"}, "both of its bounds are written"),
        ({"c2.buy": "on", "c2.categories": "Rome\r\nOslo"}, "&#39;city&#39;: its categories are written"),
        ({"c0.buy": "on", "c0.price": "1000"}, "from 0.001 to 100"),
        ({"c2.buy": "on", "target": "city"}, "target"),
    ],
)
def test_what_cannot_be_bought_is_said_and_stays_as_it_was_typed(owner, staged, typed, said):
    page = owner.post(staged.url.path, bought_form(staged, **typed))
    assert page.status_code == 422
    alert = page.text.split('role="alert"')[1].split("</p>")[0]
    assert said in alert
    form = values_of(page.text)
    assert {name: form[name] for name in typed} == typed


def tick_of(page, place):
    """The tag of the line that asks whether a column is public knowledge."""
    return re.search(rf'<label[^>]*data-tick[^>]*><input type="checkbox" name="c{place}.public"[^>]*>', page)[0]


def test_where_all_is_bought_nothing_is_asked_to_be_public_knowledge(api, owner, staged):
    buys = {"c0.buy": "on", "c2.buy": "on"}
    assert " hidden" not in tick_of(staged.text, 0)
    saved = owner.post(staged.url.path, {**values_of(staged.text), **buys, "step": "save"})
    assert " hidden" in tick_of(saved.text, 0)
    assert "checked" not in tick_of(saved.text, 0)
    assert "3 columns still say what was read from the rows" in saved.text
    form = bought_form(saved)
    del form["c0.public"], form["c2.public"]
    budget = owner.post(staged.url.path, form)
    assert budget.url.path.endswith("/budget"), budget.text
    owner.post(budget.url.path, {**values_of(budget.text), "step": "publish"})
    (dataset,) = api.http.get("/v1/datasets", headers=api.owner).json()["items"]
    age, _, city, *_ = dataset["schema"]["fields"]
    assert age == {"name": "age", "type": "integer", "infer": {"epsilon": 0.1}}  # not even that no cell is missing
    assert city == {"name": "city", "type": "string", "infer": {"epsilon": 0.1}}


@pytest.mark.parametrize(
    "written", [{"c0.required": "on"}, {"c0.low": "0"}, {"c0.missing": "99"}], ids=["required", "an end", "missing"]
)
def test_what_is_written_of_a_column_that_is_bought_is_still_ticked(owner, staged, written):
    saved = owner.post(staged.url.path, {**values_of(staged.text), "c0.buy": "on", "step": "save"})
    form = bought_form(saved, **written)
    del form["c0.public"]
    page = owner.post(staged.url.path, form)
    assert page.status_code == 422
    assert "&#39;age&#39;: this was read from the rows" in page.text
    assert " hidden" not in tick_of(page.text, 0)
    ticked = {**values_of(page.text), "c0.public": "on", "step": "continue"}
    assert owner.post(staged.url.path, ticked).url.path.endswith("/budget")


def test_what_was_read_comes_back_unticked(owner, staged):
    """As it was not seen when the tick was given."""
    saved = owner.post(staged.url.path, {**values_of(staged.text), "c0.buy": "on", "c0.public": "on", "step": "save"})
    form = bought_form(saved)
    assert form.pop("c0.buy") == "on"
    assert form["c0.public"] == "on"
    page = owner.post(staged.url.path, form)
    assert page.status_code == 422
    assert "&#39;age&#39;: this was read from the rows" in page.text
    assert values_of(page.text)["c0.high"] == values_of(staged.text)["c0.high"] != ""


def test_a_column_of_yes_and_no_is_not_bought(owner, staged):
    page = owner.post(staged.url.path, bought_form(staged, **{"c3.buy": "on"}))
    assert page.url.path.endswith("/budget")
    assert "are bought" not in page.text


# -- the dataset --------------------------------------------------------------------------------------------------------


def test_from_open_to_bought(api, context, browser_of, open_dataset):
    browser, address = browser_of(api.analyst), f"/datasets/{open_dataset['id']}"
    page = browser.get(address).text
    assert "Bounds or categories of age, income, city, born are to be bought first" in page
    assert f"for ε = {TOTAL:g} of the budget" in page
    assert "Order a release" not in page
    for path in ("order", "ask"):
        assert browser.get(f"{address}/{path}").url.path == address
    confirm = browser.get(f"{address}/buy")
    assert "They are bought once" in confirm.text
    assert "will not be a category of its own" in confirm.text
    assert "cannot be taken back" in confirm.text
    sent = hidden(confirm.text)
    first, again = (browser.post(f"{address}/buy", sent).url.path for _ in range(2))
    assert first == again
    assert "They are being bought" in browser.get(address).text
    assert browser.get(f"{address}/buy").url.path == first
    running = browser.get(f"{address}/buying")
    assert "hx-refresh" not in running.headers
    made = carried_out(api, context, {"id": first.rpartition("/")[2]})
    assert made["state"] == "published"
    assert browser.get(f"{address}/buying").headers["hx-refresh"] == "true"
    page = browser.get(address).text
    assert "to be bought" not in page
    assert "bought for ε = 3" in page
    assert f'href="{first}"' in page
    assert "Order a release" in page
    assert "like the newest one" not in page  # nothing like a purchase can be ordered again
    release = browser.get(first).text
    assert "What was bought" in release
    assert "Bonn, Oslo, Rome, other" in release
    assert "Download the answers" in release
    assert browser.get(f"{address}/buy").url.path == address
    assert browser.get(f"{first}/certificate").status_code == 200


def test_a_reader_sees_what_is_to_be_bought_and_buys_nothing(api, browser_of, open_dataset):
    browser, address = browser_of(api.reader), f"/datasets/{open_dataset['id']}"
    page = browser.get(address).text
    assert "a key of scope analyst or owner is needed" in page
    assert "and buy</a>" not in page
    assert browser.get(f"{address}/buy").status_code == 403
    assert browser.post(f"{address}/buy", {"order_key": "a"}).status_code == 403
    assert api.http.get(f"/v1/releases?dataset_id={open_dataset['id']}", headers=api.reader).json()["items"] == []


def test_what_does_not_fit_is_not_bought(api, browser_of, signing_key):  # noqa: ARG001
    dataset = uploaded(api, OPEN, PEOPLE, budget=json.dumps({"epsilon": 3.0}))
    browser, address = browser_of(api.analyst), f"/datasets/{dataset['id']}/buy"
    confirm = browser.get(address)
    assert "It does not fit" in confirm.text
    assert "disabled" in confirm.text
    assert browser.post(address, hidden(confirm.text)).status_code == 409


def test_a_dataset_says_what_is_declared(api, browser_of, dataset_id):
    page = browser_of(api.reader).get(f"/datasets/{dataset_id}").text
    assert 'from <span class="moment">0</span> to <span class="moment">120</span>' in page
    assert "Rome, Oslo, Bonn" in page
    assert "bought" not in page


def test_a_dataset_of_many_columns_has_a_small_page():
    fields = [
        {"name": f"c{n}", "type": "string", "constraints": {"enum": [f"{letter * 300}" for letter in "abcdefghijk"]}}
        for n in range(900)
    ]
    fields.append({"name": "amount", "type": "number", "infer": {"epsilon": 0.5}})
    shown, more = shown_of(parse_schema({"fields": fields}))
    assert (len(shown), more) == (COLUMNS_SHOWN, len(fields) - COLUMNS_SHOWN)
    assert [one.name for one in shown[:2]] == ["amount", "c0"]
    assert sum(len(name) for one in shown for name in one.categories) < 100_000
    assert {len(one.rest) + one.more for one in shown[1:]} == {3}
    assert sum(len(name) for one in shown for name in one.rest) <= 40_000
    assert len(shown[1].rest) == 3


def test_all_bought_categories_are_shown_and_what_stands_for_the_others(api, context, browser_of, signing_key):  # noqa: ARG001
    schema = {"fields": [{"name": "city", "type": "string", "infer": {"epsilon": 10.0, "other": "elsewhere"}}]}
    cities = [f"City {letter}" for letter in "abcdefghijkl"]
    table = "city\n" + "".join(f"{cities[n % 12]}\n" for n in range(1_800))
    dataset = uploaded(api, schema, table)
    browser, address = browser_of(api.reader), f"/datasets/{dataset['id']}"
    release = bought(api, context, dataset)
    for path in (f"/releases/{release['id']}", address):
        page = browser.get(path).text
        folded = re.search(r'<details class="rest">(.*?)</details>', page, re.DOTALL)[1]
        assert "and 5 more" in folded  # the twelve, and the word for others
        assert all(city in page for city in cities)
        assert [city for city in cities if city in folded] == cities[8:]
    page = browser.get(f"/releases/{release['id']}").text
    assert "“elsewhere” stands for all other values" in page
