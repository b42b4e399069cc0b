"""What dialect a text file seems to be written in. A draft writes it down, a refusal proposes it; no upload is read by it.

The choice is by consistency: under the right delimiter and quotes every row of the beginning has as many cells as the
header. Among several that fit, the usual one comes first.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from service.base.messages import Message, sentences
from service.domain.dialect import DOUBLE_BYTES, USUAL, UTF_8, Dialect
from service.intake.table.advice import OTHER_ENCODING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from service.intake.room import Source

_SAMPLE_BYTES = 256 * 1024
_SAMPLE_ROWS = 400
_PIECE_BYTES = 4 * 1024 * 1024
_DELIMITERS = (",", ";", "\t", "|")
_MOST_TITLE_ROWS = 10
_MOSTLY_EVEN = 2
_MARKS = (
    (codecs.BOM_UTF8, UTF_8),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""How a file with a byte-order mark begins; UTF-32 before UTF-16, whose mark it begins with."""
_OF_SINGLE_BYTES = ("windows-1252", "windows-1250")
_WITHOUT_MARK = ("utf-16-le", "utf-16-be", *_OF_SINGLE_BYTES)
DETECTED = (*dict.fromkeys(encoding for _, encoding in _MARKS), *_WITHOUT_MARK)
"""All that `encoding_of` may answer. Who reads where nothing can be imported any more looks them up before."""
_NOT_IN_WINDOWS_1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
_NOT_IN_WINDOWS_1250 = re.compile(rb"[\x83\x88\x98]")
_SIGNS_IN_WORDS = re.compile("[³¹¼¾¯][a-zß-ÿ]|[a-zß-ÿ][³¹¼¾¯ª¿£¥][a-zß-ÿ]")
_SPECIAL_WORD = re.compile(r"\w*[^\W\x00-\x7f]\w*")
_FRAME = 2
_EXCEL_MARK = re.compile(r'"?sep=[^\r\n]"?(\r\n|\r|\n)', re.IGNORECASE)
_COMMA_BETWEEN_OTHERS = re.compile(r"(?<![0-9]),|,(?![0-9])")
_RUN = re.compile(rb"[\x80-\xff]{2,}")
_ONE = re.compile(rb"[\x80-\xff]")
_THREE_BYTES = re.compile(rb"[\xe0-\xf4][\x80-\xbf]{2}")


def encoding_of(content: Source) -> str | None:
    """The encoding the bytes speak for; None where they leave it open."""
    start = content.read_at(0, _SAMPLE_BYTES)
    for mark, encoding in _MARKS:
        if start.startswith(mark):
            return encoding
    even, odd = start[::2].count(0), start[1::2].count(0)
    if len(start) >= 4 and max(even, odd) > len(start) // 8:
        return "utf-16-be" if even > odd else "utf-16-le"
    if _is_utf8(content):
        return UTF_8
    return _single_byte_encoding(content)


def is_utf8_instead(content: Source, declared: str) -> bool:
    """Whether text that is declared in another encoding is UTF-8: by its mark, or since it holds letters beyond ASCII and all are.

    Text of single bytes is not by chance; of double ones two letters may be, so that three bytes of one letter are asked for.
    """
    if declared.startswith("utf-"):
        return False
    if content.read_at(0, len(codecs.BOM_UTF8)) == codecs.BOM_UTF8:
        return True
    telling = _THREE_BYTES if declared in DOUBLE_BYTES else _ONE
    with content.reader() as file:
        found = any(telling.search(piece) for piece in iter(lambda: file.read(_PIECE_BYTES), b""))
    return found and _is_utf8(content)


def _is_utf8(content: Source) -> bool:
    decoder = codecs.getincrementaldecoder(UTF_8)()
    with content.reader() as file:
        try:
            while piece := file.read(_PIECE_BYTES):
                decoder.decode(piece)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def _single_byte_encoding(content: Source) -> str | None:
    """Windows-1252, the superset of Latin-1, where letters beyond ASCII stand alone as in Western text; else unknown."""
    alone = in_runs = 0
    with content.reader() as file:
        while piece := file.read(_PIECE_BYTES):
            if b"\x00" in piece or _NOT_IN_WINDOWS_1252.search(piece):
                return None
            runs = sum(len(run) for run in _RUN.findall(piece))
            in_runs += runs
            alone += len(_ONE.findall(piece)) - runs
    if alone <= in_runs:
        return None
    return "windows-1250" if _is_central_european(content.read_at(0, _SAMPLE_BYTES)) else "windows-1252"


