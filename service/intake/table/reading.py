"""Open an uploaded table, told apart by content and never by name, as chunks of columns.

Whatever it is, it is read as the CSV it could have been written as: all formats end as columns with one meaning per
cell (`cells.py`), so the same rows get the same fingerprint and the same canonical table whatever they came in.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Protocol

from service.base.errors import InvalidFile, TooLarge
from service.base.messages import Listed, Message
from service.domain.dialect import OF_TEXT, USUAL, UTF_8, Dialect
from service.intake.table import arrow_reading, statistics_reading
from service.intake.table.arrow_reading import ArrowTable
from service.intake.table.csv_reading import CsvTable
from service.intake.table.detecting import doubt_of_encoding, encoding_of, is_utf8_instead, proposal, propose
from service.intake.table.header import read_header
from service.intake.table.json_reading import JsonLines
from service.intake.table.parquet_reading import ParquetTable
from service.intake.table.parts_reading import PARQUET_MARK, ParquetParts
from service.intake.table.sheet_reading import SheetTable, sheet_names
from service.intake.table.statistics_reading import StatisticsTable
from service.intake.table.unpacking import is_workbook, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from service.intake.limits import IngestLimits
    from service.intake.room import Room, Source
    from service.intake.table.columns import Chunk
    from service.intake.table.unpacking import Member

_NAMES_SHOWN = 5
FORMATS = Message("CSV, JSON lines, .xlsx, Parquet, Arrow IPC, Stata, SPSS or SAS")
_NOT_READ = {
    b"BZh": Message("bzip2; pack it with gzip, ZIP or Zstandard"),
    b"\xfd7zXZ": Message("xz; pack it with gzip, ZIP or Zstandard"),
    b"7z\xbc\xaf": Message("7-Zip; pack it with gzip, ZIP or Zstandard"),
    b"Rar!": Message("RAR; pack it with gzip, ZIP or Zstandard"),
    b"\xd0\xcf\x11\xe0": Message("an old Excel workbook (.xls), or one with a password; save it as .xlsx or CSV"),
    b"Obj\x01": Message("Avro; write it as Parquet"),
    b"ORC": Message("ORC; write it as Parquet"),
    b"FEA1": Message("Feather of version 1; write it as Parquet or as Feather 2"),
    b"SQLite format 3": Message("an SQLite database; write the table as CSV or Parquet"),
    b"%PDF": Message("PDF"),
    b"PARE": Message("encrypted Parquet; write it without encryption"),
    b"\x89HDF": Message("HDF5; write it as Parquet"),
    b"RDX": Message("an R workspace; write the table as CSV or Parquet"),
    b"\x93NUMPY": Message("a NumPy array; write it as CSV or Parquet"),
    b"\x80\x04\x95": Message("a Python pickle, which can run any program; write it as Parquet"),
}
_LONGEST_NAME = 200
_BY_POSITION = Message(
    'Name all columns in the order of the file, like "dialect": {"names": ["age", "sex"]}, or correct the header.'
)
_WITHOUT_HEADER = Message(
    ' If it holds no names, say so: "dialect": {"header": false, "names": [...]}, all columns in their order.'
)
_PDF = re.compile(rb"%PDF-[0-9]\.[0-9]\s")
_JSON_ARRAY = re.compile(rb"\s*\[\s*[{\[]")
_TEXT_BYTES = 512
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f\x7f]")
_JSON_LINES = re.compile(rb"\s*\{")
_WAYS = ("delimiter", "quoteChar", "escapeChar", "commentChar", "headerRows", "header")
"""Words of a dialect that say how a text is cut into cells."""


class Table(Protocol):
    """An opened file: its column names, and its rows chunk by chunk."""

    names: tuple[str, ...]
    expected_bytes: int
    """About how much its values take in memory."""
    notices: list[str]
    """For the owner, complete once all chunks are read."""

    @property
    def hint(self) -> str:
        """What the schema may have to say where the names are not the declared ones."""

    def chunks(self) -> Iterator[Chunk]: ...


def open_table(
    upload: Source, limits: IngestLimits, dialect: Dialect | None, room: Room, declared: Collection[str] = ()
) -> Table:
    """The table in the upload, packed or not, by the declared dialect; `InvalidFile` says what to declare.

    `declared`: all columns; a plain CSV of just these is read as it is, although the dialect is another. Samples are written so.
    """
    members = _members(upload, limits, room)
    whole = limits.model_copy(update={"unpacked_bytes": limits.unpacked_limit(upload.size)})
    return _opened(members, whole, dialect, room, declared)


def _opened(
    members: Sequence[Member],
    limits: IngestLimits,
    dialect: Dialect | None,
    room: Room,
    declared: Collection[str] = (),
) -> Table:
    if len(members) > 1 or any("=" in folder for folder in members[0].path[:-1]):
        return _parts(members, limits, dialect or USUAL)
    content = members[0].content
    reader = reader_of(content)
    if reader is CsvTable:
        return _plain(content, limits, dialect, room, declared) or _text(content, limits, dialect, room)
    table = reader(content, limits, dialect or USUAL, room)
    if unused := sorted(OF_TEXT & set((dialect or USUAL).as_json())):
        why = Message("JSON lines are always UTF-8") if reader is JsonLines else Message("the file is not text")
        table.notices.append(
            Message("The dialect's %(unused)s had no use: %(why)s.", unused=", ".join(unused), why=why)
        )
    return table


def propose_table(upload: Source, limits: IngestLimits, room: Room) -> tuple[Table, Dialect | None, frozenset[str]]:
    """For a draft on the owner's machine: the table, what the schema must say of its dialect, if anything, and which names it made for columns without one."""
    members = _members(upload, limits, room)
    content = members[0].content
    dialect: Dialect | None = None
    notices: list[str] = []
    if len(members) == 1:
        reader = reader_of(content)
        if reader is CsvTable:
            dialect = propose(content)
            if dialect is not None and (doubt := doubt_of_encoding(content, dialect.encoding)):
                notices.append(doubt)
        elif reader is SheetTable and len(names := sheet_names(content, limits)) > 1:
            dialect = Dialect(sheet=names[0])
            notices.append(
                Message(
                    "Sheet %(names)s was read; the workbook has others: %(others)s.",
                    names=repr(names[0][:60]),
                    others=_listed(names[1:]),
                )
            )
    table = _opened(members, limits, dialect, room)
    table.notices.extend(notices)
    unnamed: frozenset[str] = frozenset()
    if names_to_declare := _instead_of_odd(table.names):
        dialect = (dialect or USUAL).model_copy(update={"names": names_to_declare})
        unnamed = frozenset(new for old, new in zip(table.names, names_to_declare, strict=True) if not old)
        table.names = names_to_declare
    return table, dialect if dialect is not None and dialect.as_json() else None, unnamed


