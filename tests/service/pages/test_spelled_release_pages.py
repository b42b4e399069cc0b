"""A release of a table that is written as in Germany: its rows, its charts and its files say the same in the same words."""

import codecs
import csv
import html
import io
import json
import re

import pytest

from service.pages import synthetic
from tests.service.http.conftest import SCHEMA as PEOPLE_SCHEMA
from tests.service.http.conftest import TABLE as PLAIN_TABLE
from tests.service.http.conftest import context  # noqa: F401 - the fixture
from tests.service.http.test_bought_declarations import carried_out, uploaded

SCHEMA = {
    "fields": [
        {"name": "kunde", "type": "string", "role": "identifier", "pattern": "[A-Z]{2}[0-9]{6}"},
        {
            "name": "tag",
            "type": "date",
            "format": "%d.%m.%Y",
            "constraints": {"minimum": "2023-01-01", "maximum": "2023-12-31", "required": True},
        },
        {
            "name": "betrag",
            "type": "number",
            "decimals": 2,
            "decimalChar": ",",
            "trailingZeros": True,
            "constraints": {"minimum": 0, "maximum": 100},
        },
        {"name": "ort", "type": "string", "constraints": {"enum": ["Köln; Süd", "=1+1"], "required": True}},
        {"name": "notiz", "type": "string", "role": "free_text", "placeholder": "entfernt"},
        {
            "name": "bezahlt",
            "type": "boolean",
            "trueValues": ["Ja"],
            "falseValues": ["Nein"],
            "constraints": {"required": True},
        },
    ],
    "missingValues": ["k. A.", ""],
}
PLAIN = {"fields": [{**each, "decimals": 2} if each["name"] == "income" else each for each in PEOPLE_SCHEMA["fields"]]}
ROWS = [
    f'AB{i:06},{1 + i % 28:02}.{1 + i % 12:02}.2023,"{i % 100},50",{("Köln; Süd", "=1+1")[i % 2]},text {i},{("Ja", "Nein")[i // 7 % 2]}'
    for i in range(300)
]
TABLE = "kunde,tag,betrag,ort,notiz,bezahlt\n" + "\n".join(ROWS) + "\n"


@pytest.fixture
def release(api, context, signing_key):  # noqa: ARG001, F811 - what signs certificates; the fixture
    dataset = uploaded(api, SCHEMA, TABLE)
    ordered = api.order(
        dataset["id"], {"method": "marginals", "epsilon": 10.0}, **{"Release-Name": "K%C3%B6ln%2FM%C3%A4rz"}
    )
    assert ordered.status_code == 202, ordered.text
    made = carried_out(api, context, ordered.json())
    assert made["state"] == "published", made
    return f"/releases/{made['id']}"


def charts_of(page):
    return {
        name: json.loads(html.unescape(html.unescape(data)))
        for name, data in re.findall(r'<figcaption>([^<]*)</figcaption>\s*<canvas data-histogram="([^"]*)"', page)
    }


def test_rows_on_the_page_are_those_of_the_csv(browser_of, api, release):
    browser = browser_of(api.reader)
    page = browser.get(f"{release}/rows", params={"part": 1}).text
    shown = [
        [html.unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)]
        for row in re.findall(r"<tr>(<td.*?)</tr>", page)
    ]
    wanted = {"rows": synthetic.ROWS_TO_TURN, "format": "csv", "seed": synthetic.SEED}
    text = browser.get(f"{release}/download", params=wanted).text
    assert shown == list(csv.reader(io.StringIO(text)))[26:51]
    cells = [cell for row in shown for cell in row]
    assert any(re.fullmatch(r"\d+,\d\d", cell) for cell in cells)
    assert any(re.fullmatch(r"\d\d\.\d\d\.2023", cell) for cell in cells)
    assert {"Ja", "Nein"} & set(cells)


def test_charts_read_the_declared_spelling_and_leave_out_what_is_made_up(browser_of, api, release):
    page = browser_of(api.reader).get(f"{release}/charts").text
    charts = charts_of(page)
    assert list(charts) == ["tag", "betrag", "ort", "bezahlt"]
    days = charts["tag"]["labels"]
    assert len(days) == synthetic.BINS
    assert all(re.fullmatch(r"\d\d\.\d\d\.2023", label) for label in days)
    assert all(sum(chart["counts"]) == synthetic.ROWS_TO_COUNT for chart in charts.values())
    assert "Without kunde, notiz: identifiers and placeholders are made up" in page
    assert page.count('class="number heat-') == 4 * 3


def test_csv_for_excel_is_opened_in_the_language_of_the_page(browser_of, api, release):
    browser = browser_of(api.reader)
    page = browser.get(release, headers={"Accept-Language": "de"}).text
    assert '<option value="excel">CSV für Excel' in page
    wanted = {"rows": 200, "format": "excel", "seed": 1, "where": "", "formulas": "keep"}
    reply = browser.get(f"{release}/download", params=wanted)
    named = "attachment; filename=\"synthetic-K_ln-M_rz.csv\"; filename*=UTF-8''synthetic-K%C3%B6ln-M%C3%A4rz.csv"
    assert reply.headers["content-disposition"] == named
    assert reply.content.startswith(codecs.BOM_UTF8)
    names, *rows = csv.reader(io.StringIO(reply.content.decode("utf-8-sig"), newline=""), delimiter=";")
    assert names == ["kunde", "tag", "betrag", "ort", "notiz", "bezahlt"]
    assert len(rows) == 200
    assert {row[3] for row in rows} == {"Köln; Süd", "'=1+1"}
    assert all(re.fullmatch(r"\d+,\d\d|k\. A\.", row[2]) for row in rows)


def test_a_table_without_a_spelling_is_written_for_the_language_of_the_page(browser_of, api, context, signing_key):  # noqa: ARG001, F811
    made = carried_out(
        api, context, api.order(uploaded(api, PLAIN, PLAIN_TABLE)["id"], {"method": "marginals", "epsilon": 5.0}).json()
    )
    assert made["state"] == "published", made
    browser, address = browser_of(api.reader), f"/releases/{made['id']}/download"
    for language, separator, number in (("de", ";", r"\d+,\d\d"), ("en", ",", r"\d+\.\d\d")):
        wanted = {"rows": 50, "format": "excel", "seed": 1}
        text = browser.get(address, params=wanted, headers={"Accept-Language": language}).content.decode("utf-8-sig")
        rows = list(csv.reader(io.StringIO(text), delimiter=separator))
        assert rows[0] == ["age", "income", "city", "smoker", "born"]
        assert any(re.fullmatch(number, row[1]) for row in rows), rows[:5]
