"""CSV on the Web (W3C): a table description with a tableSchema, or a group of tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from service.domain.foreign.converted import Converted, chosen, key_columns

if TYPE_CHECKING:
    from service.domain.foreign.converted import Document

_WHOLE = "integer int long short byte nonNegativeInteger positiveInteger unsignedInt unsignedLong unsignedShort unsignedByte gYear"
_KINDS = {
    **dict.fromkeys(_WHOLE.split(), "integer"),
    **dict.fromkeys(("decimal", "double", "float", "number"), "number"),
    **dict.fromkeys(("date",), "date"),
    **dict.fromkeys(("dateTime", "datetime", "dateTimeStamp"), "datetime"),
    **dict.fromkeys(("string", "normalizedString", "token", "anyAtomicType", "any", "language", "Name"), "string"),
    "boolean": "boolean",
}
_LETTERS = {
    "yyyy": "%Y",
    "yy": "%y",
    "MMMM": "%B",
    "MMM": "%b",
    "MM": "%m",
    "M": "%-m",
    "dd": "%d",
    "d": "%-d",
    "HH": "%H",
    "H": "%-H",
    "hh": "%I",
    "h": "%-I",
    "a": "%p",
    "mm": "%M",
    "ss": "%S",
}
"""Of the date field symbols of UAX 35, which CSVW has, those with a directive."""
_BOUNDS = {
    "minimum": ("minimum", 0),
    "minInclusive": ("minimum", 0),
    "minExclusive": ("minimum", 1),
    "maximum": ("maximum", 0),
    "maxInclusive": ("maximum", 0),
    "maxExclusive": ("maximum", -1),
}


def is_csvw(document: Document) -> bool:
    return (
        "tableSchema" in document
        or "csvw" in str(document.get("@context", ""))
        or isinstance(document.get("tables"), list)
    )


def from_csvw(document: Document, table: str | None) -> Converted:
    """Names as in the header (titles), datatypes with their formats, null as missingValues."""
    found = Converted()
    if "tables" in document:
        own = chosen({str(one.get("url", number)): one for number, one in enumerate(document["tables"], 1)}, table)
    else:
        own = document
    if own.get("dialect") or document.get("dialect"):
        found.note(
            None,
            'dialect: not carried over; write the word "dialect" into the schema, with delimiter, quoteChar and encoding, where the file needs it',
        )
    schema = own.get("tableSchema", document.get("tableSchema", {}))
    keys = key_columns(schema.get("primaryKey"))
    for word in ("primaryKey", "foreignKeys", "rowTitles"):
        if schema.get(word) and not (word == "primaryKey" and keys):
            found.note(None, f"{word}: not carried over")
    for number, column in enumerate(schema.get("columns", ()), start=1):
        name = _title(column, number)
        if column.get("virtual"):
            found.leave_out(name, "it is virtual, and no column of the file")
        elif column.get("separator"):
            found.leave_out(name, "its cells hold lists")
        elif str(column.get("name", name)) in keys:
            found.add_identifier(name, _key_kind(column))
        else:
            _add(found, name, {**schema, **column})
    return found


def _title(column: Document, number: int) -> str:
    titles: Any = column.get("titles", column.get("title"))
    if isinstance(titles, dict):
        titles = next(iter(titles.values()))
    if isinstance(titles, list):
        titles = titles[0]
    return str(titles or column.get("name") or f"_col.{number}")


def _add(found: Converted, name: str, column: Document) -> None:
    datatype = column.get("datatype", "string")
    datatype = {"base": datatype} if isinstance(datatype, str) else datatype
    base = datatype.get("base", "string")
    if base not in _KINDS:
        found.leave_out(name, f"datatype {base} is not read")
        return
    kind = _KINDS[base]
    constraints: dict[str, Any] = {"required": bool(column.get("required"))}
    for word, (kept, one) in _BOUNDS.items():
        if word in datatype:
            constraints[kept] = _bound(found, name, kind, datatype[word], one)
    for word in ("length", "minLength", "maxLength"):
        if word in datatype:
            found.note(name, f"datatype.{word} is not carried over")
    null = column.get("null")
    markers = {"missingValues": [null] if isinstance(null, str) else null} if null is not None else {}
    found.add(name, kind, constraints, **_spelling(found, name, kind, datatype.get("format")), **markers)


def _key_kind(column: Document) -> str:
    datatype = column.get("datatype", "string")
    base = datatype if isinstance(datatype, str) else datatype.get("base", "string")
    return "integer" if _KINDS.get(base) == "integer" else "string"


def _bound(found: Converted, name: str, kind: str, bound: Any, one: int) -> Any:
    if isinstance(bound, str) and kind in {"integer", "number"}:
        bound = int(bound) if kind == "integer" else float(bound)
    if one and kind == "integer":
        return bound + one
    if one:
        found.note(name, f"the bound {bound} was exclusive, and is included now")
    return bound


def _spelling(found: Converted, name: str, kind: str, said: Any) -> dict[str, Any]:
    if said is None:
        return {}
    words: dict[str, Any] | None = None
    if kind == "boolean" and isinstance(said, str) and "|" in said:
        true, _, false = said.partition("|")
        words = {"trueValues": [true], "falseValues": [false]}
    elif kind in {"date", "datetime"} and isinstance(said, str):
        words = _pattern(said)
    elif kind in {"integer", "number"}:
        words = _numbers(kind, said if isinstance(said, dict) else {"pattern": said})
    if words is None:
        found.note(name, f"datatype.format {said!r} is not carried over")
    return words or {}


def _numbers(kind: str, said: Document) -> dict[str, Any] | None:
    """A pattern is carried over where it says how many decimals are always written, as 0.00 or #,##0.00 do."""
    decimal, pattern = said.get("decimalChar", "."), said.get("pattern")
    fixed = re.fullmatch(r"([#0]*0|#,##0)(?:\.(0+))?", str(pattern)) if pattern is not None else None
    if pattern is not None and fixed is None and set(said) == {"pattern"}:
        return None
    decimals = len(fixed[2] or "") if fixed is not None and kind == "number" else 0
    given = {
        "decimalChar": None if decimal == "." or kind == "integer" else decimal,
        "groupChar": said.get("groupChar", "," if "," in str(pattern) and fixed is not None else None),
        "decimals": decimals or None,
        "trailingZeros": True if decimals else None,
    }
    return {word: mark for word, mark in given.items() if mark is not None}


def _pattern(symbols: str) -> dict[str, Any] | None:
    """The strptime pattern of UAX 35 symbols; None where one has no directive."""
    pieces = re.findall(r"([A-Za-z])(\1*)|([^A-Za-z]+)", symbols)
    pattern = "".join(text or _LETTERS.get(letter + rest, "?") for letter, rest, text in pieces)
    if "?" in pattern:
        return None
    return {} if pattern == "%Y-%m-%d" else {"format": pattern}