def _is_central_european(data: bytes) -> bool:
    """Whether Western letters would make signs of letters: `œl¹skie` is śląskie."""
    return _SIGNS_IN_WORDS.search(
        data.decode("windows-1252", "replace")
    ) is not None and not _NOT_IN_WINDOWS_1250.search(data)


def doubt_of_encoding(content: Source, encoding: str) -> str:
    """What the owner should look at where the bytes alone do not tell the encoding; else empty."""
    if encoding not in _OF_SINGLE_BYTES:
        return ""
    word = _SPECIAL_WORD.search(content.read_at(0, _SAMPLE_BYTES).decode(encoding, "replace"))
    shown = "" if word is None else Message(", as in %(word)s", word=repr(word.group()[:40]))
    what = Message(
        "The file does not say its encoding, and was read as %(encoding)s%(shown)s.", encoding=encoding, shown=shown
    )
    return sentences(what, OTHER_ENCODING)


class _Text(NamedTuple):
    """The beginning of a file."""

    text: str
    is_whole: bool


class _Way(NamedTuple):
    """One way to cut rows into cells."""

    delimiter: str
    quote: str = '"'
    escape: str | None = None

    def rows(self, text: _Text) -> list[list[str]]:
        """The first rows, blank ones too; raises `csv.Error` where quotes stand as they cannot."""
        found: list[list[str]] = []
        try:
            found.extend(islice(self._reader(text.text), _SAMPLE_ROWS))
        except csv.Error as error:
            if text.is_whole or "end of data" not in str(error):
                raise
        return found

    def _reader(self, text: str) -> Iterator[list[str]]:
        return csv.reader(
            io.StringIO(text, newline=""),
            delimiter=self.delimiter,
            quotechar=self.quote,
            escapechar=self.escape,
            doublequote=self.escape is None,
            strict=True,
        )


def propose(content: Source, encoding: str | None = None) -> Dialect | None:
    """The dialect of the file's beginning; None where no reading makes a table of it, or its encoding is unknown."""
    encoding = encoding or encoding_of(content)
    if encoding is None:
        return None
    text, above = _without_mark(_beginning(content, encoding))
    way, title_rows, comment = _way(text)
    if way is None:
        return Dialect(encoding=encoding, header_rows=(above + 1,))
    return Dialect(
        encoding=encoding,
        delimiter=way.delimiter,
        quote_char=way.quote,
        escape_char=way.escape,
        double_quote=way.escape is None,
        comment_char=comment,
        header_rows=(above + title_rows + 1,),
    )


def _beginning(content: Source, encoding: str) -> _Text:
    """Whole lines, unless the first is longer than that."""
    data = content.read_at(0, _SAMPLE_BYTES)
    text = codecs.getincrementaldecoder(encoding)("replace").decode(data).removeprefix("\ufeff")
    if len(data) < content.size:
        whole, line_end, _ = text.rpartition("\n")
        text = whole + line_end or text
    return _Text(text, is_whole=len(data) == content.size)


def _without_mark(text: _Text) -> tuple[_Text, int]:
    """Without Excel's first line `sep=;`, and how many lines that are."""
    mark = _EXCEL_MARK.match(text.text)
    return (text, 0) if mark is None else (text._replace(text=text.text[mark.end() :]), 1)


def _way(text: _Text) -> tuple[_Way | None, int, str | None]:
    """The first reading that fits, rows above the header, and the mark of comment lines."""
    candidates: list[tuple[_Way, int, str | None]] = []
    for comment in (None, "#"):
        if comment and not text.text.startswith(comment):
            continue
        kept = _without_comments(text, comment)
        for escape in (None, "\\"):
            if escape and escape not in kept.text:
                continue
            for delimiter in _DELIMITERS:
                way = _Way(delimiter, escape=escape)
                title_rows = _title_rows(way, kept)
                if title_rows is not None:
                    candidates.append((way, title_rows, comment))
    if not candidates:
        return _of_uneven_rows(text), 0, None
    candidates = _without_tabs_in_cells(_without_decimal_commas(candidates, text), text)
    best = min(
        candidates, key=lambda found: (found[1] > 0, found[2] is not None, found[0].escape is not None, found[1])
    )
    return (_in_other_quotes(best[0], text), *best[1:])


