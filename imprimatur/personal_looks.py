"""Cells that point to somebody by their look: e-mail addresses, phone numbers, account numbers, identifiers; and free text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_NORTH_AMERICAN = r"\(?[2-9][0-9]{2}\)?[ .-][0-9]{3}[.-][0-9]{4}"
"""Area codes begin with 2 to 9; 100-200-3000 numbers an article."""

LOOKS = {
    "e-mail addresses": r"^[^@\s,;]+@[^@\s,;]+\.[A-Za-z]{2,}$",
    "UUIDs": r"^\{?[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\}?$",
    "IBANs": r"^[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?$",
    "phone numbers": r"^\+[1-9][0-9 ()/.-]{6,}$|^00[1-9][0-9 ()/.-]{8,}$|^\(?0[0-9]{1,5}\)?[ /-][0-9][0-9 /-]{3,}[0-9]$"
    rf"|^(?:1-)?{_NORTH_AMERICAN}$",
    "IP addresses": r"^(?:[0-9]{1,3}\.){3}[0-9]{1,3}$",
    "web addresses": r"^https?://",
    "social security numbers": r"^[0-9]{3}-[0-9]{2}-[0-9]{4}$",
    "hashes": r"^(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})$",
}
"""What is never a category. A column is one of these if a tenth of its cells look so: the others are slips."""

INSIDE = re.compile(
    r"[^@\s,;<(]{1,64}@[^@\s,;]{1,255}\.[A-Za-z]{2,}"  # as long as the parts of an address may be: a long cell takes no square of its length
    r"|(?:\+|\b00)[1-9][0-9 ()/.-]{7,}[0-9]|\+[1-9][0-9 ()/.-]{6}[0-9]"
    # behind a digit and a hyphen it is a part of something longer, such as an ISBN
    rf"|(?<![0-9][-.])(?:\b0[1-9][0-9]{{1,4}}\)?[ /-][0-9][0-9 /-]{{3,}}[0-9]|(?<!\w)(?:1[ .-])?{_NORTH_AMERICAN}\b)"
)
"""An e-mail address or a phone number among other words: "call me, 0171 2345678". One is enough: comments that repeat are no categories."""

SHORT_DATE = r"^(?:0?[1-9]|[12][0-9]|3[01])([/.-])(?:0?[1-9]|[12][0-9]|3[01])[/.-](?:(?:19|20)[0-9]{2}|[0-9]{2})$"
"""06/08/2022 may be the beginning of a phone number, but is seldom a whole one."""

SOME = 10
"""One cell in so many."""

LONG_TEXT = 40
WORDS_OF_TEXT = 6
"""Characters and words of an average cell, or of any one in both, from which on a column is sentences, however few and however often they repeat."""

SHAPED_IDS = 20
"""From so many different cells on, cells of one shape (letters, then digits) are identifiers rather than categories."""


def look_of(texts: Mapping[str, int]) -> str | None:
    """What the cells look like, given how many rows have each text; None where too few look like anything."""
    cells = sum(texts.values())
    for look, pattern in LOOKS.items():
        count = sum(
            rows
            for text, rows in texts.items()
            if re.search(pattern, text.strip()) and not re.search(SHORT_DATE, text.strip())
        )
        if count and SOME * count >= cells:
            return look
    return None


def is_sentence(text: str) -> bool:
    """Whether one cell alone says that its column is text."""
    return len(text) >= LONG_TEXT and len(text.split()) >= WORDS_OF_TEXT


def shape_of(text: str) -> str:
    """`AB-0042` and `XY-9311` have one shape."""
    return "".join("9" if char.isdecimal() else "a" if char.isalpha() else char for char in text)


def are_shaped_ids(texts: list[str]) -> bool:
    """Whether all are of one or two shapes that hold at least three digits and a letter, as numbered things have."""
    if len(texts) < SHAPED_IDS:
        return False
    shapes = {shape_of(text) for text in texts}
    return len(shapes) <= 2 and all(shape.count("9") >= 3 and "a" in shape for shape in shapes)
