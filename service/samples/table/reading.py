"""Texts in the spelling that the schema declares, read: the inverse of `spelling.py`, for the few that a caller sends."""

from __future__ import annotations

import datetime as dt
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Any

from service.samples.table.spelling import DAY_NAMES, DAY_SECONDS, MONTH_NAMES

SPACES = " \t\u00a0\u202f"
MOST_CHARACTERS_OF_NUMBER = 300
OFFSET = "[+-][0-9]{2}:?[0-9]{2}"
DIGITS_OF = {"Y": (4, 4), "y": (2, 2), "j": (1, 3), "f": (1, 6), **dict.fromkeys("mdHIMS", (1, 2))}
"""Directive -> how many digits it has, at least and at most."""


class ReadNumber:
    """A number of a spelled text; `ValueError` where it is none."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._parentheses: bool = config["parentheses"]
        self._prefix, self._suffix = config["prefix"].strip(SPACES), config["suffix"].strip(SPACES)
        self._decimal, group = config["decimal"], config["group"]
        self._groups = re.compile(f"[{re.escape(SPACES if group and group in SPACES else group)}]" if group else "(?!)")
        whole = rf"[0-9]{{1,3}}(?:{self._groups.pattern}[0-9]{{3}})+|[0-9]+"
        self._shape = re.compile(rf"(?:{whole})(?:{re.escape(self._decimal)}[0-9]*)?")

    def __call__(self, text: str) -> float:
        text, negative = text.strip(SPACES), False
        if self._parentheses and text.startswith("(") and text.endswith(")"):
            text, negative = text[1:-1].strip(SPACES), True
        elif text[:1] in {"+", "-"}:
            text, negative = text[1:].strip(SPACES), text[0] == "-"
        text = text.removeprefix(self._prefix).removesuffix(self._suffix).strip(SPACES)
        if len(text) > MOST_CHARACTERS_OF_NUMBER or not self._shape.fullmatch(text):
            raise ValueError("no number in the declared spelling")
        whole, point, rest = text.partition(self._decimal)
        digits = self._groups.sub("", whole)
        number = float(f"{digits}.{rest}") if point else int(digits)
        return -number if negative else number


class ClockTimes:
    """The clocks of the declared zone: offsets as (from this second of UTC on, seconds ahead of it, name)."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.offsets: list[tuple[int, int, str]] = [tuple(one) for one in config.get("offsets", [[0, 0, "UTC"]])]
        self._starts = [-math.inf, *(start for start, _, _ in self.offsets[1:])]

    def utc_of(self, local: int) -> int:
        """The first second that clocks show so; `ValueError` of one that they skip."""
        first = max(0, bisect_right(self._starts, local - DAY_SECONDS) - 1)
        for place, (_, ahead, _) in enumerate(self.offsets[first:], start=first):
            if self._starts[place] > local + DAY_SECONDS:
                break
            if self._place_of(local - ahead) == place:
                return local - ahead
        raise ValueError("the clocks of this zone skip this time")

    def local_of(self, second: int) -> int:
        """What clocks show."""
        return second + self.offsets[self._place_of(second)][1]

    def _place_of(self, second: int) -> int:
        return bisect_right(self._starts, second) - 1

    def seconds_of(self, text: str) -> int:
        """An ISO date and time as seconds since 1970-01-01 UTC, in the zone where it names none; a date means its midnight."""
        moment = dt.datetime.fromisoformat(text)
        seconds = whole_seconds_of(moment.replace(tzinfo=None))
        ahead = moment.utcoffset()
        return self.utc_of(seconds) if ahead is None else seconds - math.floor(ahead.total_seconds())


