"""A refusal on the page names a field as its form does, in both languages: every form, every field."""

import json
import re

import pytest
from fastapi import Request

from service.base.errors import ImprimaturError, InvalidInput, InvalidOrder
from service.base.messages import Message, plural, said, sentences
from service.datasets.declaration import check_expiry, parse_declaration, with_public_rows
from service.domain.image_schema import parse_schema
from service.methods.catalogue import parse_order
from service.methods.facts import Facts
from service.methods.pricing import price_order, resolve_order
from service.methods.wants import parse_want
from service.pages.field_labels import FORMS, labels_of, short
from service.pages.knobs import document_of, want_of
from service.pages.languages import LANGUAGES, language_named
from service.pages.publishing import _number
from service.pages.questions import question_of
from service.pages.refused import standing, with_labels
from service.privacy.filters import NANO, Shares, open_budget
from service.privacy.statements import check_epsilon, choose_delta
from service.queries.conditions import conditions_of_order
from service.releases.names import checked_name
from supply import translations
from tests.service.pages.test_german_refusals import TABLE

FOLDER = translations.PAGES / "templates"
ENGLISH, GERMAN = (language_named(code) for code in LANGUAGES)
ORDER, ASK = "/datasets/{dataset_id}/order", "/datasets/{dataset_id}/ask"
BUDGET = "/datasets/new/{staged_id}/budget"
NAMED_BY_ITSELF = ("{{ at }}", "knob.{{")
"""A field of a column is refused by the name of the column; a knob is called in the form as in the API."""


def source_of(template):
    """With what it includes, in its place."""
    source = (FOLDER / template).read_text(encoding="utf-8")
    return re.sub(r'{% include "([^"]+)" %}', lambda found: source_of(found[1]), source)


def forms():
    """Of each form: where it is sent to, and its source."""
    for file in sorted(FOLDER.glob("*.html")):
        for form in re.finditer(r"<form\b[^>]*?action=\"([^\"]+)\".*?</form>", source_of(file.name), re.DOTALL):
            yield re.sub(r"{{.*?}}", "*", form[1]), form[0]


def filled_in(form):
    """The names of what somebody can type or choose in it."""
    for tag in re.finditer(r'<(?:input|select|textarea)\b[^>]*?\bname="([^"]+)"[^>]*>', form):
        if 'type="hidden"' not in tag[0] and not tag[1].startswith(NAMED_BY_ITSELF):
            yield tag[1]


def test_every_field_of_every_form_has_a_label_which_is_the_one_of_its_form():
    known = {re.sub(r"{\w+}", "*", address): entries for address, entries in FORMS.items()}
    seen = set()
    for address, source in forms():
        entries = {each.name: each.label for each in known.get(address, ())}
        for name in filled_in(source):
            assert name in entries, f"{address}: {name} has no entry in service/pages/field_labels.py"
            assert f'_("{entries[name]}")' in source, f"{address}: {name} has another label in its form"
            seen.add((address, name))
    assert {("/datasets/*/order", "condition_on"), ("/admin/keys", "days"), ("/releases/*/rows", "where")} <= seen


@pytest.mark.parametrize("address", FORMS)
def test_a_refusal_of_each_field_begins_with_its_label_in_both_languages(address):
    for field, label in labels_of(address).items():
        refusal = with_labels(Message("%(where)s: %(what)s", where=field, what=Message("Field required")), address)
        for language, what in ((ENGLISH, "Field required"), (GERMAN, "Diese Angabe ist nötig")):
            assert standing(refusal, language).lower() == f"{short(said(label, language))}: {what}".lower()


def test_every_translation_of_such_a_refusal_has_its_field_in_front_too():
    """What stands before the first colon is left out, whatever it is."""
    for message in translations.read("de"):
        one = message.id if isinstance(message.id, str) else message.id[0]
        german = message.string if isinstance(message.string, str) else message.string[0]
        if re.match(r"(?:%\((?:where|place|knob|header)\)s[\w.]*|[a-z]+(?:[._]\w+)*): ", one):
            assert re.match(r"[^:]{1,60}: ", german), one


