"""Values in the spelling that the schema declares: 17/04/2023, 1.234,56 €, Yes. What is not spelled stays as it is."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import groupby
from typing import Any

import numpy as np

from service.samples.table.base import Array

DAY_SECONDS = 86_400
MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class SpelledNumber:
    """How numbers are written: sign, prefix, groups of three digits, decimals, suffix."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config

    def __call__(self, value: float) -> str:
        decimals = self._config["decimals"]
        if isinstance(value, int):  # exact beyond 2^53
            digits = f"{value}.{'0' * decimals}" if decimals else str(value)
        else:
            digits = f"{Decimal(repr(value)):f}" if decimals is None else f"{value:.{decimals}f}"
        whole, _, rest = digits.lstrip("-").partition(".")
        if decimals is None:
            rest = rest.rstrip("0")
        if self._config["group"]:
            whole = f"{int(whole):,}".replace(",", self._config["group"])
        text = whole + (self._config["decimal"] + rest if rest else "")
        is_negative = digits.startswith("-") and any(digit in "123456789" for digit in digits)
        text = f"{self._config['prefix']}{text}{self._config['suffix']}"
        if not is_negative:
            return text
        return f"({text})" if self._config["parentheses"] else f"-{text}"


class SpelledBoolean:
    """The declared texts of true and false."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._texts = (config["false"], config["true"])

    def __call__(self, value: bool) -> str:
        return str(self._texts[value])


class SpelledMoments:
    """How dates and times are written, by the pieces of a strptime pattern, in the clock times of the declared zone."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._runs: list[tuple[str, list[tuple[Any, str]]]] = [
            (source, [(directive, text) for directive, text in run])
            for source, run in groupby(config["parts"], key=lambda part: source_of(part[0]))
        ]
        starts, ahead, self._names = zip(*config.get("offsets", [[0, 0, "UTC"]]), strict=True)
        self._starts, self._ahead = np.array(starts[1:], dtype=np.int64), np.array(ahead, dtype=np.int64)

    def texts(self, seconds: Array) -> list[str]:
        """Of seconds since 1970-01-01 UTC. Days, times and zones repeat: each is written once."""
        zones = np.searchsorted(self._starts, seconds, side="right")
        days, clocks = np.divmod(seconds + self._ahead[zones], DAY_SECONDS)
        written: Any = np.full(len(seconds), "", dtype=object)
        for source, run in self._runs:
            if source == "text":
                written = written + "".join(text for _, text in run)
                continue
            keys = {"day": days, "clock": clocks, "zone": zones}[source]
            different, places = np.unique(keys, return_inverse=True)
            each = np.empty(len(different), dtype=object)
            each[:] = [
                "".join(self._piece(directive, mark, key) for directive, mark in run) for key in different.tolist()
            ]
            written = written + each[places]
        texts: list[str] = written.tolist()
        return texts

    def _piece(self, directive: str, mark: str, key: int) -> str:
        """`mark`: "-" of `%-d`, ":" of `%:z`, "^" of `%^b`, "," of `%,b`."""
        if directive in NUMBERED:
            number, width = NUMBERED[directive](key)
            return str(number) if mark else str(number).zfill(width)
        if directive in WORDED:
            return CASES.get(mark, str)(WORDED[directive](key))
        ahead = int(self._ahead[key])
        if directive == "Z":
            return str(self._names[key])
        sign, minutes = "-" if ahead < 0 else "+", abs(ahead) // 60
        return f"{sign}{minutes // 60:02d}{mark}{minutes % 60:02d}"


def date_of(day: int) -> dt.date:
    """Of days since 1970-01-01."""
    return dt.date(1970, 1, 1) + dt.timedelta(days=day)


NUMBERED: Mapping[str, Callable[[int], tuple[int, int]]] = {
    "Y": lambda day: (date_of(day).year, 4),
    "y": lambda day: (date_of(day).year % 100, 2),
    "m": lambda day: (date_of(day).month, 2),
    "d": lambda day: (date_of(day).day, 2),
    "j": lambda day: (date_of(day).timetuple().tm_yday, 3),
    "H": lambda clock: (clock // 3_600, 2),
    "I": lambda clock: ((clock // 3_600 + 11) % 12 + 1, 2),
    "M": lambda clock: (clock // 60 % 60, 2),
    "S": lambda clock: (clock % 60, 2),
    "f": lambda _clock: (0, 6),
}
"""Directive -> the number of a day or of a time of day, and how many digits it has."""
WORDED: Mapping[str, Callable[[int], str]] = {
    "b": lambda day: MONTH_NAMES[date_of(day).month - 1][:3],
    "B": lambda day: MONTH_NAMES[date_of(day).month - 1],
    "a": lambda day: DAY_NAMES[date_of(day).weekday()][:3],
    "A": lambda day: DAY_NAMES[date_of(day).weekday()],
    "p": lambda clock: "AM" if clock < DAY_SECONDS // 2 else "PM",
}


CASES: Mapping[str, Callable[[str], str]] = {"^": str.upper, ",": str.lower}
"""Mark of a directive -> how its words are written."""


def source_of(directive: str | None) -> str:
    """What a piece of a pattern depends on: the day, the time of day, the zone, or nothing."""
    if directive is None:
        return "text"
    return "day" if directive in "YymdjbBaA" else "clock" if directive in "HIMSfp" else "zone"


def values_written(config: Mapping[str, Any]) -> Callable[[Any], str] | None:
    """How a value of a column of numbers or booleans is spelled; None where everybody knows."""
    spelling = config.get("spelling")
    if not spelling or "parts" in spelling:
        return None
    return SpelledBoolean(spelling) if "true" in spelling else SpelledNumber(spelling)


def is_json_number(config: Mapping[str, Any]) -> bool:
    """Whether zeros after the last digit are all that is declared of its spelling: JSON can say 12.50, too.

    Whole numbers stay so there: many readers would round 9007199254740993.0.
    """
    return bool((config.get("spelling") or {}).get("json"))


def plain_written(decimals: int | None) -> Callable[[float], str]:
    """All decimals of a number, or none that is a zero at its end."""
    return _shortest if decimals is None else f"{{:z.{decimals}f}}".format


def _shortest(value: float) -> str:
    text = repr(value + 0.0)  # -0.0 + 0.0 is 0.0
    return f"{Decimal(text):f}" if "e" in text else text.removesuffix(".0")


def range_written(config: Mapping[str, Any]) -> Callable[[Array], Sequence[str]] | None:
    """How drawn numbers of a range are spelled: integers, numbers, days or seconds since 1970-01-01."""
    spelling = config.get("spelling")
    if not spelling:
        return None
    if "parts" not in spelling:
        write = SpelledNumber(spelling)
        if is_json_number(config):
            plain = plain_written(spelling["decimals"])
            return lambda numbers: list(map(plain, numbers.tolist()))
        return lambda numbers: [write(number) for number in numbers.tolist()]
    moments, unit = SpelledMoments(spelling), DAY_SECONDS if config["type"] == "date" else 1
    return lambda numbers: moments.texts(numbers.astype(np.int64) * unit)
