"""The table under test: one split, and the public cells that every metric is computed on."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from service.domain.table_schema import TableSchema, parse_table_schema
from workers.encoding.table import EncodedTable, TableDomain, encode_table

HELD_OUT_SHARE = 0.2
METRIC_BINS = 32


@dataclass(frozen=True)
class Table:
    """Real rows, split once. Columns in schema order; domain: the public cells of the metrics."""

    name: str
    schema: TableSchema
    target: str | None
    train: pl.DataFrame
    test: pl.DataFrame
    domain: TableDomain

    @property
    def train_codes(self) -> np.ndarray:
        return codes_of(self.train, self.domain)

    @property
    def test_codes(self) -> np.ndarray:
        return codes_of(self.test, self.domain)


def read_table(data: Path, schema_file: Path, target: str | None, test: Path | None, rows: int | None) -> Table:
    import json

    document = json.loads(schema_file.read_text())
    if target is not None:
        document["target"] = target
    schema = parse_table_schema(document)
    frame = read_frame(data, schema).sample(fraction=1.0, shuffle=True, seed=0)
    if test is None:
        held_out = int(len(frame) * HELD_OUT_SHARE)
        frame, tested = frame[held_out:], frame[:held_out]
    else:
        tested = read_frame(test, schema)
    if rows is not None:
        frame = frame[:rows]
    domain = TableDomain.from_schema(schema, numeric_bins=METRIC_BINS)
    return Table(data.stem, schema, schema.target, frame, tested, domain)


def encode(frame: pl.DataFrame, domain: TableDomain, *, with_places: bool = False) -> EncodedTable:
    parquet = io.BytesIO()
    frame.select(domain.names).write_parquet(parquet)
    return encode_table(parquet.getvalue(), domain, units=len(frame), with_places=with_places)


def codes_of(frame: pl.DataFrame, domain: TableDomain) -> np.ndarray:
    return encode(frame, domain).codes.astype(np.int64)


def frame_of(columns: dict[str, list[object]], schema: TableSchema) -> pl.DataFrame:
    """Plain values as typed columns; values that cannot be read become missing."""
    text = {
        name: pl.Series(name, [None if v is None else str(v) for v in values], dtype=pl.String)
        for name, values in columns.items()
    }
    return _typed(pl.DataFrame(text), schema)


def read_frame(path: Path, schema: TableSchema) -> pl.DataFrame:
    """Rows of a CSV file, with a header or without, typed as the schema says; what cannot be read is missing."""
    frame = pl.read_csv(path, infer_schema=False, null_values=list(schema.missing_values))
    if set(schema.names) - set(frame.columns):
        frame = pl.read_csv(
            path, infer_schema=False, has_header=False, new_columns=list(schema.names), null_values=[""]
        )
    return _typed(frame.select(schema.names), schema)


def _typed(frame: pl.DataFrame, schema: TableSchema) -> pl.DataFrame:
    columns = []
    for field in schema.fields:
        column = pl.col(field.name).str.strip_chars()
        if field.type == "integer":
            column = column.cast(pl.Float64, strict=False).round().cast(pl.Int64, strict=False)
        elif field.type == "number":
            column = column.cast(pl.Float64, strict=False)
        elif field.type == "boolean":
            column = column.str.to_lowercase().is_in(["true", "1"])
        elif field.type == "date":
            column = column.str.to_date(strict=False)
        elif field.type == "datetime":
            column = column.str.to_datetime(strict=False)
        columns.append(column)
    return frame.with_columns(columns)
