"""In which language a page is written: what was chosen, else what the browser asks for, else English."""

from __future__ import annotations

import gettext
import importlib.resources
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fastapi import Request

LANGUAGES = {"en": "English", "de": "Deutsch"}
DEFAULT = "en"
DECIMAL_COMMA = {"de"}
"""Languages whose spreadsheets write numbers with a comma."""
COOKIE = "imprimatur_language"
DOMAIN = "imprimatur"


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
