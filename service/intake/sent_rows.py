"""Rows that a caller sends to be completed, as Parquet: read by a child process in the sandbox of uploads."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from service.intake.caller import Caller
from service.intake.ingest import run_child
from service.intake.limits import IngestLimits
from service.intake.sealed import SealedFile

if TYPE_CHECKING:
    from pathlib import Path

_CHILD = "service.intake.sent_rows_child"
_SECONDS = 60
_MEMORY_BYTES = 1 << 30


def rows_of_parquet(content: bytes, scratch_dir: Path | None, *, most_rows: int) -> list[dict[str, Any]]:
    """The rows, as JSON has them. Raises `InvalidFile` or `TooLarge`."""
    limits = IngestLimits(seconds=_SECONDS, memory_bytes=_MEMORY_BYTES)
    with SealedFile.create(scratch_dir) as file:
        file.append(content)
        job = {
            "upload": file.handle(),
            "schema": {"fields": []},
            "limits": limits.model_dump(),
            "most_rows": most_rows,
            "parent": os.getpid(),
        }
        rows: list[dict[str, Any]] = run_child(job, limits, (file,), Caller(), child=_CHILD)["rows"]
    return rows