BUDGET_OF_TABLE = open_budget(10.0, 1e-6)


def ordering(**form):
    """As the order form does."""
    document = {"method": "marginals", **document_of({"method": "marginals", "epsilon": "1", **form})}
    if form.get("step") == "want":
        return parse_want(want_of(form))
    facts = Facts.of_declaration(json.dumps(TABLE), units=200, most_per_unit=1, budget=BUDGET_OF_TABLE)
    return price_order(
        resolve_order(parse_order(document), facts, Shares(NANO, NANO), parse_schema(TABLE)), BUDGET_OF_TABLE
    )


def asking(**form):
    """As the form of a question does."""
    request = Request({"type": "http", "headers": []})
    asked = question_of(request, {"kind": "count", "epsilon": "1", **form})
    if "where" in asked:
        asked["where"] = conditions_of_order(asked["where"], parse_schema(TABLE), "questions.0")
    facts = Facts.of_declaration(json.dumps(TABLE), units=200, most_per_unit=1, budget=BUDGET_OF_TABLE)
    order = parse_order({"method": "queries", "epsilon": asked.pop("epsilon"), "questions": [asked]})
    return price_order(resolve_order(order, facts, Shares(NANO, NANO), parse_schema(TABLE)), BUDGET_OF_TABLE)


def publishing(*, epsilon=1, delta=None, name="d", expires=None, distinct=None, undeclared="[]"):
    said_ = {"epsilon": epsilon} | ({} if delta is None else {"delta": delta})
    return with_public_rows(
        parse_declaration(
            schema=json.dumps(TABLE),
            budget=json.dumps(said_),
            name=name,
            privacy_unit=None,
            rows_expire_at=expires,
            distinct_from=distinct,
            accept_undeclared=undeclared,
        ),
        "true",
    )


SOMEBODY = '["00000000-0000-4000-8000-000000000000"]'
REFUSED = [
    (ORDER, lambda: ordering(epsilon="x"), "Privacy loss ε of this release: write a number"),
    (ORDER, lambda: ordering(epsilon="0"), "Privacy loss ε of this release: Input should be greater than 0"),
    (ORDER, lambda: ordering(condition_on="born"), "Column to predict: a field with declared categories"),
    (ORDER, lambda: ordering(condition_on="mark"), "Column to predict: marginals needs a field"),
    (ORDER, lambda: ordering(purpose="classifiers"), "What the rows are for: to predict, a column of at most"),
    (ORDER, lambda: ordering(purpose="tables", condition_on="city"), "What the rows are for: rows that are to count"),
    (
        ORDER,
        lambda: ordering(report="on", report_share="60"),
        "Precision kept for the report, in per cent: more than 0",
    ),
    (ORDER, lambda: ordering(report_held_out="5"), "Held-out units, in per cent: the report"),
    (
        ORDER,
        lambda: ordering(accept_accuracy="80"),
        "Rows of held-out units predicted right at least, in per cent: the",
    ),
    (
        ORDER,
        lambda: ordering(report="on", accept_accuracy="80"),
        "Rows of held-out units predicted right at least, in per cent: it is measured on held-out units; say",
    ),
    (ORDER, lambda: ordering(step="want", group="x"), "A group of so many rows: write a number"),
    (ORDER, lambda: ordering(step="want", group="20", within="0"), "May be off by at most so many per cent"),
    (ORDER, lambda: checked_name("\t"), "Name of the release: use 1 to 200 printable characters"),
    (ASK, lambda: asking(epsilon="x"), "Privacy loss ε of this question: write a number"),
    (ASK, lambda: asking(epsilon="0.00001"), "Question: this leaves ε ="),
    (ASK, lambda: asking(kind="sum"), "Column: choose one"),
    (ASK, lambda: asking(kind="cross_table", column="age"), "Second column, for pairs: choose another one"),
    (ASK, lambda: asking(kind="sum", column="city"), "Question: city has declared values"),
    (ASK, lambda: asking(kind="median", column="age"), "Question: rows that do not count would stand"),
    (ASK, lambda: asking(where="aeg>1"), "Only rows with: there is no column 'aeg'"),
    (BUDGET, lambda: _number("x", "epsilon"), "Privacy loss ε of everything that is ever released from it: write"),
    (BUDGET, lambda: publishing(epsilon=0), "Privacy loss ε of everything that is ever released from it: Input"),
    (BUDGET, lambda: publishing(delta=2), "δ: Input should be less than 1"),
    (BUDGET, lambda: choose_delta(0.5, 100), "δ: at most 1/(10 units)"),
    (BUDGET, lambda: choose_delta(1e-300, 100), "δ: at least"),
    (
        BUDGET,
        lambda: check_epsilon(99.0, 10.0),
        "Privacy loss ε of everything that is ever released from it: at most 10",
    ),
    (BUDGET, lambda: publishing(name=" "), "Name of the dataset: use 1 to 200 printable characters"),
    (BUDGET, lambda: publishing(expires="x"), "Day on which rows and their key are destroyed: give a moment"),
    (
        BUDGET,
        lambda: check_expiry(*(publishing(distinct=None, expires="2001-01-01T00:00:00Z").rows_expire_at,) * 2),
        "Day on which rows and their key are destroyed: name a moment",
    ),
    (BUDGET, lambda: publishing(distinct=SOMEBODY), "Everybody may have these rows: rows that look like"),
    (BUDGET, lambda: publishing(undeclared="3"), "Columns of which most cells may lie outside what you declared, one"),
]
OF_THE_API = re.compile(r"[a-z]\w*\.[a-z0-9]\w*|[a-z]+_[a-z]\w+|`|--|^(?:budget|rows|want|where|part): ")


