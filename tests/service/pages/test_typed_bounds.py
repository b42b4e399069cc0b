"""Bounds and categories that are typed into the page are read as the column itself is written."""

import json

import pytest

from service.base.errors import InvalidInput
from service.base.messages import said as said_of
from service.pages.declaring import column_forms, with_columns
from service.pages.languages import language_named
from service.pages.open_points import declaration_of
from tests.service.pages.spoken import english_in
from tests.service.pages.test_upload_walk import WAYS, all_public, owner, send, values_of

__all__ = ["owner"]

DRAFT = {"names": [], "rows": [], "findings": {}}
"""Of which nothing is known."""
GERMAN = {"decimalChar": ",", "groupChar": "."}


def said_in(text, language="de"):
    return said_of(text, language_named(language))


def typed(field, **said):
    """The field with what a form says of its only column; all else is sent as it was shown."""
    document = {"fields": [{"name": "x", "constraints": {}, **field}]}
    (shown,) = column_forms(document, DRAFT)
    form = {
        "use": shown.use,
        "categories": shown.categories,
        "low": shown.low,
        "high": shown.high,
        "missing": shown.missing,
    }
    sent = {f"c{shown.place}.{word}": text for word, text in (form | said).items()}
    return with_columns(document, sent, {})["fields"][0]


@pytest.mark.parametrize(
    ("text", "use", "spelling", "meant"),
    [
        ("50.000", "number", GERMAN, 50_000),
        ("1.234.567,5", "number", GERMAN, 1_234_567.5),
        ("45,5", "number", GERMAN, 45.5),
        ("-0,25", "number", GERMAN, -0.25),
        ("45.5", "number", GERMAN, 45.5),
        ("0.125", "number", GERMAN, 0.125),
        ("1,125", "number", GERMAN, 1.125),
        ("50.000", "number", {}, 50.0),
        ("1'234.50", "number", {"groupChar": "'"}, 1234.5),
        ("12,34", "number", {}, "12,34"),
        ("9007199254740993", "integer", GERMAN, 9_007_199_254_740_993),
        ("01.02.2023", "date", {"format": "%d.%m.%Y"}, "2023-02-01"),
        ("2023-02-01", "date", {"format": "%d.%m.%Y"}, "2023-02-01"),
    ],
)
def test_a_typed_bound_means_what_the_column_would_mean_by_it(text, use, spelling, meant):
    found = typed({"type": use, **spelling}, high=text)["constraints"]["maximum"]
    assert (found, type(found)) == (meant, type(meant))


def shown_of(field):
    return column_forms({"fields": [{"name": "x", **field}]}, DRAFT)[0]


@pytest.mark.parametrize(
    ("kind", "spelling", "value", "text"),
    [
        ("number", GERMAN, 45.125, "45,125"),
        ("number", GERMAN, 1_234_567.5, "1.234.567,5"),
        ("number", GERMAN, -0.25, "-0,25"),
        ("number", GERMAN, 50_000, "50.000"),
        ("number", GERMAN, 50.0, "50,0"),
        ("number", {"decimalChar": ","}, 1e-7, "0,0000001"),
        ("number", {}, 45.125, "45.125"),
        ("integer", {"groupChar": "'"}, 9_007_199_254_740_993, "9'007'199'254'740'993"),
        ("integer", {"groupChar": "\u202f"}, -1_234, "-1\u202f234"),
        ("date", {"format": "%d.%m.%Y"}, "2023-04-17", "17.04.2023"),
        ("date", {"format": "%-d. %B %y"}, "2023-04-07", "7. April 23"),
        ("date", {"format": "%d.%m.%y"}, "1923-04-17", "1923-04-17"),  # 17.04.23 would be a hundred years later
        ("date", {"format": "%Q"}, "2023-04-17", "2023-04-17"),
        ("date", {"format": "%d.%m.%Y"}, "a while ago", "a while ago"),
        ("datetime", {"format": "%d.%m.%Y %H:%M"}, "2023-04-17T08:30:00", "17.04.2023 08:30"),
        ("datetime", {"format": "%d.%m.%Y %H:%M"}, "2023-04-17T08:30:20", "2023-04-17T08:30:20"),
        (
            "datetime",
            {"format": "%d.%m.%Y %H:%M", "timezone": "Europe/Berlin"},
            "2023-07-01T08:30:00",
            "01.07.2023 08:30",
        ),
    ],
)
def test_a_bound_is_shown_as_the_column_is_spelled_and_means_the_same_when_it_is_sent(kind, spelling, value, text):
    other = {"date": "1900-01-01", "datetime": "1900-01-01T00:00:00"}.get(kind, -2_000)
    field = {"type": kind, "constraints": {"minimum": other, "maximum": value}, **spelling}
    assert shown_of(field).high == text
    for kept in (typed(field), typed(field, low="")):
        assert (kept["constraints"]["maximum"], type(kept["constraints"]["maximum"])) == (value, type(value))
    bare = {**field, "constraints": {}}  # which has shown nothing: the text alone says it
    read = typed(bare, high=text)["constraints"]["maximum"]
    assert (read, type(read)) == (value, type(value))


