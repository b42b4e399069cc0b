"""Writers of rows: CSV, CSV for Excel, JSON lines, Parquet and Arrow. Each checks its request before the first piece."""

from __future__ import annotations

import io
import itertools
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from service.base.errors import InvalidInput
from service.base.messages import Message, fault_of
from service.samples.drain import Drain
from service.samples.formulas import disarmed
from service.samples.table.base import SamplingError
from service.samples.table.columns import CategoryColumn, quoted
from service.samples.table.identifiers import IdentifierColumn

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence

    from service.samples.request import Wanted
    from service.samples.table.base import Columns
    from service.samples.table.sampler import TableSampler
    from service.samples.table.written import RowColumn

_ARROW_TYPES = {
    "string": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
}
_ROW_GROUP_CELLS = 2**17
"""Of one sample these are in memory, and hundreds may be read at once."""
_MOST_SHORT_CODES = 2**15
_ISO_SECONDS = "%Y-%m-%dT%H:%M:%S"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class _Layout:
    """How cells are put into a file."""

    separator: str = ","
    decimal_comma: bool = False
    """Of numbers that are not spelled otherwise."""
    moments: str = _ISO_SECONDS
    begin: bytes = b""


def csv(sampler: TableSampler, wanted: Wanted) -> Generator[bytes]:
    """Header first; a text that a spreadsheet would carry out as the request says."""
    draws = _begun(sampler, wanted)
    return _csv(draws, sampler, disarmed if wanted.formulas == "escape" else str, _Layout())


def excel(sampler: TableSampler, wanted: Wanted) -> Generator[bytes]:
    """CSV that a spreadsheet opens by a double click: in UTF-8 by its first bytes, and nothing in it is carried out.

    A spreadsheet that writes numbers with a decimal comma reads semicolons between cells, and a point as part of a date.
    """
    draws = _begun(sampler, wanted)
    has_comma = wanted.decimal_comma or any(c.spelling.get("decimal") == "," for c in sampler.columns)
    layout = _Layout(";" if has_comma else ",", has_comma, _ISO_SECONDS.replace("T", " "), _BYTE_ORDER_MARK)
    return _csv(draws, sampler, disarmed, layout)


def jsonl(sampler: TableSampler, wanted: Wanted) -> Generator[bytes]:
    """One object per line."""
    draws = _begun(sampler, wanted)
    moments = {column.name for column in sampler.columns if column.is_spelled and column.type in {"date", "datetime"}}
    in_full = {column.name for column in sampler.columns if column.is_json_number}
    return _jsonl(_plain_batches(draws, sampler, _lookups(sampler), _Texts(moments | in_full)), in_full)


def parquet(sampler: TableSampler, wanted: Wanted) -> Generator[bytes]:
    """Typed columns in row groups of bounded size."""
    return _parquet(*_coded_batches(_begun(sampler, wanted), sampler, _lookups(sampler)))


def arrow(sampler: TableSampler, wanted: Wanted) -> Generator[bytes]:
    """An IPC stream, texts as dictionaries."""
    return _arrow_stream(*_coded_batches(_begun(sampler, wanted), sampler, _lookups(sampler)))


def _begun(sampler: TableSampler, wanted: Wanted) -> Iterator[Columns]:
    """The drawn chunks. The first is drawn now, because some conditions are refused only then."""
    try:
        draws = (
            sampler.draws(wanted.rows, seed=wanted.seed, where=wanted.where, weights=wanted.weights, each=wanted.each)
            if wanted.drawn is None
            else iter(wanted.drawn)
        )
        first = list(itertools.islice(draws, 1))
    except SamplingError as error:
        raise InvalidInput(fault_of(error), where="sample") from None
    except (OverflowError, RecursionError):
        raise InvalidInput(
            Message("a number in a condition or a weight is too large, or JSON is nested too deeply"), where="sample"
        ) from None
    return itertools.chain(first, draws)


def _lookups(sampler: TableSampler, written: Callable[[str], str] = str) -> list[pa.Array | None]:
    """The values of each column of categories, texts as they are to be written."""
    return [
        pa.array([written(v) if isinstance(v, str) else v for v in c.values], _ARROW_TYPES[c.type])
        if isinstance(c, CategoryColumn)
        else None
        for c in sampler.columns
    ]


@dataclass(frozen=True)
class _Texts:
    """Which columns are written as texts, and which of them with a missing marker of their own."""

    names: Collection[str]
    written: Callable[[str], str] = str
    fill_missing: Collection[str] = ()
    with_comma: Collection[str] = ()
    """Columns of numbers whose decimal point becomes a comma."""

    def of(self, column: RowColumn, drawn: np.ndarray[Any, Any]) -> pa.Array:
        """The drawn column as it is spelled."""
        missing = self.written(column.missing_value) if column.missing and column.name in self.fill_missing else None
        if isinstance(column, CategoryColumn):
            values = zip(column.values, self._as_written(column, column.texts), strict=True)
            lookup = pa.array([missing if v is None else text for v, text in values], pa.string())
            return lookup.take(pa.array(drawn))
        texts = self._as_written(column, column.spelled(drawn))
        array = pa.array(texts, pa.string(), mask=np.ma.getmaskarray(drawn))
        return array if missing is None else array.fill_null(missing)

    def _as_written(self, column: RowColumn, texts: list[str]) -> list[str]:
        if column.name in self.with_comma:
            texts = [text.replace(".", ",") for text in texts]
        return texts if self.written is str else list(map(self.written, texts))


