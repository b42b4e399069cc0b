"""CSV as chunks of text: UTF-8, commas, quotes as in RFC 4180, a header in the first line."""

from __future__ import annotations

import codecs
import csv
import io
import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from service.base.errors import InvalidFile
from service.intake.table.columns import Chunk, ColumnSource, chunk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    from service.intake.limits import IngestLimits
    from service.intake.sealed import SealedFile

_SCAN_BYTES = 4 * 1024 * 1024
_CHUNK_ROWS = 131_072
_CHUNK_BYTES = 24 * 1024 * 1024


class CsvTable:
    """An opened CSV file. Opening reads it once for encoding and quotes; `chunks` reads it again for the rows."""

    def __init__(self, file: SealedFile, limits: IngestLimits) -> None:
        self._file = file
        self._limits = limits
        self._has_quotes = _check_encoding(file)
        self.expected_bytes = 4 * file.size  # a digit and a comma become 8 bytes
        self.names, self._has_rows = _read_header(file, limits)

    def chunks(self) -> Iterator[Chunk]:
        if not self._has_rows:
            return
        ragged = _Ragged()
        sources = [ColumnSource(name, self._limits) for name in self.names]
        try:
            file = self._file.reader()
            for table in _together(self._open(file, ragged)):
                yield chunk(sources, table.columns, file.tell() / self._file.size)
        except (pa.ArrowMemoryError, MemoryError):
            raise
        except (pa.ArrowException, OSError) as error:
            raise InvalidFile(_sentence(error, self._limits.line_bytes)) from None
        if ragged.count:
            raise InvalidFile(
                f"{_rows(ragged.count)} not have as many cells as the header, which has {len(self.names)}.",
                count=ragged.count,
            )

    def _open(self, file: BinaryIO, ragged: _Ragged) -> pa_csv.CSVStreamingReader:
        return pa_csv.open_csv(
            file,
            read_options=pa_csv.ReadOptions(
                block_size=self._limits.line_bytes,
                column_names=list(self.names),
                skip_rows_after_names=1,
            ),
            parse_options=pa_csv.ParseOptions(
                newlines_in_values=self._has_quotes,
                # In a table of one column a blank line is a missing value; elsewhere it is only layout.
                ignore_empty_lines=len(self.names) > 1,
                invalid_row_handler=ragged,
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(self.names, pa.string()), strings_can_be_null=False, null_values=[]
            ),
        )


def _together(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Blocks of the parser are as small as its longest row; larger ones have fewer distinct cells for their size."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(part.num_rows for part in held) >= _CHUNK_ROWS or sum(part.nbytes for part in held) >= _CHUNK_BYTES:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


class _Ragged:
    """Counts the rows with too many or too few columns; called from the parser's threads."""

    def __init__(self) -> None:
        self.count = 0
        self._lock = threading.Lock()

    def __call__(self, row: Any) -> str:  # noqa: ARG002 - the parser hands the row over; it is not looked at
        with self._lock:
            self.count += 1
        return "skip"


def _check_encoding(upload: SealedFile) -> bool:
    """Whether there are quotes at all. Refuses what is not UTF-8 text with closed quotes."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    quotes = 0
    with upload.reader() as file:
        while piece := file.read(_SCAN_BYTES):
            if b"\x00" in piece:
                raise InvalidFile("The file is neither CSV nor Parquet: it contains NUL bytes.")
            _decode(decoder, piece, final=False)
            quotes += piece.count(b'"')
    _decode(decoder, b"", final=True)
    if quotes % 2:
        raise InvalidFile('A quoted field is never closed: the file has an odd number of quotes (").')
    return quotes > 0


def _decode(decoder: codecs.IncrementalDecoder, piece: bytes, *, final: bool) -> str:
    try:
        return decoder.decode(piece, final)
    except UnicodeDecodeError:
        raise InvalidFile("The file is not UTF-8 text. Save it as CSV in UTF-8, or as Parquet.") from None


def _read_header(upload: SealedFile, limits: IngestLimits) -> tuple[tuple[str, ...], bool]:
    """Column names, and whether anything follows them."""
    start = upload.read_at(0, limits.line_bytes)
    more = upload.size > len(start)
    text = codecs.getincrementaldecoder("utf-8-sig")().decode(start)
    lines = io.StringIO(text, newline="")
    csv.field_size_limit(limits.line_bytes)
    try:
        names = next(csv.reader(lines), [])
    except csv.Error:
        raise InvalidFile("The first line cannot be read as a CSV header.") from None
    rest = text[lines.tell() :]
    if more and not rest:
        raise InvalidFile(f"The first line is longer than {limits.line_bytes} bytes; it must be the header.")
    if not any(name.strip() for name in names):
        raise InvalidFile("The first line is blank; it must be the header with the schema's column names.")
    if len(names) > limits.columns:
        raise InvalidFile(f"The file has {len(names)} columns; at most {limits.columns} are accepted.")
    if len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
        raise InvalidFile("The columns are not separated by commas; save the file as comma-separated CSV.")
    return tuple(name.strip() for name in names), more or bool(rest.strip("\r\n"))


def _rows(count: int) -> str:
    return "1 row does" if count == 1 else f"{count} rows do"


def _sentence(error: Exception, line_bytes: int) -> str:
    """Our words for the parser's, which quote the row."""
    if "straddling" in str(error):
        return f"A row is longer than {line_bytes} bytes, or a quoted field is never closed."
    return "The file cannot be read as CSV; check its quotes and line ends."
