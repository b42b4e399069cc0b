"""The closed domain of a column of numbers or moments: bounds rounded outwards, without what stands for something else."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import polars as pl

from service.base.messages import Message
from service.domain.zones import offsets_of
from service.intake.table.cells import DAY_MICROSECONDS
from service.intake.table.drafting import sentinels
from service.intake.table.drafting.doubts import days_of_a_spreadsheet, lone_number, respelled, zeros_of_codes
from service.intake.table.drafting.findings import Finding, shown
from service.intake.table.drafting.moments import are_declarable, are_utc, hours_ahead, name_of
from service.intake.table.drafting.numbers import doubt_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.intake.table.drafting.findings import Decided
    from service.intake.table.drafting.observed import Observed
    from service.intake.table.drafting.readings import MomentReading, NumberReading

CHECK_ENUM = "DRAFT: these categories were read from the data. Declare the categories that are publicly known instead."
CHECK_RANGE = "DRAFT: these bounds were read from the data and rounded outwards. Declare publicly known bounds instead."
_ALSO_DECIMALS = " So were the decimals."
_ALSO_RESOLUTION = " So was the resolution."

_FEW_NUMBERS = 20
_ROWS_OF_A_FRACTION = 20
"""Few numbers with digits after the point are categories only if rows share them: so many for each."""

_MOST_DECIMALS = 4
_MOST_WRITTEN_DECIMALS = 15
_LARGEST = 2**53
_FEW_WORDS = 3
_MOSTLY_READ = 0.9
"""So few words among so many numbers or dates say that nothing is known."""

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def number_domain(seen: Observed, decided: Decided, markers: Sequence[str]) -> bool:
    """Propose a range or a few values; False where the cells are no numbers."""
    reading = seen.number
    words = _words_between(seen, reading)
    if words is None or not reading.count:
        return False
    others = _others(seen, reading, words)
    found = sentinels.recognised(dict(reading.candidates), reading.low, reading.high, seen.cells, others)
    for value in reading.candidates.keys() - set(found):
        reading.widen(value, value)
    if reading.low is None or reading.high is None:
        return False
    is_whole = _is_whole(reading)
    values = _few_values(seen, reading, found, words, is_whole=is_whole)
    field: dict[str, Any] = {"type": "integer" if is_whole else "number", "description": CHECK_RANGE}
    if values is not None:
        field |= {"description": CHECK_ENUM, "constraints": {"enum": values}}
        if _has_written_decimals(reading, is_whole=is_whole):
            field["decimals"] = reading.decimals
    else:
        low, high = _bounds(reading, found)
        if max(-low, high) > _LARGEST:
            decided.why = Message("its numbers are beyond 2^53")
            decided.findings.append(
                Finding(
                    seen.name,
                    Message("left out: %(why)s", why=decided.why),
                    Message("subtract the offset that they share, or remove them"),
                )
            )
            return True
        convert = int if is_whole else float
        field["constraints"] = {"minimum": convert(low), "maximum": convert(high)}
        if _has_decimals(reading, is_whole=is_whole) or _are_padded(reading):
            field |= {"description": CHECK_RANGE + _ALSO_DECIMALS, "decimals": reading.decimals}
    decided.field = field | _zeros(reading, is_whole=is_whole) | reading.spelling.words()
    _doubts(seen, reading, decided, values if is_whole else None, is_range=values is None)
    _mark_missing(seen, decided, markers, words, [reading.written[value] for value in found])
    return True


def _doubts(
    seen: Observed, reading: NumberReading, decided: Decided, whole: Sequence[float] | None, *, is_range: bool
) -> None:
    """What only the owner knows."""
    doubt = doubt_of(reading.spelling, seen.sample)
    if doubt:
        decided.findings.append(Finding(seen.name, doubt))
    lone = lone_number(seen, reading) if is_range else None
    found = (zeros_of_codes(seen, reading), respelled(seen, reading), days_of_a_spreadsheet(seen, reading), lone)
    decided.findings += [one for one in found if one is not None]
    if reading.low in {-1, -2}:
        what = Message("its lowest number is %(low)s, next to others, and is taken as a value", low=reading.low)
        decided.findings.append(
            Finding(seen.name, what, Message("if it means not known, write it into the field's `missingValues`"))
        )
    if whole is not None:
        _doubtful_codes(seen, decided, sentinels.codes_apart([int(value) for value in whole]))


def moment_domain(
    seen: Observed, decided: Decided, markers: Sequence[str], only: tuple[str, ...] | None = None
) -> bool:
    """Propose whole years, from the first day of the first to the last day of the last; False where the cells are no moments."""
    reading = seen.moment
    if not _is_among(reading, only):
        return False
    words = _words_between(seen, reading)
    if words is None or not reading.count or not are_declarable(reading.zones):
        return False
    low, high = _days(reading)
    others = _others(seen, reading, words)
    found = sentinels.recognised(dict(reading.candidates), low, high, seen.cells, others)
    for day in reading.candidates.keys() - set(found):
        reading.widen(day * DAY_MICROSECONDS, (day + 1) * DAY_MICROSECONDS - 1)
    if reading.low is None or reading.high is None:
        return False
    has_time, margin = _time_and_margin(reading)
    decided.field = {
        "type": "datetime" if has_time else "date",
        "description": CHECK_RANGE,
        "constraints": _whole_years(reading, reading.low - margin, reading.high + margin, has_time=has_time),
        **reading.words(),
    }
    resolution = _resolution(reading)
    if has_time and resolution != "second":
        decided.field |= {"description": CHECK_RANGE + _ALSO_RESOLUTION, "resolution": resolution}
    _doubtful_order(seen, reading, decided)
    _doubtful_zones(seen, reading, decided)
    if reading.between_seconds:
        what = Message(
            "%(between_seconds)s cells have parts of a second, which synthetic moments do not have",
            between_seconds=reading.between_seconds,
        )
        decided.findings.append(
            Finding(seen.name, what, Message("where they matter, declare them as a number column of their own"))
        )
    _mark_missing(seen, decided, markers, words, [text for day in found for text in sorted(reading.written[day])])
    return True


def _whole_years(reading: MomentReading, low: int, high: int, *, has_time: bool) -> dict[str, str]:
    """Bounds as clocks of the field's zone show them, which at the ends of a year is another one than that of UTC."""
    shift = hours_ahead(reading.zones) * DAY_MICROSECONDS // 24 if "timezone" in reading.words() else 0
    times = ("T00:00:00", "T23:59:59") if has_time else ("", "")
    return {
        "minimum": f"{_year(low + shift):04}-01-01{times[0]}",
        "maximum": f"{_year(high + shift):04}-12-31{times[1]}",
    }


