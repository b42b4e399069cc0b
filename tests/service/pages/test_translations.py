"""Texts of the page in both languages: none is missing, none is left over, and the compiled file is the newest."""

import ast
import gettext
import io
import re

import pytest

from service.pages import languages
from supply import translations


def test_every_text_has_its_german_one_and_no_german_text_is_left_over():
    found = translations.found()
    assert {"Sign in", "published", ("%(n)s unit", "%(n)s units")} <= found
    translated = {message.id: message.string for message in translations.read("de") if message.id}
    assert set(translated) == found
    for origin, text in translated.items():
        assert all([text] if isinstance(text, str) else text), origin


def test_one_word_is_said_for_a_charge_and_no_example_is_left_in_english():
    for message in translations.read("de"):
        for text in [message.string] if isinstance(message.string, str) else message.string:
            said = re.sub(r"%\(\w+\)s", "", text)
            assert re.search(r"Zahlung|(?<!noch )bezahl", said) is None, "a charge is called Belastung"
            assert re.search(r"\b(?:age|sex|customer|office|gross)\b", said) is None, text


def test_both_texts_have_the_same_places_for_numbers():
    for message in translations.read("de"):
        texts = (message.string,) if isinstance(message.string, str) else message.string
        ids = (message.id,) if isinstance(message.id, str) else message.id
        for text, origin in zip(texts, ids, strict=True):
            assert set(re.findall(r"%\((\w+)\)", text)) == set(re.findall(r"%\((\w+)\)", origin)), message.id


def test_the_compiled_file_is_made_of_the_texts():
    fresh = gettext.GNUTranslations(io.BytesIO(translations.compiled(translations.read("de"))))
    compiled = languages.translations("de")
    assert {**compiled._catalog, "": ""} == {**fresh._catalog, "": ""}  # the header holds a date


@pytest.mark.parametrize("language", sorted(languages.LANGUAGES))
def test_each_language_can_be_loaded(language):
    assert languages.translations(language).gettext("Sign in") in {"Sign in", "Anmelden"}


SAID = {
    "InvalidSchema",
    "InvalidInput",
    "DraftSchema",
    "InvalidFile",
    "TooLarge",
    "WordRefused",
    "Problem",
    "Finding",
    "Shape",
}
"""Calls whose sentences an owner may be shown on a page."""
ELSEWHERE = {"draft.py"}
"""Sentences of the API and of the command line."""


def plain_sentences(source, calls):
    """Sentences of such calls, and of notices, that are no messages."""
    for call in ast.walk(ast.parse(source)):
        name = getattr(getattr(call, "func", None), "id", None)
        is_notice = ast.unparse(call.func).endswith("notices.append") if isinstance(call, ast.Call) else False
        if name in calls or is_notice:
            yield from (
                ast.unparse(each)
                for each in call.args
                if isinstance(each, ast.JoinedStr | ast.Constant) and len(ast.unparse(each).split()) > 2
            )


def test_a_sentence_that_is_no_message_is_found():
    source = """raise InvalidFile(f"Column {name} is wrong")
table.notices.append("It was read otherwise.")
raise InvalidFile(Message("Column %(name)s is wrong", name=name), column=name)"""
    assert len(list(plain_sentences(source, SAID))) == 2


def test_what_an_owner_is_told_of_a_schema_or_a_file_is_a_message():
    """What is no message is shown in English on every page."""
    folders = {"domain": {*SAID, "ValueError"}, "intake": SAID}
    plain = {
        f"{file.name}: {sentence}"
        for folder, calls in folders.items()
        for file in (translations.ROOT / "service" / folder).rglob("*.py")
        if file.name not in ELSEWHERE and file.parent.name != "foreign"
        for sentence in plain_sentences(file.read_text(encoding="utf-8"), calls)
    }
    assert plain == set()


def texts_of(template):
    """What the template of a whole page may show, with the parts that it includes."""
    source = (translations.PAGES / "templates" / template).read_text(encoding="utf-8")
    return source + "".join(map(texts_of, re.findall(r'include "([^"]+)"', source)))


UNIT = re.compile(r'(?:_|ngettext)\("[^"]*\b[Uu]nits?\b')


def test_each_page_that_speaks_of_units_says_what_one_is():
    folder = translations.PAGES / "templates"
    pages = [file.name for file in folder.glob("*.html") if '"base.html"' in file.read_text(encoding="utf-8")]
    speaking = {name for name in pages if UNIT.search(texts_of(name).replace("A unit is what is protected", ""))}
    assert {"datasets.html", "dataset.html", "order.html", "confirm.html", "certificate.html"} <= speaking
    for name in sorted(speaking):
        assert 'include "unit.html"' in (folder / name).read_text(encoding="utf-8"), name
