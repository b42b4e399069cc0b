"""Text from outside that is stored and shown, and what may be said about text that is refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from service.base.errors import InvalidInput

MAX_NAME_LENGTH = 200


def printable(text: str) -> str:
    """The text itself; `ValueError` for control characters, half surrogates and NUL, which Postgres cannot hold."""
    if not text.isprintable():
        raise ValueError("use printable characters only")
    return text


Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH), AfterValidator(printable)]


def sentence_of(error: Mapping[str, Any]) -> str:
    """What pydantic says of a fault, less the few messages that quote the input."""
    kind = str(error["type"])
    if kind.startswith("uuid"):
        return "Input should be a UUID"
    if kind == "union_tag_invalid":
        return f"choose one of {error['ctx']['expected_tags']}"
    return str(error["msg"]).removeprefix("Value error, ")


def read_json(text: str | bytes, where: str) -> Any:
    """JSON in UTF-8 that means one thing to every reader; `where` names it in the refusal.

    Refused besides what is no JSON: an object that gives a name twice, for readers differ in which one counts; and
    strings with NUL or half surrogates, which Postgres cannot hold.
    """
    try:
        document = json.loads(
            text.decode() if isinstance(text, bytes) else text, object_pairs_hook=lambda pairs: _unique(pairs, where)
        )
    except (ValueError, RecursionError):
        raise InvalidInput(f"{where}: this is not JSON", where=where) from None
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += [*value, *value.values()]
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str) and not _can_be_stored(value):
            raise InvalidInput(f"{where}: a text holds NUL or half a surrogate pair", where=where)
    return document


def _unique(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise InvalidInput(f"{where}: an object gives the same name twice", where=where)
    return document


def _can_be_stored(text: str) -> bool:
    return "\x00" not in text and not any("\ud800" <= character <= "\udfff" for character in text)
