"""`imprimatur schema edit`: a draft column by column, in the terminal, until each is declared by its owner."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from imprimatur.cli.output import echo

if TYPE_CHECKING:
    from service.intake.table.draft import Draft
    from service.intake.table.drafting.findings import Decided

_TYPES = ("string", "boolean", "integer", "number", "date", "datetime")
_ROLES = ("ignore", "identifier", "free_text")
_CHOICES = "[a]ccept, [t]ype, [b]ounds, [c]ategories, [m]issing, [r]ole, [s]kip, [q]uit"
_SHOWN = 12
_WORDS_OF_A_DOMAIN: tuple[str, ...] = (
    "constraints",
    "decimals",
    "resolution",
    "bins",
    "edges",
    "format",
    "timezone",
    "decimalChar",
    "groupChar",
)
_WORDS_OF_A_DOMAIN += ("prefix", "suffix", "negative", "trueValues", "falseValues")


def edit(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The table.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The schema to write.")],
) -> None:
    """Draft a schema and go through it column by column, on this machine.

    Of each column it shows what was read from the rows and what to look at.
    Accept it if everybody may know that, or say what is publicly known
    instead. What you have decided is no draft any more; after [bold]quit[/bold] the
    other columns still are.

    Example:
    [cyan]imprimatur schema edit table.csv -o schema.json[/cyan]
    """
    from service.domain.image_schema import parse_schema
    from service.intake.table.draft import draft_table

    draft = draft_table(file)
    document, skipped, is_whole = _walk(draft)
    if not document["fields"]:
        raise typer.BadParameter("every column was skipped, so there is nothing to declare", param_hint="FILE")
    parse_schema(document)
    output.write_text(json.dumps(document, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    if skipped:
        echo(
            f"left out; remove from the file, or name one of them as --privacy-unit: {', '.join(map(repr, skipped))}",
            err=True,
        )
    echo(
        f"{output}: {'declared' if is_whole else 'some columns are still marked as a draft'}; next: imprimatur schema check {output} {file}",
        err=True,
    )


def _walk(draft: Draft) -> tuple[dict[str, Any], list[str], bool]:
    """The document, the names of columns left out, and whether every column was decided."""
    fields: list[dict[str, Any]] = []
    skipped: list[str] = []
    is_whole = True
    proposed = {field["name"]: field for field in draft.schema["fields"]}
    for number, column in enumerate(draft.columns, start=1):
        field = dict(proposed[column.name]) if column.name in proposed else None
        if is_whole:
            echo(f"\n{number} of {len(draft.columns)}: {column.name or '(no name)'}", err=True)
            for finding in column.findings:
                echo(f"  look at {finding.for_the_owner()}", err=True)
            decided, is_whole = _decide(column, field)
            field = decided if is_whole else field
        if field is None:
            skipped.append(column.name)
        else:
            fields.append(field)
    document = {"fields": fields, "missingValues": draft.schema["missingValues"]}
    return (document if is_whole else {"description": draft.schema["description"], **document}), skipped, is_whole


def _decide(column: Decided, field: dict[str, Any] | None) -> tuple[dict[str, Any] | None, bool]:
    """One column until it is accepted or skipped; False where the owner wants to stop."""
    while True:
        echo(f"  {_shown(field)}", err=True)
        choice = typer.prompt(f"  {_CHOICES}", default="s" if field is None else "a", err=True).strip().lower()[:1]
        if choice == "q":
            return None, False
        if choice == "s":
            return None, True
        if choice == "a" and field is not None:
            return {word: said for word, said in field.items() if word != "description"}, True
        change = _CHANGES.get(choice)
        if change is None or not column.name:
            echo("  that is none of them, or the column needs a name in the file first", err=True)
            continue
        field = _changed(change(column, field or {"name": column.name}), field)


def _changed(asked: dict[str, Any], before: dict[str, Any] | None) -> dict[str, Any] | None:
    """The new field if it can be declared; else why not, and the one before."""
    from pydantic import ValidationError

    from service.base.errors import InvalidSchema
    from service.domain.table_schema import parse_table_schema

    try:
        parse_table_schema({"fields": [asked]})
    except (InvalidSchema, ValidationError, ValueError) as error:
        echo(f"  {error}", err=True)
        return before
    return asked


def _ask_type(column: Decided, field: dict[str, Any]) -> dict[str, Any]:
    kind = typer.prompt(f"  type: {', '.join(_TYPES)}", err=True).strip().lower()
    bare = {word: said for word, said in field.items() if word not in _WORDS_OF_A_DOMAIN and word != "role"} | {
        "type": kind
    }
    if kind == "boolean":
        return bare
    return _ask_categories(column, bare) if kind == "string" else _ask_bounds(column, bare)


def _ask_bounds(column: Decided, field: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001 - as the other questions
    low, high = (typer.prompt(f"  {word}", err=True).strip() for word in ("minimum", "maximum"))
    kind = field.get("type", "number")
    bounds = {"minimum": _value(low, kind), "maximum": _value(high, kind)}
    return field | {"type": kind, "constraints": bounds | _required(field)}


def _ask_categories(column: Decided, field: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001 - as the other questions
    said = typer.prompt("  categories, with commas between them, or as a JSON list", err=True).strip()
    kind = field.get("type", "string")
    kind = kind if kind in {"string", "integer", "number"} else "string"
    found = json.loads(said) if _is_json_list(said) else [_value(one.strip(), kind) for one in said.split(",")]
    kept = {word: value for word, value in field.items() if word not in {"decimals", "bins", "edges", "role"}}
    return kept | {"type": kind, "constraints": {"enum": found} | _required(field)}


def _ask_missing(column: Decided, field: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001 - as the other questions
    may_be = typer.confirm("  may a cell be missing, by the form", default=True, err=True)
    constraints = {word: said for word, said in field.get("constraints", {}).items() if word != "required"}
    return field | {"constraints": constraints | ({} if may_be else {"required": True})}


def _ask_role(column: Decided, field: dict[str, Any]) -> dict[str, Any]:
    role = typer.prompt(f"  role: {', '.join(_ROLES)}", default=column.role, err=True).strip().lower()
    return {"name": field["name"], "type": "string", "role": role}


_CHANGES = {"t": _ask_type, "b": _ask_bounds, "c": _ask_categories, "m": _ask_missing, "r": _ask_role}


def _required(field: dict[str, Any]) -> dict[str, Any]:
    return {"required": True} if field.get("constraints", {}).get("required") else {}


def _value(text: str, kind: str) -> Any:
    """Exactly what was typed: a whole number never through a float."""
    if kind not in {"integer", "number"}:
        return text
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def _is_json_list(text: str) -> bool:
    try:
        return isinstance(json.loads(text), list)
    except ValueError:
        return False


def _shown(field: dict[str, Any] | None) -> str:
    if field is None:
        return "left out"
    said = {word: value for word, value in field.items() if word not in {"name", "description"}}
    enum = said.get("constraints", {}).get("enum", [])
    if len(enum) > _SHOWN:
        said["constraints"] = said["constraints"] | {"enum": [*enum[:_SHOWN], f"… {len(enum)} in all"]}
    return json.dumps(said, ensure_ascii=False)
