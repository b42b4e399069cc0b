"""A multipart body as it comes: text fields in memory, the one file into a spool, and nothing else anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool

from service.base.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from service.requests.spool import Spool

MAX_TEXT_FIELD_BYTES = 4 << 20
MAX_PARTS = 16
FILE = "file"
_PIECE_BYTES = 1 << 20


class MultipartBody:
    """Fields and file of one body; `has_file` once the file has begun. `before_file` sees the fields before it and may refuse them."""

    def __init__(
        self,
        content_type: str,
        allowed: set[str],
        spool: Spool,
        before_file: Callable[[Mapping[str, str]], None] = lambda _: None,
    ) -> None:
        self.fields: dict[str, str] = {}
        self.has_file = False
        self.file_name = ""
        """As the sender calls it."""
        self._before_file = before_file
        self._allowed, self._spool = allowed, spool
        self._name, self._is_file, self._text = "", False, bytearray()
        self._header_name, self._header, self._disposition = bytearray(), bytearray(), b""
        self._parts, self._ended = 0, False
        self._waiting = bytearray()
        """Bytes of the file that are not in the spool yet."""
        boundary = parse_options_header(content_type.encode("latin-1", "replace"))[1].get(b"boundary")
        if boundary is None:
            raise _broken("it names no boundary")
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._begin_part,
                    "on_header_field": self._add_to_header_name,
                    "on_header_value": self._add_to_header,
                    "on_header_end": self._end_header,
                    "on_headers_finished": self._end_headers,
                    "on_part_data": self._add_data,
                    "on_part_end": self._end_part,
                    "on_end": self._end,
                },
            )
        except FormParserError:
            raise _broken("its boundary is too long") from None

    async def read(self, stream: AsyncIterator[bytes]) -> None:
        """Until the end of the body. The spool is written to in a thread, a large piece at a time."""
        async for chunk in stream:
            try:
                self._parser.write(chunk)
            except FormParserError:
                raise _broken("its parts cannot be told apart") from None
            if len(self._waiting) >= _PIECE_BYTES:
                await self._flush()
        if not self._ended:
            raise _broken("it is cut off")
        await self._flush()

    async def _flush(self) -> None:
        if self._waiting:
            piece, self._waiting = bytes(self._waiting), bytearray()
            await run_in_threadpool(self._spool.append, piece)

    # what the parser calls

    def _begin_part(self) -> None:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise InvalidInput(f"the multipart body has more than {MAX_PARTS} parts", where="body")
        self._disposition = b""
        self._text = bytearray()

    def _add_to_header_name(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def _add_to_header(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _end_header(self) -> None:
        if self._header_name.lower() == b"content-disposition":
            self._disposition = bytes(self._header)
        self._header_name, self._header = bytearray(), bytearray()

    def _end_headers(self) -> None:
        _, options = parse_options_header(self._disposition)
        if b"name" not in options:
            raise _broken("a part has no name")
        self._name = options[b"name"].decode("utf-8", "replace")
        if self._name not in self._allowed | {FILE}:
            raise InvalidInput(
                "there is an unknown multipart field", where="body", allowed=sorted(self._allowed | {FILE})
            )
        if self._name in self.fields or (self._name == FILE and self.has_file):
            raise InvalidInput("a multipart field is given twice", where="body")
        self._is_file = self._name == FILE
        if self._is_file:
            if b"filename" not in options:
                raise InvalidInput("the multipart field 'file' is missing or is not a file", where=FILE)
            self._before_file(self.fields)
            self.has_file = True
            self.file_name = options[b"filename"].decode("utf-8", "replace")

    def _add_data(self, data: bytes, start: int, end: int) -> None:
        if self._is_file:
            self._waiting += data[start:end]
            return
        if len(self._text) + end - start > MAX_TEXT_FIELD_BYTES:
            raise InvalidInput(f"{self._name}: the text is longer than {MAX_TEXT_FIELD_BYTES} bytes", where=self._name)
        self._text += data[start:end]

    def _end_part(self) -> None:
        """A JSON field may come as plain text or, from some clients, as a part with a file name."""
        if self._is_file:
            return
        try:
            self.fields[self._name] = self._text.decode()
        except UnicodeDecodeError:
            raise InvalidInput(f"{self._name}: this is not UTF-8 text", where=self._name) from None

    def _end(self) -> None:
        self._ended = True


def _broken(why: str) -> InvalidInput:
    return InvalidInput(f"the multipart body cannot be read: {why}", where="body")
