"""What a draft found of a column, in the words of the form instead of those of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.base.carried import unpacked
from service.base.messages import Message, replaced
from service.intake.table.drafting.proposals import FREE_TEXT, MADE_ANEW, PUBLIC_LIST, WHOSE

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
}


def findings_of(draft: Mapping[str, Any], name: str) -> list[str]:
    """Of a column; of a draft from before findings had places, as they were stored."""
    return [replaced(unpacked(each), _ON_THE_PAGE) for each in draft["findings"].get(name, ())]


def notices_of(draft: Mapping[str, Any]) -> list[str]:
    """On how the file was read."""
    return [unpacked(each) for each in draft["notices"]]
