"""How much a single upload may ask of the machine."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

MiB = 1024 * 1024
Size = Annotated[int, Field(ge=1)]


class IngestLimits(BaseModel):
    """Limits of one upload's reading; each is refused with its own sentence."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: Size = 100_000_000
    columns: Size = 1_001
    field_bytes: Size = 64 * 1024
    """Longest single cell. Every column is categorical, numeric or a date, so a long cell is a mistake or an attack."""
    line_bytes: Size = 4 * MiB
    """Longest header or row of a CSV, or line of JSON lines."""
    unpacked_bytes: Size = 16 * 1024 * MiB
    """What a packed file, Parquet or Arrow may unpack to, at most; all layers together."""
    unpacked_ratio: Size = 200
    """The same, as a multiple of the upload's own size, once above `unpacked_floor_bytes`."""
    unpacked_floor_bytes: Size = 256 * MiB
    memory_bytes: Annotated[int, Field(ge=256 * MiB)] = 2 * 1024 * MiB
    """Address space of the reading process beyond its libraries, whose threads and buffers need about 100 MiB."""
    archive_members: Size = 1_000_000
    """Files in a ZIP; looked at before any of them is opened."""
    seconds: Size = 1_800
    """Wall-clock time; processor time may be twice that, for two threads."""

    def unpacked_limit(self, file_bytes: int) -> int:
        """Most bytes an upload of this size may unpack to."""
        return min(self.unpacked_bytes, max(self.unpacked_floor_bytes, file_bytes * self.unpacked_ratio))
