"""Text of other encodings as UTF-8, which is what the parsers read. Declared, never guessed: `detecting.py` proposes."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING

from service.base.errors import InvalidFile
from service.base.messages import Message
from service.domain.dialect import UTF_8, codec_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.domain.dialect import Dialect
    from service.intake.room import Room, Source

_PIECE_BYTES = 1024 * 1024
_CONTROL = re.compile("[\x80-\x84\x86-\x9f]")
"""But for U+0085, a line end of mainframes."""


def as_utf8(content: Source, dialect: Dialect, room: Room) -> Source:
    """The content itself, or transcoded where another encoding is declared."""
    if dialect.encoding == UTF_8:
        return content
    return room.keep(_transcoded(content, dialect))


def _transcoded(content: Source, dialect: Dialect) -> Iterator[bytes]:
    decoder = codec_of(dialect).incrementaldecoder
    if decoder is None:
        raise RuntimeError("an encoding of the list decodes piece by piece")
    decoding, line, is_first = decoder("strict"), 1, True
    may_have_controls = dialect.encoding.startswith("iso-8859-")
    with content.reader() as file:
        while True:
            piece = file.read(_PIECE_BYTES)
            try:
                text = decoding.decode(piece, not piece)
            except UnicodeError as error:
                raise not_in(dialect.encoding, line + _lines_before(error)) from None
            if may_have_controls and (control := _CONTROL.search(text)):
                raise _has_controls(dialect.encoding, line + text.count("\n", 0, control.start()))
            line += text.count("\n")
            if is_first and text:
                text, is_first = text.removeprefix("\ufeff"), False
            if text:
                try:
                    yield text.encode()
                except UnicodeError:
                    raise not_in(dialect.encoding, line) from None
            if not piece:
                return


def _has_controls(encoding: str, line: int) -> InvalidFile:
    """The standards of ISO have control characters where Windows has € and quotes: every byte means something in both."""
    return InvalidFile(
        Message(
            "The file is not %(upper)s text: line %(line)s (the header is in line 1) holds control characters "
            'that no text has. Declare an encoding of Windows, "encoding": "windows-1252" for Western text, '
            "which has letters and signs there.",
            upper=encoding.upper(),
            line=line,
        ),
        line=line,
    )


def not_in(encoding: str, line: int) -> InvalidFile:
    """The refusal of bytes that no text of the encoding has."""
    return InvalidFile(
        Message(
            "The file is not %(upper)s text: line %(line)s (the header is in line 1) holds bytes that no such "
            "text has.",
            upper=encoding.upper(),
            line=line,
        ),
        line=line,
    )


def _lines_before(error: UnicodeError) -> int:
    if not isinstance(error, UnicodeDecodeError):
        return 0
    return bytes(error.object[: error.start]).count(b"\n")


def first_bad_line(content: Source) -> int:
    """The line of the first bytes that are not UTF-8."""
    decoding, line = codecs.getincrementaldecoder(UTF_8)(), 1
    with content.reader() as file:
        while piece := file.read(_PIECE_BYTES):
            try:
                decoding.decode(piece)
            except UnicodeDecodeError as error:
                return line + _lines_before(error)
            line += piece.count(b"\n")
    return line
