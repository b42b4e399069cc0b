"""Numbers in conditions that may be meant in two ways: a point may stand before a fraction or between thousands.

A whole number has no fraction, so a point in one means a thousand, or is a mistake: where the schema does not say which,
it is refused. In a column with fractions a point is what the documents say, one before a fraction; but people who type
into a page in a language with a decimal comma, or of a column that is spelled with one, may mean thousands.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

from service.base.messages import Figure, Message
from service.samples.table.columns import CategoryColumn, refused
from service.samples.table.ranges import GridColumn

MAY_BE_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}\.[0-9]{3}", re.ASCII)
DECIMAL_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+", re.ASCII)
TYPES: dict[str, str] = {
    "integer": Message("integer"),
    "number": Message("number"),
    "date": Message("date"),
    "datetime": Message("datetime"),
}


def meanings(value: Any) -> list[Any]:
    """What a value may mean: itself, without the spaces around it, or the text that it quotes."""
    if not isinstance(value, str):
        return [value]
    found: list[Any] = [value]
    stripped = value.strip()
    if stripped != value:
        found.append(stripped)
    if len(stripped) > 1 and stripped[0] == stripped[-1] == '"':
        with suppress(ValueError):
            found.append(json.loads(stripped))
    return found


def certain(column: CategoryColumn | GridColumn, value: Any, *, has_comma: bool | None) -> Any:
    """The value, with digits alone where its point can only stand between thousands; `SamplingError` where that cannot be told.

    has_comma: of a text that was typed into a page, whether numbers have a decimal comma in its language; None elsewhere.
    """
    text = meanings(value)[-1]
    if column.type not in {"integer", "number"} or not isinstance(text, str):
        return value
    text = text.strip()
    if isinstance(column, CategoryColumn) and column.has_text(text):
        return value
    if MAY_BE_THOUSANDS.fullmatch(text):
        return _with_point(column, text, has_comma=has_comma)
    signs = {column.spelling.get("decimal"), column.spelling.get("group")}
    if has_comma and column.type == "number" and "," not in signs and DECIMAL_COMMA.fullmatch(text):
        return text.replace(",", ".")
    return value


def _with_point(column: CategoryColumn | GridColumn, text: str, *, has_comma: bool | None) -> str:
    """1.234: a little above 1, or a thousand; refused where it may be either."""
    is_whole, is_typed = column.type == "integer", has_comma is not None
    if column.spelling.get("group") == "." and (is_whole or is_typed):
        return text.replace(".", "")
    if not is_whole and not (is_typed and (has_comma or column.spelling.get("decimal") == ",")):
        return text
    fault = Message(
        "%(text)s could mean %(one)s or %(other)s: write one of these",
        text=text,
        one=text.replace(".", ""),
        other=text.partition(".")[0] if is_whole else text.replace(".", ","),
    )
    raise refused(column, fault)


def number_in(column: GridColumn, value: Any) -> float:
    """The number, date or time of a range that a value means; `SamplingError` where it is none."""
    for each in reversed(meanings(value)):
        with suppress(ValueError, TypeError):
            return column.number_of(each)
    plain: dict[str, str] = {"date": "2024-03-01", "datetime": "2024-03-01T12:00:00", "integer": "1234"}
    like = plain.get(column.type) or Figure("1234.5")
    if column.is_spelled:
        like = Message("%(plain)s or, as the schema spells it, %(spelled)s", plain=like, spelled=column.example)
    fault = Message(
        "%(value)s is not a value of a column of type %(type)s, like %(like)s",
        value=repr(value),
        type=TYPES[column.type],
        like=like,
    )
    raise refused(column, fault)


def real(text: str) -> float | str:
    """Of a list in JSON's form: as a text where it may be meant in two ways."""
    return text if MAY_BE_THOUSANDS.fullmatch(text) else float(text)
