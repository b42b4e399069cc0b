"""How values of a field are spelled in text files: dates as 17/04/2023, amounts as 1.234,56 €, Yes and No.

The words are those of Table Schema where it has them (`format`, `decimalChar`, `groupChar`, `bareNumber`, `trueValues`,
`falseValues`, `missingValues`); `timezone`, `prefix`, `suffix` and `negative` are ours. They say how text is read and how
synthetic CSV and JSON lines are written. Values themselves, bounds, enums and canonical files do not depend on them.
A pattern of `format` is a strptime pattern of the directives in DIRECTIVES; `parts_of` takes it apart.
"""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from service.base.messages import Message
from service.domain.zones import zone_of

Marks = Annotated[tuple[str, ...], Field(max_length=20)]
Affix = Annotated[str, Field(min_length=1, max_length=20, pattern=r"^[^0-9\r\n\x00]+$")]

MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]

DIRECTIVES = {
    "Y": "[0-9]{4}",
    "y": "[0-9]{2}",
    "m": "[0-9]{1,2}",
    "d": "[0-9]{1,2}",
    "j": "[0-9]{1,3}",
    "b": "|".join(month[:3] for month in MONTHS),
    "B": "|".join(MONTHS),
    "a": "|".join(day[:3] for day in DAYS),
    "A": "|".join(DAYS),
    "H": "[0-9]{1,2}",
    "I": "[0-9]{1,2}",
    "p": "AM|PM",
    "M": "[0-9]{1,2}",
    "S": "[0-9]{1,2}",
    "f": "[0-9]{1,6}",
    "z": "Z|[+-][0-9]{2}:?[0-9]{2}",
    "Z": "[A-Za-z][A-Za-z0-9_/+-]*|[+-][0-9]{2}:?[0-9]{2}",
}
"""Letter of a directive -> what text it reads, letters of any case. English names, as in every locale here."""
_SHORT = {"F": "%Y-%m-%d", "T": "%H:%M:%S", "R": "%H:%M", "D": "%m/%d/%y"}
_UNPADDED = frozenset("mdjHIMS")
_OF_WORDS = frozenset("bBaAp")
_OF_TIME = frozenset("HIpMSfzZ")
SPACES = " \u00a0\u202f"
"""A space, and two that do not break: one of them as `groupChar` stands for all of them when text is read."""

