"""Messages as JSON, so that they come out of another process, or out of storage, with what they were made of.

A text without places, such as one that was stored before messages had any, is carried as it is. What a process says that
a file may have taken over is read with care: texts are filled in, and nothing else is done with them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from service.base.messages import Counted, Figure, Listed, Message, Sentence, Text

_MESSAGE = Message
"""By another name: `make translations` looks for what is written out in calls of `Message`."""
_MOST_CHARACTERS = 200_000
_DEEPEST = 20
_PLACE = re.compile(r"%%|%\((\w+)\)s")
"""A per cent sign, or the place of a text: both at once, from the left, as they are filled in."""


class NotCarried(ValueError):
    """This is no message."""


def packed(text: str) -> Any:
    """A message as JSON: a plain text, or an object that says what the message was made of."""
    if isinstance(text, Counted):
        return {"one": text.origin, "many": text.many, "number": text.number, "values": _packed(text.values)}
    if isinstance(text, Message):
        return {"text": text.origin, "values": _packed(text.values)}
    if isinstance(text, Listed):
        return {"between": packed(text.separator), "parts": [packed(part) for part in text.parts]}
    if isinstance(text, Sentence):
        return {"sentence": packed(text.part)}
    if isinstance(text, Figure):
        return {"figure": str(text)}
    return {"text": str(text), "values": {}} if isinstance(text, Text) else str(text)


def unpacked(said: Any) -> str:
    """The text of such a document; raises `NotCarried` for what is none."""
    if _size(said, _DEEPEST) > _MOST_CHARACTERS:
        raise NotCarried
    return _unpacked(said)


def _packed(values: Mapping[str, object]) -> dict[str, Any]:
    return {name: packed(value) if isinstance(value, str) else str(value) for name, value in values.items()}


def _unpacked(said: Any) -> str:
    match said:
        case str():
            return said
        case {"one": str() as one, "many": str() as many, "number": int() as number, "values": dict() as values}:
            return Counted.of(_checked(one, values), _checked(many, values), number, _values(values))
        case {"text": str() as text, "values": dict() as values}:
            return _MESSAGE(_checked(text, values), **_values(values))
        case {"between": between, "parts": list() as parts}:
            return Listed(_unpacked(between), [_unpacked(part) for part in parts])
        case {"sentence": part}:
            return Sentence(_unpacked(part))
        case {"figure": str() as figure}:
            return Figure(figure)
    raise NotCarried


def _values(values: Mapping[str, Any]) -> dict[str, str]:
    return {name: _unpacked(value) for name, value in values.items()}


def _checked(text: str, values: Mapping[str, Any]) -> str:
    """Raise where a place is filled in another way than by its text: `%(n)999999999d` would take all memory."""
    if values and ("%" in _PLACE.sub("", text) or not _uses(text).keys() <= values.keys()):
        raise NotCarried
    return text


def _uses(text: str) -> Counter[str]:
    """How often each place stands in it."""
    return Counter(name for name in _PLACE.findall(text) if name)


def _size(said: Any, depth: int) -> int:
    """At most so many characters has what it becomes, which may name one place many times."""
    if depth == 0:
        raise NotCarried
    if isinstance(said, str):
        return len(said)
    if isinstance(said, Mapping):
        texts = [said.get(word) for word in ("text", "one", "many")]
        uses = _uses(" ".join(text for text in texts if isinstance(text, str)))
        parts, values = [part for word, part in said.items() if word != "values"], said.get("values")
        named = values if isinstance(values, Mapping) else {}
        filled = sum(_size(value, depth - 1) * max(1, uses[name]) for name, value in named.items())
        separators = len(said["parts"]) if isinstance(said.get("parts"), list) else 0
        between = _size(said.get("between", ""), depth - 1) * separators
        return filled + between + sum(_size(part, depth - 1) for part in parts)
    return sum(_size(part, depth - 1) for part in said) if isinstance(said, Sequence) else len(str(said))
