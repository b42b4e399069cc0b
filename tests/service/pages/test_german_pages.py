"""Every sentence of the page comes through the translations, and numbers are as German writes them.

For the first half the German texts are replaced by ones without a letter: what can still be read did not come through them.
"""

import copy
import html
import json
import pickle
import re

import pytest

from service.base.errors import InvalidInput, InvalidOrder
from service.base.messages import Figure, Listed, Message, plural, said
from service.domain.alike import first_difference
from service.domain.table_schema import parse_table_schema
from service.methods.catalogue import CATALOGUE
from service.pages import languages, rendering
from service.pages.apart import require_apart
from service.pages.knobs import document_of
from service.pages.languages import language_named
from service.pages.writing import Writing
from tests.service.pages.spoken import Illegible, english_in, sentences_in, spoken

GERMAN = {"Accept-Language": "de"}
FILLED = {"method": "marginals", "epsilon": "0,5", "report": "on", "report_share": "5"}


@pytest.fixture
def illegible(monkeypatch):
    """Instead of German."""
    before = languages.translations
    fake = {"en": before("en"), "de": Illegible()}
    for module in (languages, rendering):
        monkeypatch.setattr(module, "translations", fake.__getitem__)
    for cached in (rendering.templates, languages.language_named):
        cached.cache_clear()
    yield
    for cached in (rendering.templates, languages.language_named):
        cached.cache_clear()


@pytest.mark.usefixtures("illegible")
def test_what_can_be_read_without_translations_is_found(browser_of):
    page = browser_of().get("/sign-in", headers=GERMAN).text
    assert "········" in page
    assert sentences_in("<p>This is one sentence</p>") == ["This is one sentence"]
    assert sentences_in(page) == []


@pytest.mark.parametrize("path", ["", "/order", "/ask", "/ledger"])
@pytest.mark.usefixtures("illegible")
def test_no_sentence_of_a_dataset_is_left_in_english(api, browser_of, dataset_id, path):
    page = browser_of(api.owner).get(f"/datasets/{dataset_id}{path}", headers=GERMAN)
    assert page.status_code == 200
    assert "····" in page.text
    assert sentences_in(page.text) == []


@pytest.mark.parametrize("method", [name for name, each in CATALOGUE.items() if each.returns == "generator"])
@pytest.mark.usefixtures("illegible")
def test_no_description_of_a_knob_is_left_in_english(api, browser_of, dataset_id, method):
    page = browser_of(api.reader).get(f"/datasets/{dataset_id}/order/knobs?method={method}", headers=GERMAN)
    assert "····" in page.text
    assert sentences_in(page.text) == []


ORDERS = [
    FILLED,
    {**FILLED, "knob.pairs": "none", "condition_on": "city"},
    {**FILLED, "knob.pairs": "chosen"},
    {**FILLED, "knob.pairs": "few_or_all", "epsilon": "0.01", "accept_one_way_tv": "0.1"},
    {**FILLED, "method": "auto"},
    {**FILLED, "method": "rdpcgan"},
    {**FILLED, "step": "confirm", "accept_two_way_tv": "1,5"},
    {**FILLED, "step": "want", "group": "10", "within": "1"},
    {**FILLED, "step": "want", "group": "100", "within": "90"},
]


@pytest.mark.parametrize("filled", ORDERS)
@pytest.mark.usefixtures("illegible")
def test_no_sentence_of_a_price_is_left_in_english(api, browser_of, dataset_id, filled):
    reply = browser_of(api.analyst).post(f"/datasets/{dataset_id}/order", filled, **GERMAN)
    assert reply.status_code == 200, reply.text
    assert sentences_in(reply.text) == []


WRONG = [
    {"epsilon": "x"},
    {"epsilon": "-1"},
    {"epsilon": "5000"},
    {"report": "", "report_held_out": "10"},
    {"report": "", "accept_accuracy": "10"},
    {"report_held_out": "1"},
    {"report_held_out": "x"},
    {"condition_on": "colour"},
    {"condition_on": "age"},
    {"purpose": "classifiers"},
    {"method": "nonsense"},
    {"method": "mixture"},
    {"step": "want", "group": "x"},
    {"step": "want", "group": "10", "within": "500"},
]


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.usefixtures("illegible")
def test_no_refusal_of_an_order_is_left_in_english(api, browser_of, dataset_id, wrong):
    reply = browser_of(api.analyst).post(f"/datasets/{dataset_id}/order", {**FILLED, **wrong}, **GERMAN)
    assert reply.status_code == 422, reply.text
    assert 'role="alert"' in reply.text
    assert sentences_in(reply.text) == []


