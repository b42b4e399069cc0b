"""The schema of a DataFrame: what its dtypes declare, and, where they leave a domain open, a draft that was read from the rows.

A schema is public, and no budget protects it. The categories of a categorical column and the two values of a boolean one
are declared by the frame's owner. The texts, numbers and dates that happen to be in a column are not: what is made of
them is marked as a draft, and `publish` takes it only from an owner who says so.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from imprimatur.formats import invalid
from imprimatur.frame_columns import frame_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from imprimatur.frame_columns import Frame
    from imprimatur.replies import Json

DRAFT = "DRAFT"
"""How the description of what was read from rows begins, also in the drafts of the command line."""
_ABOUT = f"{DRAFT}: read from the rows, so it may tell what only they could have told. Declare what everybody may know instead."
_ACCEPTED = "Read from the private rows; their owner has accepted that."
_FEW = 20
_MOST_DECIMALS = 9
_LARGEST = 2**53
_HOW = (
    "write the schema from what is known without the rows and give it as schema=: "
    '{"fields": [{"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}}, …]}; '
    "imprimatur.schema_of_frame(frame) makes a draft to be corrected, and accept_draft=True takes one as it is"
)


def schema_of_frame(frame: Any, *, target: str | None = None, privacy_unit: Mapping[str, Any] | None = None) -> Json:
    """A schema to be read and corrected. `InvalidInput` for columns that look like names, identifiers or free text.

    The column of the privacy unit says whose a row is, and is no field.
    """
    return drafted(frame_of(frame), target, privacy_unit)


def is_draft(schema: Mapping[str, Any]) -> bool:
    """Whether a part of it still says that it was read from rows."""
    listed = schema.get("fields")
    parts = [schema, *(field for field in (listed if isinstance(listed, list) else []) if isinstance(field, dict))]
    return any(str(part.get("description", "")).startswith(DRAFT) for part in parts)


def drafted(frame: Frame, target: str | None, privacy_unit: Mapping[str, Any] | None) -> Json:
    """The schema, with what was read from rows marked."""
    fields, refused = [], {}
    for name in _fields_of(frame, privacy_unit):
        field = frame.declared(name) or _draft_field(frame, name)
        if isinstance(field, str):
            refused[name] = field
        else:
            fields.append(field)
    if refused:
        why = "; ".join(f"{name!r}: {reason}" for name, reason in refused.items())
        raise invalid(
            "schema", f"no domain can be drafted for {why}. Drop these columns, or declare them by hand as schema="
        )
    texts = {value for field in fields for value in field.get("constraints", {}).get("enum", ()) if value == ""}
    schema: Json = {"fields": fields} | ({"missingValues": []} if texts else {})
    return with_target(schema, target)


def agreed_schema(
    frame: Frame,
    schema: Mapping[str, Any] | None,
    target: str | None,
    privacy_unit: Mapping[str, Any] | None,
    *,
    accept_draft: bool,
) -> Json:
    """The schema that will be declared; refused where it was read from rows and nobody has agreed to that."""
    open_columns = (
        [] if schema is not None else [name for name in _fields_of(frame, privacy_unit) if frame.declared(name) is None]
    )
    if open_columns and not accept_draft:
        listed = ", ".join(repr(name) for name in open_columns)
        raise invalid(
            "schema",
            f"the dtypes of {listed} do not say which values there may be, and reading that from the rows would publish it: {_HOW}",
        )
    made = drafted(frame, target, privacy_unit) if schema is None else with_target(schema, target)
    if schema is not None and is_draft(schema) and not accept_draft:
        raise invalid(
            "schema",
            f"this schema is a draft: parts of it begin with {DRAFT}. Read them, declare what everybody may know and take the word out, or say accept_draft=True",
        )
    return accepted(made)


def accepted(schema: Mapping[str, Any]) -> Json:
    """A draft as its owner has taken it: it is none any more, and says where it comes from."""
    said = {**schema, "fields": [_said(field) for field in schema["fields"]]} if "fields" in schema else dict(schema)
    return _said(said)


def _said(part: Json) -> Json:
    is_marked = isinstance(part, dict) and str(part.get("description", "")).startswith(DRAFT)
    return {**part, "description": _ACCEPTED} if is_marked else part


def check_columns(frame: Frame, schema: Mapping[str, Any], privacy_unit: Mapping[str, Any] | None) -> None:
    """Whether frame and schema have the same columns."""
    declared = [str(field.get("name")) for field in schema.get("fields", []) if isinstance(field, dict)]
    unit = (privacy_unit or {}).get("column")
    more = [name for name in frame.names if name not in declared and name != unit]
    if more:
        raise invalid(
            "schema", f"the schema does not declare {', '.join(map(repr, more))}: declare these columns, or drop them"
        )
    missing = [name for name in declared if name not in frame.names]
    if missing:
        raise invalid("schema", f"the schema declares {', '.join(map(repr, missing))}, which the table does not have")


def _fields_of(frame: Frame, privacy_unit: Mapping[str, Any] | None) -> list[str]:
    unit = (privacy_unit or {}).get("column")
    return [name for name in frame.names if name != unit]


def with_target(schema: Mapping[str, Any], target: str | None) -> Json:
    """The schema, with the column that people will want to predict."""
    if target is None:
        return dict(schema)
    fields = {str(field.get("name")): field for field in schema.get("fields", []) if isinstance(field, dict)}
    field = fields.get(target)
    if field is None:
        raise invalid("target", f"there is no column {target!r}; the columns are {', '.join(map(repr, fields))}")
    if field.get("type") != "boolean" and "enum" not in field.get("constraints", {}):
        raise invalid(
            "target",
            f"{target!r} has no declared categories: only a column with an enum, or a boolean one, can be the target",
        )
    return {**schema, "target": target}


def _draft_field(frame: Frame, name: str) -> Json | str:
    """The field, or why none is drafted."""
    values = frame.distinct(name)
    found = _domain(values, frame.rows)
    if isinstance(found, str):
        return found
    required = {} if frame.has_missing(name) else {"required": True}
    return {**found, "name": name, "description": _ABOUT, "constraints": {**found["constraints"], **required}}


def _domain(values: Sequence[Any], rows: int) -> Json | str:
    """Type and constraints of a column with these distinct values."""
    kinds = {bool if isinstance(v, bool) else next((k for k in _KINDS if isinstance(v, k)), type(v)) for v in values}
    found: Json | str
    if not values:
        found = "it is empty"
    elif kinds == {bool}:
        found = {"type": "boolean", "constraints": {}}
    elif kinds == {str}:
        found = {"type": "string", "constraints": {"enum": sorted(values)}}
        if len(values) > max(_FEW, rows // 2):
            found = "its texts look like names, identifiers or free text"
    elif kinds <= {int, float, Decimal}:
        found = _numbers(values, rows, kinds)
    elif kinds == {dt.date}:
        found = {"type": "date", "constraints": _years(values, "", "")}
    elif kinds == {dt.datetime}:
        found = {"type": "datetime", "constraints": _years(values, "T00:00:00", "T23:59:59")}
    else:
        found = f"no schema has values of type {', '.join(sorted(kind.__name__ for kind in kinds))}"
        if dt.timedelta in kinds:
            found += "; .dt.total_seconds() makes numbers of time differences"
    return found


_KINDS = (int, float, Decimal, str, dt.datetime, dt.date, dt.timedelta)


def _numbers(values: Sequence[Any], rows: int, kinds: set[type]) -> Json | str:
    low, high = min(values), max(values)
    if not (math.isfinite(low) and math.isfinite(high)) or max(-low, high) > _LARGEST:
        return "its numbers are infinite or beyond 2^53"
    if kinds == {int}:
        if rows > _FEW and len(values) == rows == high - low + 1:
            return "it numbers the rows"
        if len(values) <= _FEW:
            return {"type": "integer", "constraints": {"enum": sorted(values)}}
        low, high = _outwards(low, high)
        return {"type": "integer", "constraints": {"minimum": int(low), "maximum": int(high)}}
    decimals = max(_decimals(value) for value in values)
    if len(values) == 1:
        return {"type": "number", "constraints": {"enum": [float(low)]}}
    low, high = _outwards(float(low), float(high))
    found: Json = {"type": "number", "constraints": {"minimum": low, "maximum": high}}
    return found | ({"decimals": decimals} if decimals <= _MOST_DECIMALS else {})


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
