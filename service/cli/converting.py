"""`imprimatur schema convert`: a declaration made for another tool, as a declaration here. On this machine; sends nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from imprimatur.cli.output import Exit, Failure, echo
from imprimatur.preflight import check_output


def convert(
    schema: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="JSON, or YAML of pandera.")],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Default: standard output.")] = None,
    table: Annotated[str | None, typer.Option("--table", help="Of several tables or resources, this one.")] = None,
) -> None:
    """Convert a declaration: Frictionless, SDV metadata, pandera (YAML or JSON) or CSVW.

    Says what it could not carry over, and what is still to be added: a
    declaration here lists categories and bounds, which other tools may leave open.

    Example:
    [cyan]imprimatur schema convert datapackage.json -o schema.json[/cyan]
    """
    from service.domain.foreign.converting import convert as converted

    check_output(output, schema)
    found = converted(_read(schema), table=table)
    document = json.dumps(found.as_json(), ensure_ascii=False, indent=2)
    if output is None:
        echo(document)
    else:
        output.write_text(document + "\n", encoding="utf-8")
    for note in found.notes:
        echo(f"note: {note}", err=True)
    fault = found.fault()
    if fault is not None:
        echo(f"note: not ready to be used: {fault}", err=True)
    echo(f"next: imprimatur schema check {output or 'SCHEMA'} FILE", err=True)


def _read(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise Failure(f"SCHEMA: {path} is not UTF-8 text", Exit.BAD_INPUT, "invalid_input") from None
    try:
        return json.loads(text)
    except ValueError:
        if path.suffix.lower() not in {".yaml", ".yml"}:
            raise Failure(f"SCHEMA: {path} is not JSON", Exit.BAD_INPUT, "invalid_input") from None
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError:
        raise Failure(f"SCHEMA: {path} is not YAML", Exit.BAD_INPUT, "invalid_input") from None