@pytest.mark.parametrize(
    "asked",
    [
        {"kind": "count", "epsilon": "0,1"},
        {"kind": "count", "epsilon": "x"},
        {"kind": "histogram", "epsilon": "0.1"},
    ],
)
@pytest.mark.usefixtures("illegible")
def test_no_sentence_of_a_question_is_left_in_english(api, browser_of, dataset_id, asked):
    reply = browser_of(api.analyst).post(f"/datasets/{dataset_id}/ask", asked, **GERMAN)
    assert sentences_in(reply.text) == []


REFUSED = [
    {"where": "colour=red"},
    {"where": "age=x"},
    {"where": "age<20&age>30"},
    {"kind": "sum", "column": "city"},
    {"kind": "histogram", "column": "cities"},
    {"kind": "median", "column": "income"},
    {"kind": "cross_table", "column": "age", "second": "age"},
    {"kind": "cross_table", "column": "age"},
    {"kind": "nonsense"},
    {"epsilon": "0,000001"},
]


@pytest.mark.usefixtures("illegible")
def test_no_refusal_of_a_question_is_left_in_english(api, browser_of, dataset_id):
    browser = browser_of(api.analyst)
    for wrong in REFUSED:
        reply = browser.post(f"/datasets/{dataset_id}/ask", {"kind": "count", "epsilon": "0,1", **wrong}, **GERMAN)
        assert (reply.status_code, sentences_in(reply.text)) == (422, []), wrong
        assert 'role="alert"' in reply.text


def test_a_refused_condition_is_said_in_german_and_in_english_by_the_api(api, browser_of, dataset_id):
    asked = {"kind": "count", "epsilon": "0.1", "where": "colour=red"}
    page = html.unescape(browser_of(api.analyst).post(f"/datasets/{dataset_id}/ask", asked, **GERMAN).text)
    assert "Nur Zeilen mit: Es gibt keine Spalte 'colour'; die Spalten sind age" in page
    assert '<span lang="en">' not in page
    asked |= {"epsilon": 0.1}
    reply = api.http.post(f"/v1/datasets/{dataset_id}/queries", json=asked, headers=api.analyst)
    assert reply.json()["detail"].startswith("questions.0.where: there is no column 'colour'; the columns are age")


@pytest.mark.parametrize("path", ["/datasets/{unknown}", "/releases/{unknown}", "/datasets/new/{unknown}", "/admin"])
@pytest.mark.usefixtures("illegible")
def test_no_refusal_of_a_page_is_left_in_english(api, browser_of, path):
    reply = browser_of(api.reader).get(path.format(unknown="0" * 8 + "-0000-4000-8000-" + "0" * 12), headers=GERMAN)
    assert reply.status_code in {403, 404}
    assert sentences_in(reply.text) == []


@pytest.mark.parametrize("content", [b"", b"\n\n", b"PK\x03\x04"])
@pytest.mark.usefixtures("illegible")
def test_no_refusal_of_a_file_is_left_in_english(api, browser_of, content):
    browser = browser_of(api.owner)
    headers = {**GERMAN, "X-CSRF-Token": browser.token()}
    reply = browser.http.post("/datasets/new", files={"file": ("rows.csv", content)}, headers=headers)
    assert reply.status_code == 422
    assert 'role="alert"' in reply.text
    assert sentences_in(reply.text) == []


