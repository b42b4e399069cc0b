"""What a text of a condition means as a value of a declared field: a number, a day, a second. As the service reads it, before anything is paid.

A text is read as a plain number or as ISO 8601 first, then as the schema spells the column's values.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import zoneinfo
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

SPACES = " \t\u00a0\u202f"
_WORDS_OF_NUMBERS = ("decimalChar", "groupChar", "prefix", "suffix", "negative")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SHORT = {"F": "%Y-%m-%d", "T": "%H:%M:%S", "R": "%H:%M", "D": "%m/%d/%y"}
_DIGITS = {"Y": "4", "y": "2", "j": "1,3", "f": "1,6", **dict.fromkeys("mdHIMS", "1,2")}
_OFFSET = "[+-][0-9]{2}:?[0-9]{2}"
_EXAMPLE = dt.datetime(2024, 3, 17, 14, 30, tzinfo=dt.UTC)


def number_in(value: Any, field: Mapping[str, Any]) -> float | None:
    """The number that a text means; None where it is none of this field's."""
    text = str(value).lower() if isinstance(value, bool) else str(value).strip()
    with suppress(ValueError):
        return int(text)  # exact beyond 2^53
    with suppress(ValueError):
        number = float(text)
        return None if math.isnan(number) else number
    return _spelled_number(text, field) if isinstance(value, str) and spells_numbers(field) else None


def moment_in(value: Any, field: Mapping[str, Any]) -> int | None:
    """The day of a date, counted from year 1, or the second of a datetime, from 1970 in UTC; None where it is none of this field's."""
    moment = getattr(value, "isoformat", None)
    text = (str(moment()) if callable(moment) else str(value)).strip()
    is_date = field.get("type") == "date"
    with suppress(ValueError):
        return dt.date.fromisoformat(text).toordinal() if is_date else _second(dt.datetime.fromisoformat(text), field)
    pattern = _pattern(field)
    match = None if pattern is None else _shape(pattern, field).fullmatch(text.strip(SPACES))
    with suppress(ValueError):
        if match is not None:
            found = match.groupdict()
            return _day(found, field).toordinal() if is_date else _spelled_second(found, field)
    return None


def step_of(field: Mapping[str, Any]) -> int:
    """Seconds of which written moments are whole multiples."""
    resolution = field.get("resolution")
    if resolution is not None:
        return {"minute": 60, "hour": 3_600, "day": 86_400}.get(resolution, 1)
    pattern = _pattern(field) or "%S"
    return next(
        (seconds for letter, seconds in (("S", 1), ("M", 60)) if f"%{letter}" in pattern.replace("%-", "%")), 3_600
    )


def spells_numbers(field: Mapping[str, Any]) -> bool:
    """Whether text of numbers differs from what everybody reads as one."""
    return any(field.get(word) is not None for word in _WORDS_OF_NUMBERS) or field.get("bareNumber") is False


def expected(field: Mapping[str, Any]) -> str:
    """How a value may be written, for a refusal: plainly, and as the schema spells it."""
    kind = field.get("type")
    if kind in {"integer", "number"}:
        plain = "1234" if kind == "integer" else "1234.5"
        spelled = _number_as_spelled(field) if spells_numbers(field) else ""
        spelled = "" if spelled == plain else spelled
    else:
        plain = "2024-03-17" if kind == "date" else "2024-03-17T14:30:00"
        pattern = _pattern(field)
        spelled = "" if pattern is None else _EXAMPLE.strftime(re.sub("%[-:^,]", "%", pattern))
    return f"{plain} or {spelled}, as the schema spells it" if spelled else plain


def _spelled_number(text: str, field: Mapping[str, Any]) -> float | None:
    decimal, group = field.get("decimalChar") or ".", field.get("groupChar") or ""
    marks = f"[{re.escape(SPACES if group and group in SPACES else group)}]" if group else "(?!)"
    text, negative = text.strip(SPACES), False
    if field.get("negative") == "parentheses" and text[:1] == "(" and text[-1:] == ")":
        text, negative = text[1:-1].strip(SPACES), True
    elif text[:1] in {"+", "-"}:
        text, negative = text[1:].strip(SPACES), text[0] == "-"
    for cut, affix in ((str.removeprefix, "prefix"), (str.removesuffix, "suffix")):
        text = cut(text, (field.get(affix) or "").strip(SPACES))
    text = text.strip(SPACES)
    whole = rf"[0-9]{{1,3}}(?:{marks}[0-9]{{3}})+|[0-9]+"
    if len(text) > 300 or not re.fullmatch(rf"(?:{whole})(?:{re.escape(decimal)}[0-9]*)?", text):
        return None
    digits, _, rest = text.partition(decimal)
    number = float(f"{re.sub(marks, '', digits)}.{rest}")
    return -number if negative else number


def _number_as_spelled(field: Mapping[str, Any]) -> str:
    rest = "" if field.get("type") == "integer" else f"{field.get('decimalChar') or '.'}5"
    return f"{field.get('prefix') or ''}1{field.get('groupChar') or ''}234{rest}{field.get('suffix') or ''}"


def _pattern(field: Mapping[str, Any]) -> str | None:
    """The strptime pattern that the field declares."""
    pattern = str(field.get("format") or "")
    if "%" not in pattern:
        return None
    for letter, longer in _SHORT.items():
        pattern = pattern.replace(f"%{letter}", longer)
    return pattern


