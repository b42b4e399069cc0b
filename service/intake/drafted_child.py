"""The child process that drafts the schema of an upload. Run by `service.intake.sandboxed`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
from PIL import JpegImagePlugin, PngImagePlugin

from service.base.carried import packed
from service.base.errors import TooLarge
from service.base.messages import Message
from service.domain.image_schema import ImageSchema
from service.intake import child
from service.intake.image.draft import are_images, draft_images
from service.intake.image.first_pictures import first_pictures
from service.intake.limits import IngestLimits
from service.intake.room import Room
from service.intake.sealed import SealedFile
from service.intake.table.draft import draft_upload, pandas_index_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.intake import sandbox
    from service.intake.table.columns import Column

_BEFORE_THE_SANDBOX = (JpegImagePlugin, PngImagePlugin)
"""Pillow would import them when it opens a picture."""
_CELL_CHARACTERS = 60


def draft(document: dict[str, Any]) -> dict[str, Any]:
    """What is to be done, in the sandbox."""
    upload = SealedFile.handed_over(document["upload"])
    limits = IngestLimits.model_validate(document["limits"])
    drafted = _image_draft(upload, limits) if are_images(upload.reader()) else _table_draft(upload, limits, document)
    if len(json.dumps(drafted)) > document["most_bytes"]:
        raise TooLarge(
            Message(
                "The file has so many columns or categories that its draft is too large for the page; declare it in a "
                "file and upload both with `imprimatur upload`."
            ),
            limit_bytes=document["most_bytes"],
        )
    return drafted


def _image_draft(upload: SealedFile, limits: IngestLimits) -> dict[str, Any]:
    schema = draft_images(upload, limits)
    pictures = first_pictures(upload, ImageSchema.model_validate(schema), limits)
    without_rows: dict[str, Any] = {"findings": {}, "notices": [], "names": [], "rows": []}
    return {"kind": "image", "schema": schema, "pictures": pictures, **without_rows}


def _table_draft(upload: SealedFile, limits: IngestLimits, document: dict[str, Any]) -> dict[str, Any]:
    room = Room(SealedFile.handed_over(document["scratch"]), limits.unpacked_limit(upload.size))
    first: list[list[str | None]] = []

    def look(columns: Sequence[Column]) -> None:
        first.extend(_first_cells(column, document["first_rows"]) for column in columns)

    index_columns = pandas_index_in(upload.reader())
    drafted = draft_upload(upload, limits, room, index_columns=index_columns, look=look, report=child.Reports())
    findings: dict[str, list[Any]] = {}
    for finding in drafted.findings:
        findings.setdefault(finding.column, []).append(packed(finding.beside_the_column()))
    return {
        "kind": "table",
        "schema": drafted.schema,
        "findings": findings,
        "notices": [packed(each) for each in drafted.notices],
        "repeating": {one.name: one.repeats for one in drafted.columns if one.name and one.repeats is not False},
        "names": [one.name for one in drafted.columns],
        "rows": [list(row) for row in zip(*first, strict=True)],
    }


def _first_cells(column: Column, count: int) -> list[str | None]:
    """Of its first rows, cut short."""
    if column.codes is None:
        text = column.cells.head(count).text
    else:
        text = column.cells.text.gather(pl.Series(column.codes[:count]))
    return [None if cell is None else _cut(cell) for cell in text.to_list()]


def _cut(cell: str) -> str:
    return cell if len(cell) <= _CELL_CHARACTERS else f"{cell[: _CELL_CHARACTERS - 1]}…"


def main(begun: sandbox.Begun) -> None:
    """One job in, one answer out."""
    child.main(begun, draft)
