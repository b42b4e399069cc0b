"""What cells are that no type reads, where their form shows it: times of day, amounts with the minus behind, lists in a cell. With what to do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from service.base.messages import Message

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOST = 0.8
"""So much of the different cells has the form, the others may be mistakes."""
_MOST_TELLING = 10
_BOUND = 2**53

_MONTHS = (
    "jan|feb|mär|maerz|mar|apr|mai|may|jun|jul|aug|sep|okt|oct|nov|dez|dec"
    "|janv|févr|fevr|mars|avr|juin|juil|août|aout|déc"
    "|ene|abr|ago|dic|gen|mag|giu|lug|set|ott|fev|out|mrt|mei|maj|led|úno|bře|dub|kvě|čer|srp|zář|říj|lis|pro|sty|lut|kwi|cze|sie|wrz|paź|gru"
)
_DATE = "[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2}[-/.](?:[0-9]{4}|[0-9]{2})"
_NUMBER = r"[0-9][0-9.,'\u2019 \u00a0\u202f]*"


LIMITS = Message("its cells are numbers, some with < or > before them, as measurements beyond a limit have")
TIMES = Message("its cells are times of day or durations, which no type has")
PERIODS = Message("its cells are months, quarters or weeks")


class Shape(NamedTuple):
    """A form of cells: what they are, and what the owner can do."""

    form: re.Pattern[str]
    what: str
    proposal: str
    telling: re.Pattern[str] | None = None
    """Where the form is also that of plain cells: what some of them must hold."""
    least: float = _MOST
    one_tells: bool = False
    """Whether one such cell is enough: the others are plain."""


SHAPES = (
    Shape(
        re.compile(
            r"[0-9]{1,4}:[0-5][0-9](?::[0-5][0-9](?:[.,][0-9]+)?)?(?:\s?[AaPp]\.?[Mm]\.?)?"
            r"|[0-9]+\s?h\s?(?:[0-9]{1,2}\s?(?:m|min)?\.?)?|P(?:[0-9]+D)?T(?:[0-9.]+[HMS])+"
        ),
        TIMES,
        Message("write them as a whole number of minutes or seconds, or together with their date"),
    ),
    Shape(
        re.compile(
            rf"(?:[^0-9\W]{{2,12}}\.?,?\s+)?[0-9]{{1,2}}\.?[\s/-](?:de\s)?(?:{_MONTHS})[^0-9\W]*\.?[\s/-](?:de\s)?[0-9]{{2,4}}",
            re.IGNORECASE,
        ),
        Message("its cells are dates with a month in words that are not English"),
        Message("write the month as a number, like 17.04.2023"),
    ),
    Shape(
        re.compile(rf"(?:{_DATE})[T ,]+[0-9]{{1,2}}:.*"),
        Message("its cells are moments, some with the hour 24, which no moment has"),
        Message("write 24:00 as 00:00 of the next day"),
        re.compile(r"[T ]24:00"),
        least=1.0,
        one_tells=True,
    ),
    Shape(
        re.compile(rf"(?:{_DATE})(?:[T ,].*)?"),
        Message("its cells are dates that are written in more than one way"),
        Message("write all of them in one way, like 2023-04-17"),
        least=1.0,
    ),
    Shape(
        re.compile(rf"[^0-9\W]{{0,3}}[$€£]?\s?{_NUMBER}[-\u2212]?|[$€£]?\s?\u2212?[$€£]?\s?{_NUMBER}\s?[%€$£]?"),
        Message("its cells are numbers whose minus is behind them, or is another sign than -"),
        Message("write a plain - before the number"),
        re.compile(r"[-\u2212]$|\u2212"),
    ),
    Shape(
        re.compile(rf"[<>\u2264\u2265]=?\s?-?{_NUMBER}|-?{_NUMBER}"),
        LIMITS,
        Message(
            "list these in the `missingValues` of the column, or write the number alone, and the sign into a "
            "column of its own"
        ),
        re.compile(r"^[<>\u2264\u2265]"),
        one_tells=True,
    ),
    Shape(
        re.compile(rf"{_NUMBER}\s?(?:CR|DR|Cr|Dr|C|D|S|H)"),
        Message("its cells are amounts with a word for their side, as CR and DR"),
        Message("write debits with a minus, or the side into a column of its own"),
    ),
    Shape(
        re.compile(r"[^0-9]{0,4}-?[0-9]{1,3}(?:,[0-9]{2,3})*(?:\.[0-9]+)?"),
        Message("its cells are numbers in groups of two digits, as in 12,34,567"),
        Message("write them without the commas"),
        re.compile(r"(?:^|[^0-9,])[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}"),
    ),
    Shape(
        re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+)?"),
        Message("its cells are numbers with a comma before the decimals in some, and a point in others"),
        Message("write all of them with one of the two"),
        re.compile(","),
    ),
    Shape(
        re.compile(rf"(?:[$€£¥]|[A-Z]{{3}}\s?)-?{_NUMBER}|-?{_NUMBER}\s?(?:[$€£¥%]|[A-Za-zµ°%/²³]{{1,6}})"),
        Message("its cells are numbers with units that are not all the same"),
        Message("write the unit into a column of its own, or convert the numbers to one"),
        re.compile(r"[$€£¥%°²³]|\s[A-Za-zµ]|\d\.\d+[KMB]n?$|\d(?:mg|g|kg|ml|l|cm|mm|m|km|mmol|ng|µg)\b"),
    ),
    Shape(
        re.compile(rf"-?{_NUMBER}(?:\s[a-z]{{1,3}})?"),
        Message("its cells are numbers, some with a letter behind them, as flags of statistics are"),
        Message("write the flags into a column of their own"),
        re.compile(r"\s[a-z]{1,3}$"),
        one_tells=True,
    ),
    Shape(
        re.compile(
            r"[0-9]{4}[-/ ]?(?:W[0-9]{2}|Q[1-4]|H[12])|(?:Q[1-4]|KW\s?[0-9]{1,2})[-/ ][0-9]{4}|[0-9]{4}-[0-9]{2}|(?:0?[1-9]|1[0-2])[/.](?:19|20)[0-9]{2}"
        ),
        PERIODS,
        Message("write the first day of each as a date, or declare the list of them as `enum`"),
    ),
    Shape(
        re.compile(r"-?[0-9]{1,3}\.[0-9]+\s*[,; ]\s*-?[0-9]{1,3}\.[0-9]+|POINT\s?\(.*\)"),
        Message("its cells are places of two numbers each"),
        Message("write both into columns of their own; an exact place may be that of one person, so round it"),
    ),
    Shape(
        re.compile(r"[{\[].*[}\]]", re.DOTALL),
        Message("its cells are lists or objects"),
        Message("give each of their values a column of its own"),
    ),
    Shape(
        re.compile(r"[^;|\n]{1,40}(?:[;|][^;|\n]{1,40})*"),
        Message("its cells are lists of several answers"),
        Message("give each answer a column of its own, with yes or no"),
        re.compile(r"[;|]"),
    ),
)
"""The first that fits is said. They are asked only of columns that are neither numbers nor dates nor few categories."""


def shape_of(texts: Sequence[str]) -> tuple[str, str]:
    """What most of some different cells are, and what to do; empty texts where their form says nothing."""
    if not texts:
        return "", ""
    if all(map(_is_large, texts)):
        return (
            Message("its numbers are beyond 2^53"),
            Message("write them in a larger unit, or as powers of ten (`log10`)"),
        )
    for shape in SHAPES:
        has_form = sum(shape.form.fullmatch(text) is not None for text in texts) >= shape.least * len(texts)
        if has_form and _tells(shape, texts):
            return shape.what, shape.proposal
    return "", ""


def _tells(shape: Shape, texts: Sequence[str]) -> bool:
    if shape.telling is None:
        return True
    telling = sum(shape.telling.search(text) is not None for text in texts)
    return telling > 0 if shape.one_tells else telling * _MOST_TELLING >= len(texts)


def _is_large(text: str) -> bool:
    """A number with an exponent, beyond what floats hold exactly."""
    try:
        return "e" in text.lower() and abs(float(text)) > _BOUND
    except ValueError:
        return False