def test_a_price_in_german_has_commas_and_semicolons_between_and_the_api_has_points(api, browser_of, dataset_id):
    browser = browser_of(api.analyst)
    sent = {"method": "marginals", "epsilon": "0,25", "step": "confirm", "knob.pairs": "all"}
    page = browser.post(f"/datasets/{dataset_id}/order", sent, **GERMAN).text
    assert "ε = 0,25" in page
    (off,) = [text for text in spoken(page) if "Totalvariation" in text]
    assert re.search(r"\d,\d+ bis .*; \d", off)
    assert not re.search(r", [±\d]", off)
    assert re.search(r"höchstens 56,3 von 100", page)
    assert re.search(r'<pre><code>.*"epsilon": 0\.25|&#34;epsilon&#34;: 0\.25', page, re.DOTALL)
    assert english_in(page) == []
    with_points = [text for text in spoken(page) if re.search(r"\d\.\d", text)]
    assert not [text for text in with_points if "Version" not in text and '"want"' not in text]  # a number of JSON
    quoted = api.http.post(
        f"/v1/datasets/{dataset_id}/quotes", json={"method": "marginals", "epsilon": 0.25}, headers=api.reader
    ).json()
    assert quoted["order"]["epsilon"] == 0.25
    assert "A group of" in json.dumps(quoted["forecast"]["sentences"])


def test_the_field_for_epsilon_is_filled_with_a_comma_and_takes_both(api, browser_of, dataset_id):
    browser = browser_of(api.reader)
    api.order(dataset_id, {"method": "marginals", "epsilon": 0.3, "pairs": "none"})
    field = r'<input id="epsilon"[^>]* value="([^"]+)"'
    (german,) = re.findall(field, browser.get(f"/datasets/{dataset_id}/order", headers=GERMAN).text)
    (english,) = re.findall(field, browser.get(f"/datasets/{dataset_id}/order").text)
    assert float(german.replace(",", ".")) == float(english)
    (from_, to) = re.findall(
        r'data-(?:from|to)="([^"]+)"', browser.get(f"/datasets/{dataset_id}/order", headers=GERMAN).text
    )
    assert float(from_) < float(to)
    parts = [
        browser.post(f"/datasets/{dataset_id}/order", {"epsilon": each}, **{"HX-Request": "true", **GERMAN}).text
        for each in ("0,7", "0.7")
    ]
    assert parts[0] == parts[1]
    assert "Es kostet" in parts[0]


@pytest.mark.parametrize(
    ("value", "english", "german"),
    [
        ("2021-04-17", "2021-04-17", "17.04.2021"),
        ("2021-04-17T08:30:00", "2021-04-17T08:30:00", "17.04.2021 08:30:00"),
        ("soon", "soon", "soon"),
        (140.0, "140", "140"),
        (0.25, "0.25", "0,25"),
        (20_000.5, "20000.5", "20000,5"),
        (12_345_678_901, "12345678901", "12345678901"),
    ],
)
def test_ends_of_declared_ranges_are_as_german_writes_them(value, english, german):
    for code, text in (("en", english), ("de", german)):
        assert Writing(language_named(code)).bound(value) == text


@pytest.mark.parametrize(
    ("value", "form", "german"),
    [(1e-06, ".2g", "1×10⁻⁶"), (1.7e-07, ".2g", "1,7×10⁻⁷"), (0.0001, ".2g", "0,0001"), (2.5e30, "", "2,5×10³⁰")],
)
def test_powers_of_ten_are_written_as_people_write_them(value, form, german):
    assert Writing(language_named("de")).figure(value, form) == german
    assert Writing(language_named("en")).figure(value, form) == german.replace(",", ".")


def test_a_number_that_stands_in_a_field_beforehand_is_written_as_it_is_typed():
    german = Writing(language_named("de"))
    kept = ["", "3000", "1.2.3", '{"rate": 0.02}', "first_weights", "0,1"]
    assert [german.as_typed(text) for text in ("0.1", *kept)] == ["0,1", *kept]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"report_share": "200"}, "report.share: more than 0 and less than 50 per cent"),
        ({"report_share": "-1"}, "report.share: more than 0 and less than 50 per cent"),
        ({"report_held_out": "99"}, "report.held_out: more than 0 and less than 51 per cent"),
        ({"accept_accuracy": "120"}, "accept.accuracy: more than 0 and less than 100 per cent"),
    ],
)
def test_a_field_in_per_cent_is_refused_in_per_cent(wrong, said):
    with pytest.raises(InvalidOrder) as refused:
        document_of({**FILLED, **wrong})
    assert refused.value.detail == said


