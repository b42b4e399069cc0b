"""Words of Table Schema that a declaration here cannot have, each with what to write instead; and faults by column name.

https://specs.frictionlessdata.io/table-schema/ and https://datapackage.org/standard/table-schema/ : every word of both is
a field of `TableSchema` and its parts, or is in one of these tables. A schema is public, so a refusal may quote it.
"""

from __future__ import annotations

import datetime as dt
import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from service.base.faults import sentence_of
from service.base.messages import Figure, Listed, Message
from service.domain.spellings import is_marker_of_number

_TYPES = {
    "any": Message('write "type": "string" with constraints.enum, or the type that its values have'),
    "array": Message("leave the column out, or split it into columns of plain values"),
    "duration": Message('write "type": "number" with a range, and the unit in its title'),
    "geojson": Message("leave the column out, or write two number columns, longitude and latitude"),
    "geopoint": Message("write two number columns, longitude and latitude, each with a range"),
    "list": Message("leave the column out, or split it into columns of plain values"),
    "object": Message("leave the column out, or split it into columns of plain values"),
    "time": Message('write "type": "integer" with a range (minutes since midnight), or "string" with constraints.enum'),
    "year": Message('write "type": "integer" with constraints.minimum and maximum, as 1900 and 2030'),
    "yearmonth": Message(
        'write "type": "string" with the months in constraints.enum, as "2024-02", or "date" with days'
    ),
}
_OF_A_FIELD = {
    "categories": Message("list the values in constraints.enum"),
    "categoriesOrdered": Message("leave it out; the order of constraints.enum is kept, but says nothing"),
}
_OF_CONSTRAINTS = {
    "unique": Message(
        "leave it out: synthetic values are drawn one by one. A column in which every row differs says who a "
        "row is, so leave it out, too"
    ),
    "pattern": Message("leave it out, and list the texts in constraints.enum"),
    "jsonSchema": Message("leave it out: columns of objects and arrays are not read"),
}
_OF_A_TABLE = {
    "primaryKey": Message("leave it out: rows are drawn one by one, so that no column of them is a key"),
    "uniqueKeys": Message("leave it out: rows are drawn one by one, so that no columns of them are a key"),
    "foreignKeys": Message(
        "leave it out: a declaration is of one table. Join the tables first, or publish each by itself"
    ),
    "resources": Message("this is a data package: turn it into a schema with `imprimatur schema convert`"),
    "profile": Message("leave it out, or turn a data package into a schema with `imprimatur schema convert`"),
}
_LENGTHS = ("minLength", "maxLength")
_EXCLUSIVE = {"exclusiveMinimum": ("minimum", 1), "exclusiveMaximum": ("maximum", -1)}


class WordRefused(ValueError):
    """A word cannot be used; the message names the column and says what to write."""

    def __init__(self, where: str, sentence: str) -> None:
        super().__init__(sentence)
        self.where = where


def without_idle_words(document: Any) -> Any:
    """The document without words that say what holds anyway; raises `WordRefused` for one that cannot be honoured."""
    if not isinstance(document, dict):
        return document
    table = {word: said for word, said in document.items() if (word, said) != ("fieldsMatch", "equal")}
    if "fieldsMatch" in table:
        raise WordRefused(
            "fieldsMatch", Message("fieldsMatch: leave it out; a file has exactly the declared columns, in any order")
        )
    _refuse(table, _OF_A_TABLE, "", "")
    if isinstance(table.get("fields"), list):
        table["fields"] = [_field(number, field) for number, field in enumerate(table["fields"])]
    return table


_IT = Message("it")
_PLAIN = {
    "tuple_type": Message("it should be a list"),
    "dict_type": Message("it should be an object"),
    "model_type": Message("it should be an object"),
}
_RELATIONS = Message(
    'write a text like "start <= end" or "net + tax = gross", or an object: {"column": …, "by": …, '
    '"table": {…}}, {"columns": […], "allowed": [[…], …]} or {"unique": […]}'
)


def place_of(document: Any, location: Sequence[str | int]) -> str:
    """The place of a fault in the owner's words: the column's name, then the word."""
    if len(location) > 1 and location[0] == "relations" and isinstance(location[1], int):
        return Message("relation %(number)s", number=location[1] + 1)
    if len(location) < 2 or location[0] != "fields" or not isinstance(location[1], int):
        return ".".join(map(str, location))
    word = ".".join(str(part) for part in location[2:] if not isinstance(part, int) and "[" not in part)
    return Listed(": ", filter(None, (_called(location[1], document["fields"][location[1]]), word)))


def sentence_about(error: Mapping[str, Any], known: Iterable[str]) -> str:
    """What is wrong, in place of words about a program's input; `known` are the words that may stand there."""
    kind = str(error["type"])
    if error["loc"][:1] == ("relations",) and kind != "value_error":
        return _RELATIONS
    if kind == "extra_forbidden":
        word, words = str(error["loc"][-1]), sorted(known)
        close = difflib.get_close_matches(word, words, n=1)
        meant = (
            Message("; is %(word)s meant?", word=close[0])
            if close
            else Message("; the words here are %(words)s", words=", ".join(words))
        )
        return Message("there is no such word: leave it out%(meant)s", meant=meant)
    if kind == "missing":
        return Message("it must be said")
    if kind == "too_short" and error["ctx"]["field_type"] == "Dictionary" and error["ctx"]["min_length"] > 1:
        return Message("name at least %(count)s columns", count=error["ctx"]["min_length"])
    return _PLAIN.get(kind) or sentence_of(error, _IT)


class DeclaredValues(NamedTuple):
    """What a column may hold, as far as a missing marker could be one of it."""

    column: str
    kind: str
    enum: tuple[Any, ...] | None
    bounds: tuple[float, float] | None
    texts: frozenset[str]
    """Of true and false, and of the bounds of dates."""


