"""What narrow windows show: a chart that can be read, and every word of a choice."""

import pytest

from tests.browser.conftest import QUICK_ORDER

WIDTHS = (1_100, 760, 360)
HEIGHT = 740
CUT_OFF = """() => [...document.querySelectorAll("select")].filter(each => each.offsetParent).flatMap(each => {
  const style = getComputedStyle(each), pen = document.createElement("canvas").getContext("2d");
  pen.font = style.font;
  const room = each.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  return [...each.options].map(option => option.text).filter(text => pen.measureText(text).width > room);
})"""


@pytest.mark.parametrize("language", ["en", "de"])
def test_every_word_of_what_a_column_may_hold_is_seen(open_window, keys_of, language):
    window = open_window(keys_of.owner)
    window.go("/datasets/new")
    window.page.get_by_role("button", name="Try with sample data").click()
    window.page.locator("select[data-use]").first.wait_for()
    window.go(f"/language/{language}?next={window.path}")
    window.page.locator("select[data-use]").first.wait_for()
    cut_off = {}
    for width in WIDTHS:
        window.page.set_viewport_size({"width": width, "height": HEIGHT})
        cut_off[width] = set(window.page.evaluate(CUT_OFF))
        assert not window.is_scrolled_sideways()
    assert cut_off == {width: set() for width in WIDTHS}


@pytest.mark.parametrize("language", ["en", "de"])
def test_every_word_of_what_a_key_may_be_is_seen(open_window, keys_of, language):
    window = open_window(keys_of.owner)
    window.go(f"/language/{language}?next=/admin/keys")
    window.page.locator("select").wait_for()
    for width in WIDTHS:
        window.page.set_viewport_size({"width": width, "height": HEIGHT})
        assert window.page.evaluate(CUT_OFF) == []
        assert not window.is_scrolled_sideways()


def test_the_chart_of_the_ledger_is_as_high_on_a_narrow_screen_as_on_a_wide_one(open_window, keys_of, client, dataset):
    client.wait(client.create_release(dataset["id"], QUICK_ORDER)["id"])
    window = open_window(keys_of.reader)
    heights = []
    for width in WIDTHS:
        window.page.set_viewport_size({"width": width, "height": HEIGHT})
        window.go(f"/datasets/{dataset['id']}/ledger")
        window.page.wait_for_function("document.querySelector('canvas') && !document.querySelector('[data-lines]')")
        box = window.page.locator("canvas").bounding_box()
        assert box["width"] <= width
        heights.append(box["height"])
        assert not window.is_scrolled_sideways()
    assert len(set(heights)) == 1
    assert heights[0] > 200
