"""From a file to a dataset in a browser: percentages on the way, a refusal in its place, and without scripts."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import QUICK_ORDER
from tests.service.releases.test_owner_reports import once_there

HEARD = """() => {
  globalThis.heard = [];
  for (const place of document.querySelectorAll(".sending"))
    new MutationObserver(() => heard.push(place.innerText)).observe(place, {subtree: true, childList: true, attributes: true, characterData: true});
}"""
"""Whatever a part that tells how far something is has said, however short."""


def sample_walk(window):
    """To the third step with made-up rows."""
    window.go("/datasets/new")
    window.page.get_by_role("button", name="Try with sample data").click()
    window.page.get_by_role("button", name="Continue to the budget").click()
    expect(window.page.get_by_role("heading", name="Give it a budget")).to_be_visible()


def test_publishing_says_how_far_it_is_and_a_refusal_leaves_what_was_typed(open_window, keys_of):
    window = open_window(keys_of.owner)
    page = window.page
    sample_walk(window)
    page.get_by_label("Name of the dataset").fill("my clinic")
    page.locator("#epsilon").fill("a lot")
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("write a number")
    expect(page.get_by_label("Name of the dataset")).to_have_value("my clinic")
    page.locator("#epsilon").fill("2")
    page.get_by_role("slider").focus()
    page.keyboard.press("ArrowLeft")  # the form that came as a part of a stream is as alive as the first one
    assert float(page.locator("#epsilon").input_value()) < 2
    page.evaluate(HEARD)
    page.evaluate("document.querySelector('main').addEventListener('submit', () => { globalThis.isSame = true; })")
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(page.get_by_role("heading", name="Published: my clinic")).to_be_visible()
    assert page.evaluate("globalThis.isSame")  # no other page was loaded
    assert "%" in " ".join(page.evaluate("heard"))
    page.reload()
    expect(page.get_by_role("heading", name="my clinic")).to_be_visible()  # the dataset; nothing is sent twice


def test_a_file_says_how_much_of_it_was_sent(open_window, keys_of, small_csv):
    window = open_window(keys_of.owner, "/datasets/new")
    page = window.page
    page.get_by_label("The file: choose it").set_input_files(small_csv)
    heard = []
    page.expose_function("note", lambda said: heard.append(said))  # noqa: PLW0108 - Playwright marks what it is given
    page.evaluate(
        "document.addEventListener('htmx:xhr:progress', () => note(document.getElementById('upload-percent').textContent))"
    )
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("heading", name="Say what the columns are")).to_be_visible()
    assert "100 % sent" in heard


def test_without_scripts_it_is_published_too(open_window, keys_of):
    window = open_window(keys_of.owner, java_script_enabled=False)
    sample_walk(window)
    window.page.get_by_role("button", name="Publish", exact=True).click()
    expect(window.page.get_by_role("heading", name="Published:")).to_be_visible()


def test_reports_are_ordered_and_read(open_window, keys_of, client, dataset):
    window = open_window(keys_of.owner, f"/datasets/{dataset['id']}/order")
    page = window.page
    page.locator("#epsilon").fill("1")
    page.get_by_label("Method", exact=True).select_option("marginals")
    page.get_by_label("Measure it, for everybody").check()
    page.get_by_label("Show real beside synthetic").check()
    expect(page.locator("#quote")).to_contain_text("Method: marginals")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_text("A report for everybody is measured")).to_be_visible()
    page.get_by_role("button", name="Order for ε = 1").click()
    page.wait_for_url("**/releases/*")
    release = client.wait(window.path.rpartition("/")[2])
    page.get_by_role("button", name="Look at real beside synthetic").click()
    once_there(client.release(release["id"]))
    expect(page.locator("figure canvas")).to_have_count(3)  # by itself, once a worker has compared the rows
    expect(page.locator("canvas[data-beside]")).to_have_count(0)
    expect(page.get_by_text("Not private: do not share.").first).to_be_visible()
    page.go_back()
    page.get_by_role("button", name="How exact it is").click()
    expect(page.get_by_role("region", name="Columns", exact=True)).to_contain_text("weight")


@pytest.mark.parametrize("scope", ["analyst", "reader"])
def test_others_read_the_charged_report_alone_without_scripts_too(open_window, keys_of, client, dataset, scope):
    order = {**QUICK_ORDER, "report": {"share": 0.2}, "owner_report": True}
    release = client.wait(client.create_release(dataset["id"], order)["id"])
    once_there(client.release(release["id"]))
    window = open_window(getattr(keys_of, scope), f"/releases/{release['id']}", java_script_enabled=False)
    expect(window.page.get_by_text("beside synthetic")).to_have_count(0)
    window.page.get_by_role("button", name="How exact it is").click()
    expect(window.page.get_by_role("region", name="Columns", exact=True)).to_contain_text("weight")
    window.go(f"/releases/{release['id']}/owner-report")
    expect(window.page.get_by_role("heading", name="This is not possible")).to_be_visible()
    assert window.take("403")
