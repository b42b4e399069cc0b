"""In which language a page is written: what was chosen, else what the browser asks for, else English."""

from __future__ import annotations

import gettext
import importlib.resources
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from service.base.text import TypedText
from service.pages.rewording import reworded, reworded_by_number

if TYPE_CHECKING:
    from fastapi import Request

LANGUAGES = {"en": "English", "de": "Deutsch"}
DEFAULT = "en"
COOKIE = "imprimatur_language"
DOMAIN = "imprimatur"


@dataclass(frozen=True)
class Conventions:
    """How a language writes numbers and dates, where that is not as the code does."""

    point: str = "."
    day: str = "%Y-%m-%d"


CONVENTIONS = {"en": Conventions(), "de": Conventions(point=",", day="%d.%m.%Y")}
GROUPS = "\u202f"
"""Between groups of three digits: a thin space, which both languages read and which cannot be taken for a point."""


@dataclass(frozen=True)
class PageLanguage:
    """One language: its texts and how it writes (`service.base.messages.Language`)."""

    code: str
    texts: gettext.NullTranslations
    conventions: Conventions

    def text(self, origin: str) -> str:
        """The translation, or the text itself, in the words of the page; an empty one would be the head of the file."""
        return self.texts.gettext(reworded(origin)) if origin else ""

    def plural(self, one: str, many: str, number: int) -> str:
        """The text of this language for one of two English ones, by number."""
        return self.texts.ngettext(*reworded_by_number(one, many), number)

    def figure(self, english: str) -> str:
        """A number that is written as in English: 1,234.5 or 1e-06."""
        return english.replace(",", GROUPS).replace(".", self.conventions.point)


@lru_cache
def language_named(code: str) -> PageLanguage:
    """One of `LANGUAGES`."""
    return PageLanguage(code, translations(code), CONVENTIONS[code])


@lru_cache
def translations(language: str) -> gettext.NullTranslations:
    """Texts of the page. English is what the templates hold."""
    if language == DEFAULT:
        return gettext.NullTranslations()
    file = importlib.resources.files("service.pages") / "locale" / language / "LC_MESSAGES" / f"{DOMAIN}.mo"
    with file.open("rb") as stream:
        return gettext.GNUTranslations(stream)


def language_of(request: Request) -> str:
    """One of `LANGUAGES`."""
    chosen = request.cookies.get(COOKIE, "")
    if chosen in LANGUAGES:
        return chosen
    wanted = [
        part.partition(";")[0].strip().lower()[:2] for part in request.headers.get("accept-language", "").split(",")
    ]
    return next((each for each in wanted if each in LANGUAGES), DEFAULT)


def has_comma(request: Request) -> bool:
    """Whether the page's language writes numbers with a decimal comma."""
    return language_named(language_of(request)).conventions.point == ","


def typed_condition(request: Request, text: str) -> TypedText:
    """A condition as it was typed into the page."""
    return TypedText(text, has_comma=has_comma(request))


def figure_in(request: Request, english: str) -> str:
    """A number in the page's language, for a field that is filled in beforehand; what is sent may have a point or a comma."""
    return language_named(language_of(request)).figure(english)
