"""JSON that means one thing to every reader, and the bytes of it that are hashed and signed."""

from __future__ import annotations

import json
from typing import Any


class NotJson(ValueError):
    """What is wrong with the text; never a part of it."""


def canonical_json(document: Any) -> bytes:
    """UTF-8 JSON with sorted keys, no spaces, shortest floats, no NaN: the bytes that are hashed and signed."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode()


def read_json(text: str | bytes) -> Any:
    """JSON in UTF-8 that means one thing to every reader; raises `NotJson`.

    Refused besides what is no JSON: an object that gives a name twice, for readers differ in which one counts; and
    strings with NUL or half surrogates, which Postgres cannot hold.
    """
    try:
        document = json.loads(text.decode() if isinstance(text, bytes) else text, object_pairs_hook=_unique)
    except NotJson:
        raise
    except (ValueError, RecursionError):
        raise NotJson("this is not JSON") from None
    waiting = [document]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += [*value, *value.values()]
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str) and not _can_be_stored(value):
            raise NotJson("a text holds NUL or half a surrogate pair")
    return document


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        raise NotJson("an object gives the same name twice")
    return document


def _can_be_stored(text: str) -> bool:
    return "\x00" not in text and not any("\ud800" <= character <= "\udfff" for character in text)
