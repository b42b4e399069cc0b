"""Arrow columns as text: one spelling for every type that a table may hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa

from service.errors import InvalidFile

if TYPE_CHECKING:
    from service.datasets.limits import IngestLimits


def is_supported(kind: pa.DataType) -> bool:
    """Flat types that have an obvious spelling in a CSV."""
    if pa.types.is_dictionary(kind):
        return is_supported(kind.value_type) and not pa.types.is_dictionary(kind.value_type)
    tests = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
        pa.types.is_decimal,
        pa.types.is_date,
        pa.types.is_timestamp,
        pa.types.is_null,
    )
    return _is_text(kind) or any(test(kind) for test in tests)


def as_text(batch: pa.RecordBatch, names: tuple[str, ...]) -> pl.DataFrame:
    """The batch with every column as text, null where there is no value."""
    columns = [_column_as_text(name, array) for name, array in zip(names, batch.columns, strict=True)]
    return pl.DataFrame(columns)


def check_cells(frame: pl.DataFrame, limits: IngestLimits) -> None:
    """Refuse giant cells, and NUL, which only a Parquet file can still hold here."""
    for column in frame:
        too_long = int((column.str.len_bytes() > limits.field_bytes).sum())
        if too_long:
            raise InvalidFile(
                f"Column {column.name!r}: {cells_are(too_long)} longer than {limits.field_bytes} bytes.",
                column=column.name,
                count=too_long,
            )


def cells_are(count: int) -> str:
    """`1 cell is` or `3 cells are`, the beginning of a sentence about a column."""
    return "1 cell is" if count == 1 else f"{count} cells are"


def _column_as_text(name: str, array: pa.Array) -> pl.Series:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_decimal(array.type):
        array = array.cast(pa.string())
    elif pa.types.is_float16(array.type):
        array = array.cast(pa.float32())
    series = pl.Series(name, array)
    if isinstance(series.dtype, pl.Datetime) and series.dtype.time_zone is not None:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    text = series.cast(pl.String)
    if _is_text(array.type) and bool(text.str.contains("\x00", literal=True).any()):
        count = int(text.str.contains("\x00", literal=True).sum())
        raise InvalidFile(f"Column {name!r}: {cells_are(count)} not text: they contain NUL.", column=name, count=count)
    return text


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
