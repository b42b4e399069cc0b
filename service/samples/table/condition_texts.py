"""How conditions are written: names, signs, lists, mappings; what their values mean is `conditions.py`."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from service.base.messages import Message
from service.samples.table.base import SamplingError
from service.samples.table.columns import nearest, no_such_column
from service.samples.table.typed_numbers import real

WORDS = {
    "minimum": ">=",
    "maximum": "<=",
    "exclusiveMinimum": ">",
    "exclusiveMaximum": "<",
    "not": "!=",
    "in": "in",
    "enum": "in",
    "missing": "missing",
    **{sign: sign for sign in ("=", "!=", "<", "<=", ">", ">=")},
}
"""What the mapping of one column may say; the first four are Table Schema's."""
COMPARED = re.compile(r"\s*(>=|<=|!=|=|<|>)(.*)|:(.*)", re.DOTALL)
MISSING = re.compile(r"\s+(?:is\s+)?(not\s+)?missing\s*", re.IGNORECASE)
LISTED = re.compile(r"\s+(not\s+)?in\s*(?:\[(.*)\]|\((.*)\))\s*", re.DOTALL | re.IGNORECASE)


@dataclass(frozen=True)
class Condition:
    """What one column shall be."""

    place: int
    operator: str
    values: tuple[Any, ...] = ()


class ColumnNames:
    """The names of columns, found at the start of a text at once, however many there are."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        self._places = {name: place for place, name in reversed(list(enumerate(names)))}
        self._written: dict[str, list[tuple[int, int, int]]] = {}
        for place, name in enumerate(names):
            for number, own in enumerate((name, json.dumps(name, ensure_ascii=False))):
                self._written.setdefault(own, []).append((-len(name), place, number))
        self._lengths = sorted(set(map(len, self._written)))

    def place_of(self, name: object) -> int:
        """Of a column by its name."""
        if not isinstance(name, str) or name not in self._places:
            raise no_such_column(name, self.names)
        return self._places[name]

    def readings(self, text: str) -> list[Condition]:
        """All ways to read one condition: a name may itself hold signs. COLUMN:VALUE: the shortest name first."""
        by_colon: list[Condition] = []
        others: list[Condition] = []
        start = text.lstrip()
        ahead = [start[:length] for length in self._lengths if length <= len(start)]
        for (_, place, _), ends in sorted((each, len(own)) for own in ahead for each in self._written.get(own, ())):
            rest = start[ends:]
            if match := MISSING.fullmatch(rest):
                others.append(Condition(place, "not missing" if match[1] else "missing"))
            elif match := LISTED.fullmatch(rest):
                listed = _listed(match[2] if match[2] is not None else match[3])
                others.append(Condition(place, "not in" if match[1] else "in", listed))
            elif match := COMPARED.fullmatch(rest):
                if match[1] is None:
                    by_colon.insert(0, Condition(place, "=", (match[3],)))
                else:
                    others.append(Condition(place, match[1], (match[2],)))
        return by_colon + others


def conditions_of(name: str, place: int, wanted: Any) -> list[Condition]:
    """Of one entry of a mapping."""
    if isinstance(wanted, Mapping):
        conditions = []
        for word, value in wanted.items():
            if word not in WORDS:
                raise SamplingError(
                    Message(
                        "%(column)s: %(word)s is not a condition%(nearest)s; use %(words)s",
                        column=name,
                        word=repr(word),
                        nearest=nearest(str(word), WORDS),
                        words=", ".join(WORDS),
                    )
                )
            operator = WORDS[word]
            if operator == "missing":
                conditions.append(Condition(place, "missing" if value else "not missing"))
            elif operator == "!=" and value is None:
                conditions.append(Condition(place, "not missing"))
            else:
                if operator == "in" and not isinstance(value, list | tuple | set | frozenset):
                    raise SamplingError(
                        Message('%(column)s: in takes a list of values, like {"in": [1, 2]}', column=name)
                    )
                values = tuple(value) if operator == "in" else (value,)
                conditions.append(Condition(place, operator, tuple(map(_plain, values))))
        return conditions
    if isinstance(wanted, list | tuple | set | frozenset):
        return [Condition(place, "in", tuple(map(_plain, wanted)))]
    return [Condition(place, "=", (_plain(wanted),))]


def _plain(value: Any) -> Any:
    """A numpy scalar as Python's own."""
    return value.item() if isinstance(value, np.generic) else value


def pieces_of(text: str) -> list[str]:
    """Parted at &, but for those in quotes."""
    if text.count('"') % 2:
        return text.split("&")
    quoted_parts = text.split('"')
    pieces = [""]
    for number, part in enumerate(quoted_parts):
        own = [part] if number % 2 else part.split("&")
        pieces[-1] += ('"' if number else "") + own[0]
        pieces += own[1:]
    return pieces


def json_of(text: str, parse_float: Any = float) -> Any:
    """What the text says as JSON; None where it is none."""
    try:
        return json.loads(text, parse_float=parse_float)
    except (ValueError, RecursionError):
        return None


def _listed(inner: str) -> tuple[Any, ...]:
    found = json_of(f"[{inner}]", real)
    if isinstance(found, list):
        return tuple(found)
    try:
        return tuple(next(csv.reader([inner.strip()], skipinitialspace=True), []))
    except csv.Error:
        raise SamplingError(
            Message("[%(inner)s] is not a list of values in one line, like [A, B]", inner=inner)
        ) from None