def _shape(pattern: str, field: Mapping[str, Any]) -> re.Pattern[str]:
    names = {"b": [name[:3] for name in _MONTHS], "a": [name[:3] for name in _DAYS], "B": _MONTHS, "A": _DAYS}
    names |= {"p": ("AM", "PM"), "Z": sorted(_zone_names(field), key=len, reverse=True) if "%Z" in pattern else ()}
    parts = list(re.finditer(r"%([-:^,]?)(.)|[^%]+", pattern, re.DOTALL))
    found = []
    for place, part in enumerate(parts):
        letter = part[2]
        if letter is None:
            has_zone_next = [after[2] for after in parts[place + 1 : place + 2]] in (["z"], ["Z"])
            found.append(_between(part[0], may_lack_space=has_zone_next))
        elif letter in names:
            also = f"|{_OFFSET}" if letter == "Z" else ""
            found.append(f"(?P<{letter}>{'|'.join(map(re.escape, names[letter]))}{also})")
        elif letter == "z":
            found.append(f"(?P<z>Z|{_OFFSET})")
        elif letter in _DIGITS:
            beside = [parts[other][2] for other in (place - 1, place + 1) if 0 <= other < len(parts)]
            whole = not part[1] and any(other in _DIGITS for other in beside)
            found.append(f"(?P<{letter}>[0-9]{{{_DIGITS[letter][-1] if whole else _DIGITS[letter]}}})")
        else:
            found.append(re.escape(letter))
    return re.compile("".join(found), re.IGNORECASE | re.ASCII)


def _between(text: str, *, may_lack_space: bool) -> str:
    """What stands between two directives; spaces are alike, and before a zone there may be none."""
    return re.sub(r"(?:\\?[ \u00a0\u202f])+", f"[{SPACES}]{'*' if may_lack_space else '+'}", re.escape(text))


def _zone_names(field: Mapping[str, Any]) -> dict[str, int]:
    """Those that the declared zone has in its declared years, with the seconds that they are ahead."""
    found = {"UTC": 0, "GMT": 0, "Z": 0}
    zone = _zone(field)
    for year in _years(field) if zone is not None else ():
        for month in (1, 4, 7, 10):
            noon = dt.datetime(year, month, 1, 12, tzinfo=zone)
            found[noon.tzname() or "UTC"] = int((noon.utcoffset() or dt.timedelta()).total_seconds())
    return found


def _zone(field: Mapping[str, Any]) -> zoneinfo.ZoneInfo | None:
    with suppress(zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return zoneinfo.ZoneInfo(str(field["timezone"])) if field.get("timezone") else None
    return None


def _years(field: Mapping[str, Any]) -> range:
    constraints = field.get("constraints") or {}
    first, last = (str(constraints.get(word) or "")[:4] for word in ("minimum", "maximum"))
    return range(int(first), int(last) + 1) if first.isdecimal() and last.isdecimal() else range(0)


def _second(moment: dt.datetime, field: Mapping[str, Any]) -> int:
    """Raises `ValueError` where clocks of the declared zone skip it, as they do in spring."""
    if moment.tzinfo is None:
        there = moment.replace(tzinfo=_zone(field) or dt.UTC)
        with suppress(OverflowError):
            if there.astimezone(dt.UTC).astimezone(there.tzinfo).replace(tzinfo=None) != moment:
                raise ValueError("clocks skip this time")
        moment = there
    return (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(seconds=1)


def _spelled_second(found: Mapping[str, str], field: Mapping[str, Any]) -> int:
    if "I" in found and not 1 <= int(found["I"]) <= 12:
        raise ValueError("no such hour")
    hour = int(found.get("H", 0)) if "I" not in found else int(found["I"]) % 12 + 12 * (found["p"].lower() == "pm")
    time = dt.time(hour, int(found.get("M", 0)), int(found.get("S", 0)))
    moment = dt.datetime.combine(_day(found, field), time)
    if (name := found.get("Z")) is not None:
        known = {known.lower(): seconds for known, seconds in _zone_names(field).items()}
        ahead = _ahead_of(name) if name[0] in "+-" else known[name.lower()]
    elif (offset := found.get("z")) is not None:
        ahead = _ahead_of(offset)
    else:
        return _second(moment, field)
    return _second(moment.replace(tzinfo=dt.UTC), field) - ahead


def _ahead_of(offset: str) -> int:
    """Seconds ahead of UTC, of +01:00, +0100 or Z."""
    digits = offset[1:].replace(":", "") or "0000"  # Z has none
    return (int(digits[:2]) * 3_600 + int(digits[2:]) * 60) * (-1 if offset[0] == "-" else 1)


def _day(found: Mapping[str, str], field: Mapping[str, Any]) -> dt.date:
    """Raises `ValueError` for a day or a time that there is not."""
    first = next(iter(_years(field)), 1970)
    year = int(found["Y"]) if "Y" in found else first + (int(found["y"]) - first) % 100
    if "j" in found:
        day = dt.date(year, 1, 1) + dt.timedelta(int(found["j"]) - 1)
    else:
        named = found.get("b") or found.get("B")
        short = [name[:3].lower() for name in _MONTHS]
        day = dt.date(year, short.index(named[:3].lower()) + 1 if named else int(found["m"]), int(found["d"]))
    weekday = found.get("a") or found.get("A") or _DAYS[day.weekday()]
    if day.year != year or weekday[:3].lower() != _DAYS[day.weekday()][:3].lower():
        raise ValueError("no such day")
    return day
