"""The schema of a DataFrame: what its dtypes declare, and, where they leave a domain open, a draft that was read from the rows.

A schema is public, and no budget protects it. The categories of a categorical column and the two values of a boolean one
are declared by the frame's owner. The texts, numbers and dates that happen to be in a column are not: what is made of
them is marked as a draft, and `publish` takes it only from an owner who says so.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from imprimatur.declarations import open_columns
from imprimatur.draft_marks import DRAFT, is_draft, is_marked
from imprimatur.errors import DraftSchema
from imprimatur.formats import invalid
from imprimatur.frame_columns import frame_of
from imprimatur.frame_domains import domain_of
from imprimatur.person_columns import person_columns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from imprimatur.frame_columns import Frame
    from imprimatur.replies import Json

"""How the description of what was read from rows begins, also in the drafts of the command line."""
_ABOUT = f"{DRAFT}: read from the rows, so it may tell what only they can tell. Declare public knowledge instead."
_ACCEPTED = "Read from the private rows; their owner has accepted that."
_HOW = (
    "write the schema from what is known without the rows and give it as schema=: "
    '{"fields": [{"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}}, …]}; '
    "imprimatur.schema_of_frame(frame) makes a draft to be corrected, and accept_draft=True takes one as it is"
)


def schema_of_frame(frame: Any, *, target: str | None = None, privacy_unit: Mapping[str, Any] | None = None) -> Json:
    """A schema to be read and corrected. `InvalidInput` for columns that look like names, identifiers or free text.

    What occurs once is not listed. The column of the privacy unit says whose a row is, and is no field.
    """
    return drafted(frame_of(frame), target, privacy_unit)


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
            "schema",
            f"no domain can be drafted for {why}. Drop these columns, or declare them by hand as schema=, where"
            ' "role": "ignore" keeps a column out of the synthetic rows',
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
    """The schema that will be declared; refused where it was read from rows and no person has agreed to that."""
    undeclared = (
        [] if schema is not None else [name for name in _fields_of(frame, privacy_unit) if frame.declared(name) is None]
    )
    if undeclared and not accept_draft:
        listed = ", ".join(repr(name) for name in undeclared)
        raise invalid(
            "schema",
            f"the dtypes of {listed} do not say which values there may be, and reading that from the rows would publish it: {_HOW}",
        )
    made = drafted(frame, target, privacy_unit) if schema is None else with_target(schema, target)
    if schema is not None:
        refuse_draft(schema, accepted=accept_draft)
    return accepted(made) if accept_draft else made


def refuse_draft(schema: Mapping[str, Any], *, accepted: bool) -> None:
    """Refused where a part still says that it was read from rows, and the owner has not taken it as it is."""
    if is_draft(schema) and not accepted:
        raise DraftSchema(
            422,
            "draft_schema",
            f"this schema is a draft: parts of it begin with {DRAFT}. Read them, declare public knowledge instead and remove the word, or say accept_draft=True",
        )


def ask_whose_rows(
    schema: Mapping[str, Any], names: Sequence[str], privacy_unit: Mapping[str, Any] | None, *, rows_are_units: bool
) -> None:
    """Refused where a column says whose row it is, and the owner has not said whether several rows belong to one person."""
    if privacy_unit is not None and rows_are_units:
        raise invalid("privacy_unit", "rows_are_units=True says that each row is a unit; leave one of the two out")
    if privacy_unit is not None or rows_are_units or schema.get("type") == "image":
        return
    named = person_columns(schema, names)
    if named:
        quoted = json.dumps(named[0], ensure_ascii=False)
        raise invalid(
            "privacy_unit",
            f"column {named[0]!r} looks like a person's id: do several rows belong to one person? If so, leave it out of the schema and give"
            f' privacy_unit={{"column": {quoted}, "max_rows_per_unit": …}}. If each row is another person, say rows_are_units=True',
        )


def accepted(schema: Mapping[str, Any]) -> Json:
    """A draft as its owner has taken it: it is none any more, and says where it comes from."""
    said = {**schema, "fields": [_said(field) for field in schema["fields"]]} if "fields" in schema else dict(schema)
    return _said(said)


def _said(part: Json) -> Json:
    is_read = isinstance(part, dict) and is_marked(part)
    return {**part, "description": _ACCEPTED} if is_read else part


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
    known = next((name for name in open_columns(schema) if frame.declared(name) is not None), None)
    if known is not None:
        raise invalid(
            "schema",
            f"column {known!r} has categories of its own, by its dtype: declare them instead of infer, or make it a column of texts",
        )


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
    has_categories = field.get("hierarchy") is not None or "enum" in (field.get("constraints") or {})
    if field.get("type") != "boolean" and not has_categories:
        raise invalid(
            "target",
            f"{target!r} has no declared categories: only a column with an enum or a hierarchy, or a boolean one, can be the target",
        )
    return {**schema, "target": target}


def _draft_field(frame: Frame, name: str) -> Json | str:
    """The field, or why none is drafted."""
    counts = frame.counts(name)
    found = domain_of(name, counts, frame.rows)
    if isinstance(found, str):
        return found
    constraints = found["constraints"]
    is_all = not frame.has_missing(name) and set(counts) <= set(constraints.get("enum", counts))
    required = {"required": True} if is_all else {}  # what occurs once is not listed, and becomes missing
    return {**found, "name": name, "description": _ABOUT, "constraints": {**constraints, **required}}
