"""Columns of a draft that may say whose row it is: whether the owner, who says that each row is another person, knows of them.

What a draft saw of the rows is private: it is asked on the page of its sender, and is not in what is published.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.base.errors import InvalidInput
from service.base.messages import Message, sentences
from service.base.text import some_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


FEW = 4
"""Names in the words of a tick; all of them are folded away below it."""


def repeating_of(draft: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Columns that may say whose row it is: of which the same value stands in several rows, and of which that is not known."""
    found: Mapping[str, bool | None] = draft.get("repeating") or {}
    known = [name for name, repeats in found.items() if repeats]
    return known, [name for name in found if name not in known]


def require_apart(said: Mapping[str, str], draft: Mapping[str, Any]) -> None:
    """Raise where rows of one person may be several, by what the draft saw, and the owner did not say that they are not."""
    known, unknown = repeating_of(draft)
    if said.get("apart") or not known + unknown:
        return
    why = (
        Message(
            "%(columns)s: the same value stands in several rows, which may be of one person.", columns=_quoted(known)
        )
        if known
        else Message(
            "%(columns)s: there are too many different values to tell whether one stands in several rows, which may be of one person.",
            columns=_quoted(unknown),
        )
    )
    what_to_do = Message(
        "Say that several rows may belong to one person, and choose the column that tells whose they are; or tick below “No” "
        "that you know this, and that each row is still of another person"
    )
    raise InvalidInput(sentences(why, what_to_do), where="privacy_unit")


def first_of(names: Sequence[str]) -> str:
    """The first few names of a list, and how many there are more: for the words of a tick."""
    return some_of(names, FEW)


def _quoted(names: Sequence[str]) -> str:
    return some_of([repr(name) for name in names])
