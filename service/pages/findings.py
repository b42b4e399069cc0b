"""What a draft found of a column, in the words of the form instead of those of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.base.carried import unpacked
from service.base.errors import InvalidFile
from service.base.messages import Message, replaced, sentences
from service.intake.table.advice import IN_UTF_8, NAME_THE_LAST, NO_COMMAS, OTHER_ENCODING, QUOTES_AND_ESCAPES
from service.intake.table.drafting.proposals import (
    ADD_TO_THE_ENUM,
    CORRECT_OR_MISSING,
    FREE_TEXT,
    MADE_ANEW,
    MAKE_IT_CATEGORIES,
    NAME_OR_REMOVE,
    PUBLIC_LIST,
    UNITS_IN_THE_FIRST_ROW,
    WHOSE,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

_ON_THE_PAGE: dict[str, Message] = {
    WHOSE: Message(
        "do several rows belong to one person? Then choose it below as the column that says whose row it is. If each row "
        "is another person, leave it as it is and say so below"
    ),
    MADE_ANEW: Message(
        "its values there come from a pattern, not from these; to have no such column, choose “nothing to publish: leave "
        "it out”"
    ),
    FREE_TEXT: Message(
        'remove it from the file, or give it `"role": "free_text"`; if its texts are the answers of a form, choose '
        "categories and write the public list of them, or buy them"
    ),
    PUBLIC_LIST: Message("if it is a code, choose categories and write the public list of them, or buy them"),
    NAME_OR_REMOVE: Message("give it a name in the first line of the file, or remove it there"),
    CORRECT_OR_MISSING: Message("correct them in the file, or add them to the ways to write a missing value"),
    UNITS_IN_THE_FIRST_ROW: Message(
        "it is in the first row: where that row holds units or more names, take it out of the file"
    ),
    ADD_TO_THE_ENUM: Message("if they are one, move them from the ways to write a missing value to the categories"),
    MAKE_IT_CATEGORIES: Message(
        "if they are one, choose categories, and take them out of the ways to write a missing value"
    ),
    OTHER_ENCODING: Message(
        "If that is not how it is spelled, save the file in UTF-8, which spreadsheets offer as “CSV UTF-8”, and send it again."
    ),
    IN_UTF_8: Message(" Save it in UTF-8, which spreadsheets offer as “CSV UTF-8”, and send it again."),
    NO_COMMAS: Message(
        "The columns are separated neither by commas nor in another way that most rows have in common. Open the file in a "
        "spreadsheet, leave the names in the first line and the rows below them, and save it again as CSV."
    ),
    NAME_THE_LAST: Message("Name it in the first line of the file, or remove it there."),
    QUOTES_AND_ESCAPES: Message(
        "The file cannot be read as CSV: its quotes are not closed. Open it in a spreadsheet and save it again as CSV."
    ),
}
_ROWS_OF_A_SPREADSHEET = Message(
    "Correct these rows, which a spreadsheet shows (row 1 below a header in its line 1 is line 2), and save them again as CSV."
)


def findings_of(draft: Mapping[str, Any], name: str) -> list[str]:
    """Of a column; of a draft from before findings had places, as they were stored."""
    return [replaced(unpacked(each), _ON_THE_PAGE) for each in draft["findings"].get(name, ())]


def notices_of(draft: Mapping[str, Any]) -> list[str]:
    """On how the file was read."""
    return [replaced(unpacked(each), _ON_THE_PAGE) for each in draft["notices"]]


def refusal_of(error: InvalidFile) -> InvalidFile:
    """Of a file that cannot be drafted, with what can be done without a schema at hand."""
    detail = replaced(error.detail, _ON_THE_PAGE)
    if {"count", "rows"} <= error.values.keys() and "column" not in error.values:
        detail = sentences(detail, _ROWS_OF_A_SPREADSHEET)
    return InvalidFile(detail, **error.values)
