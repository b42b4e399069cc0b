"""How the cells of a text file are written: the owner's `dialect`, in the words of Frictionless' *Table Dialect*.

A dialect is declared and never guessed: two readings of one file would be two tables. Of what it declares nothing is
read from the rows at upload, so it is as public as the rest of the schema.

Source: https://specs.frictionlessdata.io/csv-dialect/ and its second version; `encoding` stands there beside the dialect,
`names` is our extension for headers that no schema can repeat.
"""

from __future__ import annotations

import codecs
from collections import Counter
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from service.base.messages import Message

_MAX_NAMES = 1_001
_MAX_HEADER_ROW = 1_000

UTF_8 = "utf-8"
ENCODINGS = (
    *(UTF_8, "utf-16", "utf-16-le", "utf-16-be", "utf-32"),
    *("windows-1250", "windows-1251", "windows-1252", "windows-1253", "windows-1254", "windows-1255", "windows-1256"),
    *("windows-1257", "windows-1258", "iso-8859-1", "iso-8859-2", "iso-8859-5", "iso-8859-7", "iso-8859-9"),
    *("iso-8859-15", "koi8-r", "mac-roman", "cp437", "cp850", "cp852", "cp866", "shift_jis", "cp932", "euc-jp"),
    *("gb18030", "big5", "euc-kr"),
)
"""What text may be encoded in. Others would be imported where nothing can be imported any more."""
DOUBLE_BYTES = frozenset({"shift_jis", "cp932", "euc-jp", "gb18030", "big5", "euc-kr"})
"""Those whose letters have one byte or more; of the others, but for UTF, one."""
_OTHER_NAMES = {"utf8": UTF_8, "utf-8-sig": UTF_8, "utf16": "utf-16", "latin-1": "iso-8859-1", "latin1": "iso-8859-1"}
_OTHER_NAMES |= {"iso8859-1": "iso-8859-1", "utf16le": "utf-16-le", "utf16be": "utf-16-be", "ascii": UTF_8}
_OTHER_NAMES |= {f"cp{page}": f"windows-{page}" for page in range(1250, 1259)} | {"ansi": "windows-1252"}

_INSTEAD = {
    "commentRows": Message("name the header's row with headerRows, and mark other comments with commentChar"),
    "property": Message("write JSON lines, one object a line"),
    "itemType": Message("write JSON lines, one object a line"),
    "itemKeys": Message("write JSON lines, one object a line"),
    "sheetName": Message("write it as sheet"),
    "sheetNumber": Message("write it as sheet, a number from 1"),
    "table": Message("write the rows of the database's table into a file"),
    "caseSensitiveHeader": Message("names are compared as they are written"),
    "thousands": Message("groupChar of the field says it"),
    "decimal": Message("decimalChar of the field says it"),
    "compression": Message("it is found in the file itself"),
    "skipRows": Message("name the header's row with headerRows"),
}
"""Words of other dialects, and what to write instead."""
_IGNORED = {"$schema", "csvddfVersion", "title", "description"}


