"""Every page by axe, light and dark; by keyboard alone; on a narrow screen; at twice the size."""

import hashlib
import tomllib
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import QUICK_ORDER
from tests.service.releases.test_owner_reports import once_there
from tests.tiny_images import make_images, npz

AXE = Path(__file__).parent / "axe"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
NARROW = {"width": 360, "height": 740}
TWICE = {"viewport": {"width": 640, "height": 400}, "device_scale_factor": 2.0}
"""What a window of 1280 x 800 is at 200 %."""


@pytest.fixture
def pages(client, dataset):
    """Every page that somebody can open, with its address. Those that must not be there are looked at elsewhere."""
    order = {**QUICK_ORDER, "report": {"share": 0.2}, "owner_report": True}
    done = client.wait(client.create_release(dataset["id"], order)["id"])
    once_there(client.release(done["id"]))
    here, there = f"/datasets/{dataset['id']}", f"/releases/{done['id']}"
    return {
        "datasets": "/",
        "dataset": here,
        "order": f"{here}/order",
        "ledger": f"{here}/ledger",
        "release": there,
        "rows": f"{there}/rows",
        "charts": f"{there}/charts",
        "report": f"{there}/report",
        "owner's report": f"{there}/owner-report",
        "certificate": f"{there}/certificate",
        "cancel": f"{there}/cancel",
        "service": "/admin",
        "keys": "/admin/keys",
        "tenants": "/admin/tenants",
        "audit": "/admin/audit",
        "new": "/datasets/new",
        "docs": "/docs",
        "refusal": "/datasets/00000000-0000-0000-0000-000000000000",
    }


def settle(window):
    """Until the parts that scripts load are there."""
    page = window.page
    page.wait_for_load_state("networkidle")
    if page.locator("#charts").count():
        page.locator("#charts").scroll_into_view_if_needed()
        page.locator("#charts canvas").first.wait_for()
    if page.locator("#quote").count():
        page.locator("#quote .words").wait_for()


