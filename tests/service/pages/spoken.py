"""The words of a page that a person sees or hears, to find those that are left in another language."""

import gettext
import re
from html.parser import HTMLParser

NOT_READ = {"script", "style", "pre", "code", "textarea"}
"""Of a text area the content is what somebody typed, or a document."""
SPOKEN = {"aria-label", "placeholder", "title", "alt"}
ENGLISH = {"the", "of", "is", "are", "with", "which", "from", "has", "have", "and", "this", "that", "it", "by", "at"}
"""Words that no German sentence has."""


class _Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.texts, self._within = [], []

    def handle_starttag(self, tag, attributes):
        if tag in NOT_READ:
            self._within.append(tag)
        self.texts += [value for name, value in attributes if name in SPOKEN and value]

    def handle_endtag(self, tag):
        if self._within and self._within[-1] == tag:
            self._within.pop()

    def handle_data(self, data):
        if not self._within and data.strip():
            self.texts.append(data.strip())


def spoken(page):
    """Texts and labels of a page, without code and what is typed."""
    reader = _Reader()
    reader.feed(page)
    return reader.texts


def english_in(page):
    """Texts of a German page with an English word."""
    return [text for text in spoken(page) if ENGLISH & set(re.findall(r"[a-z]+", text.lower()))]


def sentences_in(page):
    """Texts with three words of plain letters in a row."""
    return [text for text in spoken(page) if re.search(r"[A-Za-z]{2,} [A-Za-z]{2,} [A-Za-z]{2,}", text)]


class Illegible(gettext.NullTranslations):
    """A language without letters; places for values stay."""

    def gettext(self, message):
        return "".join(
            part if part.startswith("%") else re.sub("[A-Za-z]", "·", part)
            for part in re.split(r"(%\(\w+\)s|%%)", message)
        )

    def ngettext(self, msgid1, msgid2, n):
        return self.gettext(msgid1 if n == 1 else msgid2)
