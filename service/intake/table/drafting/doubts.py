"""What only the owner can tell of numbers and categories: a lone number far from all others, 1.10 beside 1.2, texts that look the same."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from decimal import Decimal
from typing import TYPE_CHECKING

import polars as pl

from service.base.messages import Listed, Message
from service.intake.table.drafting.findings import Finding, shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from service.intake.table.drafting.observed import Observed
    from service.intake.table.drafting.readings import NumberReading

_FAR = 5
"""A lone number is far from the others at so many times their spread."""
_FEW_OTHERS = 5
_PLUS = Message("a plus sign")
_NOT_KEPT = {
    Message("an exponent"): re.compile(r"^[^A-Za-z]+[eE][+-]?[0-9]+$"),
    _PLUS: re.compile(r"^\+"),
    Message("no digit before or after the point"): re.compile(r"^[+-]?\.[0-9]|[0-9]\.$"),
    Message("zeros before other digits"): re.compile(r"^[+-]?0[0-9]"),
}
_SERIAL_DAYS = (14_611, 54_789)
"""1940 to 2049."""
_DATED = re.compile(
    r"date|datum|(?:^|[^a-z])(?:day|tag|dob|from|to|von|bis|fecha|data|start|end|beginn?|ende)(?:[^a-z]|$)"
    r"|admi|discharg|aufnahme|entlass|birth|geburt|visit|besuch",
    re.IGNORECASE,
)
_DECIMALS = re.compile(r"[+-]?[0-9]*\.([0-9]+)")


def lone_number(seen: Observed, reading: NumberReading) -> Finding | None:
    """The largest or smallest number, where it is of one row and far from all others: a sum below a table, a slip of the hand."""
    if seen.texts is None:
        return None
    texts = list(seen.texts)
    plain = reading.spelling.plain(pl.Series(texts, dtype=pl.String)).to_list()
    numbers = sorted((Decimal(one), text) for one, text in zip(plain, texts, strict=True) if one is not None)
    if len(numbers) <= _FEW_OTHERS:
        return None
    for alone, others, end in (
        (numbers[-1], numbers[:-1], Message("largest")),
        (numbers[0], numbers[1:], Message("smallest")),
    ):
        low, high = others[0][0], others[-1][0]
        gap = max(alone[0] - high, low - alone[0])
        if seen.texts[alone[1]] == 1 and high > low and gap >= _FAR * (high - low):
            what = Message(
                "its %(end)s number is of one row, far from all others, and is the end of its range", end=end
            )
            proposal = Message(
                "if it is a sum or a mistake, take its row out of the file; else declare bounds that are known "
                "without it"
            )
            return Finding(seen.name, what, proposal, shown([alone[1]]))
    return None


def zeros_of_codes(seen: Observed, reading: NumberReading) -> Finding | None:
    """1.10 beside 1.2: versions, sections and codes are written so, measurements are not."""
    if not reading.spelling.is_plain or seen.texts is None:
        return None
    digits = {text: found[1] for text in seen.texts if (found := _DECIMALS.fullmatch(text))}
    fewest = min(map(len, digits.values()), default=0)
    ending = [text for text, after in digits.items() if len(after) > max(1, fewest) and after.endswith("0")]
    if not ending:
        return None
    what = Message(
        "some of its numbers end in a zero that others lack, as 1.10 beside 1.2; as numbers, 1.1 and 1.10 are one value"
    )
    proposal = Message(
        "if they are codes, declare them as `string` with an `enum`, which keeps them as they are written"
    )
    return Finding(seen.name, what, proposal, shown(sorted(ending)))


def respelled(seen: Observed, reading: NumberReading) -> Finding | None:
    """Ways to write a number that are read, and that synthetic ones do not have."""
    if not reading.was_text:
        return None
    patterns = _NOT_KEPT if reading.spelling.is_plain else {_PLUS: re.compile(r"\+")}
    found = {what: next(filter(pattern.search, seen.sample), None) for what, pattern in patterns.items()}
    examples = {what: text for what, text in found.items() if text is not None}
    if not examples:
        return None
    what = Message(
        "some of its numbers are written with %(examples)s, as synthetic ones are not",
        examples=Listed(Message(" and with "), examples),
    )
    return Finding(
        seen.name,
        what,
        Message("where that matters, declare them as `string` with an `enum`, which keeps them as they are written"),
        shown(list(examples.values())),
    )


def days_of_a_spreadsheet(seen: Observed, reading: NumberReading) -> Finding | None:
    """43831 for 2020-01-01, where the name says that it is a date."""
    if reading.low is None or reading.high is None or reading.whole < reading.count:
        return None
    first, last = _SERIAL_DAYS
    if not (reading.spelling.is_plain and first <= reading.low and reading.high <= last and _DATED.search(seen.name)):
        return None
    what = Message(
        "its name is that of a date, and its numbers may be the days that Excel counts from 1899-12-30 "
        "(43831 is 2020-01-01)"
    )
    return Finding(
        seen.name,
        what,
        Message("if they are, give the column a date format in the workbook, or write dates into the file"),
    )


def look_alikes(name: str, texts: Iterable[str]) -> Finding | None:
    """Categories that look the same, and differ in what cannot be seen: no-break spaces, letters of two characters."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for text in texts:
        found[" ".join(unicodedata.normalize("NFKC", text).split())].append(text)
    alike = [text for same in found.values() if len(same) > 1 for text in same]
    if not alike:
        return None
    what = Message(
        "%(count)s of its values look like another one, and differ in spaces or in how a letter is stored",
        count=len(alike),
    )
    return Finding(name, what, Message("if they are the same, write them alike in the file"), shown(sorted(alike)))