ZONE_HOURS = (
    dict.fromkeys(("Z", "UTC", "GMT", "WET"), 0)
    | {"WEST": 1, "CET": 1, "CEST": 2, "EET": 2, "EEST": 3, "MSK": 3, "JST": 9}
    | {"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7}
)
"""Hours east of UTC that an abbreviation means, unless the field's `timezone` uses it otherwise. The American ones are those of RFC 5322."""


class Part(NamedTuple):
    """A piece of a pattern: a directive, or a text between directives."""

    directive: str | None
    text: str
    """Of a directive "-" where numbers have no zeros before them (`%-d`), ":" where an offset is written with it (`%:z`), "^" and "," where words are
    in capitals (`%^b`) or have none (`%,b`), else empty."""


class SpelledField(BaseModel):
    """The words of a field that say how its values are spelled in text."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    missing_values: Annotated[Marks | None, Field(alias="missingValues")] = None
    """How a missing value of this field is written, instead of the table's `missingValues`."""
    format: Annotated[str, Field(max_length=100)] | None = None
    """`default` and `any`: ISO 8601. Of a date or datetime, a strptime pattern."""
    timezone: Annotated[str, Field(max_length=64)] | None = None
    """IANA name of the zone that moments without one are in, and that synthetic ones are written in; else UTC. Our extension."""
    decimal_char: Annotated[str | None, Field(alias="decimalChar", pattern=r"^[^0-9A-Za-z+\-\s\x00]$")] = None
    group_char: Annotated[str | None, Field(alias="groupChar", pattern=r"^[^0-9A-Za-z+\-\r\n\t\x00]$")] = None
    bare_number: Annotated[bool, Field(alias="bareNumber")] = True
    """False: text before and after a number is no part of it."""
    prefix: Affix | None = None
    """Stands before each number, after its sign; our extension."""
    suffix: Affix | None = None
    """Stands after each number; our extension."""
    negative: Literal["sign", "parentheses"] | None = None
    """`parentheses`: -5 is written (5); our extension."""
    trailing_zeros: Annotated[bool | None, Field(alias="trailingZeros")] = None
    """True: all `decimals` are written, 12.50; false: no zero after the last digit, 12.5 and 3. Our extension."""
    true_values: Annotated[Marks | None, Field(alias="trueValues", min_length=1)] = None
    false_values: Annotated[Marks | None, Field(alias="falseValues", min_length=1)] = None

    @property
    def strptime_pattern(self) -> str | None:
        """The strptime pattern of a date or datetime that is not ISO 8601."""
        return self.format if self.format is not None and "%" in self.format else None

    @property
    def zone(self) -> dt.tzinfo:
        """The zone of moments that are written without one."""
        return dt.UTC if self.timezone is None else zone_of(self.timezone)

    @property
    def written_step(self) -> int:
        """Seconds that moments are whole multiples of, as their pattern is written; of dates 1, which is a day."""
        letters = {part.directive for part in parts_of(self.strptime_pattern)} if self.strptime_pattern else {"S"}
        return 1 if "S" in letters or letters.isdisjoint("HI") else 60 if "M" in letters else 3_600

    @property
    def spells_numbers(self) -> bool:
        """Whether the field says how its numbers are written."""
        return self.reads_numbers_otherwise or self.trailing_zeros is not None

    @property
    def spells(self) -> bool:
        """Whether any text of the field is read otherwise than everybody would."""
        return self.reads_numbers_otherwise or self.spells_moments or self.spells_booleans

    @property
    def reads_numbers_otherwise(self) -> bool:
        """Whether text of numbers differs from what everybody reads as one."""
        said = (self.decimal_char, self.group_char, self.prefix, self.suffix, self.negative)
        return any(word is not None for word in said) or not self.bare_number

    @property
    def spells_moments(self) -> bool:
        return self.strptime_pattern is not None or self.timezone is not None

    @property
    def spells_booleans(self) -> bool:
        return self.true_values is not None or self.false_values is not None


def check_two_digit_years(pattern: str | None, first: dt.date, last: dt.date) -> None:
    """Raise a ValueError where two digits of a year could mean two years of the range."""
    if pattern is not None and "y" in {part.directive for part in parts_of(pattern)} and last.year - first.year > 99:
        raise ValueError(
            Message("format: with %y the range spans at most 100 years, since two digits cannot say more; write %Y")
        )


def check_spelling(field: SpelledField, kind: str) -> None:
    """Raise a ValueError for a word that does not suit the type, or does not say what a value is."""
    if field.format is not None and field.format not in {"default", "any"}:
        _check_format(field.format, kind)
    if field.timezone is not None:
        if kind != "datetime":
            raise ValueError(Message("timezone is for datetime columns"))
        _check_zone(field.timezone)
    if field.spells_numbers and kind not in {"integer", "number"}:
        raise ValueError(
            Message(
                "decimalChar, groupChar, bareNumber, prefix, suffix, negative and trailingZeros are for number columns"
            )
        )
    if (field.decimal_char or ".") == field.group_char:
        raise ValueError(
            Message(
                "groupChar is the decimal sign, too: give decimalChar another than %(group_char)s",
                group_char=repr(field.group_char),
            )
        )
    _check_affixes(field)
    if field.spells_booleans:
        if kind != "boolean":
            raise ValueError(Message("trueValues and falseValues are for boolean columns"))
        if set(texts_of(field, truth=True)) & set(texts_of(field, truth=False)):
            raise ValueError(Message("trueValues and falseValues share a text: a cell can mean one of them only"))


def texts_of(field: SpelledField, *, truth: bool) -> tuple[str, ...]:
    """The texts of true, or of false; the first is how a synthetic one is written."""
    said = field.true_values if truth else field.false_values
    return said or (("true", "True", "TRUE", "1") if truth else ("false", "False", "FALSE", "0"))


def parts_of(pattern: str) -> list[Part]:
    """A strptime pattern piece by piece; raises a ValueError for a directive that is not among DIRECTIVES."""
    for letter, longer in _SHORT.items():
        pattern = pattern.replace(f"%{letter}", longer)
    parts: list[Part] = []
    for found in re.finditer(r"%([-:^,]?)(.?)|[^%]+", pattern, re.DOTALL):
        mark, letter = found.group(1), found.group(2)
        if letter is None:
            parts.append(Part(None, found.group()))
        elif letter == "%" and not mark:
            parts.append(Part(None, "%"))
        elif letter in DIRECTIVES and (
            not mark or letter in (_UNPADDED if mark == "-" else "z" if mark == ":" else _OF_WORDS)
        ):
            parts.append(Part(letter, mark))
        else:
            known = " ".join(f"%{letter}" for letter in DIRECTIVES)
            raise ValueError(
                Message(
                    "format: %(group)s is not among the directives that are read here: %(known)s",
                    group=found.group(),
                    known=known,
                )
            )
    return parts


def is_marker_of_number(marker: str) -> bool:
    """Whether a missing marker is a number, as -999 is: then it means any spelling of that number."""
    try:
        return abs(float(marker)) < float("inf")
    except ValueError:
        return False


def _check_format(pattern: str, kind: str) -> None:
    if kind not in {"date", "datetime"}:
        raise ValueError(
            Message(
                "format: leave %(pattern)s out; only date and datetime columns have one, and an enum or a range says "
                "all of the others",
                pattern=repr(pattern),
            )
        )
    if "%" not in pattern:
        example = "%d/%m/%Y" if kind == "date" else "%d/%m/%Y %H:%M"
        raise ValueError(
            Message(
                "format: %(pattern)s is neither default nor a strptime pattern; write for example %(example)s",
                pattern=repr(pattern),
                example=example,
            )
        )
    letters = [part.directive for part in parts_of(pattern) if part.directive]
    has = set(letters).__contains__
    months = sum(map(has, "mbBj"))
    hours = sum(map(has, "HI"))
    faults = {
        Message("it names a directive twice"): len(set(letters)) != len(letters),
        Message("it needs the year, as %Y or as %y"): has("Y") == has("y"),
        Message("it needs month and day, as %m, %b or %B and %d, or the day of the year, %j"): not months
        or has("d") == has("j"),
        Message("it names the month twice"): months > 1,
        Message("a date has no time of day; for this pattern write type datetime"): kind == "date"
        and not _OF_TIME.isdisjoint(letters),
        Message("a datetime needs the hour, as %H; for days alone write type date"): kind == "datetime" and not hours,
        Message("write %H, or %I with %p, for the hour"): has("I") != has("p") or hours > 1,
        Message("seconds need minutes, and %f needs %S"): (has("S") and not has("M")) or (has("f") and not has("S")),
        Message("it names the zone twice: write %z or %Z"): has("z") and has("Z"),
    }
    for fault, is_so in faults.items():
        if is_so:
            raise ValueError(Message("format: %(fault)s", fault=fault))


def _check_zone(name: str) -> None:
    try:
        zone_of(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            Message("timezone: %(name)s is no IANA zone; write for example Europe/Paris or UTC", name=repr(name))
        ) from None


def _check_affixes(field: SpelledField) -> None:
    for word, affix in (("prefix", field.prefix), ("suffix", field.suffix)):
        if affix is not None and (not affix.strip(SPACES) or set(affix) & set("+-()")):
            raise ValueError(
                Message("%(word)s: leave out signs and parentheses (negative says how those are written)", word=word)
            )


def values_of_markers(document: Any) -> Any:
    """`missingValues` of Table Schema 2 may be objects with a label; only the texts are kept."""
    if not isinstance(document, list):
        return document
    return [one["value"] if isinstance(one, dict) and "value" in one else one for one in document]