def check_exact(declared: DeclaredValues) -> None:
    """Raise `WordRefused` for whole numbers that a column of type number would round."""
    if declared.kind == "number" and any(isinstance(v, int) and abs(v) > 2**53 for v in declared.enum or ()):
        raise WordRefused(
            "enum",
            Message(
                "column %(column)s: whole numbers beyond ±2^53 are not exact as number: write type integer or string",
                column=repr(declared.column),
            ),
        )


def check_markers(declared: DeclaredValues, markers: Sequence[str], *, are_own: bool) -> None:
    """Raise `WordRefused` where a marker of missing values is a declared value, which then could not be told from it.

    Within a range (not at its ends) a marker that is a number may lie if the field itself says so.
    """
    for marker in markers:
        value = _swallowed(declared, marker.strip(" \t"), are_own=are_own)
        if value is not None:
            other = "NA" if not marker.strip(" \t") else ""
            raise WordRefused(
                "missingValues",
                Message(
                    "column %(column)s: %(value)s is declared, and %(marker)s in missingValues makes it missing: give "
                    'this column missingValues of its own, as "missingValues": ["%(other)s"], or take the value out of '
                    "its declaration",
                    column=repr(declared.column),
                    value=value,
                    marker=repr(marker),
                    other=other,
                ),
            )


def _swallowed(declared: DeclaredValues, marker: str, *, are_own: bool) -> str | None:
    """Which declared value the marker would take, in words."""
    if marker in declared.texts:
        return repr(marker)
    if declared.kind == "string":
        return next(
            (
                Message("the category %(category)s", category=repr(v))
                for v in declared.enum or ()
                if str(v).strip(" \t") == marker
            ),
            None,
        )
    if declared.kind not in {"integer", "number"} or not is_marker_of_number(marker):
        return None
    number = float(marker)
    if declared.bounds is None:
        return next((Message("the value %(number)s", number=v) for v in declared.enum or () if v == number), None)
    low, high = declared.bounds
    inside = low < number < high and not are_own
    if not inside and number not in {low, high}:
        return None
    return Message("the range %(low)s to %(high)s", low=Figure(f"{low:g}"), high=Figure(f"{high:g}"))


def _field(number: int, field: Any) -> Any:
    if not isinstance(field, dict):
        return field
    where, called = f"fields.{number}", Message("%(column)s: ", column=_called(number, field))
    kind = field.get("type")
    if isinstance(kind, str) and kind in _TYPES:
        raise WordRefused(
            f"{where}.type",
            Message(
                "%(called)stype %(kind)s is not read here: %(instead)s", called=called, kind=kind, instead=_TYPES[kind]
            ),
        )
    _refuse(field, _OF_A_FIELD, where, called)
    constraints = field.get("constraints")
    if not isinstance(constraints, dict):
        return field
    kept = {word: said for word, said in constraints.items() if (word, said) != ("unique", False)}
    if "role" not in field:
        _refuse(kept, _OF_CONSTRAINTS, f"{where}.constraints", called, "constraints.")
    for word, (instead, one) in _EXCLUSIVE.items():
        if word in kept:
            raise WordRefused(
                f"{where}.constraints.{word}",
                Message(
                    "%(called)s%(sentence)s", called=called, sentence=_inclusive(kind, kept[word], instead, one, word)
                ),
            )
    _check_lengths(kept, where, called)
    return field | {"constraints": {word: said for word, said in kept.items() if word not in _LENGTHS}}


def _check_lengths(constraints: Mapping[str, Any], where: str, called: str) -> None:
    """An enum whose texts have the declared lengths says it all."""
    texts = constraints.get("enum")
    for word in _LENGTHS:
        if word not in constraints:
            continue
        most, known = constraints[word], isinstance(texts, list) and all(isinstance(text, str) for text in texts)
        if not known or not isinstance(most, int):
            raise WordRefused(
                f"{where}.constraints.{word}",
                Message(
                    "%(called)s%(word)s: leave it out, and list the texts in constraints.enum", called=called, word=word
                ),
            )
        for text in texts or ():
            if (len(text) < most) if word == "minLength" else (len(text) > most):
                raise WordRefused(
                    f"{where}.constraints.{word}",
                    Message(
                        "%(called)sthe enum's %(text)s is not of the declared %(word)s, %(most)s",
                        called=called,
                        text=repr(text),
                        word=word,
                        most=most,
                    ),
                )


def _inclusive(kind: Any, bound: Any, instead: str, one: int, word: str) -> str:
    """What to write for a bound that is not included."""
    written = f'"{instead}"'
    if kind == "integer" and isinstance(bound, int):
        written = f'"{instead}": {bound + one}'
    elif kind == "date" and isinstance(bound, str):
        try:
            written = f'"{instead}": "{dt.date.fromisoformat(bound) + dt.timedelta(days=one)}"'
        except (ValueError, OverflowError):
            written = f'"{instead}"'
    return Message("constraints.%(word)s: bounds are included here, so write %(written)s", word=word, written=written)


def _refuse(document: Mapping[str, Any], words: Mapping[str, str], where: str, called: str, within: str = "") -> None:
    for word, instead in words.items():
        if word in document:
            raise WordRefused(
                ".".join(filter(None, (where, word))),
                Message("%(called)s%(word)s: %(instead)s", called=called, word=f"{within}{word}", instead=instead),
            )


def _called(number: int, field: Any) -> str:
    name = field.get("name") if isinstance(field, dict) else None
    return Message("column %(column)s", column=repr(name[:100]) if isinstance(name, str) and name else number + 1)
