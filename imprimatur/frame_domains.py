"""The domain of a frame's column as it is read from the rows for a draft, or why none is: what points to a person is not listed."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from imprimatur.person_columns import (
    FEW_CATEGORIES,
    is_person_id,
    may_be_person_id,
    says_code,
    says_identifier,
    says_person,
    words_of,
)
from imprimatur.personal_looks import LONG_TEXT, are_shaped_ids, look_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from imprimatur.replies import Json

_FEW = 20
_MOST_DECIMALS = 9
_LARGEST = 2**53
_KINDS = (int, float, Decimal, str, dt.datetime, dt.date, dt.timedelta)
_MOSTLY_DIFFERENT = 0.9
_WORDS_OF_TEXT = 5
"""Of an average cell: categories are shorter."""
_NOTES = frozenset(
    [
        "note",
        "notes",
        "comment",
        "comments",
        "remark",
        "remarks",
        "memo",
        "message",
        "feedback",
        "narrative",
        "freetext",
    ]
) | frozenset(["description", "anamnesis", "bemerkung", "bemerkungen", "kommentar", "notiz", "notizen"])
_WORDS_OF_NOTE = 3
_LONG_NUMBER = 10**8
"""From nine digits on, whole numbers of one length are numbers of phones, contracts or people. Moments in seconds or milliseconds are not."""
_SECONDS = (10**9, 2 * 10**9)


def domain_of(name: str, counts: Mapping[Any, int], rows: int) -> Json | str:
    """Type and constraints of a column with these values, each in so many rows; or why there is none."""
    values = list(counts)
    kinds = {bool if isinstance(v, bool) else next((k for k in _KINDS if isinstance(v, k)), type(v)) for v in values}
    found: Json | str
    if not values:
        found = "it is empty"
    elif kinds == {bool}:
        found = {"type": "boolean", "constraints": {}}
    elif kinds == {dt.date}:
        found = {"type": "date", "constraints": _years(values, "", "")}
    elif kinds == {dt.datetime}:
        found = {"type": "datetime", "constraints": _years(values, "T00:00:00", "T23:59:59")}
    elif kinds == {str} and len(values) > max(_FEW, rows // 2):
        found = "its texts look like names, identifiers or free text"
    elif why := _whose(name, counts):
        found = why
    elif kinds == {str}:
        found = _texts(name, counts)
    elif kinds <= {int, float, Decimal}:
        found = _numbers(counts, rows, kinds)
    else:
        found = f"no schema has values of type {', '.join(sorted(kind.__name__ for kind in kinds))}"
        if dt.timedelta in kinds:
            found += "; .dt.total_seconds() makes numbers of time differences"
    return found


def _whose(name: str, counts: Mapping[Any, int]) -> str:
    """Why the name says that a column points to persons; empty where it does not."""
    if is_person_id(name) or (may_be_person_id(name) and len(counts) > FEW_CATEGORIES):
        return "its name says whose row it is"
    if says_person(name):
        return "its name says that it points to a person"
    if says_identifier(name) and _are_mostly_different(counts):
        return "its name is that of an identifier, and nearly all its values are different"
    return ""


def _are_mostly_different(counts: Mapping[Any, int]) -> bool:
    return len(counts) >= _MOSTLY_DIFFERENT * sum(counts.values())


def _texts(name: str, counts: Mapping[str, int]) -> Json | str:
    shared = sorted(text for text, times in counts.items() if times > 1)
    found: Json | str = {"type": "string", "constraints": {"enum": shared}}
    if look := look_of(counts):
        found = f"its texts look like {look}"
    elif _is_free_text(name, counts):
        found = "it is free text"
    elif are_shaped_ids(list(counts)) and not says_code(name):
        found = "its texts are letters and numbers of one form, as identifiers are"
    elif len(counts) > 2 * len(shared):
        found = "most of its values occur once, as names and identifiers do"
    return found


def _is_free_text(name: str, counts: Mapping[str, int]) -> bool:
    cells = sum(counts.values())
    words = sum(len(text.split()) * times for text, times in counts.items()) / cells
    characters = sum(len(text) * times for text, times in counts.items()) / cells
    if words >= _WORDS_OF_TEXT or (words > 1 and characters >= LONG_TEXT):
        return True
    return words >= _WORDS_OF_NOTE and not _NOTES.isdisjoint(words_of(name))


def _numbers(counts: Mapping[Any, int], rows: int, kinds: set[type]) -> Json | str:
    if why := _why_no_numbers(counts, rows):
        return why
    low, high = min(counts), max(counts)
    kind = "integer" if kinds == {int} else "number"
    if low == high or (kind == "integer" and len(counts) <= _FEW and min(counts.values()) > 1):
        return {"type": kind, "constraints": {"enum": sorted(counts if kind == "integer" else map(float, counts))}}
    decimals = max(_decimals(value) for value in counts)
    least, most = _outwards(float(low), float(high))
    if kind == "integer":
        return {"type": kind, "constraints": {"minimum": int(least), "maximum": int(most)}}
    found: Json = {"type": kind, "constraints": {"minimum": least, "maximum": most}}
    return found | ({"decimals": decimals} if decimals <= _MOST_DECIMALS else {})


def _why_no_numbers(counts: Mapping[Any, int], rows: int) -> str:
    """Why the numbers have no domain; empty where they have one."""
    low, high = min(counts), max(counts)
    if not (math.isfinite(low) and math.isfinite(high)) or max(-low, high) > _LARGEST:
        return "its numbers are infinite or beyond 2^53"
    if all(value == int(value) for value in counts):
        if rows > _FEW and len(counts) == rows == high - low + 1:
            return "it numbers the rows"
        if _are_long(counts, int(low), int(high)):
            return "its numbers are long and of one length, as those of phones and identifiers are"
    return "its only value occurs once" if list(counts.values()) == [1] else ""


def _are_long(counts: Mapping[Any, int], low: int, high: int) -> bool:
    is_time = any(_SECONDS[0] * unit <= low and high <= _SECONDS[1] * unit for unit in (1, 10**3, 10**6))
    is_long = low >= _LONG_NUMBER and len(str(low)) == len(str(high)) and not is_time
    return is_long and (len(counts) <= _FEW or _are_mostly_different(counts))


def _decimals(value: Any) -> int:
    exponent = Decimal(str(value)).as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _outwards(low: float, high: float) -> tuple[float, float]:
    """Bounds on multiples of the power of ten below their distance, so that they are not one person's value."""
    exponent = math.floor(math.log10(max(high - low, 1e-300)))
    lowest, highest = math.floor(low / 10.0**exponent), math.ceil(high / 10.0**exponent)
    return float(f"{lowest}e{exponent}"), float(f"{highest}e{exponent}")


def _years(values: Sequence[Any], first: str, last: str) -> Json:
    """Whole years."""
    return {"minimum": f"{min(values).year:04}-01-01{first}", "maximum": f"{max(values).year:04}-12-31{last}"}
