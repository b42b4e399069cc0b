"""Rows that a caller sends to be completed, as Parquet: read by a child process in the sandbox of uploads."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from service.intake.caller import Caller
from service.intake.ingest import MOST_LINE_BYTES, run_child
from service.intake.limits import IngestLimits
from service.intake.sealed import SealedFile

if TYPE_CHECKING:
    from pathlib import Path

_CHILD = "service.intake.sent_rows_child"
_SECONDS = 30
"""While it runs, a thread that draws samples waits for it."""
_MEMORY_BYTES = 1 << 30
_AROUND_BYTES = 1_000
"""Of the answer's line around the columns."""


def rows_of_parquet(
    content: bytes, scratch_dir: Path | None, *, most_rows: int, most_cells: int
) -> list[dict[str, Any]]:
    """The rows, as JSON has them. Raises `InvalidFile` or `TooLarge`."""
    limits = IngestLimits(seconds=_SECONDS, memory_bytes=_MEMORY_BYTES)
    with SealedFile.create(scratch_dir) as file:
        file.append(content)
        job = {
            "upload": file.handle(),
            "schema": {"fields": []},
            "limits": limits.model_dump(),
            "most_rows": most_rows,
            "most_cells": most_cells,
            "most_bytes": MOST_LINE_BYTES - _AROUND_BYTES,
            "parent": os.getpid(),
        }
        columns: dict[str, list[Any]] = run_child(job, limits, (file,), Caller(), child=_CHILD)["columns"]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
