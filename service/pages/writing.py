"""How a page writes numbers, moments and sentences in its language: filters of its templates."""

from __future__ import annotations

import datetime as dt
import gettext
import re
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, Any

from jinja2.filters import do_filesizeformat
from markupsafe import Markup

from imprimatur.explanation import times_in_100
from imprimatur.wording import duration_in_two
from service.base.messages import Figure, Message, Text, said
from service.pages.languages import DEFAULT, Conventions
from service.pages.refused import standing

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.pages.languages import PageLanguage


_PLAIN_NUMBER = re.compile(r"[0-9]+\.[0-9]+", re.ASCII)
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Writing:
    """Filters of one language."""

    language: PageLanguage

    @property
    def filters(self) -> dict[str, Callable[..., str]]:
        """The filters of templates, by name."""
        return {
            "digits": self.digits,
            "percent": self.percent,
            "exact_percent": self.exact_percent,
            "bound": self.bound,
            "whole": self.whole,
            "figure": self.figure,
            "as_typed": self.as_typed,
            "moment": self.moment,
            "day": self.day,
            "in_100": self.in_100,
            "duration": self.duration,
            "file_size": self.file_size,
            "said": self.said,
            "shown": self.shown,
            "unbroken": unbroken,
        }

    def figure(self, value: Any, form: str = "") -> str:
        """A number in Python's format; anything else as it is."""
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return _with_powers(self.language.figure(format(value, form))) if is_number else str(value)

    def as_typed(self, text: str) -> str:
        """What stands in a field beforehand: a number as it is typed in this language, anything else as it is."""
        return self.language.figure(text) if _PLAIN_NUMBER.fullmatch(text) else text

    def digits(self, value: float, count: int = 3) -> str:
        """A number to so many significant digits, never in powers of ten where it can be read without: 0.25, 1.5, 2300."""
        return self.language.figure(significant(value, count))

    def percent(self, share: float) -> str:
        """A share of one: 27 %, 0.4 %, less than 0.1 %."""
        hundredths = share * 100.0
        if 0.0 < hundredths < 0.1:
            return self.language.figure("< 0.1 %")
        return self.language.figure(
            f"{hundredths:.0f} %" if hundredths >= 10.0 or hundredths == 0.0 else f"{hundredths:.1f} %"
        )

    def exact_percent(self, share: float) -> str:
        """A share that somebody has chosen, as it was chosen: 20.5 %."""
        return self.language.figure(f"{significant(share * 100.0, 12)} %")

    def bound(self, value: Any) -> str:
        """The end of a declared range: a number, or a day or moment as schemas write them. All of its digits are shown."""
        if isinstance(value, str):
            return self._written_day(value)
        return self.figure(value) if isinstance(value, int) else self.language.figure(significant(value, 15))

    def _written_day(self, text: str) -> str:
        form = self.language.conventions.day
        if form == Conventions.day:
            return text
        day, mark, clock = text.partition("T")
        try:
            return dt.date.fromisoformat(day).strftime(form) + (" " if mark else "") + clock
        except ValueError:
            return text

    def whole(self, value: int) -> str:
        """A count, in groups of three: 32 561."""
        return self.language.figure(f"{value:,}")

    def moment(self, value: dt.datetime | str) -> str:
        """A moment to the minute, in UTC; a text as certificates have it."""
        at = dt.datetime.fromisoformat(value) if isinstance(value, str) else value
        return at.astimezone(dt.UTC).strftime(f"{self.language.conventions.day} %H:%M UTC")

    def day(self, value: dt.datetime) -> str:
        """A day."""
        return value.astimezone(dt.UTC).strftime(self.language.conventions.day)

    def in_100(self, epsilon: float) -> str:
        """How often a guess is right, at most."""
        times = times_in_100(epsilon)
        return self.said(
            Message("practically 100 in 100") if times is None else Message("%(times)s in 100", times=Figure(times))
        )

    def duration(self, seconds: float) -> str:
        """To two digits, in the unit that fits."""
        number, unit = duration_in_two(seconds)
        return f"{self.language.figure(number)} {self.language.text(unit)}"

    def file_size(self, count: int) -> str:
        """A size in units of 1024: 1.5 GiB."""
        return self.language.figure(do_filesizeformat(count, binary=True))

    def said(self, text: str) -> str:
        """A sentence of this software in this language, for a place of another one; English where there is no translation."""
        return said(text, self.language) if isinstance(text, Text) else self.language.text(text)

    def shown(self, text: str) -> str:
        """The same, to stand by itself: it begins with a capital letter. English that is left is marked so, for those who hear the page."""
        found = standing(text, self.language)
        without_texts = replace(self.language, texts=gettext.NullTranslations())
        if self.language.code == DEFAULT or found != standing(text, without_texts):
            return found
        return Markup('<span lang="en">{}</span>').format(found)


def significant(value: float, count: int = 3) -> str:
    """A number as `Writing.digits` writes it, with a point in every language: for axes of data."""
    text = f"{value:.{count}g}"
    return f"{float(text):.0f}" if "e+" in text else text


def rounded_down(value: float, count: int = 3) -> float:
    """To so many significant digits, by twelve of them: 0.8999999999999999 is 0.9."""
    number = Decimal(f"{value:.12g}")
    step = Decimal(1).scaleb(number.adjusted() - count + 1)
    return float(number.quantize(step, rounding=ROUND_FLOOR)) if number else 0.0


def _with_powers(text: str) -> str:
    """1×10⁻⁶ for 1e-06."""
    number, mark, power = text.partition("e")
    return f"{number}×10{str(int(power)).translate(_SUPERSCRIPT)}" if mark and number[-1:].isdigit() else text


def unbroken(text: str) -> Markup:
    """On one line: 2010-01-31."""
    return Markup('<span class="moment">{}</span>').format(text)
