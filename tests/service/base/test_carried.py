"""Messages that go through JSON, and what a process may say that is none."""

import json

import pytest

from service.base.carried import NotCarried, packed, unpacked
from service.base.messages import Figure, Listed, Message, Sentence, plural, said, sentences
from service.pages.languages import language_named

CELLS = plural(
    "Column %(column)s: 1 cell is %(beyond)s and will be clamped.",
    "Column %(column)s: %(count)s cells are %(beyond)s and will be clamped.",
    7,
    column="'age'",
    count=7,
    beyond=Message("outside the declared range"),
)
EMPTY = Message("it is empty")
FINDING = sentences(Sentence(Message("left out: %(why)s", why=EMPTY)), Message("Cells: %(cells)s.", cells="'50 %'"))


@pytest.mark.parametrize(
    ("text", "german"),
    [
        (
            CELLS,
            "Spalte 'age': 7 Zellen liegen außerhalb des angegebenen Wertebereichs und werden auf das Ende gesetzt.",
        ),
        (FINDING, "Weggelassen: sie ist leer. Zellen: '50 %'."),
        (Figure("1,234.5"), "1\u202f234,5"),
        (Listed(Message(" and "), ["'a'", "'b'"]), "'a' und 'b'"),
        ("a notice of an earlier version, 50 % of it", "a notice of an earlier version, 50 % of it"),
    ],
)
def test_a_message_comes_out_of_json_with_what_it_was_made_of(text, german):
    again = unpacked(json.loads(json.dumps(packed(text))))
    assert (again, json.dumps(again)) == (text, json.dumps(str(text)))
    assert said(again, language_named("de")) == german


HOSTILE = [
    {"text": "%(n)999999999d", "values": {"n": "1"}},
    {"text": "%%(n)s%(n)9999999s", "values": {"n": "1"}},
    {"one": "%%(n)s%(n)9999999s", "many": "b", "number": 1, "values": {"n": "1"}},
    {"text": "%%(n)s%", "values": {"n": "1"}},
    {"text": "%(n)s %(m)s", "values": {"n": "1"}},
    {"text": "%", "values": {"n": "1"}},
    {"text": "%(n)s" * 1_000, "values": {"n": {"text": "%(m)s" * 1_000, "values": {"m": "x" * 1_000}}}},
    {"between": "x" * 100_000, "parts": ["", "", "", ""]},
    {"text": ["a"], "values": {}},
    {"one": "a", "many": "b", "number": "1", "values": {}},
    {"figure": 1},
    {"sentence": None},
    {},
    [],
    None,
    7,
]


@pytest.mark.parametrize("document", HOSTILE)
def test_what_is_no_message_is_refused_and_fills_no_memory(document):
    with pytest.raises(NotCarried):
        unpacked(document)


def test_a_message_that_begins_as_another_one_and_has_other_places_stays_english():
    """German has the places of ours; a process that a file took over may give others."""
    forged = packed(CELLS) | {"many": "%(x)s", "values": {"column": "'age'", "beyond": "y", "x": "z"}}
    assert said(unpacked(forged), language_named("de")) == "z"


def test_a_message_that_is_nested_too_deeply_is_refused():
    document = "x"
    for _ in range(100):
        document = {"sentence": document}
    with pytest.raises(NotCarried):
        unpacked(document)
