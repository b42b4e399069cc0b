"""Before rows are sent: a schema that is still a draft, and a person's id without a privacy unit, stop the command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from imprimatur.cli.output import Exit, Failure, echo
from imprimatur.draft_marks import DRAFT, is_marked
from imprimatur.person_columns import header_of, person_columns

if TYPE_CHECKING:
    from pathlib import Path


def refuse_draft(schema: dict[str, Any], *, accepted: bool) -> None:
    """List what the draft says, column by column; without the owner's word it ends here."""
    fields = schema.get("fields")
    found = [field for field in (fields if isinstance(fields, list) else []) if isinstance(field, dict)]
    marked = [(repr(str(field.get("name"))), field) for field in found if is_marked(field)]
    marked = [("schema", schema), *marked] if is_marked(schema) else marked
    if not marked:
        return
    for name, part in marked:
        echo(f"{name}: {part['description']}", err=True)
    if accepted:
        echo("warning: this draft, made by reading the rows, becomes public as it is", err=True)
        return
    raise Failure(
        f"this schema is a draft, made by reading the rows, and a schema is public: {len(marked)} descriptions begin with {DRAFT}."
        " Look at each and declare what is known without the rows (`imprimatur schema edit FILE -o SCHEMA` asks column by"
        " column), or say --accept-draft",
        Exit.BAD_INPUT,
        "draft_schema",
    )


def ask_whose_rows(
    file: Path | None, schema: dict[str, Any], unit: dict[str, Any] | None, *, rows_are_units: bool
) -> None:
    """Stop where a column says whose row it is, and the owner has not said whether several rows belong to one person."""
    if unit is not None or rows_are_units or schema.get("type") == "image":
        return
    named = person_columns(schema, [] if file is None else header_of(file))
    if not named:
        return
    name = named[0]
    raise Failure(
        f"column {name!r} looks like a person's id: do several rows belong to one person? If so, leave it out of the schema and say --privacy-unit"
        f" {_quoted(name)}. If each row is another person, say --rows-are-units",
        Exit.BAD_INPUT,
        "whose_rows",
        columns=named[:20],
    )


def _quoted(name: str) -> str:
    return name if name.replace("_", "").isalnum() else f'"{name}"'
