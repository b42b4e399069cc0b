"""What a draft found of a column; `service.pages.rewording` has the words of the form instead of those of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.base.carried import unpacked
from service.base.errors import InvalidFile
from service.base.messages import Message, sentences

if TYPE_CHECKING:
    from collections.abc import Mapping

_ROWS_OF_A_SPREADSHEET = Message(
    "Correct these rows, which a spreadsheet shows (row 1 below a header in its line 1 is line 2), and save them again as CSV."
)


def findings_of(draft: Mapping[str, Any], name: str) -> list[str]:
    """The findings of a column; in a draft from before findings had places, as they were stored."""
    return [unpacked(each) for each in draft["findings"].get(name, ())]


def notices_of(draft: Mapping[str, Any]) -> list[str]:
    """On how the file was read."""
    return [unpacked(each) for each in draft["notices"]]


def refusal_of(error: InvalidFile) -> InvalidFile:
    """The refusal of a file that cannot be drafted, with what can be done without a schema at hand."""
    if {"count", "rows"} <= error.values.keys() and "column" not in error.values:
        return InvalidFile(sentences(error.detail, _ROWS_OF_A_SPREADSHEET), **error.values)
    return error
