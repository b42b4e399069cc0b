"""`imprimatur schema`: draft a declaration from a file, check one. Both run on this machine and send nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from imprimatur.cli.connection import AsJson
from imprimatur.cli.datasets import privacy_unit
from imprimatur.cli.options import FILES, REFUSE, AcceptUndeclared, MaxImages, MaxRows, MissingUnits, UnitColumn
from imprimatur.cli.order_options import read_json
from imprimatur.cli.output import echo, print_json, print_table
from imprimatur.declarations import says_what_it_buys
from imprimatur.folders import as_file
from imprimatur.preflight import check_output
from service.cli.converting import convert
from service.cli.schema_edit import edit

if TYPE_CHECKING:
    from collections.abc import Collection

    from service.domain.field_schema import FieldSchema
    from service.domain.image_schema import DeclaredSchema, ImageSchema
    from service.intake.ingest import IngestedTable

app = typer.Typer(
    no_args_is_help=True,
    help="Draft and check declared schemas (Frictionless Table Schema, or of images).",
    rich_markup_mode="rich",
)
app.command("convert")(convert)


@app.command("draft")
def draft(
    file: Annotated[Path, typer.Argument(exists=True, help=FILES)],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Default: standard output.")] = None,
) -> None:
    """Draft a schema from a file, as a form for the owner to correct.

    The draft is marked as one: its categories, bounds, required and
    missingValues were [bold]read from the private rows[/bold]. A schema is
    public and not protected by any budget. Replace what only the data could
    tell by public knowledge.

    Example:
    [cyan]imprimatur schema draft table.csv -o schema.json[/cyan]
    """
    from service.intake.image.draft import draft_image_schema, looks_like_images
    from service.intake.table.draft import draft_table

    check_output(output, file)
    findings: list[str] = []
    notices: list[str] = []
    with as_file(file) as path:
        if looks_like_images(path):
            drafted = draft_image_schema(path)
        else:
            found = draft_table(path)
            drafted, findings = found.schema, [finding.for_the_owner() for finding in found.findings]
            notices = found.notices
    document = json.dumps(drafted, ensure_ascii=False, indent=2)
    if output is None:
        echo(document)
    else:
        output.write_text(document + "\n", encoding="utf-8")
    for finding in findings:
        echo(f"look at {finding}", err=True)
    for notice in notices:
        echo(f"note: {notice}", err=True)
    if "dialect" in drafted:
        echo(
            f"note: how the file is written was found by looking at it: {json.dumps(drafted['dialect'], ensure_ascii=False)}. Check it.",
            err=True,
        )
    typer.echo(
        "warning: everything in this schema was read from the rows: categories, bounds, types, `required` and `missingValues`, of images sizes and "
        "classes. That an upload is accepted says that every row meets it: declare it yourself before you use it.",
        err=True,
    )


app.command("edit")(edit)


@app.command("check")
def check(
    schema: Annotated[str, typer.Argument(metavar="SCHEMA", help="The schema's file.")],
    file: Annotated[Path | None, typer.Argument(exists=True, help="Also check this file against it.")] = None,
    unit_column: UnitColumn = None,
    max_rows_per_unit: MaxRows = 1,
    max_images_per_unit: MaxImages = None,
    missing_units: MissingUnits = REFUSE,
    accept_undeclared: AcceptUndeclared = None,
    as_json: AsJson = False,
) -> None:
    """Check a schema, and a table or images against it if given, on this machine. Exit code 5 when something is wrong.

    Example:
    [cyan]imprimatur schema check schema.json table.csv[/cyan]
    """
    from service.domain.image_schema import ImageSchema, parse_schema
    from service.domain.open_columns import open_columns, refuse_bought
    from service.domain.outcomes import outcomes

    declared = parse_schema(read_json(schema, "SCHEMA"))
    refuse_bought(declared)
    unit = privacy_unit(unit_column, max_rows_per_unit, max_images_per_unit, missing_units)
    if isinstance(declared, ImageSchema):
        _check_images(file, declared, unit, as_json=as_json)
        return
    becomes = outcomes(declared)
    to_buy = {one.name: one.epsilon for one in open_columns(declared)}
    facts: dict[str, Any] = {"fields": len(declared.fields), "not_modelled": becomes, "to_buy": to_buy}
    if file is not None:
        table = _ingested(file, declared, unit, accept_undeclared or ())
        facts |= {"rows": table.rows, "notices": list(table.notices)}
    if as_json:
        print_json(facts)
        return
    rows = [
        (
            f.name,
            f.type,
            becomes.get(f.name)
            or _bought(f)
            or _domain(f.constraints.enum, f.constraints.minimum, f.constraints.maximum),
        )
        for f in declared.fields
    ]
    print_table(None, ("field", "type", "domain"), rows)
    if to_buy:
        typer.echo(f"before anything else is ordered, {says_what_it_buys(declared.as_json())}")
    if declared.exclusions:
        typer.echo(f"combinations that no row has: {len(declared.exclusions)}")
    if file is not None:
        typer.echo(f"{file}: {facts['rows']} rows follow the schema")
        for notice in facts["notices"]:
            echo(f"note: {notice}")


def _check_images(file: Path | None, schema: ImageSchema, unit: dict[str, Any] | None, *, as_json: bool) -> None:
    """Read the whole file by the schema, as an upload would, and keep nothing."""
    facts: dict[str, Any] = {"classes": len(schema.class_names)}
    notices: tuple[str, ...] = ()
    if file is not None:
        images = _ingested(file, schema, unit)
        facts["images"], notices = images.rows, images.notices
        if unit is not None:
            facts |= {"units": images.units, "notices": list(notices)}
    if as_json:
        print_json(facts)
        return
    rows = [(schema.height, schema.width, schema.channels, _domain(schema.class_names or None, None, None))]
    print_table(None, ("height", "width", "channels", "classes"), rows)
    if file is not None:
        typer.echo(f"{file}: {facts['images']} images follow the schema")
    for notice in notices:
        echo(f"note: {notice}")


def _ingested(
    file: Path, schema: DeclaredSchema, unit: dict[str, Any] | None, accept_undeclared: Collection[str] = ()
) -> IngestedTable:
    """Read the whole file by the schema, as an upload would, and keep nothing."""
    from service.domain.privacy_unit import parse_privacy_unit
    from service.intake.ingest import IngestLimits, ingest_table
    from service.intake.sealed import SealedFile

    with (
        as_file(file) as path,
        SealedFile.in_the_clear(path) as upload,
        ingest_table(
            upload,
            schema,
            privacy_unit=None if unit is None else parse_privacy_unit(unit),
            limits=IngestLimits(),
            scratch_dir=None,
            fingerprint_key=bytes(32),
            accept_undeclared=accept_undeclared,
        ) as table,
    ):
        return table


def _bought(field: FieldSchema) -> str:
    """Of a column that is still to be bought, what of it, and for how much."""
    if field.infer is None:
        return ""
    says = field.constraints
    bought = "categories" if field.type == "string" else f"{_end(says.minimum)} … {_end(says.maximum)}"
    return f"{bought}, bought for ε = {field.infer.epsilon:g}"


def _end(declared: object) -> str:
    return "?" if declared is None else str(declared)


def _domain(enum: tuple[object, ...] | None, minimum: object, maximum: object) -> str:
    if enum is None:
        return "" if minimum is None else f"{minimum} … {maximum}"
    shown = ", ".join(str(value) for value in enum[:6])
    return f"{shown}{', …' if len(enum) > 6 else ''} ({len(enum)})"
