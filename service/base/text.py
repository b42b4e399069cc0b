"""Text from outside that is stored and shown, and what may be said about text that is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field

from imprimatur.verify import documents
from service.base.errors import InvalidInput
from service.base.messages import Message

MAX_NAME_LENGTH = 200
_BOM = b"\xef\xbb\xbf"


class TypedText(str):
    """A condition that was typed into a page. Numbers in it may be written as people of its language write them."""

    __slots__ = ("has_comma",)
    has_comma: bool
    """Whether that language has a decimal comma."""

    def __new__(cls, text: str, *, has_comma: bool) -> Self:
        """As `str`."""
        found = super().__new__(cls, text)
        found.has_comma = has_comma
        return found


def printable(text: str) -> str:
    """The text itself; `ValueError` for control characters, half surrogates and NUL, which Postgres cannot hold."""
    if not text.isprintable():
        raise ValueError(Message("use printable characters only"))
    return text


Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH), AfterValidator(printable)]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a refusal: the known word that looks most like this one, or nothing."""
    by_lower = {each.lower(): each for each in known}
    close = get_close_matches(word.lower()[:MAX_NAME_LENGTH], by_lower, n=1, cutoff=0.6)
    return Message("; did you mean %(word)s?", word=repr(by_lower[close[0]])) if close else ""


def some_of(known: Sequence[str], most: int = 10) -> str:
    """The words of a list, not more than a sentence bears."""
    shown = ", ".join(known[:most])
    return Message("%(names)s and %(count)s more", names=shown, count=len(known) - most) if len(known) > most else shown


_GROUPED = re.compile(r"[1-9][0-9]{0,2}(?:([.,' \u00a0\u2009\u202f])[0-9]{3})(?:\1[0-9]{3})*", re.ASCII)


def ungrouped(text: Any) -> Any:
    """A count without the signs between its thousands: 1.000 is a thousand, since a count has no fraction. All else as it is."""
    if not isinstance(text, str) or _GROUPED.fullmatch(text.strip()) is None:
        return text
    return re.sub(r"[^0-9]", "", text)


def read_json(text: str | bytes, where: str) -> Any:
    """JSON that means one thing to every reader (`imprimatur.verify.documents`); `where` names it in the refusal.

    A byte order mark before it, as editors on Windows write one, is no part of it.
    """
    try:
        return documents.read_json(text.removeprefix("\ufeff") if isinstance(text, str) else text.removeprefix(_BOM))
    except documents.NotJson as error:
        fault = _NOT_JSON.get(str(error), str(error))
        raise InvalidInput(Message("%(where)s: %(fault)s", where=where, fault=fault), where=where) from None


_NOT_JSON = {
    str(said): said
    for said in (
        Message("this is not JSON"),
        Message("a text holds NUL or half a surrogate pair"),
        Message("an object gives the same name twice"),
    )
}
"""The words of `imprimatur.verify.documents`, which knows no page."""