class ReadMoment:
    """Seconds since 1970-01-01 UTC of a text that follows a pattern; `ValueError` where it does not."""

    def __init__(self, config: Mapping[str, Any], first: float) -> None:
        """`first`: the first second of the declared range, in which two digits of a year are looked for."""
        self._clocks = ClockTimes(config)
        self._first_year = (
            dt.date(1970, 1, 1) + dt.timedelta(self._clocks.local_of(math.floor(first)) // DAY_SECONDS)
        ).year
        self._ahead = {"UTC": 0, "GMT": 0, "Z": 0} | {name: ahead for _, ahead, name in self._clocks.offsets}
        parts = config["parts"]
        self._shape = re.compile(
            "".join(self._piece(parts, place) for place in range(len(parts))), re.IGNORECASE | re.ASCII
        )

    def __call__(self, text: str) -> int:
        match = self._shape.fullmatch(text.strip(SPACES))
        if match is None:
            raise ValueError("not as the declared format")
        found = match.groupdict()
        seconds = whole_seconds_of(dt.datetime.combine(self._date(found), _time_of(found)))
        if (name := found.get("Z")) is not None:
            known = {known.lower(): ahead for known, ahead in self._ahead.items()}
            return seconds - (_ahead_of(name) if name[0] in "+-" else known[name.lower()])
        if (offset := found.get("z")) is not None:
            return seconds - _ahead_of(offset)
        return self._clocks.utc_of(seconds)

    def _date(self, found: Mapping[str, str]) -> dt.date:
        year = int(found["Y"]) if "Y" in found else self._first_year + (int(found["y"]) - self._first_year) % 100
        if "j" in found:
            date = dt.date(year, 1, 1) + dt.timedelta(int(found["j"]) - 1)
        else:
            names = [name[: 3 if "b" in found else None].lower() for name in MONTH_NAMES]
            name = found.get("b", found.get("B"))
            month = int(found["m"]) if name is None else names.index(name.lower()) + 1
            date = dt.date(year, month, int(found["d"]))
        day_name = DAY_NAMES[date.weekday()].lower()
        if (
            date.year != year
            or found.get("a", day_name[:3]).lower() != day_name[:3]
            or found.get("A", day_name).lower() != day_name
        ):
            raise ValueError("no such day")
        return date

    def _piece(self, parts: list[list[str | None]], place: int) -> str:
        directive, text = parts[place]
        if directive is None:
            times = "*" if place + 1 < len(parts) and parts[place + 1][0] in {"z", "Z"} else "+"
            return re.sub(r"(?:\\?[ \u00a0\u202f])+", f"[{SPACES}]{times}", re.escape(text or ""))
        names = {
            **{letter: [name[:3] for name in all_] for letter, all_ in (("b", MONTH_NAMES), ("a", DAY_NAMES))},
            "B": MONTH_NAMES,
            "A": DAY_NAMES,
            "p": ("AM", "PM"),
            "Z": sorted(self._ahead, key=len, reverse=True),
        }
        if directive in names:
            also = f"|{OFFSET}" if directive == "Z" else ""
            return f"(?P<{directive}>{'|'.join(map(re.escape, names[directive]))}{also})"
        if directive == "z":
            return f"(?P<z>Z|{OFFSET})"
        least, most = DIGITS_OF[directive]
        beside = [parts[other][0] for other in (place - 1, place + 1) if 0 <= other < len(parts)]
        if not text and any(other in DIGITS_OF for other in beside):
            least = most
        return f"(?P<{directive}>[0-9]{{{least},{most}}})"


def _ahead_of(offset: str) -> int:
    """Seconds ahead of UTC, of +01:00, +0100 or Z."""
    digits = offset[1:].replace(":", "") or "0000"  # Z has none
    return (int(digits[:2]) * 3_600 + int(digits[2:]) * 60) * (-1 if offset[0] == "-" else 1)


def _time_of(found: Mapping[str, str]) -> dt.time:
    hour = int(found.get("H", 0))
    if "I" in found:
        if not 1 <= int(found["I"]) <= 12:
            raise ValueError("no such hour")
        hour = int(found["I"]) % 12 + 12 * (found["p"].lower() == "pm")
    return dt.time(hour, int(found.get("M", 0)), int(found.get("S", 0)))


def whole_seconds_of(moment: dt.datetime) -> int:
    """Since 1970-01-01, of a moment without a zone."""
    return (moment - dt.datetime.fromisoformat("1970-01-01")) // dt.timedelta(seconds=1)


def number_read(config: Mapping[str, Any]) -> Callable[[str], float] | None:
    """How texts of a column of numbers are read; None where everybody knows."""
    spelling = config.get("spelling")
    return ReadNumber(spelling) if spelling and "prefix" in spelling else None


def range_read(config: Mapping[str, Any]) -> Callable[[str], float] | None:
    """How texts of a range are read: as integers, numbers, days or seconds since 1970-01-01."""
    spelling = config.get("spelling")
    if not spelling or "parts" not in spelling:
        return number_read(config)
    is_date = config["type"] == "date"
    read = ReadMoment(spelling, config["edges"][0] * (DAY_SECONDS if is_date else 1))
    return (lambda text: read(text) // DAY_SECONDS) if is_date else read
