"""What every file of typed columns is checked for, Parquet or Arrow: types that a CSV has, text that is text, sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from service.base.errors import InvalidFile, TooLarge
from service.intake.table.columns import is_supported

if TYPE_CHECKING:
    from service.intake.limits import IngestLimits


def check_types(schema: pa.Schema, form: str) -> None:
    """Only flat types that have an obvious spelling."""
    for field in schema:
        if not is_supported(field.type):
            raise InvalidFile(
                f"Column {field.name[:100]!r} has {'an' if form[0] in 'AEIOU' else 'a'} {form} type that is nested, binary or otherwise"
                " not a plain text, number, boolean, date or datetime.",
                column=field.name[:200],
            )


def check_size(rows: int, unpacked_bytes: int, file_bytes: int, limits: IngestLimits) -> None:
    """Of what has come out so far, or of what the metadata promise."""
    if rows > limits.rows:
        raise TooLarge(f"The file has more than {limits.rows} rows.", limit_rows=limits.rows)
    most = limits.unpacked_limit(file_bytes)
    if unpacked_bytes > most:
        raise TooLarge(f"The file unpacks to more than {most} bytes, far more than its own size.", limit_bytes=most)


def validate(batch: pa.RecordBatch) -> None:
    """Text that is not UTF-8 must not reach polars, which trusts it."""
    try:
        batch.validate(full=True)
    except pa.ArrowException:
        raise InvalidFile("The file holds text that is not UTF-8, or is damaged.") from None