def test_what_the_form_showed_stays_what_it_is():
    field = {"type": "number", "constraints": {"enum": [1.125, 2.25, 10.5]}, **GERMAN}
    shown = "1,125\n2,25\n10,5"
    assert shown_of(field).categories == shown
    assert typed(field, categories=f"{shown}\n20,5\n1.000")["constraints"]["enum"] == [1.125, 2.25, 10.5, 20.5, 1_000]


def test_categories_of_another_type_are_read_anew():
    field = {"type": "number", "constraints": {"enum": [1.125, 10.5]}, **GERMAN}
    assert typed(field, use="string")["constraints"]["enum"] == ["1,125", "10,5"]
    texts = {"type": "string", "constraints": {"enum": ["1", "2"]}}
    assert typed(texts, use="integer")["constraints"]["enum"] == [1, 2]


@pytest.mark.parametrize(("text", "spelling"), [("1234.567", GERMAN), ("50.000", {"decimalChar": ","})])
def test_what_may_mean_thousands_or_a_fraction_is_refused_with_both(text, spelling):
    field = typed({"type": "number", **spelling}, low="0", high=text)
    field = typed(field, low="1", public="1")  # sent once more, it is still what was typed
    assert field["constraints"] == {"minimum": 1, "maximum": text}
    filled = {"document": {"fields": [field]}, "unit": {"several": "no"}, "declared": True}
    with pytest.raises(InvalidInput, match=f"could mean {text.replace('.', '')} or {text.replace('.', ',')}"):
        declaration_of(filled, DRAFT)


def test_a_point_in_a_whole_number_is_asked_about_whatever_the_spelling():
    field = typed({"type": "integer"}, low="0", high="1.000", public="1")
    assert field["constraints"] == {"minimum": 0, "maximum": "1.000"}
    with pytest.raises(InvalidInput, match=r"'x': 1\.000 could mean 1000 or 1: write one"):
        declaration_of(filled_with(field), DRAFT)


