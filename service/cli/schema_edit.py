"""`imprimatur schema edit`: a draft column by column, in the terminal, until each is declared by its owner."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from imprimatur.cli.output import echo
from imprimatur.draft_marks import DRAFT
from imprimatur.preflight import check_output

if TYPE_CHECKING:
    from service.intake.table.draft import Draft
    from service.intake.table.drafting.findings import Decided

_TYPES = ("string", "boolean", "integer", "number", "date", "datetime")
_ROLES = ("ignore", "identifier", "free_text")
_CHOICES = (
    "[a]ccept (or yes), Enter: leave it a draft, [t]ype, [b]ounds, [c]ategories, [m]issing, [r]ole, [s]kip, [q]uit"
)
_SHOWN = 12


def edit(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="The table.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The schema to write.")],
) -> None:
    """Draft a schema and go through it column by column, on this machine.

    Of each column it shows what was read from the rows and what to look at.
    Accept it if everybody may know that, or say what is publicly known
    instead. A column that you have decided is no longer a draft. Enter alone
    leaves it a draft. After [bold]quit[/bold], Ctrl-C or the end of input the
    other columns stay drafts, and your answers until then are written.

    Example:
    [cyan]imprimatur schema edit table.csv -o schema.json[/cyan]
    """
    from service.domain.image_schema import parse_schema
    from service.intake.table.draft import draft_table

    check_output(output, file)
    draft = draft_table(file)
    walk = _walk(draft)
    if not walk.document["fields"]:
        raise typer.BadParameter("every column was skipped, so there is nothing to declare", param_hint="FILE")
    output.write_text(json.dumps(walk.document, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    if walk.skipped:
        names = ", ".join(map(repr, walk.skipped))
        echo(f"left out; remove from the file, or name one of them as --privacy-unit: {names}", err=True)
    state = "some columns are still marked as a draft" if walk.is_draft else "declared"
    if walk.is_broken:
        echo(f"\n{output}: broken off; your answers are written, {state}", err=True)
        raise typer.Abort
    parse_schema(walk.document)
    echo(f"{output}: {state}; next: imprimatur schema check {output} {file}", err=True)


class _Answer(StrEnum):
    """What the owner said of a column."""

    DECLARED = "declared"
    SKIPPED = "skipped"
    DRAFT = "draft"
    STOP = "stop"
    BROKEN_OFF = "broken off"


@dataclass(frozen=True, slots=True)
class _Walk:
    document: dict[str, Any]
    skipped: list[str]
    is_draft: bool
    is_broken: bool


def _walk(draft: Draft) -> _Walk:
    """Every column in turn, until the owner stops: what is left then is still a draft."""
    fields: list[dict[str, Any]] = []
    skipped: list[str] = []
    is_draft = False
    answer = _Answer.DECLARED
    proposed = {field["name"]: field for field in draft.schema["fields"]}
    for number, column in enumerate(draft.columns, start=1):
        field = dict(proposed[column.name]) if column.name in proposed else None
        if answer not in {_Answer.STOP, _Answer.BROKEN_OFF}:
            echo(f"\n{number} of {len(draft.columns)}: {column.name or '(no name)'}", err=True)
            for finding in column.findings:
                echo(f"  look at {finding.for_the_owner()}", err=True)
            field, answer = _decide(column, field)
        if field is None:
            skipped.append(column.name)
        elif answer is _Answer.DECLARED:
            fields.append({word: said for word, said in field.items() if word != "description"})
        else:
            fields.append(_marked(field))
            is_draft = True
    document = {word: said for word, said in draft.schema.items() if word not in {"description", "fields"}}
    document = {"fields": fields, **document}
    if is_draft:
        document = {"description": draft.schema["description"], **document}
    return _Walk(document, skipped, is_draft, answer is _Answer.BROKEN_OFF)


def _marked(field: dict[str, Any]) -> dict[str, Any]:
    """As a draft, also where it was changed and not accepted yet."""
    said = str(field.get("description") or "")
    return field if said.startswith(DRAFT) else field | {"description": f"{DRAFT}: {said or 'not accepted yet.'}"}


def _decide(column: Decided, field: dict[str, Any] | None) -> tuple[dict[str, Any] | None, _Answer]:
    """One column until it is accepted, skipped or left as it is. Enter alone accepts nothing."""
    try:
        while True:
            echo(f"  {_shown(field)}", err=True)
            choice = typer.prompt(f"  {_CHOICES}", default="", show_default=False, err=True).strip().lower()[:1]
            if choice == "q":
                return field, _Answer.STOP
            if choice == "s":
                return None, _Answer.SKIPPED
            if not choice:
                return field, _Answer.DRAFT
            if choice in {"a", "y"} and field is not None:
                return field, _Answer.DECLARED
            change = _CHANGES.get(choice)
            if change is None or not column.name:
                echo("  choose one of the letters above; a column without a name needs one in the file first", err=True)
                continue
            field = _changed(change(column, field or {"name": column.name}), field)
    except typer.Abort:  # the end of input, or Ctrl-C
        return field, _Answer.BROKEN_OFF


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
    from service.domain.field_schema import WORDS_OF_A_DOMAIN

    kind = typer.prompt(f"  type: {', '.join(_TYPES)}", err=True).strip().lower()
    bare = {word: said for word, said in field.items() if word not in WORDS_OF_A_DOMAIN and word != "role"}
    bare["type"] = kind
    if kind == "boolean":
        return bare
    return _ask_categories(column, bare) if kind == "string" else _ask_bounds(column, bare)


def _ask_bounds(column: Decided, field: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001 - as the other questions
    low, high = (typer.prompt(f"  {word}", err=True).strip() for word in ("minimum", "maximum"))
    kind = field.get("type", "number")
    bounds = {"minimum": _value(low, kind), "maximum": _value(high, kind)}
    return field | {"type": kind, "constraints": bounds | _required(field)}


def _ask_categories(column: Decided, field: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001 - as the other questions
    from service.domain.field_schema import has_at_most

    said = typer.prompt("  categories, with commas between them, or as a JSON list", err=True).strip()
    kind = field.get("type", "string")
    kind = kind if kind in {"string", "integer", "number"} else "string"
    found = json.loads(said) if _is_json_list(said) else [_value(one.strip(), kind) for one in said.split(",")]
    are_written = all(has_at_most(field.get("decimals", 0), one) for one in found)
    dropped = {"bins", "edges", "role"} | (set() if are_written else {"decimals", "trailingZeros"})
    kept = {word: value for word, value in field.items() if word not in dropped}
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
