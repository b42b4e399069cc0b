"""Streams of synthetic rows for the API, in bounded memory, from a published bundle. Reads nothing private.

A stream may yield nothing now and then: that is where others get their turn.
"""

from __future__ import annotations

import io
import itertools
import json
import zipfile
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from service.base.errors import InvalidInput
from service.samples.drain import Drain
from service.samples.formulas import Formulas, disarmed
from service.samples.image_sampler import ImageSampler
from service.samples.image_streams import stream_images
from service.samples.sampling import SampleFormat, TableFormat, media_type
from service.samples.table_sampler import CategoryColumn, GridColumn, InOrder, SamplingError, TableSampler, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence

Sampler = TableSampler | ImageSampler

_ARROW_TYPES = {
    "string": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
}
_ROW_GROUP_CELLS = 2**21
_MOST_SHORT_CODES = 2**15
_ISO_SECONDS = "%Y-%m-%dT%H:%M:%S"


def stream_rows(
    sampler: Sampler,
    *,
    rows: int,
    format: str = "csv",  # noqa: A002 - the query parameter's name
    seed: int | None = None,
    where: str | Mapping[str, Any] | None = None,
    formulas: Formulas = "keep",
    each: InOrder = map,
) -> Generator[bytes]:
    """The bytes of `rows` synthetic rows or images, piece by piece.

    A wrong request raises `InvalidInput` here, before the first piece; `where` is COLUMN:VALUE or a mapping; `formulas`
    says what becomes of CSV texts that a spreadsheet would carry out; `each` draws chunks of rows, as `map` would.
    """
    media_type(format)
    if isinstance(sampler, ImageSampler):
        if where is not None and not isinstance(where, str):
            where = ",".join(f"{name}={value}" for name, value in where.items())
        return stream_images(sampler, rows=rows, format=format, seed=seed, where=where)
    if format not in get_args(TableFormat):
        raise InvalidInput(f"this release makes rows: choose format {', '.join(get_args(TableFormat))}", where="format")
    try:
        conditions = sampler.parse_where(where) if isinstance(where, str) else where
        draws = sampler.draws(rows, seed=seed, where=conditions, each=each)
        first = list(itertools.islice(draws, 1))
    except SamplingError as error:
        raise InvalidInput(str(error), where="sample") from None
    written = disarmed if format == "csv" and formulas == "escape" else str
    lookups = [
        pa.array([written(v) if isinstance(v, str) else v for v in c.values], _ARROW_TYPES[c.type])
        if isinstance(c, CategoryColumn)
        else None
        for c in sampler.columns
    ]
    if format in {"parquet", "arrow"}:
        return _coded(itertools.chain(first, draws), sampler, lookups, format)
    schema = pa.schema([pa.field(c.name, _ARROW_TYPES[c.type], nullable=c.missing) for c in sampler.columns])
    batches = (
        pa.RecordBatch.from_arrays(
            [_arrow(*column) for column in zip(sampler.columns, lookups, drawn, strict=True)], schema=schema
        )
        for drawn in itertools.chain(first, draws)
    )
    if format == "csv":
        return _csv(batches, sampler, written)
    return _jsonl(batches)


def default_format(sampler: Sampler) -> SampleFormat:
    """What a request that names no format gets."""
    return "npz" if isinstance(sampler, ImageSampler) else "csv"


def sampler_from_bundle(bundle: bytes) -> Sampler:
    """The sampler inside a generator ZIP."""
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        config = json.loads(archive.read("config.json"))
        kind = ImageSampler if config.get("kind") == "image" else TableSampler
        return kind.from_files(config, archive.read("generator.onnx"))


def _arrow(column: CategoryColumn | GridColumn, lookup: pa.Array | None, drawn: np.ndarray[Any, Any]) -> pa.Array:
    """A drawn column with the type its schema declares."""
    if lookup is not None:
        return lookup.take(pa.array(drawn))
    numbers = np.ma.getdata(drawn)
    if column.type == "date":
        numbers = numbers.astype("datetime64[D]")
    elif column.type == "datetime":
        numbers = numbers.astype("datetime64[s]").astype("datetime64[us]")
    return pa.array(numbers, mask=np.ma.getmaskarray(drawn))


