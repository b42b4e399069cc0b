"""A published release in a browser: rows, charts, certificate, files; by real processes."""

import json
import re
import zipfile
from io import BytesIO

import httpx
import pytest

from service.pages import synthetic


@pytest.fixture(scope="module")
def browser(stack, published):
    with httpx.Client(base_url=stack.url, follow_redirects=True, timeout=600) as http:
        assert http.post("/sign-in", data={"key": published.api_key}).url.path == "/"
        yield http


@pytest.fixture
def here(published):
    return f"/releases/{published.release_id}"


def test_the_page_says_what_is_promised_and_how_to_go_on(browser, here):
    page = browser.get(here).text
    assert "state-published" in page
    assert "right 50 times in 100" in page
    for address in set(re.findall(r'(?:href|action)="(/[^"]*)"', page)) - {"/sign-out"}:
        assert browser.get(address.replace("&amp;", "&")).status_code == 200, address


def test_rows_are_turned_over_and_back_and_are_the_same(browser, here):
    first = browser.get(f"{here}/rows", headers={"HX-Request": "true"}).text
    assert "<html" not in first
    assert first.count("<tr>") == 26
    assert browser.get(f"{here}/rows?part=1").text != first
    assert browser.get(f"{here}/rows", headers={"HX-Request": "true"}).text == first


def test_rows_are_filtered_and_a_wrong_condition_is_said_in_its_place(browser, here):
    page = browser.get(f"{here}/rows", params={"where": "colour=red"}).text
    cells = re.findall(r"<td>(red|green|blue)</td>", page)
    assert cells
    assert set(cells) == {"red"}
    wrong = browser.get(f"{here}/rows", params={"where": "colour=purple"}, headers={"HX-Request": "true"})
    assert wrong.status_code == 422
    assert "red" in wrong.text
    assert "<html" not in wrong.text


def test_charts_hold_the_numbers_of_the_rows_that_were_drawn(browser, here):
    page = browser.get(f"{here}/charts").text
    charts = [
        json.loads(each.replace("&#34;", '"').replace("&amp;#34;", '"'))
        for each in re.findall(r'data-histogram="([^"]*)"', page)
    ]
    assert len(charts) == 3
    assert all(sum(chart["counts"]) == synthetic.ROWS_TO_COUNT for chart in charts)
    assert page.count('class="number heat-') == 6


@pytest.mark.parametrize("wanted", ["csv", "excel", "jsonl", "parquet", "arrow"])
def test_every_format_is_a_file(browser, here, wanted):
    reply = browser.get(f"{here}/download", params={"rows": 10, "format": wanted, "where": "", "formulas": "keep"})
    assert reply.status_code == 200
    ending = "csv" if wanted == "excel" else wanted  # the release has no name, so that its dataset's stands there
    assert reply.headers["content-disposition"] == f'attachment; filename="synthetic-small.{ending}"'
    assert reply.content


def test_the_generator_and_the_certificate_are_files_too(browser, here):
    with zipfile.ZipFile(BytesIO(browser.get(f"{here}/generator.zip").content)) as archive:
        assert "sample.py" in archive.namelist()
    certificate = browser.get(f"{here}/certificate.json").json()
    page = browser.get(f"{here}/certificate").text
    assert certificate["public_key"] in page
    assert certificate["unit"] in page
    assert "attachment" in browser.get(f"{here}/explanation.html").headers["content-disposition"]
