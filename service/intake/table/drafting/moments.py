"""Dates and moments as people write them: 17/04/2023, 17.04.2023, 20230417, 2025-02-09 00:00:00 CEST."""

from __future__ import annotations

import re
import zoneinfo
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from service.domain.spellings import ZONE_HOURS
from service.domain.zones import zone_of
from service.intake.table.cells import values_where

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

_DAYS = (
    *(
        "%d/%m/%Y",
        "%m/%d/%Y",
        "%d.%m.%Y",
        "%d-%m-%Y",
        "%m-%d-%Y",
        "%Y/%m/%d",
        "%Y.%m.%d",
        "%Y%m%d",
        "%d%m%Y",
        "%d %b %Y",
        "%d %B %Y",
    ),
    *("%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%d-%b-%Y", "%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%d-%b-%y", "%d. %B %Y"),
    *("%d-%m-%y", "%m-%d-%y", "%y-%m-%d", "%d%b%Y", "%Y年%m月%d日"),
)
_TIMES = (
    " %H:%M",
    " %H:%M:%S",
    " %H:%M:%S%.f",
    " %I:%M %p",
    " %I:%M:%S %p",
    " %I.%M.%S%.f %p",
    "T%H:%M:%S",
    ", %H:%M",
    ", %H:%M:%S",
    "%H%M%S",
    "T%H%M%S",
)
_ISO_TIMES = (" %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S", " %H:%M:%S%.f", "T%H:%M:%S%.f", " %I:%M:%S %p", " %I:%M %p")
_DIGITS = {
    "%Y": "[0-9]{4}",
    "%y": "[0-9]{2}",
    "%m": "[0-9]{1,2}",
    "%d": "[0-9]{1,2}",
    "%H": "[0-9]{1,2}",
    "%I": "[0-9]{1,2}",
}
_DIGITS |= {
    "%M": "[0-9]{2}",
    "%S": "[0-9]{2}",
    "%.f": r"\.[0-9]{1,6}",
    "%p": "(?i:am|pm)",
    "%b": "[A-Za-z]{3}",
    "%B": "[A-Za-z]{3,9}",
}
_MAY_BE_BARE = ("%m", "%d", "%H", "%I")
_PACKED = {"%Y": "[0-9]{4}", "%m": "[0-9]{2}", "%d": "[0-9]{2}", "%H": "[0-9]{2}", "%M": "[0-9]{2}", "%S": "[0-9]{2}"}

_ISO_USUAL = "%Y-%m-%dT%H:%M:%S"
_ISO_PARTS = (
    ("^[0-9]{4}-[0-9]{2}-[0-9]{2}", "%Y-%m-%d"),
    ("[0-9]{2}:[0-9]{2}", "%H:%M"),
    ("%M:[0-9]{2}", "%M:%S"),
    (r"\.[0-9]{1,6}$", ".%f"),
)
"""What stands in a text of ISO 8601 -> the directives that read it."""

_NAMED = "UTC|GMT|Z|[A-Z]{2,4}T|[A-Z][A-Za-z]+/[A-Za-z_/]+"
_AHEAD = "[+-][0-9]{2}:?[0-9]{2}"
_ZONE = rf"([ ]?)({_NAMED}|{_AHEAD})$"
_ENDS_IN_ZONE = rf"[ ]?(?:{_NAMED})$|:[0-9]{{2}}(?:\.[0-9]+)?[ ]?{_AHEAD}$"
"""Offsets follow a time: 17-04-2023 has none."""
_OFFSET = re.compile("[+-][0-9]{2}(:?)[0-9]{2}")
_ZONE_HOURS = 14
"""No zone differs more from UTC, so bounds in UTC lie at most so many hours outside of what the text says."""

_MOST_READ = 2
_FIRST_YEAR, _LAST_YEAR = 1800, 2100
"""Eight digits are a date if all of a column's are, and of these years; codes seldom are."""

EIGHT_DIGITS = ("%Y%m%d", "%d%m%Y", "%Y%m%d%H%M%S")
_EITHER = {"%d/%m/": "%m/%d/", "%d-%m-": "%m-%d-"}
"""Day first and month first: most of the world, and the United States."""


