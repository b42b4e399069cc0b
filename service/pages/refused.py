"""Refusals as the page says them: with the label of the field in its form, and as sentences that begin with a capital letter."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from service.base.messages import Figure, Listed, Message, Sentence, Text, filled, said
from service.pages.field_labels import label_in, labels_of, short
from service.pages.rewording import reworded

if TYPE_CHECKING:
    from fastapi import Request

    from service.base.messages import Language

_FIELD = re.compile(r"[\w-]+(?:\.[\w-]+)*", re.ASCII)
_PLACE = re.compile(r"%\((\w+)\)s")
_PLACES_OF_A_FIELD = {"where", "place", "knob", "header"}
"""What sentences call the place that holds the name of a field. A name of a column stands in others."""
_WHOLE = {"order"}
"""What pydantic calls a body where several of its fields do not go together; the sentence goes on with one of them."""
_A_NAME = re.compile(r"[a-z][\w.]*: ", re.ASCII)
"""A knob, or a word of a schema, which are written small."""
_SMALL = re.compile("[a-zäöü]")
"""Greek letters stay: δ and Δ are not the same."""


class AtField(Text):
    """A refusal behind the label of the field that it is of, instead of the field's name."""

    __slots__ = ("label", "rest")
    label: str
    rest: str

    def __new__(cls, label: str, rest: str) -> AtField:  # noqa: PYI034 - as in `service.base.messages`
        found = super().__new__(cls, f"{short(label)}: {rest}")
        found.label, found.rest = label, rest
        return found

    def said_in(self, language: Language) -> str:
        return f"{short(said(self.label, language))}: {said(self.rest, language)}"


class _Behind(Text):
    """A message without what stands before its first colon."""

    __slots__ = ("whole",)
    whole: Message

    def __new__(cls, whole: Message) -> _Behind:  # noqa: PYI034
        found = super().__new__(cls, filled(_behind(reworded(whole.origin)), whole.values))
        found.whole = whole
        return found

    def said_in(self, language: Language) -> str:
        return filled(_behind(self.whole.pattern_in(language)), self.whole.values, language)


def in_words_of_the_form(request: Request, text: str) -> str:
    """A refusal with the label of the form that was sent, where it names a field of the API."""
    return with_labels(text, getattr(request.scope.get("route"), "path", ""))


def with_labels(text: str, address: str) -> str:
    """The same refusal, with the labels of the form at this address."""
    if isinstance(text, Listed) and text.parts:
        return Listed(text.separator, [with_labels(text.parts[0], address), *text.parts[1:]])
    labels = labels_of(address)
    found, rest = None, text
    while isinstance(rest, Message) and (field := _field_of(rest)) is not None:
        label = label_in(labels, field)
        if label is None and field not in _WHOLE:
            break
        found, rest = label or found, _rest_of(rest)
    return rest if found is None else AtField(found, rest)


def _field_of(message: Message) -> str | None:
    """The name before its first colon, if that is one of a field."""
    head, mark, _ = reworded(message.origin).partition(": ")
    places = set(_PLACE.findall(head))
    if not mark or not places <= _PLACES_OF_A_FIELD & message.values.keys():
        return None
    name = filled(head, message.values) if places else head
    return name if _FIELD.fullmatch(name) else None


def _rest_of(message: Message) -> str:
    place = _PLACE.fullmatch(_behind(reworded(message.origin)))
    inner = message.values[place[1]] if place else None
    return inner if isinstance(inner, Text) else _Behind(message)


def _behind(pattern: str) -> str:
    return pattern.partition(": ")[2]


def standing(text: str, language: Language) -> str:
    """A sentence that stands by itself, in a language: its first letter is a capital, unless it begins with a name."""
    found = said(text, language) if isinstance(text, Text) else language.text(text)
    is_small = _SMALL.match(found) is not None and _is_of_words(text, found, language)
    return f"{found[:1].upper()}{found[1:]}" if is_small else found


def _is_of_words(text: str, found: str, language: Language) -> bool:
    """Whether it begins with words of this software, and not with what somebody has named."""
    if isinstance(text, Listed):
        return bool(text.parts) and _is_of_words(text.parts[0], found, language)
    if isinstance(text, Message):
        pattern = text.pattern_in(language)
        if place := _PLACE.match(pattern):
            first = text.values[place[1]]
            return isinstance(first, Text) and _is_of_words(first, found, language)
        return _A_NAME.match(pattern) is None
    return isinstance(text, AtField) or (not isinstance(text, Figure | Sentence) and _A_NAME.match(found) is None)
