"""When clocks of a declared time zone were set, from the declaration alone: the same both ways, when text is read and written."""

from __future__ import annotations

import datetime as dt
import functools
import zoneinfo
from typing import Any, NamedTuple

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FIRST, _LAST = dt.datetime(1900, 1, 1, tzinfo=dt.UTC), dt.datetime(2100, 1, 1, tzinfo=dt.UTC)
_LOOK = dt.timedelta(days=7)


class Offset(NamedTuple):
    """From this second of UTC on, clocks are so many seconds ahead of it and name their zone so."""

    start: int
    seconds: int
    name: str


@functools.cache
def zone_of(name: str) -> dt.tzinfo:
    """The zone, kept: the process that reads uploads opens no file once it has begun to read."""
    return zoneinfo.ZoneInfo(name)


@functools.cache
def offsets_of(name: str) -> tuple[Offset, ...]:
    """The offsets of a zone from 1900 to 2100; before and after, those at the ends."""
    zone = zone_of(name)
    moment, found = _FIRST, [_offset(_FIRST, zone)]
    while moment < _LAST:
        following = moment + _LOOK
        if _offset(following, zone)[1:] != found[-1][1:]:
            found.append(_offset(_change(moment, following, zone), zone))
        moment = following
    return tuple(found)


def zones_in(schema: Any) -> set[str]:
    """The zones that a schema document names."""
    return {field["timezone"] for field in schema.get("fields", ()) if field.get("timezone")}


def _offset(moment: dt.datetime, zone: dt.tzinfo) -> Offset:
    local = moment.astimezone(zone)
    offset = local.utcoffset() or dt.timedelta()
    return Offset(_seconds(moment), round(offset.total_seconds()), local.tzname() or "UTC")


def _change(before: dt.datetime, after: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    """The first second that is not as `before`."""
    old = _offset(before, zone)[1:]
    while after - before > dt.timedelta(seconds=1):
        middle = before + dt.timedelta(seconds=(_seconds(after) - _seconds(before)) // 2)
        if _offset(middle, zone)[1:] == old:
            before = middle
        else:
            after = middle
    return after


def _seconds(moment: dt.datetime) -> int:
    return round((moment - _EPOCH).total_seconds())