class Dialect(BaseModel):
    """How a file is written. What is not said is as in RFC 4180: UTF-8, commas, quotes that are doubled, one header."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    encoding: str = UTF_8
    delimiter: str = ","
    quote_char: Annotated[str, Field(alias="quoteChar", max_length=1)] = '"'
    """Empty: no cell is quoted."""
    double_quote: Annotated[bool, Field(alias="doubleQuote")] = True
    escape_char: Annotated[str | None, Field(alias="escapeChar")] = None
    line_terminator: Annotated[str, Field(alias="lineTerminator", exclude=True)] = "\n"
    skip_initial_space: Annotated[bool, Field(alias="skipInitialSpace")] = False
    comment_char: Annotated[str | None, Field(alias="commentChar")] = None
    null_sequence: Annotated[str | None, Field(alias="nullSequence", max_length=100)] = None
    """One more of the schema's missing values."""
    header: bool = True
    header_rows: Annotated[
        tuple[Annotated[int, Field(ge=1, le=_MAX_HEADER_ROW)], ...], Field(alias="headerRows", max_length=10)
    ] = (1,)
    header_join: Annotated[str, Field(alias="headerJoin", max_length=10)] = " "
    names: Annotated[tuple[str, ...] | None, Field(min_length=1, max_length=_MAX_NAMES)] = None
    """Of all columns of the file in their order, instead of those in its header."""
    sheet: str | Annotated[int, Field(ge=1)] | None = None
    """Of a workbook with several: its name, or its number from 1."""

    @model_validator(mode="before")
    @classmethod
    def _say_what_to_write(cls, document: Any) -> Any:
        if not isinstance(document, dict):
            return document
        known = {field.alias or name for name, field in cls.model_fields.items()} | set(cls.model_fields)
        for word in document:
            if word in _INSTEAD:
                raise ValueError(Message("%(word)s is not understood: %(instead)s", word=word, instead=_INSTEAD[word]))
            if word not in known | _IGNORED:
                raise ValueError(
                    Message(
                        "there is no word %(word)s; the words are %(words)s",
                        word=repr(str(word)[:60]),
                        words=", ".join(sorted(WORDS)),
                    )
                )
        return {word: value for word, value in document.items() if word not in _IGNORED}

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, encoding: str) -> str:
        name = encoding.strip().lower().replace("_", "-")
        name = _OTHER_NAMES.get(name, name.replace("shift-jis", "shift_jis"))
        if name not in ENCODINGS:
            raise ValueError(
                Message(
                    "encoding %(encoding)s is not one of %(encodings)s",
                    encoding=repr(encoding[:40]),
                    encodings=", ".join(ENCODINGS),
                )
            )
        return name

    @field_validator("delimiter", "quote_char", "escape_char", "comment_char")
    @classmethod
    def _one_character(cls, mark: str | None) -> str | None:
        if mark and (len(mark) != 1 or not mark.isascii() or mark in "\r\n\x00"):
            raise ValueError(Message("one ASCII character and no line end, for example ';' or a tab, written \\t"))
        return mark

    @field_validator("line_terminator")
    @classmethod
    def _line_ends(cls, end: str) -> str:
        if end not in {"\n", "\r\n", "\r"}:
            raise ValueError(
                Message(
                    "lineTerminator: leave it out; lines end in a line feed, a carriage return or both, which is found "
                    "by reading"
                )
            )
        return "\n"

    @model_validator(mode="after")
    def _marks_differ(self) -> Dialect:
        if not self.delimiter:
            raise ValueError(Message("delimiter must be one character"))
        marks = [self.delimiter, self.quote_char, self.escape_char, self.comment_char]
        if any(times > 1 for times in Counter(mark for mark in marks if mark).values()):
            raise ValueError(Message("delimiter, quoteChar, escapeChar and commentChar must be different characters"))
        if not self.double_quote and self.escape_char is None and self.quote_char:
            raise ValueError(
                Message("doubleQuote is false, so escapeChar must say how a quote is written, for example \\")
            )
        return self

    @model_validator(mode="after")
    def _header_is_somewhere(self) -> Dialect:
        if list(self.header_rows) != sorted(set(self.header_rows)):
            raise ValueError(Message("headerRows must increase"))
        if not self.header and self.names is None:
            raise ValueError(Message("header is false, so names must list the columns' names in the order of the file"))
        if self.header and not self.header_rows:
            raise ValueError(Message("headerRows names no row; write header: false if the file has no header"))
        names = self.names or ()
        if len(set(names)) != len(names) or any(not name or name != name.strip() for name in names):
            raise ValueError(Message("names must be different, not empty, and not begin or end with a space"))
        return self

    @property
    def rows_of_header(self) -> tuple[int, ...]:
        """Numbers from 1 of the rows that hold the names; none where the file has no header."""
        return self.header_rows if self.header else ()

    def as_json(self) -> dict[str, Any]:
        """What differs from the usual, as the owner would write it."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)


WORDS = frozenset(field.alias or name for name, field in Dialect.model_fields.items())
USUAL = Dialect()
OF_TEXT = WORDS - {"sheet", "names", "header", "headerRows", "headerJoin", "nullSequence"}
"""What only a text file can be written in."""


def codec_of(dialect: Dialect) -> codecs.CodecInfo:
    """The declared encoding; looked up, it is imported."""
    return codecs.lookup(dialect.encoding)


def null_sequence_is_missing(document: Any) -> Any:
    """A schema's document with the dialect's nullSequence among its missing values: one rule says what is missing."""
    dialect = document.get("dialect") if isinstance(document, dict) else None
    sequence = dialect.get("nullSequence") if isinstance(dialect, dict) else None
    if not isinstance(sequence, str):
        return document
    markers = document.get("missingValues", document.get("missing_values", [""]))
    if not isinstance(markers, list | tuple) or sequence in markers:
        return document
    return {**{k: v for k, v in document.items() if k != "missing_values"}, "missingValues": [*markers, sequence]}
