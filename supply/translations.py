"""Texts of the web page: found in the templates, kept with their translations in a file for people, and compiled."""

from __future__ import annotations

import ast
import io
from pathlib import Path
from typing import TYPE_CHECKING

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

from service.pages.knobs import described
from service.samples.formats import FORMATS

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "service" / "pages"
DOMAIN = "imprimatur"
KEYWORDS = {"_": None, "gettext": None, "ngettext": (1, 2), "N_": None}
METHODS = [("templates/**.html", "jinja2"), ("**/words.py", "python")]
MADE = {"Message": 1, "plural": 2}
"""Calls in the code that make a sentence, and how many of their first arguments are texts (`service.base.messages`)."""
CODE = ("service", "workers")
LINE_WIDTH = 120

Text = str | tuple[str, str]
"""One text, or its singular and plural."""


def found() -> set[Text]:
    """Every text that a template marks, that the code makes a message of, or that describes a method, in English."""
    marked = extract_from_dir(PAGES, METHODS, keywords=KEYWORDS)
    made = {text for folder in CODE for file in (ROOT / folder).rglob("*.py") for text in _made_in(file)}
    return {message for _, _, message, _, _ in marked} | made | described() | {each.help for each in FORMATS.values()}


def _made_in(file: Path) -> Iterator[Text]:
    """Sentences that a module makes; each is written out where it is made, or it could not be found."""
    for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id not in MADE:
            continue
        texts = [each.value for each in call.args[: MADE[call.func.id]] if isinstance(each, ast.Constant)]
        if len(texts) != MADE[call.func.id] or not all(isinstance(text, str) for text in texts):
            raise ValueError(
                f"{file}:{call.lineno}: write the text out: {call.func.id} of anything else is not translated"
            )
        yield texts[0] if len(texts) == 1 else (texts[0], texts[1])


def read(language: str) -> Catalog:
    """The texts of a language as people wrote them."""
    with (_folder(language) / f"{DOMAIN}.po").open("rb") as file:
        return read_po(file, locale=language)


def compiled(catalog: Catalog) -> bytes:
    """The translations in the form that the service reads."""
    written = io.BytesIO()
    write_mo(written, catalog)
    return written.getvalue()


def update(language: str) -> list[Text]:
    """Add new texts and remove those that no template has, in both files; those that wait for their translation."""
    catalog, file = read(language), _folder(language) / f"{DOMAIN}.po"
    head = file.read_text(encoding="utf-8").partition("\n\n")[0]
    wanted = found()
    for message in [each for each in catalog if each.id and each.id not in wanted]:
        catalog.delete(message.id)
    for text in wanted - {each.id for each in catalog}:
        catalog.add(text, flags=["python-format"] if "%(" in str(text) else [])
    written = io.BytesIO()
    write_po(written, catalog, omit_header=True, sort_output=True, width=LINE_WIDTH, ignore_obsolete=True)
    file.write_text(f"{head}\n\n{written.getvalue().decode()}", encoding="utf-8")
    file.with_suffix(".mo").write_bytes(compiled(catalog))
    return [message.id for message in catalog if message.id and not all(_texts(message.string))]


def _folder(language: str) -> Path:
    return PAGES / "locale" / language / "LC_MESSAGES"


def _texts(string: str | list[str] | tuple[str, ...] | None) -> tuple[str | None, ...]:
    return (string,) if string is None or isinstance(string, str) else tuple(string)