@dataclass(frozen=True, slots=True)
class MomentSpelling:
    """How the dates or moments of a column are written."""

    pattern: str
    has_zone: bool = False
    gap: str = " "
    """What stands before the zone."""

    @property
    def has_time(self) -> bool:
        return "%H" in self.pattern or "%I" in self.pattern

    def words(self, zones: set[str], bare: Collection[str] = (), case: str = "") -> dict[str, Any]:
        """The words of the field. `bare`: directives whose numbers have no zeros before them; `case`: the mark of how words are written."""
        marked = "bBp" if case == "," else "bB"  # AM and PM are in capitals anyway
        pattern = re.sub(f"%([{marked}])", rf"%{case}\1", self.pattern.replace("%.f", ".%f"))
        for directive in bare:
            pattern = pattern.replace(directive, f"%-{directive[1]}")
        name = name_of(zones)
        if name is not None:  # a place's name has no directive, and stands in each cell as it is
            return {"format": f"{pattern}{self.gap}{name}", "timezone": name}
        return {"format": pattern + (f"{self.gap}{directive_of(zones)}" if self.has_zone else "")} | _timezone_of(zones)

    def numbers(self, text: pl.Series) -> dict[str, pl.Series]:
        """The numbers, as written, that may have a zero before them or not, by directive."""
        if self.pattern in EIGHT_DIGITS:
            return {}
        if self.has_zone:
            text = text.str.replace(_ZONE, "")
        found = [one for one in _MAY_BE_BARE if one in self.pattern]
        return {one: text.str.extract(self._regex_around(one)) for one in found}

    def read(self, text: pl.Series) -> pl.Series:
        """Microseconds since 1970-01-01; null where a cell is none. A named zone is left out of account."""
        if self.has_zone:
            text = values_where(text.str.contains(_ZONE).fill_null(value=False), text).str.replace(_ZONE, "")
        text = values_where(text.str.contains(self._regex).fill_null(value=False), text)
        if not len(text) or text.null_count() == len(text):
            return pl.Series(text.name, [None], dtype=pl.Int64).new_from_index(0, len(text))
        if self.has_time:
            return text.str.to_datetime(self.pattern, strict=False, time_unit="us").cast(pl.Int64)
        return text.str.to_date(self.pattern, strict=False).cast(pl.Datetime("us")).cast(pl.Int64)

    def cases(self, text: pl.Series) -> set[str]:
        """The mark of each way in which words of two letters or more are written: in capitals, without any, or as names are."""
        words = text.str.replace(_ZONE, "") if self.has_zone else text
        words = words.str.replace_all("[^A-Za-z]", "")
        found = {"^": words.str.contains("^[A-Z]{2,}$"), ",": words.str.contains("^[a-z]{2,}$")}
        some = {mark for mark, own in found.items() if own.any()}
        return some | ({""} if not (found["^"] | found[","]).all() else set())

    def zones(self, text: pl.Series) -> set[str]:
        return set(text.str.extract(_ZONE, 2).drop_nulls().unique().to_list()) if self.has_zone else set()

    @property
    def margin_microseconds(self) -> int:
        """What a zone may put between the text and the moment."""
        return _ZONE_HOURS * 3_600_000_000 if self.has_zone else 0

    @property
    def other_order(self) -> str | None:
        """The pattern with day and month exchanged, where people write both."""
        for one, other in _EITHER.items():
            for here, there in ((one, other), (other, one)):
                if self.pattern.startswith(here):
                    return there + self.pattern[len(here) :]
        return None

    @property
    def _regex(self) -> str:
        kinds = _PACKED if self.pattern in EIGHT_DIGITS else _DIGITS
        return f"^{''.join(kinds.get(piece, re.escape(piece)) for piece in self._pieces)}$"

    def _regex_around(self, directive: str) -> str:
        kinds = _DIGITS | {directive: f"({_DIGITS[directive]})"}
        return f"^{''.join(kinds.get(piece, re.escape(piece)) for piece in self._pieces)}$"

    @property
    def _pieces(self) -> list[str]:
        return re.split(r"(%\.f|%[A-Za-z])", self.pattern)


def zones_of_iso(text: pl.Series) -> set[str]:
    """`Z` or offsets behind the time of ISO 8601; an empty text where there is none."""
    timed = text.filter(text.str.contains(":", literal=True))
    return set(timed.str.extract(f"(Z|{_AHEAD})$").fill_null("").unique().to_list()) - (
        {""} if not len(timed) else set()
    )


def shapes_of_iso(text: pl.Series) -> set[str]:
    """The patterns of ISO 8601, without zones, that its cells follow."""
    bare = text.str.replace(f"(:[0-9]{{2}}(?:\\.[0-9]+)?)(?:Z|{_AHEAD})$", "${1}")
    for digits, directive in _ISO_PARTS:
        bare = bare.str.replace(digits, directive)
    return set(bare.unique().to_list())


