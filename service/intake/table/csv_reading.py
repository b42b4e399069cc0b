"""CSV as chunks of text: without a dialect UTF-8, commas, quotes as in RFC 4180, a header in the first line."""

from __future__ import annotations

import codecs
import threading
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv as pa_csv

from service.base.errors import InvalidFile
from service.base.messages import Listed, Message, plural, sentences
from service.domain.dialect import USUAL, UTF_8
from service.intake.table.advice import IN_UTF_8, NAME_THE_LAST
from service.intake.table.columns import Chunk, ColumnSource, chunk
from service.intake.table.detecting import proposal, propose
from service.intake.table.encodings import as_utf8, first_bad_line, not_in
from service.intake.table.first_rows import in_brackets, rows_are
from service.intake.table.header import TRAILING, read_header
from service.intake.table.plain_text import as_plain, is_plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import BinaryIO

    from service.domain.dialect import Dialect
    from service.intake.limits import IngestLimits
    from service.intake.room import Room, Source

_SCAN_BYTES = 4 * 1024 * 1024
_CHUNK_ROWS = 131_072
_CHUNK_BYTES = 24 * 1024 * 1024
_ROWS_SHOWN = 5


class CsvTable:
    """An opened CSV file. Opening reads it once for encoding and quotes; `chunks` reads it again for the rows."""

    def __init__(self, content: Source, limits: IngestLimits, dialect: Dialect, room: Room) -> None:
        self._original, self._declared, self._limits = content, dialect, limits
        content = as_utf8(content, dialect, room)
        if not is_plain(dialect):
            _check_encoding(content, dialect)
            content, dialect = as_plain(content, dialect, room, limits), USUAL
        self._file, self._dialect = content, dialect
        self._has_quotes = _check_encoding(content, dialect)
        self.expected_bytes = 4 * content.size  # a digit and a comma become 8 bytes
        header = read_header(content, limits, dialect)
        self._header = header
        self.names = header.names
        self.notices: list[str] = [TRAILING] if header.trailing else []

    @property
    def hint(self) -> str:
        """What dialect the file seems to be in, if that is another than the declared one."""
        found = propose(self._original, self._declared.encoding)
        words = "" if found is None else proposal(found, self._declared)
        return Message(" It looks as if the schema should say %(words)s.", words=words) if words else ""

    def chunks(self) -> Iterator[Chunk]:
        if not self._header.has_rows:
            return
        ragged = _Ragged()
        sources = [ColumnSource(name, self._limits) for name in self.names]
        trailing = _Trailing(len(self.names))
        try:
            file, parsed = self._file.reader(), 0
            for table in _together(self._open(file, ragged)):
                columns = trailing.without(table.columns) if self._header.trailing else table.columns
                parsed += _written_bytes(table)
                yield chunk(sources, columns, min(parsed, file.tell()) / self._file.size)
        except (pa.ArrowMemoryError, MemoryError):
            raise
        except (pa.ArrowException, OSError) as error:
            raise InvalidFile(_sentence(error, self._limits.line_bytes)) from None
        if ragged.count:
            self._refuse_ragged(ragged.count)
        trailing.refuse()

    def _refuse_ragged(self, count: int) -> None:
        found = _Ragged()
        with self._file.reader() as file:
            for _ in self._open(file, found, one_thread=True):
                if found.numbers[_ROWS_SHOWN - 1 :]:
                    break
        first = self._header.rows
        numbers = [number - first for number in found.numbers[:_ROWS_SHOWN]]
        where = in_brackets(numbers, has_more=count > len(numbers))
        cells = self._header.cells
        expected = Message("the header, which has %(count)s", count=len(self.names))
        if self._header.trailing:
            expected = Message("%(header)s and a delimiter after the last", header=expected)
        one_more = found.cells == {cells + 1}
        why = (
            Message(
                " They have one cell more: if its value is a row's name, as R writes it, leave it out or give it a "
                "name; if it holds the delimiter, it needs quotes."
            )
            if one_more
            else Message(
                " They have one cell alone: where they are notes or a source below the table, take them out of the file."
            )
            if found.cells == {1}
            else ""
        )
        raise InvalidFile(
            Message(
                "%(rows)s not have as many cells as %(expected)s%(where)s.%(why)s%(hint)s",
                rows=plural("1 row does", "%(count)s rows do", count, count=count),
                expected=expected,
                where=where,
                why=why,
                hint=self.hint,
            ),
            count=count,
            rows=numbers,
        )

    def _open(self, file: BinaryIO, ragged: _Ragged, *, one_thread: bool = False) -> pa_csv.CSVStreamingReader:
        dialect, places = self._dialect, [str(place) for place in range(self._header.cells)]
        return pa_csv.open_csv(
            file,
            read_options=pa_csv.ReadOptions(
                block_size=self._limits.line_bytes,
                column_names=places,  # names may be empty or repeated
                skip_rows_after_names=self._header.rows,
                use_threads=not one_thread,
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=dialect.delimiter,
                quote_char=dialect.quote_char or False,
                double_quote=dialect.double_quote,
                escape_char=dialect.escape_char or False,
                newlines_in_values=self._has_quotes,
                # In a table of one column a blank line is a missing value; elsewhere it is only layout.
                ignore_empty_lines=len(places) > 1,
                invalid_row_handler=ragged,
            ),
            convert_options=pa_csv.ConvertOptions(
                column_types=dict.fromkeys(places, pa.string()), strings_can_be_null=False, null_values=[]
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


def _written_bytes(table: pa.Table) -> int:
    """Of the file, about: cells and delimiters, without quotes. The parser itself has read far ahead, often all of the file."""
    return int(
        table.nbytes - 3 * table.num_rows * table.num_columns
    )  # of four bytes of each cell's place, one is a delimiter


class _Ragged:
    """Counts the rows with too many or too few columns; called from the parser's threads."""

    def __init__(self) -> None:
        self.count = 0
        self.numbers: list[int] = []
        """Of the first of them, the header's included; only where one thread parses."""
        self.cells: set[int] = set()
        self._lock = threading.Lock()

    def __call__(self, row: Any) -> str:
        with self._lock:
            self.count += 1
            if row.number is not None and len(self.numbers) < _ROWS_SHOWN:
                self.numbers.append(row.number)
                self.cells.add(row.actual_columns)
        return "skip"


class _Trailing:
    """The column behind a delimiter at the end of every row: no name, and no values."""

    def __init__(self, place: int) -> None:
        self._place = place
        self._rows = self._filled = 0
        self._numbers: list[int] = []

    def without(self, columns: list[pa.ChunkedArray]) -> list[pa.ChunkedArray]:
        last = columns[self._place]
        if len(last.unique()) > 1 or (len(last) and last[0].as_py().strip()):
            for row, cell in enumerate(last.to_pylist(), start=self._rows + 1):
                if cell.strip():
                    self._filled += 1
                    self._numbers = [*self._numbers, row][:_ROWS_SHOWN]
        self._rows += len(last)
        return columns[: self._place]

    def refuse(self) -> None:
        if self._filled:
            raise InvalidFile(
                sentences(
                    Message(
                        "Column %(place)s, the last, has no name in the header, but values in %(filled)s rows (%(numbers)s).",
                        place=self._place + 1,
                        filled=self._filled,
                        numbers=rows_are(self._numbers, has_more=self._filled > len(self._numbers)),
                    ),
                    NAME_THE_LAST,
                ),
                count=self._filled,
                rows=self._numbers,
            )


def _check_encoding(content: Source, dialect: Dialect) -> bool:
    """Whether there are quotes at all. Refuses what is not UTF-8 text with closed quotes."""
    decoder = codecs.getincrementaldecoder(UTF_8)()
    quote = dialect.quote_char.encode()
    quotes = 0
    with content.reader() as file:
        while piece := file.read(_SCAN_BYTES):
            if b"\x00" in piece:
                raise _no_text(content, dialect)
            _decode(decoder, piece, content, final=False)
            quotes += piece.count(quote) if quote else 0
    _decode(decoder, b"", content, final=True)
    may_stand_alone = dialect.escape_char is not None or dialect.comment_char is not None
    if quotes % 2 and not may_stand_alone:
        raise InvalidFile(
            Message(
                "A quoted field is never closed: the file has an odd number of quotes (%(quote_char)s).",
                quote_char=dialect.quote_char,
            )
        )
    return quotes > 0


def _decode(decoder: codecs.IncrementalDecoder, piece: bytes, content: Source, *, final: bool) -> str:
    try:
        return decoder.decode(piece, final)
    except UnicodeDecodeError:
        raise _other_encoding(content) from None


def _no_text(content: Source, dialect: Dialect) -> InvalidFile:
    found = propose(content) if dialect.encoding == UTF_8 else None
    if found is None or found.encoding == UTF_8:
        return InvalidFile(
            Message("The file is neither CSV nor another table that is read here: it contains NUL bytes.")
        )
    return InvalidFile(
        Message(
            "The file is %(upper)s text, which the schema must say: %(found)s.",
            upper=found.encoding.upper(),
            found=proposal(found, None),
        )
    )


def _other_encoding(content: Source) -> InvalidFile:
    found = propose(content)
    refusal = not_in(UTF_8, first_bad_line(content))
    if found is None or found.encoding == UTF_8:
        what = IN_UTF_8
    else:
        what = Message(
            " It looks like %(upper)s; open it and look at its accents, then declare %(found)s in the schema, or "
            "save it in UTF-8.",
            upper=found.encoding.upper(),
            found=proposal(found, None),
        )
    return InvalidFile(Listed("", [refusal.detail, what]), **refusal.values)


def _sentence(error: Exception, line_bytes: int) -> str:
    """Our words for the parser's, which quote the row."""
    if "straddling" in str(error):
        return Message("A row is longer than %(most)s bytes, or a quoted field is never closed.", most=line_bytes)
    return Message("The file cannot be read as CSV; check its quotes and line ends.")