def _resolution(reading: MomentReading) -> str:
    """Of moments in UTC: half an hour lies between UTC and some places."""
    name = name_of(reading.zones)
    if reading.resolution == "hour" and name is not None and reading.low is not None and reading.high is not None:
        offsets = offsets_of(name)
        ends = [one.start * 1_000_000 for one in offsets[1:]] + [reading.high + 1]
        if any(one.seconds % 3_600 for one, end in zip(offsets, ends, strict=True) if end > reading.low):
            return "minute"
    return reading.resolution


def _is_whole(reading: NumberReading) -> bool:
    return reading.whole == reading.count and (reading.spelling.is_plain or not reading.decimals)


def _has_decimals(reading: NumberReading, *, is_whole: bool) -> bool:
    return not is_whole and not reading.has_exponent and reading.decimals <= _MOST_DECIMALS


def _has_written_decimals(reading: NumberReading, *, is_whole: bool) -> bool:
    """Of categories: 7,00 is not written 7, where every cell has two digits there."""
    are_alike = not is_whole and reading.fewest_decimals == reading.decimals <= _MOST_WRITTEN_DECIMALS
    return (are_alike and not reading.spelling.is_plain) or _are_padded(reading)


def _are_padded(reading: NumberReading) -> bool:
    """Whether plain numbers are written with zeros that say nothing: 12.50 and 3.00, or 1.0 and 2.0, each with as many decimals."""
    are_alike = reading.fewest_decimals == reading.decimals <= _MOST_WRITTEN_DECIMALS and not reading.has_exponent
    return are_alike and reading.ends_in_zero and reading.spelling.is_plain


