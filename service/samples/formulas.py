"""CSV cells that a spreadsheet would carry out.

Declared categories and column names are written by one person and opened by another: `=HYPERLINK(…)` as a category would
run there (OWASP, CSV injection). With `formulas=escape`, and always in CSV for Excel, such a text gets an apostrophe before it, which spreadsheets take as "this is text". Numbers stay
numbers. Unless asked for, texts stay what was declared: with an apostrophe they are no longer the declared categories, and join and check as others.
"""

from __future__ import annotations

import re
from typing import Literal

Formulas = Literal["escape", "keep"]

_STARTS = frozenset("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
"""The last four are the full-width forms, which some spreadsheets take for the first four."""
_SPACE, _CURRENCY = "[ \u00a0\u202f]", "[$\u20ac\u00a3\u00a5]"
_NUMBER = re.compile(
    rf"[+-]?{_CURRENCY}?{_SPACE}?[0-9]+(([.,]|{_SPACE})[0-9]+)*[.,]?([eE][+-]?[0-9]+)?{_SPACE}?(%|{_CURRENCY})?"
)
"""An amount of money or a percentage is a number, too."""


def disarmed(text: str) -> str:
    """The text, with an apostrophe before it where a spreadsheet might take it for a formula."""
    armed = len(text) > 1 and text[0] in _STARTS and _NUMBER.fullmatch(text) is None
    return f"'{text}" if armed else text
