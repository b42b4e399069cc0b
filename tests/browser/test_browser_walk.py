"""From a key to rows on one's own disk, in a browser, as an analyst works."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import ENDLESS_ORDER, QUICK_ORDER


@pytest.fixture
def analyst(open_window, keys_of):
    return open_window(keys_of.analyst)


@pytest.fixture
def published(client, dataset):
    release = client.create_release(dataset["id"], QUICK_ORDER)
    return client.wait(release["id"])


def test_signing_in_and_out(open_window, keys_of):
    window = open_window(keys_of.reader)
    page = window.page
    expect(page.get_by_text("There is no dataset yet.")).to_be_visible()
    expect(page.get_by_role("heading", name="Datasets")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("API key")).to_be_visible()
    page.go_back()
    page.reload()
    expect(page.get_by_label("API key")).to_be_visible()


def test_a_wrong_key_is_said_in_its_place(open_window):
    window = open_window()
    window.go("/")
    window.page.get_by_label("API key").fill("imp_wrong")
    window.page.get_by_role("button", name="Sign in").click()
    expect(window.page.get_by_role("alert")).to_contain_text("not known")
    assert window.take("401")


@pytest.mark.usefixtures("dataset")
def test_from_a_dataset_to_rows_on_disk(analyst, tmp_path):
    page = analyst.page
    analyst.go("/")
    page.get_by_role("link", name="visits").click()
    expect(page.locator(".gauge .words")).to_contain_text("One more release of at most ε = 5")
    page.get_by_role("button", name="Order a release").click()
    expect(page.locator("#quote .words")).to_contain_text("of the whole budget")

    # The slider moves the field, and the price follows both.
    before = page.locator("#quote").inner_text()
    slider, field = page.get_by_role("slider"), page.locator("#epsilon")
    begin = float(field.input_value())
    slider.focus()
    for _ in range(40):
        page.keyboard.press("ArrowLeft")
    assert float(field.input_value()) < begin
    expect(page.locator("#quote")).not_to_have_text(before)
    field.fill("1")
    expect(page.locator("#quote")).to_contain_text("at most 73")
    page.get_by_label("Method", exact=True).select_option("marginals")
    expect(page.locator("#quote")).to_contain_text("Method: marginals")
    page.get_by_text("Knobs of the method").click()
    expect(page.locator("#knobs label").first).to_be_visible()

    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("heading", name="Order this release?")).to_be_visible()
    page.get_by_role("button", name="Order for ε = 1").click()
    page.wait_for_url("**/releases/*")
    expect(page.get_by_role("heading", name="Synthetic rows")).to_be_visible()  # by itself, when it is done

    rows = page.locator("#rows-inner")
    expect(rows.locator("tbody tr")).to_have_count(25)
    first = rows.locator("tbody").inner_text()
    rows.get_by_role("link", name="Next").click()
    expect(rows).to_contain_text("Rows 26 to 50")
    assert rows.locator("tbody").inner_text() != first
    rows.get_by_role("link", name="Back").click()
    expect(rows).to_contain_text("Rows 1 to 25")
    assert rows.locator("tbody").inner_text() == first
    rows.get_by_label("Only rows with").fill("colour=red")
    rows.get_by_role("button", name="Filter").click()
    expect(rows.locator("tbody tr td:first-child").filter(has_not_text="red")).to_have_count(0)
    assert set(rows.locator("tbody tr td:first-child").all_inner_texts()) == {"red"}

    page.locator("#charts").scroll_into_view_if_needed()
    expect(page.locator("#charts canvas")).to_have_count(3)

    page.get_by_label("Rows", exact=True).fill("70")
    page.get_by_label("Format").select_option("csv")
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download", exact=True).click()
    waiting.value.save_as(tmp_path / "rows.csv")
    lines = (tmp_path / "rows.csv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "colour,size,weight"
    assert len(lines) == 71
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Download the generator (ZIP)").click()
    assert waiting.value.suggested_filename.endswith(".zip")


def test_a_condition_that_cannot_be_met_is_said_where_the_rows_would_be(analyst, published):
    analyst.go(f"/releases/{published['id']}")
    rows = analyst.page.locator("#rows")
    rows.get_by_label("Only rows with").fill("colour=purple")
    rows.get_by_role("button", name="Filter").click()
    expect(rows.get_by_role("alert")).to_contain_text("red")
    assert analyst.take("422")
    expect(rows.get_by_label("Only rows with")).to_have_value("colour=purple")  # and can be mended
    rows.get_by_label("Only rows with").fill("colour=green")
    rows.get_by_role("button", name="Filter").click()
    expect(rows.locator("tbody td").first).to_have_text("green")


def test_an_order_over_the_budget_is_refused_with_what_to_do(analyst, dataset):
    page = analyst.page
    analyst.go(f"/datasets/{dataset['id']}/order")
    page.locator("#epsilon").fill("9")
    expect(page.locator("#quote").get_by_role("alert")).to_contain_text("At most ε = 5 fits")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("heading", name="Order this release?")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("Order for"))).to_be_disabled()
    page.get_by_role("button", name="Back").click()
    with page.expect_response(
        lambda reply: reply.status == 422
    ):  # the alert of 9 is still there: Back keeps what was typed
        page.locator("#epsilon").fill("a lot")
    expect(page.locator("#quote").get_by_role("alert")).to_be_visible()
    assert analyst.take("422")


def test_cancelling_says_first_what_it_costs(analyst, client, dataset):
    release = client.create_release(dataset["id"], ENDLESS_ORDER)
    page = analyst.page
    analyst.go(f"/releases/{release['id']}")
    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(page.locator("main")).to_contain_text(re.compile("costs nothing|stays charged"))
    page.get_by_role("button", name="Let it run").click()
    expect(page.get_by_role("progressbar")).to_be_visible()
    page.get_by_role("button", name="Cancel", exact=True).click()
    page.get_by_role("button", name="Cancel it").click()
    expect(page.locator("#progress")).to_contain_text(re.compile("(?<!being )cancelled|published"))
    assert client.wait(release["id"])["state"] != "published"


def test_progress_goes_on_after_the_page_was_loaded_again(analyst, running):
    page = analyst.page
    analyst.go(f"/releases/{running['id']}")
    moves = "() => Number(document.querySelector('#progress progress')?.value) > {}"
    page.wait_for_function(moves.format(0))
    page.reload()
    expect(page.get_by_role("progressbar")).to_be_visible()
    seen = int(page.get_by_role("progressbar").get_attribute("value"))
    page.wait_for_function(moves.format(seen))
