"""`imprimatur complete`: rows of the caller's own, with what they lack drawn from a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from imprimatur.cli.connection import DEFAULT_DATA, Data, Key, Url, connect
from imprimatur.cli.options import Output, ReleaseArgument, Seed
from imprimatur.cli.output import note
from imprimatur.cli.results import write_to_stdout

TYPES = {"csv": "CSV", "jsonl": "JSON lines", "ndjson": "JSON lines", "parquet": "Parquet", "pq": "Parquet"}
"""Of rows to be completed, by the ending of their file."""
RowsFile = Annotated[
    Path, typer.Argument(metavar="ROWS", exists=True, dir_okay=False, help="Your rows: .csv, .jsonl or .parquet.")
]


def complete(
    release_id: ReleaseArgument,
    rows: RowsFile,
    output: Output = None,
    seed: Seed = None,
    url: Url = None,
    key: Key = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Fill in what your rows lack, one draw a row, given what they have. Free of charge.

    The published generator alone is read, no private row. Do not send private
    rows of somebody else. A column that is not there is drawn; an empty cell
    is drawn, too, but not as missing. The output has the format of the input.

    Example:
    [cyan]imprimatur complete 7f1c… rows.csv -o completed.csv[/cyan]
    """
    ending = rows.suffix.lstrip(".").lower()
    if ending not in TYPES:
        known = ", ".join("." + name for name in TYPES)
        raise typer.BadParameter(f"{rows}: its name must end in one of {known}", param_hint="ROWS")
    if output is not None and TYPES.get(output.suffix.lstrip(".").lower(), TYPES[ending]) != TYPES[ending]:
        raise typer.BadParameter(f"{output}: the output has the format of {rows.name}", param_hint="--output")
    with connect(url, key, data) as client:
        completed = client.complete(release_id, rows.read_bytes(), seed=seed)
    if output is None or str(output) == "-":
        write_to_stdout(iter([completed]))
        return
    output.write_bytes(completed)
    note(f"{output}: {len(completed)} bytes")