def _plain_batches(
    draws: Iterable[Columns], sampler: TableSampler, lookups: Sequence[pa.Array | None], texts: _Texts
) -> Generator[pa.RecordBatch]:
    """Every column with the type its schema declares, or as text where it is spelled otherwise."""

    def type_of(column: RowColumn) -> pa.DataType:
        return pa.string() if column.name in texts.names else _ARROW_TYPES[column.type]

    schema = pa.schema([pa.field(c.name, type_of(c), nullable=c.missing) for c in sampler.columns])

    def arrays(drawn: Columns) -> Generator[pa.Array]:
        for column, lookup, values in zip(sampler.columns, lookups, drawn, strict=True):
            yield texts.of(column, values) if column.name in texts.names else _arrow(column, lookup, values)

    return (pa.RecordBatch.from_arrays(list(arrays(drawn)), schema=schema) for drawn in draws)


def _arrow(column: RowColumn, lookup: pa.Array | None, drawn: np.ndarray[Any, Any]) -> pa.Array:
    """A drawn column with the type its schema declares."""
    if lookup is not None:
        return lookup.take(pa.array(drawn))
    numbers = np.ma.getdata(drawn)
    if column.type == "date":
        numbers = numbers.astype("datetime64[D]")
    elif column.type == "datetime":
        numbers = numbers.astype("datetime64[s]").astype("datetime64[us]")
    return pa.array(numbers, mask=np.ma.getmaskarray(drawn))


def _coded_batches(
    draws: Iterable[Columns], sampler: TableSampler, lookups: Sequence[pa.Array | None]
) -> tuple[Generator[pa.RecordBatch], pa.Schema]:
    """Texts stay what was drawn: codes into a dictionary."""
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

    def arrays(drawn: Columns) -> Generator[pa.Array]:
        for column, lookup, text, values in zip(sampler.columns, lookups, texts, drawn, strict=True):
            if text is None:
                yield _arrow(column, lookup, values)
                continue
            values_of, code = text
            mask = values == len(values_of) if column.missing else None  # null is the last of a column's values
            known = values if mask is None else np.where(mask, 0, values)  # Polars looks at codes of nulls, too
            codes = pa.array(known.astype(code.to_pandas_dtype()), mask=mask)
            yield pa.DictionaryArray.from_arrays(codes, values_of)

    return (pa.RecordBatch.from_arrays(list(arrays(drawn)), schema=schema) for drawn in draws), schema


def _csv(
    draws: Iterable[Columns], sampler: TableSampler, written: Callable[[str], str], layout: _Layout
) -> Generator[bytes]:
    spelled = {column.name for column in sampler.columns if column.is_spelled}
    own = {c.name for c in sampler.columns if c.missing and c.missing_value != sampler.missing_value}
    made_anew = {c.name for c in sampler.columns if isinstance(c, IdentifierColumn) and c.type == "string"}
    disarmed_too = set[str]() if written is str else made_anew
    with_comma = {column.name for column in sampler.columns if layout.decimal_comma and _has_plain_point(column)}
    texts = _Texts(spelled | own | disarmed_too, written, fill_missing=own, with_comma=with_comma)
    batches = _plain_batches(draws, sampler, _lookups(sampler, written), texts)
    separator = layout.separator
    # An empty line is no row.
    missing = quoted(written(sampler.missing_value), empty_too=len(sampler.columns) == 1, separator=separator)
    names = (quoted(written(name), empty_too=True, separator=separator) for name in sampler.names)
    yield layout.begin + (separator.join(names) + "\n").encode()
    for batch in batches:
        piece = io.BytesIO()
        pl.DataFrame(batch).write_csv(
            piece,
            include_header=False,
            null_value=missing,
            datetime_format=layout.moments,
            separator=separator,
            decimal_comma=layout.decimal_comma,
        )
        yield piece.getvalue()


def _has_plain_point(column: RowColumn) -> bool:
    """Of a column of numbers: whether a point in its texts is the decimal point, and nothing else stands beside the digits."""
    said = column.spelling
    is_number = column.type in {"integer", "number"} and not isinstance(column, IdentifierColumn)
    return is_number and said.get("decimal", ".") == "." and not any(map(said.get, ("group", "prefix", "suffix")))


def _jsonl(batches: Iterable[pa.RecordBatch], numbers: Collection[str]) -> Generator[bytes]:
    """`numbers`: columns of text that are numbers with all their decimals, so their quotes are taken away."""
    names = "|".join(re.escape(json.dumps(name, ensure_ascii=False)) for name in numbers)
    quoted_number = re.compile(rf'([{{,](?:{names}):)"(-?[0-9.]+)"'.encode()) if numbers else None
    for batch in batches:
        piece = io.BytesIO()
        frame = pl.DataFrame(batch)
        frame.with_columns(pl.col(pl.Datetime).dt.strftime(_ISO_SECONDS)).write_ndjson(piece)
        yield piece.getvalue() if quoted_number is None else quoted_number.sub(rb"\1\2", piece.getvalue())


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
    # Without the Arrow schema, which has dictionaries, readers see texts. Numbers seldom repeat.
    options: dict[str, Any] = {"use_dictionary": coded, "store_schema": False}
    with pq.ParquetWriter(pa.PythonFile(sink, mode="w"), schema, **options) as writer:
        yield sink.drain()  # the file's first bytes, so that the client gets something before a row group is full
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
