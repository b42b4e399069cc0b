"""English sentences that know of what they were made, so that the page can say them in another language.

To everything else (JSON, logs, the command line) each of them is an ordinary text, in English. `make translations` finds the first
argument of every `Message` and `plural` in the code, as it finds the texts of templates. Bundles have this module in their
`sample.py`, which runs with Python 3.10, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol


class Language(Protocol):
    """In which a sentence is said."""

    def text(self, origin: str) -> str:
        """The text of this language for an English one; the English one where there is none."""

    def plural(self, one: str, many: str, number: int) -> str:
        """The same, of the two texts by number."""

    def figure(self, english: str) -> str:
        """A number as this language writes it."""


class Text(str):
    """A text of this software, not of a user."""

    __slots__ = ()

    def said_in(self, language: Language) -> str:
        """In another language."""
        return language.text(str(self))


class Figure(Text):
    """A number as English writes it: 1,234.5."""

    __slots__ = ()

    def said_in(self, language: Language) -> str:
        return language.figure(str(self))


class OnThePage(Text):
    """A text that the page, in every language, says otherwise than the API does."""

    __slots__ = ("shown",)
    shown: str

    def __new__(cls, plain: str, shown: str) -> OnThePage:  # noqa: PYI034 - Python 3.10 has no Self
        found = super().__new__(cls, plain)
        found.shown = shown
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        """For copies and pickles, which make it anew."""
        return OnThePage, (str(self), self.shown)

    def said_in(self, language: Language) -> str:
        return said(self.shown, language)


class Message(Text):
    """A sentence with named places, `%(name)s`, and what stands in them: texts of users, or texts of these classes."""

    __slots__ = ("origin", "values")
    origin: str
    values: dict[str, Any]

    def __new__(cls, origin: str, /, **values: object) -> Message:  # noqa: PYI034 - Python 3.10 has no Self
        """A text without values is taken as it is; one with values writes a per cent sign as `%%`."""
        found = super().__new__(cls, origin % values if values else origin)
        found.origin, found.values = origin, values
        return found

    def pattern_in(self, language: Language) -> str:
        """The sentence with its places."""
        return language.text(self.origin)

    def said_in(self, language: Language) -> str:
        return _filled_or_english(self.pattern_in(language), self.values, language, str(self))


class Counted(Message):
    """A sentence that is another one where something is one."""

    __slots__ = ("many", "number")
    many: str
    number: int

    @classmethod
    def of(cls, one: str, many: str, number: int, values: Mapping[str, Any]) -> Counted:
        """`one` where number is 1, else `many`."""
        found = cls(one if number == 1 else many, **values)
        found.origin, found.many, found.number = one, many, number
        return found

    def pattern_in(self, language: Language) -> str:
        return language.plural(self.origin, self.many, self.number)


class Listed(Text):
    """Texts one after another."""

    __slots__ = ("parts", "separator")
    parts: tuple[str, ...]
    separator: str

    def __new__(cls, separator: str, parts: Iterable[str]) -> Listed:  # noqa: PYI034 - as above
        kept = tuple(parts)
        found = super().__new__(cls, separator.join(kept))
        found.separator, found.parts = separator, kept
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        """For copies and pickles, which make it anew."""
        return Listed, (self.separator, self.parts)

    def said_in(self, language: Language) -> str:
        return said(self.separator, language).join(said(part, language) for part in self.parts)


class Sentence(Text):
    """A part of a sentence that stands by itself: its first letter is large, and a full stop is behind it."""

    __slots__ = ("part",)
    part: str

    def __new__(cls, part: str) -> Sentence:  # noqa: PYI034
        found = super().__new__(cls, _as_sentence(part))
        found.part = part
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        """For copies and pickles, which make it anew."""
        return Sentence, (self.part,)

    def said_in(self, language: Language) -> str:
        return _as_sentence(said(self.part, language))


def plural(one: str, many: str, number: int, /, **values: object) -> Counted:
    """`one` where number is 1, else `many`; `values` fill the places of both."""
    return Counted.of(one, many, number, values)


def sentences(*parts: str) -> Listed:
    """One after another; empty ones are left out."""
    return Listed(" ", [part for part in parts if part])


def whole(value: int) -> Figure:
    """A count: 32,561."""
    return Figure(f"{value:,}")


def percent(share: float, digits: int = 4) -> Figure:
    """A share of one: 27.5 %."""
    return Figure(f"{100.0 * share:.{digits}g} %")


def said(text: object, language: Language) -> str:
    """What a place of a sentence holds: translated where it is this software's own, else as it is."""
    return text.said_in(language) if isinstance(text, Text) else str(text)


def fault_of(error: BaseException) -> str:
    """What an error says; a message where it was raised with one."""
    first = error.args[0] if error.args else ""
    return first if isinstance(first, Text) else str(error)


def _as_sentence(part: str) -> str:
    return f"{part[:1].upper()}{part[1:]}."


def filled(pattern: str, values: Mapping[str, Any], language: Language | None = None) -> str:
    """A sentence with its places filled; without a language in English."""
    if not values:
        return pattern
    return pattern % ({name: said(value, language) for name, value in values.items()} if language else values)


def _filled_or_english(pattern: str, values: Mapping[str, Any], language: Language, english: str) -> str:
    """What was carried from another process may begin as a text of ours and go on otherwise: it stays English."""
    try:
        return filled(pattern, values, language)
    except (KeyError, ValueError):
        return english
