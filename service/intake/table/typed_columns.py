"""What every file of typed columns is checked for, Parquet or Arrow: types that a CSV has, text that is text, sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from service.base.errors import InvalidFile, TooLarge
from service.intake.table.columns import is_supported

if TYPE_CHECKING:
    from service.intake.limits import IngestLimits


_SHOWN = 10
_KINDS = (
    (pa.types.is_time, "time of day"),
    (pa.types.is_duration, "duration"),
    (pa.types.is_map, "map"),
    (pa.types.is_struct, "struct"),
    (lambda kind: pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind), "list"),
    (
        lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind),
        "binary",
    ),
)


def check_types(schema: pa.Schema, form: str) -> None:
    """Only flat types that have an obvious spelling."""
    refused = [field for field in schema if not is_supported(field.type)]
    if not refused:
        return
    several = len(refused) > 1
    names = ", ".join(f"{field.name[:100]!r} ({_kind(field.type)})" for field in refused[:_SHOWN])
    more = f" and {len(refused) - _SHOWN} more" if len(refused) > _SHOWN else ""
    raise InvalidFile(
        f"Column{'s' if several else ''} {names}{more} {'have types' if several else 'has a type'} of {form} that no column here can have: text,"
        f" numbers, booleans, dates and datetimes are read. {_what_to_do(refused)}",
        column=refused[0].name[:200],
        count=len(refused),
    )


def _kind(kind: pa.DataType) -> str:
    """In words; a nested type in full would be long, and names columns within."""
    for test, word in _KINDS:
        if test(kind):
            return word
    return "another type"


def _what_to_do(fields: list[pa.Field]) -> str:
    kinds = {_kind(field.type) for field in fields}
    found = []
    if kinds & {"time of day", "duration"}:
        found.append("Write times of day and durations as whole numbers of seconds or minutes")
    if kinds & {"list", "struct", "map"}:
        found.append("give each value within a list or struct a column of its own")
    if kinds - {"time of day", "duration", "list", "struct", "map"} or not found:
        found.append("leave the others out" if found else "leave them out")
    sentence = "; ".join(found)
    return f"{sentence[:1].upper()}{sentence[1:]}."


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