def violations(page):
    page.evaluate((AXE / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("rules => axe.run(document, {runOnly: rules})", RULES)
    assert len(found["passes"]) > 10
    return [
        f"{each['id']}: {each['help']}: {node['html'][:200]} {node['failureSummary'][-200:]}"
        for each in found["violations"]
        for node in each["nodes"][:3]
    ]


def test_axe_is_the_file_of_its_package():
    stated = tomllib.loads((AXE / "vendored.toml").read_text(encoding="utf-8"))
    assert hashlib.sha256((AXE / stated["name"]).read_bytes()).hexdigest() == stated["sha256"]
    assert "Mozilla Public License" in (AXE / "LICENSE.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_any_page(open_window, keys_of, pages, scheme):
    visitor = open_window(color_scheme=scheme)
    visitor.go("/")
    found = {"sign-in": violations(visitor.page)}
    owner = open_window(keys_of.owner, color_scheme=scheme)
    for name, path in pages.items():
        owner.go(path)
        settle(owner)
        found[name] = violations(owner.page)
    assert len(owner.take("404")) == 1  # the refusal
    owner.go(pages["order"])
    settle(owner)
    owner.page.get_by_text("Knobs of the method").click()
    owner.page.get_by_text("How the report is measured").click()
    owner.page.get_by_label("Measure it, for everybody").check()
    owner.page.get_by_label("Method", exact=True).select_option("idpgan")
    owner.page.locator("#knobs label").first.wait_for()
    settle(owner)
    found["knobs"] = violations(owner.page)
    owner.page.get_by_role("button", name="Continue").click()
    owner.page.get_by_role("heading", name="Order this release?").wait_for()
    found["confirm"] = violations(owner.page)
    assert {name: each for name, each in found.items() if each} == {}


def test_axe_finds_nothing_while_a_release_runs(open_window, keys_of, running):
    window = open_window(keys_of.analyst, f"/releases/{running['id']}")
    expect(window.page.get_by_role("progressbar")).to_be_visible()
    assert violations(window.page) == []
    window.go(f"/releases/{running['id']}/cancel")
    assert violations(window.page) == []


@pytest.mark.parametrize("size", [{"viewport": NARROW}, TWICE], ids=["narrow", "twice"])
def test_the_first_images_of_an_upload_and_what_is_missing_are_seen_and_read(open_window, keys_of, tmp_path, size):
    file = tmp_path / "scans.npz"
    file.write_bytes(npz(*make_images()))
    window = open_window(keys_of.owner, "/datasets/new", **size)
    page = window.page
    page.get_by_label("The file").set_input_files(file)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_alt_text("Image 12 of the file")).to_be_visible()
    assert page.evaluate("[...document.querySelectorAll('.pictures img')].every(each => each.naturalWidth === 5)")
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("alert")).to_contain_text("2 things are still to be said or mended")
    assert window.take("422")
    assert violations(page) == []
    assert not window.is_scrolled_sideways()
    page.get_by_role("link", name="Go there").first.click()
    expect(page.locator("#unit")).to_be_in_viewport()


@pytest.mark.parametrize("size", [{"viewport": NARROW}, TWICE], ids=["narrow", "twice"])
def test_no_page_is_wider_than_its_window(open_window, keys_of, pages, size):
    visitor = open_window(**size)
    visitor.go("/")
    assert not visitor.is_scrolled_sideways()
    owner = open_window(keys_of.owner, **size)
    wide = []
    for name, path in pages.items():
        owner.go(path)
        settle(owner)
        if owner.is_scrolled_sideways():
            wide.append(name)
    owner.take("404")
    assert wide == []


REACHABLE = """() => [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")]
  .filter(each => each.checkVisibility() && !each.disabled && each.tabIndex >= 0 && each.type !== "hidden")
  .map((each, place) => { each.dataset.place = place; return place; })"""
FOCUSED = """() => {
  const here = document.activeElement, style = getComputedStyle(here), box = here.getBoundingClientRect();
  const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0 || style.boxShadow !== "none";
  return {place: here.dataset.place, what: here.outerHTML.slice(0, 120), isSeen: ring && box.width > 0 && box.right > 0};
}"""


@pytest.mark.parametrize("name", ["datasets", "dataset", "order", "release", "keys", "ledger"])
def test_the_tab_key_reaches_every_control_and_shows_where_it_is(open_window, keys_of, pages, name):
    window = open_window(keys_of.owner, pages[name])
    settle(window)
    page = window.page
    page.evaluate("scrollTo(0, 0)")
    places = page.evaluate(REACHABLE)
    assert len(places) > 5
    seen, unseen = [], []
    for _ in places:
        page.keyboard.press("Tab")
        here = page.evaluate(FOCUSED)
        seen.append(here["place"])
        if not here["isSeen"]:
            unseen.append(here["what"])
    assert [int(each) for each in seen if each is not None] == places
    assert unseen == []


def test_the_first_tab_leads_past_the_menu(open_window, keys_of, pages):
    window = open_window(keys_of.reader, pages["dataset"])
    page = window.page
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="To the content")).to_be_in_viewport()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")


def test_by_keyboard_alone_from_the_key_to_an_order(open_window, keys_of, dataset):
    window = open_window()
    page = window.page
    window.go(f"/datasets/{dataset['id']}/order")
    page.keyboard.type(keys_of.analyst)  # the field has the focus
    page.keyboard.press("Enter")
    page.locator("#quote .words").wait_for()
    page.locator("#epsilon").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("1")
    page.keyboard.press("Tab")
    page.keyboard.type("marginals")
    expect(page.locator("#quote")).to_contain_text("Method: marginals")
    page.get_by_role("button", name="Continue").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Back").focus()
    page.keyboard.press("Space")  # a link that looks like a button works like one
    page.locator("#quote .words").wait_for()
    page.get_by_role("button", name="Continue").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Order for ε").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/releases/*")