def _zeros(reading: NumberReading, *, is_whole: bool) -> dict[str, bool]:
    """Whether zeros stand after the last digit, where the cells say it and it would not be so anyway."""
    if _are_padded(reading):
        return {"trailingZeros": True}
    is_known = reading.fewest_decimals == 0 or not reading.spelling.is_plain
    differ = reading.fewest_decimals != reading.decimals and not (is_whole or reading.has_exponent)
    return {"trailingZeros": False} if reading.was_text and differ and is_known and not reading.ends_in_zero else {}


def _is_among(reading: MomentReading, only: tuple[str, ...] | None) -> bool:
    return only is None or (reading.spelling is not None and reading.spelling.pattern in only)


def _others(seen: Observed, reading: NumberReading | MomentReading, words: Sequence[str]) -> int:
    """How many different values are neither words nor may be sentinels."""
    return 10**6 if seen.texts is None else len(seen.texts) - len(reading.candidates) - len(words)


def _days(reading: MomentReading) -> tuple[int | None, int | None]:
    if reading.low is None or reading.high is None:
        return None, None
    return reading.low // DAY_MICROSECONDS, reading.high // DAY_MICROSECONDS


def _time_and_margin(reading: MomentReading) -> tuple[bool, int]:
    if reading.spelling is None:
        return reading.dates < reading.count, 0
    return reading.spelling.has_time, reading.spelling.margin_microseconds


def _words_between(seen: Observed, reading: NumberReading | MomentReading) -> list[str] | None:
    """Cells that say in words that nothing is known, each in several rows; None where others are not read."""
    if reading.count == seen.cells:
        return []
    is_few = not reading.reads_others and len(reading.unread) <= _FEW_WORDS and min(reading.unread.values()) > 1
    return list(reading.unread) if is_few and reading.count >= _MOSTLY_READ * seen.cells else None


def _few_values(
    seen: Observed, reading: NumberReading, found: Sequence[Decimal], words: Sequence[str], *, is_whole: bool
) -> list[int] | list[float] | None:
    """The values that rows share, where they are few. None: a range says less of single rows."""
    if seen.texts is None:
        return None
    by_value: dict[Decimal, int] = {}
    texts = [text for text in seen.texts if text not in words]
    for text, plain in zip(texts, reading.spelling.plain(pl.Series(texts, dtype=pl.String)).to_list(), strict=True):
        by_value[Decimal(plain)] = by_value.get(Decimal(plain), 0) + seen.texts[text]
    shared = sorted(value for value in by_value if value not in found)
    if any(by_value[value] == 1 for value in shared):
        return None
    are_shared = is_whole or seen.cells >= _ROWS_OF_A_FRACTION * len(shared)
    if len(shared) != 1 and not (are_shared and len(shared) <= _FEW_NUMBERS):
        return None
    return [int(value) for value in shared] if is_whole else [float(value) + 0.0 for value in shared]  # -0.0 is 0.0


def _bounds(reading: NumberReading, found: Sequence[Decimal]) -> tuple[Decimal, Decimal]:
    low, high = reading.low or Decimal(0), reading.high or Decimal(0)
    lowest, highest = round_outwards(low, high)
    if {lowest, highest} & set(found):  # a bound that is a marker of missing values would be refused
        return low, high if high > low else low + 1
    return lowest, highest


def round_outwards(low: Decimal, high: Decimal) -> tuple[Decimal, Decimal]:
    """Bounds on multiples of the power of ten below their distance, so that they are not one person's value."""
    unit = Decimal(1).scaleb((high - low).adjusted() if high > low else max(0, high.adjusted()))
    lowest, highest = (low / unit).to_integral_value("ROUND_FLOOR"), (high / unit).to_integral_value("ROUND_CEILING")
    if lowest == highest:
        highest += 1
    return lowest * unit, highest * unit


