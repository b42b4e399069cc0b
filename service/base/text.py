"""Text from outside that is stored and shown, and what may be said about text that is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from imprimatur.verify import documents
from service.base.errors import InvalidInput

MAX_NAME_LENGTH = 200
_BOM = b"\xef\xbb\xbf"


def printable(text: str) -> str:
    """The text itself; `ValueError` for control characters, half surrogates and NUL, which Postgres cannot hold."""
    if not text.isprintable():
        raise ValueError("use printable characters only")
    return text


Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH), AfterValidator(printable)]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a refusal: the known word that looks most like this one, or nothing."""
    by_lower = {each.lower(): each for each in known}
    close = get_close_matches(word.lower()[:MAX_NAME_LENGTH], by_lower, n=1, cutoff=0.6)
    return f"; did you mean {by_lower[close[0]]!r}?" if close else ""


def some_of(known: Sequence[str], most: int = 10) -> str:
    """The words of a list, not more than a sentence bears."""
    return ", ".join(known[:most]) + (f" and {len(known) - most} more" if len(known) > most else "")


def sentence_of(error: Mapping[str, Any]) -> str:
    """What pydantic says of a fault, less the few messages that quote the input."""
    kind = str(error["type"])
    if kind.startswith("uuid"):
        return "Input should be a UUID"
    if kind == "union_tag_invalid":
        return f"choose one of {error['ctx']['expected_tags']}"
    if kind == "union_tag_not_found":
        return f"say which one is meant: {error['ctx']['discriminator']} is missing"
    if kind.startswith(("datetime", "timezone")):
        return "give a moment with its time zone, like 2027-01-31T00:00:00Z"
    return str(error["msg"]).removeprefix("Value error, ")


def read_json(text: str | bytes, where: str) -> Any:
    """JSON that means one thing to every reader (`imprimatur.verify.documents`); `where` names it in the refusal.

    A byte order mark before it, as editors on Windows write one, is no part of it.
    """
    try:
        return documents.read_json(text.removeprefix("\ufeff") if isinstance(text, str) else text.removeprefix(_BOM))
    except documents.NotJson as error:
        raise InvalidInput(f"{where}: {error}", where=where) from None
