"""Frictionless: a Table Schema, a resource with one, or a data package."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from service.domain.foreign.converted import Converted, chosen
from service.domain.spellings import values_of_markers

if TYPE_CHECKING:
    from service.domain.foreign.converted import Document

_LEFT_OUT = {
    **dict.fromkeys(("array", "list", "object", "geojson"), "nested values are not read"),
    "geopoint": "write two number columns, longitude and latitude",
    "duration": "write a number column with its unit in the title",
    "time": "write an integer column, minutes since midnight",
}
_AS = {"any": "string", "year": "integer", "yearmonth": "string"}
_SPELLING = ("decimalChar", "groupChar", "bareNumber", "trueValues", "falseValues", "title", "description")
_KEPT = {"required", "enum", "minimum", "maximum"}
_IDLE = {"name", "type", "format", "constraints", "missingValues", "categories", "example", "rdfType", *_SPELLING}


def is_frictionless(document: Document) -> bool:
    return any(word in document for word in ("fields", "resources", "schema"))


def from_frictionless(document: Document, table: str | None) -> Converted:
    """Constraints and spellings are kept where there is a word for them here."""
    found = Converted()
    resource = document
    if "resources" in document:
        resources = {str(one.get("name", number)): one for number, one in enumerate(document["resources"], start=1)}
        resource = chosen(resources, table)
    if "dialect" in resource:
        found.note(None, "dialect: not carried over; write the file's delimiter and encoding where you upload it")
    schema = resource.get("schema", resource)
    for word in ("primaryKey", "uniqueKeys", "foreignKeys"):
        if schema.get(word):
            found.note(None, f"{word}: not carried over; synthetic rows are drawn one by one and keep no keys")
    found.table = {word: schema[word] for word in ("title", "description") if word in schema}
    if "missingValues" in schema:
        found.table["missingValues"] = values_of_markers(schema["missingValues"])
    for field in schema.get("fields", ()):
        _add(found, field)
    return found


def _add(found: Converted, field: dict[str, Any]) -> None:
    name, kind = str(field.get("name")), field.get("type", "string")
    if kind in _LEFT_OUT:
        found.leave_out(name, _LEFT_OUT[kind])
        return
    constraints = dict(field.get("constraints") or {})
    if "categories" in field:
        constraints.setdefault("enum", values_of_markers(field["categories"]))
    _include_bounds(found, name, kind, constraints)
    for word in sorted(field.keys() - _IDLE):
        found.note(name, f"{word} is not carried over")
    words = {word: field[word] for word in _SPELLING if word in field}
    pattern = field.get("format")
    if isinstance(pattern, str) and "%" in pattern:
        words["format"] = pattern.removeprefix("fmt:")
    elif pattern not in {None, "default", "any"}:
        found.note(name, f"format {pattern!r} is not carried over")
    if "missingValues" in field:
        words["missingValues"] = values_of_markers(field["missingValues"])
    found.add(name, _AS.get(kind, kind), {word: constraints[word] for word in constraints.keys() & _KEPT}, **words)


def _include_bounds(found: Converted, name: str, kind: str, constraints: dict[str, Any]) -> None:
    for word, (kept, one) in {"exclusiveMinimum": ("minimum", 1), "exclusiveMaximum": ("maximum", -1)}.items():
        if word in constraints:
            constraints[kept] = _included(found, name, kind, constraints.pop(word), one)
    for word in sorted(constraints.keys() - _KEPT):
        if constraints[word] not in (False, None):
            found.note(name, f"constraints.{word} is not carried over")


def _included(found: Converted, name: str, kind: str, bound: Any, one: int) -> Any:
    """The nearest value that an exclusive bound includes; of numbers the bound itself."""
    if kind in {"integer", "year"} and isinstance(bound, int):
        return bound + one
    if kind == "date" and isinstance(bound, str):
        return (dt.date.fromisoformat(bound) + dt.timedelta(days=one)).isoformat()
    found.note(name, f"the bound {bound} was exclusive, and is included now")
    return bound