def _mark_missing(
    seen: Observed, decided: Decided, markers: Sequence[str], words: Sequence[str], found: Sequence[str]
) -> None:
    """Propose both as missing values of this field alone."""
    if decided.field is None or not (words or found):
        return
    decided.field["missingValues"] = [*markers, *words, *found]
    if words:
        what = Message(
            "%(cells)s hold words among the %(kind)s, proposed as missing",
            cells=_rows_of(seen, words),
            kind=Message("dates") if "date" in decided.field["type"] else Message("numbers"),
        )
        proposal = Message("if they are an answer, declare the column as categories, or correct the file")
        decided.findings.append(Finding(seen.name, what, proposal, shown(words)))
    if found:
        what = Message(
            "%(cells)s are far from all others and look like a code for something else, proposed as missing",
            cells=_rows_of(seen, found),
        )
        proposal = Message(
            "if they are values, take them out of `missingValues` and widen the bounds; if they are an answer of "
            "their own (never, still open), write that into a column of categories"
        )
        decided.findings.append(Finding(seen.name, what, proposal, shown(found)))


def _doubtful_codes(seen: Observed, decided: Decided, codes: Sequence[int]) -> None:
    """9 above 1 to 7 is a value of its own as it is drafted; only the owner knows whether it means that nothing is known."""
    if not codes:
        return
    texts = [str(code) for code in codes]
    what = Message(
        "%(cells)s hold a number that forms use for not known, above the others and not next to them; it is "
        "taken as a value",
        cells=_rows_of(seen, texts),
    )
    proposal = Message(
        "if it means that nothing is known, write it into the field's `missingValues` and take it out of the "
        "`enum`; else leave it"
    )
    decided.findings.append(Finding(seen.name, what, proposal, shown(texts)))


def _rows_of(seen: Observed, texts: Sequence[str]) -> str:
    if seen.texts is None:
        return Message("some cells")
    return Message("%(count)s cells", count=sum(seen.texts.get(text, 0) for text in texts))


def _doubtful_order(seen: Observed, reading: MomentReading, decided: Decided) -> None:
    """03/04 is the third of April, or the fourth of March."""
    other = None if reading.spelling is None else reading.spelling.other_order
    rival = next((one for one in seen.moments if one.spelling is not None and one.spelling.pattern == other), None)
    if rival is not None and rival.count == reading.count and decided.field is not None:
        is_day_first = reading.spelling is not None and reading.spelling.pattern.startswith("%d")
        what = (
            Message("no cell says whether the day or the month comes first; read with the day first")
            if is_day_first
            else Message("no cell says whether the day or the month comes first; read with the month first")
        )
        decided.findings.append(
            Finding(seen.name, what, Message('if that is wrong, write `format`: "%(other)s"', other=other))
        )


def _doubtful_zones(seen: Observed, reading: MomentReading, decided: Decided) -> None:
    """Moments have one zone when they are written."""
    if are_utc(reading.zones) or name_of(reading.zones) is not None:
        return
    if "timezone" in (decided.field or {}):
        what = Message("all its cells are in the zone %(zone)s, and synthetic ones are", zone=next(iter(reading.zones)))
        proposal = Message('for the clock times of a place, in summer too, write `timezone`, like "Europe/Berlin"')
        decided.findings.append(Finding(seen.name, what, proposal))
        return
    several = Message(" in more than one way") if len(reading.zones) > 1 else ""
    what = Message(
        "its cells name their zone%(several)s: each is read as the moment that it is, and synthetic ones are "
        "all written in UTC",
        several=several,
    )
    proposal = Message('for the clock times of a place write `timezone`, like "Europe/Berlin"')
    decided.findings.append(Finding(seen.name, what, proposal, shown(sorted(reading.zones))))


def _year(microseconds: int) -> int:
    return min(9999, max(1, (_EPOCH + dt.timedelta(microseconds=microseconds)).year))