@pytest.mark.parametrize(
    ("address", "refused", "begins"), REFUSED, ids=[f"{address}: {begins[:40]}" for address, _, begins in REFUSED]
)
def test_what_is_refused_of_a_form_is_in_its_own_words(address, refused, begins):
    with pytest.raises(ImprimaturError) as found:
        refused()
    detail = found.value.detail
    shown = with_labels(detail, address)
    assert standing(shown, ENGLISH).startswith(begins), standing(shown, ENGLISH)
    for language in (ENGLISH, GERMAN):
        assert OF_THE_API.search(standing(shown, language)) is None, standing(shown, language)
    assert isinstance(found.value, InvalidInput | InvalidOrder)
    assert found.value.detail is detail  # what the API says stays as it was


def test_only_a_field_is_taken_for_one():
    """A column may be called as a field of the form."""
    column = Message("%(column)s: %(what)s", column="epsilon", what="x")
    assert with_labels(column, ORDER) is column
    inner = Message("%(place)s.where: %(fault)s", place="questions.0", fault=column)
    assert standing(with_labels(inner, ASK), ENGLISH) == "Only rows with: epsilon: x"
    several = with_labels(
        sentences(Message("rows: %(what)s.", what="x"), Message("So it is.")), "/releases/{release_id}/download"
    )
    assert standing(several, ENGLISH) == "Rows: x. So it is."


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (Message("sign in first"), "Sign in first"),
        ("something else", "Something else"),
        (Message("teachers: each needs one"), "teachers: each needs one"),
        (Message("held-out units: none"), "Held-out units: none"),
        (Message("%(column)s: %(what)s", column="age", what=Message("it is empty")), "age: it is empty"),
        (Message("%(what)s, then", what=Message("it is empty")), "It is empty, then"),
        (plural("%(n)s cell is wrong", "%(n)s cells are wrong", 2, n=2), "2 cells are wrong"),
        (sentences(Message("it is empty"), Message("it is empty")), "It is empty it is empty"),
        ("", ""),
    ],
)
def test_a_sentence_that_stands_by_itself_begins_with_a_capital_letter(text, shown):
    assert standing(text, ENGLISH) == shown