def _instead_of_odd(names: Sequence[str]) -> tuple[str, ...] | None:
    """Names that a schema can declare, where the file has others, or none."""
    if all(map(is_declarable, names)) and len(set(names)) == len(names):
        return None
    found: list[str] = []
    for place, name in enumerate(names, start=1):
        kept = " ".join("".join(mark if mark.isprintable() else " " for mark in name).split())[: _LONGEST_NAME - 10]
        kept = kept.strip() or f"column {place}"
        number = 2
        while (kept if number == 2 else f"{kept} {number - 1}") in found:
            number += 1
        found.append(kept if number == 2 else f"{kept} {number - 1}")
    return tuple(found)


def _members(upload: Source, limits: IngestLimits, room: Room) -> list[Member]:
    if not upload.size:
        raise InvalidFile(Message("The file is empty."))
    members = unpacked(upload, room, limits)
    if any(not member.content.size for member in members):
        raise InvalidFile(Message("The file is packed, and holds an empty file."))
    return members


def reader_of(content: Source) -> Callable[[Source, IngestLimits, Dialect, Room], Table]:
    """What reads it, by how it begins. CSV has no mark, and so is what is left."""
    start = content.read_at(0, 4_096)
    if _PDF.match(start):  # its first bytes may all be text
        raise InvalidFile(Message("The file is PDF. Tables may be %(formats)s.", formats=FORMATS))
    if not _is_text(start[:_TEXT_BYTES]):  # a header may begin with PARENT, ORCID or FEA1
        for magic, name in _NOT_READ.items():
            if start.startswith(magic):
                raise InvalidFile(
                    Message("The file is %(name)s. Tables may be %(formats)s.", name=name, formats=FORMATS)
                )
        if start.startswith(PARQUET_MARK):
            return ParquetTable
        if start.startswith((arrow_reading.FILE_MARK, arrow_reading.STREAM_MARK)):
            return ArrowTable
    if statistics_reading.kind_of(content) is not None:
        return StatisticsTable
    if is_workbook(content):
        return SheetTable
    text = start.removeprefix(b"\xef\xbb\xbf")
    if _JSON_ARRAY.match(text):
        raise InvalidFile(Message("The file is one JSON array; write JSON lines, one object a line."))
    return JsonLines if _JSON_LINES.match(text) else CsvTable


