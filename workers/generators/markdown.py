"""Names that one person declares, in Markdown that another person opens: shown as they are, never carried out."""

from __future__ import annotations

import json
import re
from typing import Any

from imprimatur.visible import visible

_ACTIVE = re.compile(r"[\\`*\[\]<>&|~#!$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|:(?=//)|(?<=www)\.", re.IGNORECASE)
"""Code, emphasis, links, HTML, tables, headings, formulas; and the addresses that GitHub's Markdown makes links of by itself."""


def escaped(text: str) -> str:
    """The text within a line, or a cell of a table."""
    return _ACTIVE.sub(r"\\\g<0>", visible(text))


def code(text: str) -> str:
    """The text as code within a line; not for a cell of a table."""
    shown = visible(text)
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    space = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{space}{shown}{space}{fence}"


def indented_json(document: Any) -> str:
    """A block of code that holds one line of JSON."""
    return "    " + visible(json.dumps(document, ensure_ascii=False, sort_keys=True))
