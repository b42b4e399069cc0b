"""JSON lines as chunks of text: one object a line, its members are cells. Numbers keep their digits: no float is made.

It is always UTF-8, whatever a dialect says of text: so are the JSON lines that are written here.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from service.base.errors import InvalidFile, TooLarge
from service.base.messages import Message
from service.intake.table.columns import Chunk, ColumnSource, chunk
from service.intake.table.header import check_width, named

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.domain.dialect import Dialect
    from service.intake.limits import IngestLimits
    from service.intake.room import Room, Source

_CHUNK_ROWS = 32_768
_CHUNK_BYTES = 16 * 1024 * 1024
_WORDS = {True: "true", False: "false"}


class JsonLines:
    """An opened file. Opening reads it once for the names, since a line may leave members out; `chunks` reads it again."""

    def __init__(self, content: Source, limits: IngestLimits, dialect: Dialect, room: Room) -> None:  # noqa: ARG002 - as all readers
        self._file = content
        self._limits = limits
        names: dict[str, None] = {}
        for _, members in self._objects():
            if len(members) != len(names) or any(name not in names for name, _ in members):
                names |= dict.fromkeys(name for name, _ in members)
                check_width(list(names), limits)
        if not names:
            raise InvalidFile(
                Message("The file's objects have no members; write one object a line, with a member for each column.")
            )
        self._keys = list(names)
        # Members that have the dialect's names are told apart by them, not by their order.
        self.names = tuple(names) if names.keys() <= set(dialect.names or ()) else named(self._keys, dialect)
        self.notices: list[str] = []
        self.hint = ""
        self.expected_bytes = 4 * self._file.size

    def chunks(self) -> Iterator[Chunk]:
        sources = [ColumnSource(name, self._limits) for name in self.names]
        held: list[dict[str, str | None]] = []
        done = held_bytes = 0
        for size, members in self._objects():
            held.append(dict(members))
            held_bytes += size
            if len(held) == _CHUNK_ROWS or held_bytes >= _CHUNK_BYTES:
                done += held_bytes
                yield chunk(sources, self._arrays(held), done / self._file.size)
                held, held_bytes = [], 0
        if held:
            yield chunk(sources, self._arrays(held), 1.0)

    def _arrays(self, held: list[dict[str, str | None]]) -> list[pa.Array]:
        try:
            return [pa.array([row.get(key) for row in held], pa.string()) for key in self._keys]
        except (pa.ArrowException, UnicodeError):
            raise InvalidFile(
                Message("The file holds half of a character pair (\\ud800 to \\udfff), which is not text.")
            ) from None

    def _objects(self) -> Iterator[tuple[int, list[tuple[str, str | None]]]]:
        """Size of the line, and its members."""
        most = self._limits.line_bytes
        with self._file.reader() as file:
            row = 0
            while line := file.readline(most):
                if len(line) == most:
                    raise TooLarge(Message("A line is longer than %(most)s bytes.", most=most), limit_bytes=most)
                if row == 0:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                if line.isspace() or not line:
                    continue
                row += 1
                yield len(line), _members(line, row)


def _members(line: bytes, row: int) -> list[tuple[str, str | None]]:
    try:
        found = json.loads(line, object_pairs_hook=_Object, parse_float=str, parse_int=str, parse_constant=str)
    except (ValueError, RecursionError):
        raise InvalidFile(
            Message("Row %(row)s is not JSON: write one object a line, nothing behind it.", row=row), rows=[row]
        ) from None
    if not isinstance(found, _Object):
        raise InvalidFile(
            Message('Row %(row)s is not an object: write each row like {"age": 41, "sex": "F"}.', row=row), rows=[row]
        )
    if len({name for name, _ in found}) != len(found):
        raise InvalidFile(Message("Row %(row)s names a member twice.", row=row), rows=[row])
    return [(name, _cell(value, name, row)) for name, value in found]


class _Object(list[tuple[str, Any]]):
    """Members in order, so that one that is named twice is seen."""


def _cell(value: Any, name: str, row: int) -> str | None:
    if value is None or (isinstance(value, str) and not isinstance(value, bool)):
        return value
    if isinstance(value, bool):
        return _WORDS[value]
    raise InvalidFile(
        Message(
            "Column %(name)s: row %(row)s holds a list or an object; give each of its values a column of its own.",
            name=repr(name[:100]),
            row=row,
        ),
        column=name[:200],
        rows=[row],
    )
