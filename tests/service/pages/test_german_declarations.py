"""What an owner is told of a draft, of a declaration and of the cells of a file comes through the translations, with what stands in it."""

import html
import json

import pytest

from service.base.carried import packed
from service.base.errors import InvalidSchema
from service.base.messages import Message, said
from service.domain.image_schema import parse_schema
from service.intake.table.drafting.findings import Finding
from service.intake.table.drafting.proposals import FREE_TEXT, MADE_ANEW, PUBLIC_LIST, WHOSE
from service.pages.findings import findings_of, notices_of
from service.pages.languages import language_named
from service.pages.writing import Writing
from tests.service.pages.spoken import english_in, sentences_in
from tests.service.pages.test_german_pages import GERMAN, illegible
from tests.service.pages.test_upload_walk import WAYS, all_public, owner, send, values_of

__all__ = ["illegible", "owner"]

DOUBTFUL = {
    "zip": lambda n: f"{n % 7:05}",
    "amount": lambda n: f"{1 + n % 9}.{100 + n}",
    "sum": lambda n: "99999" if n == 30 else str(n % 23),
    "answer": lambda n: str([1, 2, 3, 4, 9][n % 5]),
    "visit": lambda n: f"0{1 + n % 9}/0{1 + n % 9}/2020",
    "left": lambda n: "9999-12-31" if n % 9 == 0 else f"2021-03-{1 + n % 28:02}",
    "at": lambda n: f"2021-03-{1 + n % 28:02} 10:00:00 CEST",
    "town": lambda n: "NA" if n % 8 == 0 else f"Bonn {n}" if n > 70 else ["Oslo", "Bonn"][n % 2],
    "lab": lambda n: "<0.5" if n % 4 == 0 else f"{n}.25",
    "patient_id": lambda n: f"P{n % 40:04}",
    "email": lambda n: f"person{n}@private.example",
    "note": lambda n: f"a{n} " + "b1 " * 20,
    "clock": lambda n: f"{n % 24:02}:30",
    "none": lambda n: "" if n else "NA",
}
"""Columns of which a draft says something, by their cells."""


def doubtful_table():
    rows = [",".join(cell(n) for cell in DOUBTFUL.values()) for n in range(80)]
    return "\n".join([",".join(DOUBTFUL), *rows, ""])


@pytest.mark.slow
@pytest.mark.usefixtures("illegible")
def test_no_finding_beside_a_column_is_left_in_english(owner):
    page = send(owner, doubtful_table(), **GERMAN)
    assert page.status_code == 200, page.text
    assert sentences_in(page.text) == []
    assert page.text.count('<p class="warning">') >= len(DOUBTFUL) - 1


def test_findings_of_a_draft_from_before_they_had_places_are_shown_as_they_were_stored():
    draft = {"findings": {"age": ["Its lowest number is -1, 50 % of it."]}, "notices": ["The file was read."]}
    assert findings_of(draft, "age") == ["Its lowest number is -1, 50 % of it."]
    assert (findings_of(draft, "sex"), notices_of(draft)) == ([], ["The file was read."])


@pytest.mark.parametrize("proposal", [WHOSE, MADE_ANEW, FREE_TEXT, PUBLIC_LIST])
def test_the_page_proposes_what_its_form_can_do_and_nothing_of_the_command_line(proposal):
    told = Finding("x", Message("left out: %(why)s", why=Message("it is empty")), proposal, ("a b",))
    (shown,) = findings_of({"findings": {"x": [packed(told.beside_the_column())]}}, "x")
    shown, german = (said(shown, language_named(code)) for code in ("en", "de"))
    for text in (shown, german):
        assert not [word for word in ("--", "by hand", "von Hand", '"role"', "`enum`") if word in text], text
    assert shown.startswith("Left out: it is empty. ")
    assert shown.endswith(". Cells: 'a b'.")


AGE = {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99}}
REFUSED = [
    {"fields": [AGE | {"constraints": {"minimum": 9, "maximum": 1}}]},
    {"fields": [AGE | {"constraints": {"minimum": "low", "maximum": 1}}]},
    {"fields": [AGE | {"constraints": {"enum": ["a", "b"]}}]},
    {"fields": [AGE | {"constraints": {"minimum": 0}}]},
    {"fields": [AGE | {"constraints": {"required": "perhaps", "minimum": 0, "maximum": 9}}]},
    {"fields": [AGE | {"bins": 0}]},
    {"fields": [AGE | {"format": "%d"}]},
    {"fields": [AGE | {"type": "time"}]},
    {"fields": [AGE | {"colour": 1}]},
    {"fields": [AGE, AGE]},
    {"fields": [AGE], "missingValues": ["7"]},
    {"fields": [AGE], "primaryKey": "age"},
    {"fields": [AGE], "target": "sex"},
    {"fields": [AGE], "relations": ["age <= height"]},
    {"fields": [AGE], "exclusions": [{"age": [1]}]},
    {"fields": [AGE], "dialect": {"delimiter": ";;"}},
    {"fields": [{"name": "day", "type": "date", "format": "%d/%m"}]},
    {"fields": "age"},
    {"fields": []},
    {"type": "image", "height": 0, "width": 3, "channels": 1},
    {"type": "image", "height": 3, "width": 3, "channels": 2},
]


