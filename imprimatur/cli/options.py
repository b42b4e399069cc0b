"""Options and arguments that several commands share; those of orders are in `order_options.py`, of services in `connection.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, get_args

import typer

from imprimatur.replies import ImageFormat, RowFormat

File = Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="CSV or Parquet; images: ZIP, NPZ or IDX.")]
SchemaFile = Annotated[
    str,
    typer.Option(
        "--schema", "-s", metavar="FILE|JSON", help="Declared schema: Frictionless Table Schema, or of images."
    ),
]
Delta = Annotated[float | None, typer.Option("--delta", help="δ of the budget; default min(1e-6, 1/units²).")]
Name = Annotated[str | None, typer.Option("--name", help="Name of the dataset; default: the file's.")]
UnitColumn = Annotated[
    str | None, typer.Option("--privacy-unit", metavar="COLUMN", help="All rows of one value are one person.")
]
MaxRows = Annotated[int, typer.Option("--max-rows-per-unit", help="Rows used of each unit, at most.")]
DistinctFrom = Annotated[
    list[str] | None,
    typer.Option(
        "--distinct-from", metavar="DATASET", help="A dataset that looks the same, but holds other people's rows."
    ),
]
MaxImages = Annotated[
    int | None,
    typer.Option("--max-images-per-unit", help="Images used of each unit, at most; the file says whose each is."),
]
REFUSE = "refuse"
MissingUnits = Annotated[
    str, typer.Option("--missing-units", help="Rows without a unit id: refuse, or own_unit (each is a unit).")
]
AcceptDraft = Annotated[
    bool, typer.Option("--accept-draft", help="Take a schema that is a draft, made by reading the rows, as it is.")
]
AcceptUndeclared = Annotated[
    list[str] | None,
    typer.Option("--accept-undeclared", metavar="COLUMN", help="Most of its cells may be outside what is declared."),
]
RowsAreUnits = Annotated[bool, typer.Option("--rows-are-units", help="No privacy unit: each row is another person.")]
DatasetArgument = Annotated[str, typer.Argument(metavar="DATASET", help="Id, or a name that only one has.")]
ReleaseArgument = Annotated[str, typer.Argument(metavar="RELEASE", help="The release's id.")]

Output = Annotated[Path | None, typer.Option("--output", "-o", help="File to write; default: standard output.")]
Seed = Annotated[
    int | None, typer.Option("--seed", help="The same seed draws the same rows, as long as it draws as many.")
]
Where = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="COLUMN:VALUE", help="Only rows with this value; of images, label:CLASS. Once."),
]
Rows = Annotated[int, typer.Option("--rows", "-n", min=1, help="Synthetic rows to draw.")]
SaveCertificate = Annotated[Path | None, typer.Option("--certificate", help="Also save the certificate (JSON).")]
SaveGenerator = Annotated[Path | None, typer.Option("--generator", help="Also save the trained generator (ZIP).")]
ROW_FORMATS, IMAGE_FORMATS = get_args(RowFormat), get_args(ImageFormat)
FORMATS: tuple[str, ...] = (*ROW_FORMATS, *IMAGE_FORMATS)
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        help=f"Rows: {', '.join(ROW_FORMATS)}; images: {', '.join(IMAGE_FORMATS)}. "
        f"Default: by -o's ending, else {ROW_FORMATS[0]} or {IMAGE_FORMATS[0]}.",
    ),
]
WholeEpsilon = Annotated[
    float | None,
    typer.Option("--budget-epsilon", help="ε of the table's whole budget, given once; default: this release's ε."),
]