def _is_text(start: bytes) -> bool:
    """Whether it holds nothing that only a binary file does: control characters, or bytes beyond ASCII that are no text."""
    if _CONTROL.search(start):
        return False
    text = start.decode(UTF_8, "replace")
    return text.count("\ufffd") * 4 <= len(text)


def _parts(members: Sequence[Member], limits: IngestLimits, dialect: Dialect) -> Table:
    if any(member.content.read_at(0, 4) != PARQUET_MARK for member in members):
        raise InvalidFile(
            Message(
                "The archive holds %(count)s files. Pack one table, or the Parquet files of one table as Spark "
                "writes them.",
                count=len(members),
            ),
            count=len(members),
        )
    return ParquetParts(members, limits, dialect)


def _plain(
    content: Source, limits: IngestLimits, dialect: Dialect | None, room: Room, declared: Collection[str]
) -> Table | None:
    """A plain CSV of all declared columns, where the dialect does not find them; nothing where it does, or it is none."""
    if dialect is None or not dialect.as_json() or not declared:
        return None
    try:
        names = read_header(content, limits, USUAL).names
    except (InvalidFile, UnicodeError):
        return None
    if sorted(names) != sorted(declared):
        return None
    if is_utf8_instead(content, dialect.encoding):
        return _read_as_plain(content, limits, room)
    try:
        # Without a header the dialect's names are found in any file, and a first row of names alone is no row.
        if dialect.header and set(declared) <= set(CsvTable(content, limits, dialect, room).names):
            return None
    except (InvalidFile, TooLarge):
        pass
    return _read_as_plain(content, limits, room)


def _read_as_plain(content: Source, limits: IngestLimits, room: Room) -> Table:
    table = CsvTable(content, limits, USUAL, room)
    table.notices.append(
        Message("The file was read as plain CSV, not by the dialect: so its header has the declared columns.")
    )
    return table


def _text(content: Source, limits: IngestLimits, dialect: Dialect | None, room: Room) -> Table:
    """CSV. Where the schema says nothing of how cells are told apart and the usual way does not fit, it is refused."""
    said = {} if dialect is None else dialect.as_json()
    _refuse_other_encoding(content, str(said.get("encoding", UTF_8)))
    if "encoding" not in said and (encoding := _unusual_encoding(content)):
        found = propose(content, encoding)
        words = "" if found is None else proposal(found, dialect)
        raise InvalidFile(
            Message(
                "The file is %(encoding)s text, which the schema must say: %(words)s.",
                encoding=encoding.upper(),
                words=words,
            )
        )
    if not said.keys() & set(_WAYS):
        found = propose(content, str(said.get("encoding", UTF_8)))
        if found is not None and found.quote_char == USUAL.quote_char and (words := proposal(found, dialect)):
            if "encoding" not in said and (whole := propose(content)) is not None:
                words = proposal(whole, dialect)
            raise InvalidFile(
                Message(
                    "The file is not in the usual dialect of CSV. It looks as if the schema should say %(words)s.",
                    words=words,
                )
            )
    return CsvTable(content, limits, dialect or USUAL, room)