@pytest.mark.usefixtures("illegible")
def test_no_refusal_of_a_count_is_left_in_english(api, browser_of, dataset_id):
    wrong = FILLED | {"knob.components": "1,5"}
    reply = browser_of(api.analyst).post(f"/datasets/{dataset_id}/order", wrong, **GERMAN)
    assert reply.status_code == 422
    assert sentences_in(reply.text) == []


def test_who_may_do_it_is_said_in_the_words_of_the_page(api, browser_of):
    page = browser_of(api.reader).get("/admin", headers=GERMAN).text
    assert "ein Schlüssel der Art Eigentümer nötig; Ihrer ist einer der Art Leser" in page


def test_a_knob_that_is_a_number_takes_a_comma(api, browser_of, dataset_id):
    filled = {"method": "marginals", "epsilon": "1", "knob.tree_precision_share": "0,2", "step": "confirm"}
    page = browser_of(api.analyst).post(f"/datasets/{dataset_id}/order", filled).text
    assert '"tree_precision_share": 0.2' in html.unescape(page)


def test_days_are_as_german_writes_them(api, browser_of):
    api.upload()
    page = browser_of(api.reader).get("/datasets", headers=GERMAN).text
    assert re.search(r">\d\d\.\d\d\.20\d\d</time>", page)
    assert re.search(r'datetime="20\d\d-\d\d-\d\dT', page)


def test_a_sentence_that_has_no_translation_is_marked_as_english():
    german, english = Writing(language_named("de")), Writing(language_named("en"))
    left = Message("1,234 <things> that nobody has %(said)s", said=Figure("0.5"))
    assert german.shown(left) == '<span lang="en">1,234 &lt;things&gt; that nobody has 0,5</span>'
    assert english.shown(left) == left
    assert german.shown(Message("no such knob")) == "Eine solche Einstellung gibt es nicht"


def test_a_message_is_its_english_text_and_says_itself_in_another_language():
    german = language_named("de")
    where = Message("where a column and %(condition)s do", condition="'100 %'")
    off = Message("±%(rows)s %(where)s", rows=Figure("1,234.5"), where=where)
    assert json.dumps([off]) == json.dumps(["±1,234.5 where a column and '100 %' do"])
    assert said(off, german) == "±1\u202f234,5, wo eine Spalte und '100 %' sie bestimmen"
    pairs = [plural("%(num)s further pair", "%(num)s further pairs", each, num=each) for each in (1, 2)]
    assert pairs == ["1 further pair", "2 further pairs"]
    listed = Listed("; ", pairs)
    assert said(listed, german) == "1 weiteres Paar; 2 weitere Paare"
    for each in (off, listed, *pairs):
        for again in (copy.deepcopy(each), pickle.loads(pickle.dumps(each))):
            assert (again, said(again, german)) == (each, said(each, german))


COLUMN = {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 9}}
CODE = {"name": "code", "type": "string", "constraints": {"enum": ["a", "b"]}}


@pytest.mark.parametrize(
    ("others", "says"),
    [
        ([CODE], "an der Stelle von 'age' hat der andere 'code'"),
        ([COLUMN | {"type": "number"}], "bei 'age' ist dort anders: Typ"),
        ([COLUMN | {"constraints": {"minimum": 0, "maximum": 8}}], "bei 'age' ist dort anders: Wertebereich"),
        ([COLUMN, CODE], "'code' gibt es nur im anderen"),
        (
            [COLUMN | {"constraints": {}, "infer": {"epsilon": 0.1}}],
            "von 'age' sind dort noch Grenzen oder Kategorien offen",
        ),
    ],
)
def test_in_what_public_rows_differ_is_said_in_german(others, says):
    other, own = (parse_table_schema({"fields": fields}) for fields in (others, [COLUMN]))
    assert said(first_difference(other, own), language_named("de")) == says


@pytest.mark.parametrize(
    ("repeats", "says"),
    [(True, "'id': Derselbe Wert steht in mehreren Zeilen"), (None, "'id': Es gibt zu viele verschiedene Werte")],
)
def test_what_is_asked_of_repeating_ids_is_asked_in_german(repeats, says):
    with pytest.raises(InvalidInput) as refused:
        require_apart({}, {"repeating": {"id": repeats}})
    german = said(refused.value.detail, language_named("de"))
    assert german.startswith(says)
    assert not english_in(f"<p>{german}</p>")
