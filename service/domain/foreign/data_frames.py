"""What Python tools say of a data frame: SDV metadata (SingleTableMetadata, Metadata) and pandera (to_json, to_yaml)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.domain.foreign.converted import Converted, chosen, key_columns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.domain.foreign.converted import Document

_TIME_DIRECTIVES = ("%H", "%I", "%M", "%S", "%f", "%T", "%p", "%z", "%Z")


def is_sdv(document: Document) -> bool:
    tables = document.get("tables", {"": document})
    return isinstance(tables, dict) and any(
        isinstance(column, dict) and "sdtype" in column
        for table in tables.values()
        if isinstance(table, dict) and isinstance(table.get("columns"), dict)
        for column in table["columns"].values()
    )


def from_sdv(document: Document, table: str | None) -> Converted:
    """Types and date formats; SDV metadata knows no categories and no bounds."""
    found = Converted()
    if document.get("relationships"):
        found.note(None, "relationships: not carried over; a declaration is of one table")
    own = chosen(document["tables"], table) if "tables" in document else document
    keys = key_columns(own.get("primary_key"))
    if own.get("primary_key") and not keys:
        found.note(None, "primary_key: not carried over; write it as a relation of the schema")
    for name, column in own.get("columns", {}).items():
        kind = column.get("sdtype")
        if name in keys:
            found.add_identifier(name, "integer" if kind == "numerical" else "string")
        elif kind in {"categorical", "boolean"}:
            found.add(name, "string" if kind == "categorical" else "boolean", {})
        elif kind == "numerical":
            whole = str(column.get("computer_representation", "Float")).startswith(("Int", "UInt"))
            found.add(name, "integer" if whole else "number", {})
        elif kind == "datetime":
            _add_moments(found, name, column.get("datetime_format"))
        else:
            found.leave_out(name, f"sdtype {kind} is of ids or of what identifies people")
    return found


def _add_moments(found: Converted, name: str, pattern: str | None) -> None:
    has_time = pattern is None or any(directive in pattern for directive in _TIME_DIRECTIVES)
    found.add(name, "datetime" if has_time else "date", {}, format=None if pattern == "%Y-%m-%d" else pattern)


def is_pandera(document: Document) -> bool:
    return document.get("schema_type") in {"dataframe", "DataFrameSchema"} or (
        isinstance(document.get("columns"), dict)
        and any(isinstance(column, dict) and "dtype" in column for column in document["columns"].values())
    )


def from_pandera(document: Document, _table: str | None) -> Converted:
    """Types, nullable, and the checks that are bounds or lists of values."""
    found = Converted()
    for word in ("index", "unique", "checks", "dtype"):
        if document.get(word):
            found.note(None, f"{word}: not carried over")
    for name, column in document["columns"].items():
        dtype = str(column.get("dtype"))
        kind = _kind_of(dtype.lower())
        if kind is None:
            found.leave_out(name, f"dtype {dtype} is not read")
            continue
        if column.get("unique") and kind in {"string", "integer"}:
            found.add_identifier(name, kind)
            continue
        constraints: dict[str, Any] = {"required": not column.get("nullable", False)}
        for check, value in _checks(column.get("checks")):
            _carry(found, name, kind, check, value, constraints)
        for word in ("unique", "regex"):
            if column.get(word):
                found.note(name, f"{word} is not carried over")
        found.add(name, kind, constraints, title=column.get("title"), description=column.get("description"))
    return found


def _kind_of(dtype: str) -> str | None:
    starts = {
        "bool": "boolean",
        "int": "integer",
        "uint": "integer",
        "float": "number",
        "decimal": "number",
        "datetime": "datetime",
        "date": "date",
        "str": "string",
        "object": "string",
        "category": "string",
        "none": "string",
    }
    return next((kind for start, kind in starts.items() if dtype.startswith(start)), None)


def _checks(checks: Any) -> Iterator[tuple[str, Any]]:
    """Of both forms: a mapping by name, and a list with the name among the options."""
    if isinstance(checks, dict):
        for name, value in checks.items():
            plain = isinstance(value, dict) and "value" in value and set(value) <= {"value", "options"}
            yield name, value["value"] if plain else value
    for check in checks if isinstance(checks, list) else ():
        options = check.get("options", {})
        rest = {word: value for word, value in check.items() if word != "options"}
        yield options.get("check_name", "a check"), rest["value"] if set(rest) == {"value"} else rest


def _carry(found: Converted, name: str, kind: str, check: str, value: Any, constraints: dict[str, Any]) -> None:
    bounds = {
        "greater_than_or_equal_to": ("minimum", 0),
        "less_than_or_equal_to": ("maximum", 0),
        "greater_than": ("minimum", 1),
        "less_than": ("maximum", -1),
    }
    if check in bounds:
        word, one = bounds[check]
        if one and kind != "integer":
            found.note(name, f"the bound {value} was exclusive, and is included now")
        constraints[word] = value + one if one and kind == "integer" else value
    elif check == "in_range" and isinstance(value, dict):
        for given, include, word, one in (
            ("min_value", "include_min", "minimum", 1),
            ("max_value", "include_max", "maximum", -1),
        ):
            exclusive = "" if value.get(include, True) else "_than"
            if exclusive:
                _carry(found, name, kind, "greater_than" if one > 0 else "less_than", value[given], constraints)
            else:
                constraints[word] = value[given]
    elif check == "isin":
        constraints["enum"] = value["allowed_values"] if isinstance(value, dict) else value
    elif check == "equal_to":
        constraints["enum"] = [value]
    else:
        found.note(name, f"check {check} is not carried over")
