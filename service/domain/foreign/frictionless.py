"""Frictionless: a Table Schema, a resource with one, or a data package."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

from service.domain.dialect import Dialect
from service.domain.foreign.converted import Converted, chosen, key_columns
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
_OURS = ("decimals", "trailingZeros")
_KEPT = {"required", "enum", "minimum", "maximum"}
_IDLE = {
    "name",
    "type",
    "format",
    "constraints",
    "missingValues",
    "categories",
    "example",
    "rdfType",
    *_SPELLING,
    *_OURS,
}


def is_frictionless(document: Document) -> bool:
    return any(word in document for word in ("fields", "resources", "schema"))


def from_frictionless(document: Document, table: str | None) -> Converted:
    """Constraints and spellings are kept where there is a word for them here."""
    found = Converted()
    resource = document
    if "resources" in document:
        resources = {str(one.get("name", number)): one for number, one in enumerate(document["resources"], start=1)}
        resource = chosen(resources, table)
    schema = resource.get("schema", resource)
    unique = schema.get("uniqueKeys") or []
    keys = key_columns(schema.get("primaryKey"), *(unique if isinstance(unique, list) else []))
    for word in ("primaryKey", "uniqueKeys", "foreignKeys"):
        if schema.get(word) and not _are_of_one_column(word, schema[word]):
            found.note(None, f"{word}: not carried over; a key of several columns is a relation here (docs/schemas.md)")
    found.table = {word: schema[word] for word in ("title", "description") if word in schema}
    if "missingValues" in schema:
        found.table["missingValues"] = values_of_markers(schema["missingValues"])
    for field in schema.get("fields", ()):
        kind = _AS.get(field.get("type", "string"), field.get("type", "string"))
        is_unique = str(field.get("name")) in keys or bool((field.get("constraints") or {}).get("unique"))
        if is_unique and kind in {"string", "integer"}:
            found.add_identifier(str(field.get("name")), kind)
        else:
            _add(found, field)
    _carry_dialect(found, resource, schema)
    return found


def _are_of_one_column(word: str, keys: Any) -> bool:
    if word == "foreignKeys":
        return False
    keys = keys if word == "uniqueKeys" else [keys]
    return all(isinstance(key, str) or len(key) == 1 for key in keys)


def _carry_dialect(found: Converted, resource: Document, schema: Document) -> None:
    """Its words are ours. `encoding` stands beside it, and older packages have one more level, `csv`."""
    given = resource.get("dialect") or {}
    if not isinstance(given, dict):
        found.note(None, 'dialect: not carried over, as it is in another file; write its words into the "dialect" here')
        return
    older = given.get("csv")
    said = {**given, **(older if isinstance(older, dict) else {})}
    said.pop("csv", None)
    if resource.get("encoding"):
        said["encoding"] = resource["encoding"]
    if said.get("header") is False:
        said.setdefault("names", [str(field.get("name")) for field in schema.get("fields", ())])
    kept: dict[str, Any] = {}
    for word in sorted(said, key=lambda word: word != "names"):  # a file without a header needs them
        try:
            Dialect.model_validate({**kept, word: said[word]})
        except ValueError:
            found.note(None, f"dialect.{word} is not carried over")
        else:
            kept[word] = said[word]
    if dialect := Dialect.model_validate(kept).as_json():
        found.table["dialect"] = dialect


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
    words = {word: field[word] for word in (*_SPELLING, *_OURS) if word in field}
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