def iso_words(shapes: Collection[str], zones: Collection[str]) -> dict[str, Any]:
    """The words of a field whose cells are all written in one way of ISO 8601, other than the one that is written unless said."""
    pattern = next(iter(shapes)) if len(shapes) == 1 else ""
    is_usual = pattern == _ISO_USUAL and set(zones) <= {""}
    if "%H" not in pattern or "." in pattern.replace(".%f", "") or is_usual or ("" in zones and len(zones) > 1):
        return {}
    return {"format": pattern + (directive_of(zones) if set(zones) - {""} else "")} | _timezone_of(zones)


def name_of(zones: Collection[str]) -> str | None:
    """The name of the one place that all cells have their time of, like Europe/Paris."""
    only = next(iter(zones)) if len(zones) == 1 else ""
    return only if "/" in only else None


def directive_of(zones: Collection[str]) -> str:
    """What reads all of these, and writes them where they are of one kind."""
    offsets = [found for zone in zones if (found := _OFFSET.fullmatch(zone))]
    if set(zones) in ({"Z"}, {"GMT"}):
        return next(iter(zones))
    if len(offsets) < len(zones) or not offsets:
        return "%Z"
    return "%:z" if offsets[0][1] else "%z"


def are_utc(zones: Collection[str]) -> bool:
    """Whether synthetic moments, which are in UTC unless a place is named, are written in the same zone and the same way."""
    return set(zones) <= {""} or set(zones) in ({"UTC"}, {"Z"}, {"GMT"}, {"+00:00"}, {"+0000"})


def hours_ahead(zones: Collection[str]) -> int:
    """The one offset in whole hours that all cells have, so that synthetic ones can have it, too; else 0."""
    found = _OFFSET.fullmatch(next(iter(zones))) if len(zones) == 1 else None
    hours = int(found[0][:3]) if found is not None and found[0].endswith("00") else 0
    return hours if -12 <= hours <= _ZONE_HOURS else 0


def _timezone_of(zones: Collection[str]) -> dict[str, str]:
    """The zone that is always so many hours ahead. In the list of zones its sign is that of the way back."""
    ahead = hours_ahead(zones)
    return {"timezone": f"Etc/GMT{-ahead:+}"} if ahead else {}


def are_declarable(zones: Collection[str]) -> bool:
    """Whether a field can say what the zones mean: abbreviations that are known, or one place."""
    name = name_of(zones)
    if name is None:
        return all(not zone or zone in ZONE_HOURS or _OFFSET.fullmatch(zone) for zone in zones)
    try:
        zone_of(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def guess(texts: Sequence[str]) -> list[MomentSpelling]:
    """The spellings that read most of some cells, the best first; of several that read as many, the day comes first."""
    cells = pl.Series(list(texts), dtype=pl.String)
    if not cells.str.contains("[0-9]").any():
        return []
    has_zone = _MOST_READ * int(cells.str.contains(_ENDS_IN_ZONE).sum()) >= len(cells)
    gap = " " if not has_zone or (cells.str.extract(_ZONE, 1) == " ").any() else ""
    iso = [f"%Y-%m-%d{time}" for time in _ISO_TIMES] if has_zone or cells.str.contains("(?i:am|pm)$").any() else []
    counts = []
    for spelling in (MomentSpelling(pattern, has_zone, gap) for pattern in _patterns(iso, has_zone=has_zone)):
        count = int(_in_reach(spelling, spelling.read(cells)).sum())
        if count and _MOST_READ * count >= len(cells):
            counts.append((count, spelling))
    return [spelling for _, spelling in sorted(counts, key=lambda one: -one[0])]


def _patterns(iso: list[str], *, has_zone: bool) -> list[str]:
    """Those that are tried, in order."""
    with_time = [day + time for day in _DAYS for time in _TIMES]
    return [*iso, *with_time] if has_zone else [*_DAYS, *with_time, *iso]


def _in_reach(spelling: MomentSpelling, moments: pl.Series) -> pl.Series:
    if spelling.pattern not in EIGHT_DIGITS:
        return moments.is_not_null()
    years = moments.cast(pl.Datetime("us")).dt.year()
    return (years.is_between(_FIRST_YEAR, _LAST_YEAR) | (years == 9999)).fill_null(value=False)