@pytest.mark.parametrize("document", REFUSED)
@pytest.mark.usefixtures("illegible")
def test_no_refusal_of_a_schema_is_left_in_english(document):
    with pytest.raises(InvalidSchema) as refused:
        parse_schema(document)
    shown = Writing(language_named("de")).shown(refused.value.detail)
    assert "·" in shown
    assert sentences_in(f"<p>{shown}</p>") == []


def test_a_refusal_of_a_schema_is_german_on_the_page_that_declares_it(owner):
    page = owner.post("/datasets/new/sample", **GERMAN)
    sent = {**values_of(page.text), **WAYS, "json": json.dumps({"fields": [AGE | {"bins": 0}]})}
    used = owner.post(page.url.path, {**sent, "step": "json"}, **GERMAN)
    sent = {**values_of(used.text), **all_public(used.text), **WAYS, "step": "continue"}
    reply = owner.post(page.url.path, sent, **GERMAN)
    assert reply.status_code == 422
    alert = html.unescape(reply.text.split('role="alert"')[1].split("</p>")[0])
    assert "Das ganze Schema als JSON, für Fachleute: Spalte 'age': bins: der Wert muss mindestens 1 sein" in alert
    for document in REFUSED:
        with pytest.raises(InvalidSchema) as refused:
            parse_schema(document)
        assert english_in(f"<p>{said(refused.value.detail, language_named('de'))}</p>") == []


OUTSIDE = {"age": "7", "town": "Rome", "code": "007", "hour": "2021-03-01T10:00:30"}
WITHIN = {"age": "40", "town": "Oslo", "code": "12", "hour": "2021-03-01T10:00:00"}
NOTICED = {
    "fields": [
        {"name": "age", "type": "integer", "constraints": {"minimum": 18, "maximum": 99}},
        {"name": "town", "type": "string", "constraints": {"enum": ["Oslo", "Bonn"]}},
        {"name": "code", "type": "integer", "constraints": {"minimum": 0, "maximum": 99}, "missingValues": ["", "12"]},
        {
            "name": "hour",
            "type": "datetime",
            "resolution": "hour",
            "constraints": {"minimum": "2021-01-01T00:00:00", "maximum": "2021-12-31T00:00:00"},
        },
    ]
}


def notices_after_publishing(owner):
    """Of a table with a cell of each kind that is taken in otherwise than it is written."""
    rows = [",".join((OUTSIDE if n < 3 else WITHIN).values()) + f",{n // 5}" for n in range(40)]
    page = send(owner, "\n".join([",".join([*WITHIN, "who"]), *rows, ""]), **GERMAN)
    unit = {"several": "yes", "column": "who", "most": "2", "missing": "own_unit", "declared": "on"}
    who = {"name": "who", "type": "string", "role": "identifier"}
    sent = {**values_of(page.text), **unit, "json": json.dumps({"fields": [*NOTICED["fields"], who]}), "step": "json"}
    used = owner.post(page.url.path, sent, **GERMAN)
    sent = {**values_of(used.text), **all_public(used.text), **unit, "step": "continue"}
    budget = owner.post(page.url.path, sent, **GERMAN)
    assert budget.url.path.endswith("/budget"), budget.text
    done = owner.post(budget.url.path, {**values_of(budget.text), "step": "publish"}, **GERMAN)
    assert done.status_code == 200, done.text
    return done.text


@pytest.mark.slow
@pytest.mark.usefixtures("illegible")
def test_no_notice_after_publishing_is_left_in_english(owner):
    page = notices_after_publishing(owner)
    assert page.split('aria-labelledby="notices"')[1].count("<li>") == 6
    assert sentences_in(page) == []


@pytest.mark.slow
def test_notices_after_publishing_are_german(owner):
    page = html.unescape(notices_after_publishing(owner))
    assert (
        "Spalte 'age': 3 Zellen liegen außerhalb des angegebenen Wertebereichs und werden auf das Ende gesetzt." in page
    )
    assert "Spalte 'who': 8 Einheiten haben mehr als 2 Zeilen; von jeder werden nur 2 verwendet." in page
    assert english_in(page) == []
