"""Which columns of a Stata, SPSS or SAS file are dates and moments, by their display formats.

The library knows the formats that show a whole date in one of a few widths, and gives numbers of days or seconds for all
others without a word. Here they are known by their names, in every width and layout.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from service.base.messages import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_NAME = re.compile(r"[A-Z]+")
_SPSS = {
    "extra_date_formats": {"DATE", "ADATE", "EDATE", "JDATE", "SDATE", "QYR", "MOYR", "WKYR"},
    "extra_datetime_formats": {"DATETIME", "YMDHMS"},
}
_SAS_DAYS = re.compile(
    r"(N[LW])?(DATE|DATEW|DATEMN|WEEKDATE|WEEKDATX|WORDDATE|WORDDATX)|(DD|MM|YY)(DD|MM|YY)(DD|MM|YY)?[BCDNPS]?"
    r"|MMYY[CDNPS]?|YYMM[CDNPS]?|MONYY|YYMON|YYQR?[CDNPS]?|YEAR|QTRR?|MONTH|MONNAME|DAY|WEEKDAY|DOWNAME|JULIAN|JULDAY"
    r"|(IS|[BE])8601DA|NLDATE(L|M|S|W|YM|YQ|YR|YW|MD|MN|WN)*"
)
_SAS_SECONDS = re.compile(r"DATETIME|DATEAMPM|MDYAMPM|(IS|[BE])8601(DT|DN|DX|DZ)|NLDATM[A-Z]*")
_STATA_DAYS = re.compile(r"%-?t?d")
_STATA_SECONDS = re.compile(r"%-?t[cC](?!HH|hh)")
_STATA_PERIODS = {
    "w": Message("weeks"),
    "m": Message("months"),
    "q": Message("quarters"),
    "h": Message("half-years"),
}
_STATA_PERIOD = re.compile(r"%-?t([wmqh])")


def more_formats(kind: str, formats: Iterable[str | None]) -> dict[str, list[str]]:
    """Options of the library under which it reads them as dates and moments."""
    found: dict[str, list[str]] = {"extra_date_formats": [], "extra_datetime_formats": []}
    for one in sorted({format_ for format_ in formats if format_}):
        option = _option(kind, one)
        if option is not None:
            found[option].append(one)
    return {option: names for option, names in found.items() if names}


def _option(kind: str, format_: str) -> str | None:
    if kind == "Stata":
        days, seconds = _STATA_DAYS.match(format_), _STATA_SECONDS.match(format_)
    elif kind.startswith("SPSS"):
        name = _NAME.match(format_)
        return next((option for option, names in _SPSS.items() if name and name.group() in names), None)
    else:
        # A width and decimals follow the name, and names may end in digits of a width alone.
        name_alone = re.sub(r"[0-9]+(\.[0-9]*)?$", "", format_)
        days, seconds = _SAS_DAYS.fullmatch(name_alone), _SAS_SECONDS.fullmatch(name_alone)
    return "extra_date_formats" if days else "extra_datetime_formats" if seconds else None


def period_notices(kind: str, formats: Mapping[str, str | None]) -> list[str]:
    """What is said of columns of Stata that count periods: they stay numbers."""
    if kind != "Stata":
        return []
    return [
        Message(
            "Column %(column)s counts %(periods)s since the beginning of 1960 (Stata's format %(format)s); it is read as "
            "these numbers. Convert it with dofm, dofq, dofw or dofh in Stata to have dates.",
            column=repr(name),
            periods=_STATA_PERIODS[found.group(1)],
            format=format_,
        )
        for name, format_ in formats.items()
        if format_ and (found := _STATA_PERIOD.match(format_))
    ]