def filled_with(field):
    return {"document": {"fields": [{"name": "x", **field}]}, "unit": {"several": "no"}, "declared": True}


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ({"type": "number", "constraints": {"minimum": 0}}, "write its smallest and its largest value"),
        ({"type": "date"}, "write its smallest and its largest value"),
        (
            {"type": "number", "constraints": {"minimum": 9, "maximum": 1}},
            "its smallest value must be less than its largest one",
        ),
        (
            {"type": "date", "constraints": {"minimum": "2023-02-01", "maximum": "2023-01-31"}},
            "its smallest value must be less than its largest one",
        ),
        (
            {"type": "number", "constraints": {"minimum": "1,5,3", "maximum": 1}, **GERMAN},
            "'1,5,3' is no number; write one like 12,5",
        ),
        (
            {"type": "integer", "constraints": {"minimum": 0.5, "maximum": 3}},
            "'0.5' is no whole number; write one like 12",
        ),
        (
            {"type": "date", "format": "%d.%m.%Y", "constraints": {"minimum": "31.02.1940", "maximum": "2000-01-01"}},
            "'31.02.1940' is no day; write one like 17.04.2023",
        ),
        (
            {"type": "datetime", "constraints": {"minimum": "2000", "maximum": "2001-01-01T00:00:00"}},
            "'2000' is no day with a time; write one like 2023-04-17T08:30:00",
        ),
        ({"type": "string", "constraints": {}}, "write its categories, one a line"),
        ({"type": "string", "constraints": {"enum": ["m", "w", "m"]}}, "the category 'm' stands there twice"),
        ({"type": "integer", "constraints": {"enum": [0, "one"]}}, "'one' is no whole number; write one like 12"),
    ],
)
def test_a_wrong_domain_is_refused_in_the_words_of_the_form(field, said):
    with pytest.raises(InvalidInput) as refused:
        declaration_of(filled_with(field), DRAFT)
    assert str(refused.value.detail) == f"'x': {said}"
    assert english_in(f"<p>{said_in(refused.value.detail)}</p>") == []


@pytest.mark.parametrize("most", ["", "0", "-1", "eight", "3,5"])
def test_how_many_rows_one_person_may_have_is_asked_for_in_words(most):
    unit = {"several": "yes", "column": "x", "most": most}
    with pytest.raises(InvalidInput, match="Say in a whole number how many rows one person may have at most"):
        declaration_of({"document": {"fields": []}, "unit": unit, "declared": True}, DRAFT)


def test_a_type_that_is_chosen_by_mistake_takes_no_spelling_away():
    field = {
        "name": "x",
        "type": "date",
        "format": "%d.%m.%Y",
        "constraints": {"minimum": "2023-01-01", "maximum": "2023-12-31"},
    }
    set_aside = {}
    sent = {"c0.low": "01.01.2023", "c0.high": "31.12.2023", "c0.public": "on"}
    wrong = with_columns({"fields": [field]}, {**sent, "c0.use": "datetime"}, set_aside)
    back = with_columns(wrong, {**sent, "c0.use": "date", "c0.low": "17.04.2022"}, set_aside)
    assert back["fields"] == [{**field, "constraints": {"minimum": "2022-04-17", "maximum": "2023-12-31"}}]


def test_a_draft_that_is_sent_as_it_is_shown_is_declared_as_it_was_read(api, owner):
    """As a browser without scripts sends it, twice: kept first, and then as its owner's word."""
    rows = "\n".join(
        f"{1 + n % 28:02}.{1 + n % 12:02}.2023;{n % 90 + 1}.{n * 37 % 1000:03},{n % 10}5" for n in range(200)
    )
    page = send(owner, f"tag;betrag\n{rows}\n")
    shown = values_of(page.text)
    ends = {f"c{place}.{end}": shown[f"c{place}.{end}"] for place in (0, 1) for end in ("low", "high")}
    assert ends == {"c0.low": "01.01.2023", "c0.high": "31.12.2023", "c1.low": "0,0", "c1.high": "100.000,0"}
    kept = owner.post(page.url.path, {**shown, **{name: f" {text} " for name, text in ends.items()}, "step": "save"})
    assert json.loads(values_of(kept.text)["json"]) == json.loads(shown["json"])
    budget = owner.post(page.url.path, {**values_of(kept.text), **all_public(kept.text), **WAYS, "step": "continue"})
    owner.post(budget.url.path, {**values_of(budget.text), "step": "publish"})
    (dataset,) = api.http.get("/v1/datasets", headers=api.owner).json()["items"]
    said = [field["constraints"] for field in dataset["schema"]["fields"]]
    assert [(one["minimum"], one["maximum"]) for one in said] == [("2023-01-01", "2023-12-31"), (0.0, 100_000.0)]