def _coded(
    draws: Iterable[list[np.ndarray[Any, Any]]],
    sampler: TableSampler,
    lookups: Sequence[pa.Array | None],
    format: str,  # noqa: A002 - as above
) -> Generator[bytes]:
    """Parquet or Arrow, in which texts stay what was drawn: codes into a dictionary."""
    texts = [
        (lookup.drop_null(), pa.int16() if len(lookup) < _MOST_SHORT_CODES else pa.int32())
        if lookup is not None and pa.types.is_string(lookup.type)
        else None
        for lookup in lookups
    ]
    types = [
        _ARROW_TYPES[column.type] if text is None else pa.dictionary(text[1], pa.string())
        for column, text in zip(sampler.columns, texts, strict=True)
    ]
    fields = zip(sampler.columns, types, strict=True)
    schema = pa.schema([pa.field(column.name, type_, nullable=column.missing) for column, type_ in fields])

    def arrays(drawn: list[np.ndarray[Any, Any]]) -> Generator[pa.Array]:
        for column, lookup, text, values in zip(sampler.columns, lookups, texts, drawn, strict=True):
            if text is None:
                yield _arrow(column, lookup, values)
                continue
            values_of, code = text
            mask = values == len(values_of) if column.missing else None  # null is the last of a column's values
            codes = pa.array(values.astype(code.to_pandas_dtype()), mask=mask)
            yield pa.DictionaryArray.from_arrays(codes, values_of)

    batches = (pa.RecordBatch.from_arrays(list(arrays(drawn)), schema=schema) for drawn in draws)
    return (_parquet if format == "parquet" else _arrow_stream)(batches, schema)


def _csv(batches: Iterable[pa.RecordBatch], sampler: TableSampler, written: Callable[[str], str]) -> Generator[bytes]:
    missing = quoted(written(sampler.missing_value), empty_too=len(sampler.columns) == 1)  # an empty line: no row
    yield (",".join(quoted(written(name), empty_too=True) for name in sampler.names) + "\n").encode()
    for batch in batches:
        piece = io.BytesIO()
        pl.DataFrame(batch).write_csv(piece, include_header=False, null_value=missing, datetime_format=_ISO_SECONDS)
        yield piece.getvalue()


def _jsonl(batches: Iterable[pa.RecordBatch]) -> Generator[bytes]:
    for batch in batches:
        piece = io.BytesIO()
        frame = pl.DataFrame(batch)
        frame.with_columns(pl.col(pl.Datetime).dt.strftime(_ISO_SECONDS)).write_ndjson(piece)
        yield piece.getvalue()


def _arrow_stream(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Generator[bytes]:
    sink = Drain()
    with pa.ipc.new_stream(pa.PythonFile(sink, mode="w"), schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
            yield sink.drain()
    yield sink.drain()


def _parquet(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Generator[bytes]:
    sink = Drain()
    coded = [field.name for field in schema if pa.types.is_dictionary(field.type)]
    # Without the Arrow schema, whose dictionaries are our business, readers see texts. Numbers seldom repeat.
    options: dict[str, Any] = {"use_dictionary": coded, "store_schema": False}
    with pq.ParquetWriter(pa.PythonFile(sink, mode="w"), schema, **options) as writer:
        yield sink.drain()  # the file's first bytes, so that the caller hears from us before a row group is full
        group: list[pa.RecordBatch] = []
        for batch in batches:
            group.append(batch)
            if sum(len(b) for b in group) * len(schema) >= _ROW_GROUP_CELLS:
                writer.write_table(pa.Table.from_batches(group, schema))
                group = []
            yield sink.drain()
        if group:
            writer.write_table(pa.Table.from_batches(group, schema))
    yield sink.drain()
