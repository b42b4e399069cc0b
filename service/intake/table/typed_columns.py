"""What every file of typed columns is checked for, Parquet or Arrow: types that a CSV has, text that is text, sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from service.base.errors import InvalidFile, TooLarge
from service.base.messages import Listed, Message, Sentence, plural
from service.intake.table.columns import is_supported

if TYPE_CHECKING:
    from service.intake.limits import IngestLimits


_SHOWN = 10
_KINDS = (
    (pa.types.is_time, Message("time of day")),
    (pa.types.is_duration, Message("duration")),
    (pa.types.is_map, Message("map")),
    (pa.types.is_struct, Message("struct")),
    (
        lambda kind: pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind),
        Message("list"),
    ),
    (
        lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind),
        Message("binary"),
    ),
)


def check_types(schema: pa.Schema, form: str) -> None:
    """Only flat types that have an obvious spelling."""
    refused = [field for field in schema if not is_supported(field.type)]
    if not refused:
        return
    names: str = Listed(
        ", ",
        (
            Message("%(column)s (%(kind)s)", column=repr(field.name[:100]), kind=_kind(field.type))
            for field in refused[:_SHOWN]
        ),
    )
    if len(refused) > _SHOWN:
        names = Message("%(names)s and %(count)s more", names=names, count=len(refused) - _SHOWN)
    raise InvalidFile(
        Message(
            "%(have)s of %(form)s that no column here can have: text, numbers, booleans, dates and datetimes are read. "
            "%(instead)s",
            have=plural("Column %(names)s has a type", "Columns %(names)s have types", len(refused), names=names),
            form=form,
            instead=_what_to_do(refused),
        ),
        column=refused[0].name[:200],
        count=len(refused),
    )


def _kind(kind: pa.DataType) -> str:
    """In words; a nested type in full would be long, and names columns within."""
    for test, word in _KINDS:
        if test(kind):
            return word
    return Message("another type")


def _what_to_do(fields: list[pa.Field]) -> str:
    kinds = {_kind(field.type) for field in fields}
    found: list[str] = []
    if kinds & {"time of day", "duration"}:
        found.append(Message("Write times of day and durations as whole numbers of seconds or minutes"))
    if kinds & {"list", "struct", "map"}:
        found.append(Message("give each value within a list or struct a column of its own"))
    if kinds - {"time of day", "duration", "list", "struct", "map"} or not found:
        found.append(Message("leave the others out") if found else Message("leave them out"))
    return Sentence(Listed("; ", found))


def check_size(rows: int, unpacked_bytes: int, file_bytes: int, limits: IngestLimits) -> None:
    """Check the size of what has come out so far, or of what the metadata promise. Raises `TooLarge`."""
    if rows > limits.rows:
        raise TooLarge(Message("The file has more than %(rows)s rows.", rows=limits.rows), limit_rows=limits.rows)
    most = limits.unpacked_limit(file_bytes)
    if unpacked_bytes > most:
        raise TooLarge(
            Message("The file unpacks to more than %(most)s bytes, far more than its own size.", most=most),
            limit_bytes=most,
        )


def validate(batch: pa.RecordBatch) -> None:
    """Text that is not UTF-8 must not reach polars, which trusts it."""
    try:
        batch.validate(full=True)
    except pa.ArrowException:
        raise InvalidFile(Message("The file holds text that is not UTF-8, or is damaged.")) from None
