"""Options and arguments that several commands share; those of orders are in `order_options.py`, of services in `connection.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from imprimatur.formats import IMAGE_FORMATS, ROW_FORMATS

FILES = "CSV, JSON lines, .xlsx, Parquet (a folder, too), Arrow, Stata, SPSS, SAS; .gz, .zst, .zip. Images: ZIP, NPZ or IDX."
File = Annotated[Path, typer.Argument(exists=True, help=FILES)]
MaybeFile = Annotated[
    Path | None,
    typer.Argument(exists=True, metavar="FILE", help=f"{FILES} Or --from."),
]
FromPlace = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="URL",
        help="postgresql://…, sqlite:///FILE, duckdb:///FILE, or s3://, gs://, az://…/FILE.",
    ),
]
Query = Annotated[
    str | None, typer.Option("--query", metavar="SQL", help="The rows to read from the database of --from.")
]
FromTable = Annotated[str | None, typer.Option("--table", help="A whole table of the database of --from.")]
To = Annotated[
    str | None, typer.Option("--to", metavar="URL", help="A database or an object store, as upload --from has them.")
]
ToTable = Annotated[str, typer.Option("--table", help="The new table in the database of --to.")]
SchemaFile = Annotated[
    str,
    typer.Option(
        "--schema", "-s", metavar="FILE|JSON", help="Declared schema: Frictionless Table Schema, or of images."
    ),
]
Delta = Annotated[float | None, typer.Option("--delta", help="δ of the budget; default min(1e-6, 1/units²).")]
Name = Annotated[str | None, typer.Option("--name", help="Name of the dataset; default: the file's.")]
UnitColumn = Annotated[
    str | None,
    typer.Option(
        "--privacy-unit", metavar="COLUMN", help="Column that says whose a row is: all rows of one value are one unit."
    ),
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
DatasetArgument = Annotated[
    str, typer.Argument(metavar="DATASET", help="Its name, its id, or the id's first four digits or more.")
]
ReleaseArgument = Annotated[
    str,
    typer.Argument(metavar="RELEASE", help="Its name, DATASET/NAME, its id, or the id's first four digits or more."),
]
ReleaseName = Annotated[
    str | None, typer.Option("--release-name", help="Name of the release; default: METHOD and part of its id.")
]
ForExcel = Annotated[
    bool,
    typer.Option(
        "--for-excel", help="CSV that Excel opens by a double click, format excel: no text runs as a formula."
    ),
]
Explanation = Annotated[
    bool,
    typer.Option("--explanation/--no-explanation", help="Write a page (HTML) beside -o that says what is promised."),
]
Again = Annotated[
    bool, typer.Option("--again", help="Pay for another release, also where an earlier run was not delivered.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
AcceptDraft = Annotated[
    bool, typer.Option("--accept-draft", help="Take a schema that is a draft, made by reading the rows, as it is.")
]
AcceptUndeclared = Annotated[
    list[str] | None,
    typer.Option(
        "--accept-undeclared", metavar="COLUMN", help="A column of which most cells may be outside what is declared."
    ),
]
RowsAreUnits = Annotated[
    bool, typer.Option("--rows-are-units", help="No privacy unit: each row is a different person.")
]

Output = Annotated[Path | None, typer.Option("--output", "-o", help="File to write; default: standard output.")]
Seed = Annotated[
    int | None, typer.Option("--seed", help="The same seed draws the same rows, as long as it draws as many.")
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where",
        metavar="CONDITION",
        help="Only such rows: 'age>=65&sex=f', 'rank in [1, 2]', 'age not missing', COLUMN:VALUE; of images label:CLASS. "
        "Several must all hold.",
    ),
]
WeightsJson = Annotated[
    str | None,
    typer.Option("--weights", metavar="JSON", help="""How often values are drawn: '{"sex": "uniform"}'."""),
]
Rows = Annotated[int, typer.Option("--rows", "-n", min=1, help="Synthetic rows to draw.")]
SaveCertificate = Annotated[Path | None, typer.Option("--certificate", help="Also save the certificate (JSON).")]
SaveGenerator = Annotated[Path | None, typer.Option("--generator", help="Also save the trained generator (ZIP).")]
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
    typer.Option(
        "--budget-epsilon",
        help="ε of the table's whole budget, given once; default: this release's ε, which leaves nothing for others.",
    ),
]
