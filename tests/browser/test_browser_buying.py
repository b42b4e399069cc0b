"""Bounds and categories are bought on the page: chosen while a table is declared, confirmed by an analyst, marked afterwards."""

import random
import re

import pytest
from playwright.sync_api import expect

from tests.browser.test_browser_accessibility import NARROW, violations


@pytest.fixture
def many_rows(tmp_path):
    source = random.Random(7)
    rows = [f"{source.choice(['Bonn', 'Trier'])},{source.lognormvariate(8, 1):.2f}" for _ in range(4_000)]
    path = tmp_path / "visits.csv"
    path.write_text("town,amount\n" + "\n".join(rows) + "\n")
    return path


def to_declare(window, path):
    window.go("/datasets/new")
    window.page.get_by_label("The file: choose it").set_input_files(path)
    window.page.get_by_role("button", name="Continue").click()
    expect(window.page.get_by_role("heading", name="Say what the columns are")).to_be_visible()
    return window.page.locator("[data-column]")


def test_what_only_the_rows_tell_is_bought(open_window, keys_of, many_rows):
    owner = open_window(keys_of.owner, viewport=NARROW)
    page = owner.page
    town, amount = to_declare(owner, many_rows).all()
    expect(town.get_by_label("Categories, one per line")).to_have_value(re.compile("Bonn"))
    for column in (town, amount):
        column.get_by_text("Not known without the rows?").click()
        column.get_by_label("Buy what is left empty here").check()
        column.get_by_label("for ε =").fill("1")
    tick = "What is written here is public"
    expect(town.get_by_label(tick)).to_be_hidden()  # nothing is written
    town.get_by_label("The form allows no missing value").check()
    town.get_by_label(tick).check()
    town.get_by_label("The form allows no missing value").uncheck()
    expect(town.get_by_label(tick)).to_be_hidden()
    amount.get_by_label(tick).check()  # of its decimals
    expect(town.get_by_label("Categories, one per line")).to_be_hidden()
    expect(amount.get_by_label("Smallest value")).to_have_value("")
    amount.get_by_label("Buy what is left empty here").uncheck()
    expect(amount.get_by_label("Smallest value")).not_to_have_value("")  # as it was read
    amount.get_by_label("Buy what is left empty here").check()
    amount.get_by_label("Smallest value").fill("0")  # known, so that the other end alone is bought
    assert violations(page) == []
    page.get_by_label("No: each person has one row").check()
    page.get_by_label("I have gone through all of this").check()
    page.get_by_role("button", name="Continue to the budget").click()
    page.get_by_text("Are these rows public already?").click()
    expect(page.get_by_text("of town, amount are bought, for ε = 2 in all")).to_be_visible()
    assert violations(page) == []
    assert not owner.is_scrolled_sideways()
    page.get_by_role("button", name="Publish", exact=True).click()
    page.get_by_role("button", name="To the dataset").click()
    expect(page.get_by_role("heading", name="are to be bought first")).to_be_visible()
    assert violations(page) == []
    analyst = open_window(
        keys_of.analyst, owner.path, java_script_enabled=False
    ).page  # reading and ordering need no script
    analyst.get_by_role("button", name="Look at the price, and buy").click()
    expect(analyst.get_by_text("They are bought once")).to_be_visible()
    analyst.get_by_role("button", name="Buy for ε = 2").click()
    analyst.wait_for_url("**/releases/*")
    page.reload()
    expect(page.get_by_role("button", name="Order a release")).to_be_visible()  # by itself, once it is bought
    expect(page.get_by_role("cell", name="Bonn, Trier, other")).to_be_visible()
    expect(page.get_by_role("cell", name="largest value bought for ε = 1")).to_be_visible()
    assert violations(page) == []
    assert not owner.is_scrolled_sideways()