def _of_uneven_rows(text: _Text) -> _Way | None:
    """Where a few rows alone have other numbers of cells: a refusal can then name these rows, and not the delimiter."""
    for delimiter in _DELIMITERS:
        way = _Way(delimiter)
        try:
            rows = [row for row in way.rows(text) if row]
        except csv.Error:
            return None
        if rows and len(rows[0]) > 1:
            is_most = _MOSTLY_EVEN * sum(len(row) == len(rows[0]) for row in rows[1:]) > len(rows) - 1
            return way if is_most and _is_header(rows[0]) else None
    return None


def _without_tabs_in_cells(
    candidates: list[tuple[_Way, int, str | None]], text: _Text
) -> list[tuple[_Way, int, str | None]]:
    """The tab alone, where it fits without rows above and the text has one: hardly a cell holds a tab."""
    tabs = [found for found in candidates if found[0].delimiter == "\t" and not found[1]]
    return tabs if tabs and "\t" in text.text else candidates


def _without_decimal_commas(
    candidates: list[tuple[_Way, int, str | None]], text: _Text
) -> list[tuple[_Way, int, str | None]]:
    """Without the comma, where another delimiter fits and every comma below the names stands between digits: 12,50."""
    if len({way.delimiter for way, _, _ in candidates}) < 2:
        return candidates
    title_rows = min(title_rows for way, title_rows, _ in candidates if way.delimiter != ",")
    below = "\n".join(text.text.splitlines()[title_rows + 1 :])
    if "," not in below or _COMMA_BETWEEN_OTHERS.search(below):
        return candidates
    return [found for found in candidates if found[0].delimiter != ","]


def _without_comments(text: _Text, comment: str | None) -> _Text:
    if comment is None:
        return text
    lines = text.text.splitlines(keepends=True)
    return text._replace(text="".join(line for line in lines if not line.startswith(comment)))


def _title_rows(way: _Way, text: _Text) -> int | None:
    """How many rows stand above the header; None where the rows are of different lengths, or of one cell."""
    try:
        rows = way.rows(text)
    except csv.Error:
        return None
    if _is_even([row for row in rows if row]):
        return 0
    for above in range(1, min(_MOST_TITLE_ROWS, len(rows) - 2) + 1):
        if not _is_title(rows[above - 1], len(rows[-1] or rows[above])):
            return None
        if _is_header(rows[above]) and _is_even([row for row in rows[above:] if row]):
            return above
    return None


def _is_header(row: Sequence[str]) -> bool:
    """Whether the row can be names: all there, all different. SAP frames rows in its delimiter: |a|b|."""
    if len(row) > _FRAME + 1 and not row[0].strip() and not row[-1].strip():
        row = row[1:-1]
    return bool(row) and all(cell.strip() for cell in row) and len(set(row)) == len(row)


def _is_title(row: Sequence[str], width: int) -> bool:
    """Whether it is shorter than the table's rows, or has a text in its first cell alone."""
    filled = [place for place, cell in enumerate(row) if cell.strip()]
    return not filled or (filled == [0] and (len(row) < width or width > 2))


def _is_even(rows: Sequence[Sequence[str]]) -> bool:
    """Whether all rows have the header's cells, or one more that is empty: a delimiter at the end."""
    width = len(rows[0]) if rows else 0
    if width < 2 or _is_title(rows[0], width):
        return False
    widths = {len(row) for row in rows[1:]}
    if widths <= {width}:
        return True
    return widths == {width + 1} and all(not row[-1].strip() for row in rows[1:])


def _in_other_quotes(way: _Way, text: _Text) -> _Way:
    """With single quotes, where a column's cells all stand in them and no double quote is used."""
    if way.quote in text.text or way.escape is not None or "'" not in text.text:
        return way
    other = way._replace(quote="'")
    try:
        plain, unquoted = way.rows(text), other.rows(text)
    except csv.Error:
        return way
    is_quoted = all(_stands_in_quotes(cell) for cell in plain[0] if cell)
    return other if is_quoted and len({len(row) for row in unquoted if row}) == 1 else way


def _stands_in_quotes(cell: str) -> bool:
    return len(cell) >= 2 and cell[0] == cell[-1] == "'"


def proposal(found: Dialect, declared: Dialect | None) -> str:
    """What to write into the schema, as JSON; empty where nothing differs from what is declared."""
    words = found.as_json()
    known = {} if declared is None else declared.as_json()
    new = {word: value for word, value in words.items() if known.get(word) != value}
    return "" if not new or found == USUAL else as_words(known | new)


def as_words(words: dict[str, object]) -> str:
    """JSON of the dialect, to be copied into a schema."""
    return f'"dialect": {json.dumps(words, ensure_ascii=False)}'
