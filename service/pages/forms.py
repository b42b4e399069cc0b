"""What is filled in: the fields of a form as texts, and numbers in them as people write them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from service.base.errors import InvalidInput, InvalidOrder
from service.base.messages import Figure, Message

MOST_FIELDS = 1_000
"""There may be many columns."""


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form, texts alone."""
    form = await request.form(max_files=0, max_fields=MOST_FIELDS)
    return {name: value for name, value in form.items() if isinstance(value, str)}


Filled = Annotated[dict[str, str], Depends(read_form)]


def number_in(
    text: str, where: str, example: float, *, error: type[InvalidInput | InvalidOrder] = InvalidOrder
) -> float:
    """A number, with a point or a comma; raises `error`, which says how one is written."""
    try:
        return float(text.strip().replace(",", "."))
    except ValueError:
        said = Message(
            "%(where)s: write a number, for example %(example)s", where=where, example=Figure(f"{example:g}")
        )
        raise error(said, where=where) from None
