"""Rows that everybody may have: said once, with two ticks, at the upload; chosen where an order may begin from them."""

import re
import uuid

import pytest

from tests.reservations import claim
from tests.service.http.test_public_datasets import acts, order, upload
from tests.service.pages.test_orders_pages import hidden
from tests.service.pages.test_upload_walk import declared, owner, staged, values_of
from workers.run import Attempt

pytestmark = pytest.mark.slow

__all__ = ["owner", "staged", "upload"]

PUBLIC, KNOWN = {"rows_are_public": "on"}, {"public_for_ever": "on"}


def datasets_of(api):
    return api.http.get("/v1/datasets", headers=api.owner).json()["items"]


def test_rows_are_public_by_two_ticks_at_the_upload_alone(api, owner, staged):
    budget = declared(owner, staged)
    assert "never taken back" in budget.text
    filled = {**values_of(budget.text), "step": "publish"}
    assert not {*PUBLIC, *KNOWN} & filled.keys()  # neither is ticked beforehand
    refused = owner.post(budget.url.path, {**filled, **PUBLIC})
    assert refused.status_code == 422
    assert "Tick the line below it as well" in refused.text
    assert datasets_of(api) == []
    kept = values_of(refused.text)
    assert kept["rows_are_public"] == "on"
    done = owner.post(budget.url.path, {**kept, **KNOWN, "step": "publish"})
    assert "You declared these rows public" in done.text
    (dataset,) = datasets_of(api)
    assert dataset["rows_are_public"] is True
    assert ("declare_public", dataset["id"], "done") in acts(api)
    assert "Public rows" in owner.get(f"/datasets/{dataset['id']}").text


@pytest.mark.parametrize("ticked", [{}, KNOWN])
def test_without_the_first_tick_they_stay_private(api, owner, staged, ticked):
    budget = declared(owner, staged)
    owner.post(budget.url.path, {**values_of(budget.text), **ticked, "step": "publish"})
    (dataset,) = datasets_of(api)
    assert dataset["rows_are_public"] is False
    assert "Public rows" not in owner.get(f"/datasets/{dataset['id']}").text


def choices(text):
    select = re.search(r'<select name="knob.public_dataset">(.*?)</select>', text, re.DOTALL)
    return None if select is None else re.findall(r'<option value="([^"]+)"', select[1])


def test_an_order_chooses_among_public_datasets_that_fit(api, browser_of, upload):
    fits, _larger, private, asked = upload(public=True), upload(public=True, shape=(7, 7, 1)), upload(), upload()
    upload(public=True, key=api.stranger)
    browser, address = browser_of(api.analyst), f"/datasets/{asked}/order"
    assert choices(browser.get(f"{address}/knobs?method=dpgan").text) == [fits]
    assert choices(browser.get(f"{address}/knobs?method=mixture").text) is None
    assert choices(browser.get(f"{address}/knobs?method=auto").text) is None
    assert choices(browser.get(f"/datasets/{fits}/order/knobs?method=dpgan").text) == []  # not itself
    filled = {
        "method": "dpgan",
        "epsilon": "1",
        "knob.steps": "3",
        "knob.public_dataset": fits,
        "knob.public_steps": "2",
    }
    assert f'value="{fits}" selected' in browser.post(address, {**filled, "step": "quote"}).text
    confirm = browser.post(address, {**filled, "step": "confirm"})
    assert f'"public_dataset": "{fits}"' in confirm.text.replace("&#34;", '"')
    name = next(each["name"] for each in datasets_of(api) if each["id"] == fits)
    assert f"It begins from the public rows of {name}, at no charge" in confirm.text
    browser.post(f"/datasets/{asked}/releases", hidden(confirm.text))
    (release,) = api.http.get(f"/v1/releases?dataset_id={asked}", headers=api.reader).json()["items"]
    assert (release["order"]["public_dataset"], release["order"]["public_steps"]) == (fits, 2)
    refused = browser.post(address, {**filled, "knob.public_dataset": private}, **{"HX-Request": "true"})
    assert refused.status_code == 422
    assert "none of your datasets of this id is declared public" in refused.text


def test_where_nothing_fits_it_is_said(api, browser_of, upload):
    page = browser_of(api.reader).get(f"/datasets/{upload()}/order/knobs?method=dpgan")
    assert choices(page.text) == []
    assert "None of your datasets can be chosen" in page.text


@pytest.mark.usefixtures("signing_key")
def test_a_release_that_lacks_its_public_rows_says_whose_rows_are_gone(api, context, browser_of, upload, monkeypatch):
    monkeypatch.setattr(Attempt, "make", lambda *_: None)
    browser, private, shown = browser_of(api.reader), upload(), []

    def attempt(release):
        with context.transaction() as session:
            lease = claim(session, uuid.UUID(release))
        Attempt(context, lease).run()

    for is_charged in (False, True):
        public = upload(public=True)
        release = order(api, private, public, epsilon=0.5).json()["id"]
        if is_charged:
            attempt(release)
        api.http.delete(f"/v1/datasets/{public}", headers=api.owner)
        attempt(release)
        shown.append(browser.get(f"/releases/{release}").text)
    waited, charged = shown
    assert "cost nothing: the public rows that it begins from are gone" in waited
    assert "the public rows that it begins from were gone when it had to be taken up again" in charged
    assert "The charge stands" not in charged
    api.http.delete(f"/v1/datasets/{private}", headers=api.owner)
    assert "public rows" not in browser.get(f"/releases/{release}").text, "now its own are gone, too"