def _refuse_other_encoding(content: Source, declared: str) -> None:
    """Nearly every byte is a letter of an encoding of single bytes, so that other text would be read as nonsense, and not be refused."""
    if declared == UTF_8:
        return
    found = UTF_8 if is_utf8_instead(content, declared) else _unusual_encoding(content)
    if found is not None and not declared.startswith("utf-"):
        raise InvalidFile(
            Message(
                'The file is %(encoding)s text, and the dialect of the schema says %(declared)s: write "encoding": '
                '"%(found)s" there, or save the file in %(declared)s.',
                encoding=found.upper(),
                declared=declared.upper(),
                found=found,
            )
        )


def _unusual_encoding(content: Source) -> str | None:
    """UTF-16 and UTF-32 by their marks or NULs; whether a text is UTF-8 is seen as it is read."""
    start = content.read_at(0, 4_096)
    if b"\x00" not in start and not start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return None
    found = encoding_of(content)
    return found if found is not None and found.startswith("utf-") and found != UTF_8 else None


def check_names(names: Sequence[str], expected: Sequence[str], table: Table | None = None) -> None:
    """The file's columns must be the declared ones, in any order."""
    present, declared = set(names), set(expected)
    missing = [name for name in expected if name not in present]
    if not present & declared:
        # Then the first line may well be a row, so it is not quoted.
        raise InvalidFile(
            Message(
                "None of the declared columns is in the file's header. The first line must hold the column names of "
                "the schema, separated by commas.%(hint)s",
                hint=_hint(table) or _WITHOUT_HEADER,
            ),
            missing=missing[:_NAMES_SHOWN],
        )
    check_unique([name for name in names if name in declared])
    _check_undeclarable(names)
    undeclared = [name for name in names if name not in declared]
    parts: list[str] = []
    if missing:
        parts.append(Message("the file lacks %(columns)s", columns=_listed(missing)))
    if undeclared:
        parts.append(Message("the schema does not declare %(columns)s", columns=_listed(undeclared)))
    if parts:
        first = (missing or undeclared)[0]
        raise InvalidFile(
            Message(
                "The file's header differs from the schema: %(parts)s.%(hint)s",
                parts=Listed(Message(" and "), parts),
                hint=_hint(table),
            ),
            column=first[:200],
            count=len(missing) + len(undeclared),
        )


def check_unique(names: Sequence[str]) -> None:
    """No name may occur twice."""
    repeated = [name for name, times in Counter(names).items() if times > 1]
    if repeated:
        raise InvalidFile(
            Message(
                "The file's header repeats %(repeated)s. %(by_position)s",
                repeated=_listed(repeated),
                by_position=_BY_POSITION,
            ),
            column=repeated[0][:200],
            count=len(repeated),
        )


def _hint(table: Table | None) -> str:
    return "" if table is None else table.hint


def is_declarable(name: str) -> bool:
    """Whether a field of a schema can have the name."""
    return 1 <= len(name) <= _LONGEST_NAME and name.isprintable() and name == name.strip()


def _check_undeclarable(names: Sequence[str]) -> None:
    for place, name in enumerate(names, start=1):
        if not is_declarable(name):
            why = Message("has no name") if not name else Message("has a name of %(count)s characters", count=len(name))
            if name and len(name) <= _LONGEST_NAME:
                why = Message("has a name with %(mark)s", mark=_unprintable(name))
            raise InvalidFile(
                Message(
                    "Column %(place)s of the file %(why)s, which no schema can declare. %(by_position)s",
                    place=place,
                    why=why,
                    by_position=_BY_POSITION,
                ),
                count=1,
            )


def _unprintable(name: str) -> str:
    if "\n" in name or "\r" in name:
        return Message("a line end")
    return Message("a no-break space") if "\xa0" in name else Message("a character that cannot be seen")


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"{name[:100]!r}" for name in names[:_NAMES_SHOWN])
    more = len(names) - _NAMES_SHOWN
    return Message("%(names)s and %(count)s more", names=shown, count=more) if more > 0 else shown
