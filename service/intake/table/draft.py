"""Draft a Table Schema from the owner's file, and say in it that it comes from the data.

This runs on the owner's machine, or for the web page in the sandboxed child that reads uploads (`service/intake/drafted_child.py`),
and is shown to the owner alone. A draft is not a declaration: categories and bounds
that are read from private rows leak them, so the owner must replace them by what is publicly known (docs/privacy.md, What is visible).
What columns look like, and what is proposed for them, is decided in `drafting`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from service.base.errors import InvalidFile
from service.base.messages import Message
from service.domain.field_schema import FieldSchema
from service.intake.heard import Heard
from service.intake.limits import IngestLimits
from service.intake.room import Room
from service.intake.sealed import SealedFile
from service.intake.table.drafting.decide import decide
from service.intake.table.drafting.findings import Decided
from service.intake.table.drafting.observed import Observed
from service.intake.table.first_line import refuse_row_as_header, some_cells
from service.intake.table.reading import check_unique, propose_table

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

    from service.intake.table.columns import Column
    from service.intake.table.drafting.findings import Finding
    from service.intake.table.reading import Table

ABOUT = (
    "DRAFT, made by reading the private data. Categories, bounds and types below were read from the rows, and so were `required` and"
    " `missingValues`: publishing under them as they are would leak them, and no privacy budget pays for that. That an upload is accepted"
    " says that every row meets its schema, so keep `required` only where the form allows no missing value. Check every field, replace"
    " what was read by what is publicly known about the column (a codebook, a form, the law of the field), and then remove this notice."
)
_ALSO_REQUIRED = " That no cell is missing (`required`) was read from the rows."
LEFT_OUT = "Left out, or made anew"
_PARQUET = b"PAR1"
_OPENING = 1 / 3
"""Of the work, where opening reads the whole file."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A schema to correct, and what the owner should look at, with cells."""

    schema: dict[str, Any]
    findings: list[Finding]
    columns: list[Decided]
    notices: list[str]
    """On how the file was read."""


def draft_schema(path: Path, limits: IngestLimits | None = None) -> dict[str, Any]:
    """A schema that the file fits, for the owner to correct. `InvalidFile` if the file cannot be read as a table."""
    return draft_table(path, limits).schema


def draft_table(path: Path, limits: IngestLimits | None = None) -> Draft:
    """The drafted schema with its findings, which are for the owner alone."""
    limits = limits or IngestLimits()
    with SealedFile.in_the_clear(path) as file, Room.of_its_own(limits.unpacked_limit(file.size)) as room:
        drafted = draft_upload(file, limits, room, index_columns=pandas_index_of(path))
    if all(one.field is None for one in drafted.columns):
        why = " ".join(finding.for_the_owner() for finding in drafted.findings)
        raise InvalidFile(
            f"No column of the file looks like categories, numbers or dates; write the schema by hand. {why}"
        )
    return drafted


def draft_upload(
    file: SealedFile,
    limits: IngestLimits,
    room: Room,
    *,
    index_columns: Collection[str] = (),
    look: Callable[[Sequence[Column]], object] = lambda _: None,
    report: Callable[[float], object] = lambda _: None,
) -> Draft:
    """The draft of an opened file. `look` sees the columns of the first chunk, whose first line is no row.

    `report` hears shares of the work: of opening the file, which reads all of some, and of looking at its rows.
    """
    heard = Heard(file, lambda share: report(_OPENING * share))
    table, dialect, unnamed = propose_table(heard, limits, room)
    opened = _OPENING * heard.stop()
    drafted = _drafted(table, index_columns, unnamed, look, lambda share: report(opened + (1.0 - opened) * share))
    return drafted if dialect is None else replace(drafted, schema=drafted.schema | {"dialect": dialect.as_json()})


def pandas_index_of(path: Path) -> set[str]:
    """The columns that pandas made of an index when it wrote a Parquet file."""
    if path.is_dir() or _start_of(path) != _PARQUET:
        return set()
    with path.open("rb") as file:
        return pandas_index_in(file)


def pandas_index_in(file: BinaryIO) -> set[str]:
    """The columns that pandas made of an index, in an open file; of any other than Parquet none."""
    if file.read(len(_PARQUET)) != _PARQUET:
        return set()
    file.seek(0)
    try:
        metadata = pq.read_schema(file).pandas_metadata or {}
    except (pa.ArrowException, ValueError):  # a text that begins so, or a damaged file, of which reading says more
        return set()
    return {name for name in metadata.get("index_columns", ()) if isinstance(name, str)}


def _start_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(_PARQUET))


def _drafted(
    table: Table,
    index_columns: Collection[str],
    unnamed: Collection[str],
    look: Callable[[Sequence[Column]], object],
    report: Callable[[float], object],
) -> Draft:
    check_unique(table.names)
    columns = {name: Observed(name, is_index=name in index_columns, is_unnamed=name in unnamed) for name in table.names}
    rows, done = 0, 0.0
    for chunk in table.chunks():
        found = [make() for make in chunk.columns.values()]
        if not rows:
            refuse_row_as_header(table.names, {column.name: some_cells(column) for column in found})
            look(found)
        rows += found[0].rows
        for place, column in enumerate(found, start=1):
            columns[column.name].add(column)
            report(done + (chunk.share - done) * place / len(found))
        done = chunk.share
    report(1.0)
    if not rows:
        raise InvalidFile(Message("The file has names of columns, but no rows below them."))
    markers = sorted({marker for observed in columns.values() for marker in observed.markers} | {""})
    decided = [decide(observed, rows, markers) for observed in columns.values()]
    fields = [field for one in decided if (field := _field(one)) is not None]
    left_out = {name: one.why for name, one in zip(columns, decided, strict=True) if one.why}
    schema = {"description": _about(left_out), "fields": fields, "missingValues": markers}
    return Draft(schema, [finding for one in decided for finding in one.findings], decided, table.notices)


def _field(one: Decided) -> dict[str, Any] | None:
    """With its domain; or with a role, where the schema has that word, so that the column may stay in the file."""
    if one.field is not None:
        return _described(one)
    if "role" not in FieldSchema.model_fields or not one.name:
        return None
    return {"name": one.name, "type": "string", "role": one.role, "description": f"DRAFT: {_sentences(one)}"}


def _sentences(one: Decided) -> str:
    return " ".join(finding.sentence() for finding in one.findings)


def _described(one: Decided) -> dict[str, Any]:
    field: dict[str, Any] = dict(one.field or {})
    if field["constraints"].get("required"):
        field["description"] += _ALSO_REQUIRED
    field["description"] = f"{field['description']} {_sentences(one)}".strip()
    return field


def _about(left_out: Mapping[str, str]) -> str:
    if not left_out:
        return ABOUT
    columns = "; ".join(f"{name!r} ({why})" for name, why in left_out.items())
    return f"{ABOUT} {LEFT_OUT}: {columns}. Remove these columns from the file, declare them by hand, or name one of them as the privacy unit."
