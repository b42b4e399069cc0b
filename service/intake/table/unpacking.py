"""What a packed upload holds: gzip, Zstandard, ZIP and tar, told apart by content and unpacked into sealed room.

An archive holds one table, or the parts of one Parquet table as Spark writes a folder. Nothing is ever written under a
member's name; a name that would leave the folder is still refused, since no honest archive has one.
"""

from __future__ import annotations

import gzip
import tarfile
import zipfile
import zlib
from typing import TYPE_CHECKING, NamedTuple, Protocol

import pyarrow as pa

from service.base.errors import InvalidFile, TooLarge
from service.base.messages import Message
from service.intake.image.reading import open_zip

if TYPE_CHECKING:
    from collections.abc import Iterator

    from service.intake.limits import IngestLimits
    from service.intake.room import Room, Source

_GZIP, _ZSTANDARD, _ZIP = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"
_TAR_PLACE, _TAR = 257, b"ustar"
_PIECE_BYTES = 1024 * 1024
_LAYERS = 3
"""A table in a tar in gzip are two; more is a mistake or an attack."""
_MOST_MEMBERS = 20_000
_MOST_FOLDERS = 20
_USABLE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".ppm", ".npy", "-ubyte")
_DAMAGED = Message("The packed file is damaged or cut off.")
_LITTER = {".DS_Store", "Thumbs.db", "desktop.ini", "_SUCCESS", "_metadata", "_common_metadata"}
"""What desktops leave in archives, and what Spark writes beside the parts of a table; none of it holds rows."""
WORKBOOK = "xl/workbook.xml"
_OTHER_DOCUMENTS = {
    "mimetype": Message("an OpenDocument file; save the sheet as .xlsx or CSV"),
    "word/document.xml": Message("a Word document, not a table"),
    "xl/workbook.bin": Message("a binary workbook (.xlsb); save it as .xlsx or CSV"),
}


class _Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


class Member(NamedTuple):
    """One file: the folders it lay in and its name, and its bytes."""

    path: tuple[str, ...]
    content: Source


def unpacked(upload: Source, room: Room, limits: IngestLimits) -> list[Member]:
    """The upload as it is, or what lies in it once everything around it is taken off."""
    found = [Member((), upload)]
    for _ in range(_LAYERS):
        if len(found) != 1 or not is_packed(found[0].content):
            return found
        path, content = found[0]
        found = [Member((*path, *inner), part) for inner, part in _one_layer(content, room, limits)]
    if len(found) == 1 and is_packed(found[0].content):
        raise InvalidFile(
            Message("The file is packed more than %(layers)s times; pack the table once.", layers=_LAYERS)
        )
    return found


def is_packed(content: Source) -> bool:
    """Whether there is something to take off. A workbook is a ZIP and stays one."""
    start = content.read_at(0, _TAR_PLACE + len(_TAR))
    if start.startswith(_ZIP):
        return not is_workbook(content)
    return start.startswith((_GZIP, _ZSTANDARD)) or start[_TAR_PLACE:] == _TAR


def is_workbook(content: Source) -> bool:
    """Whether the ZIP is an .xlsx file."""
    if content.read_at(0, 4) != _ZIP:
        return False
    try:
        with zipfile.ZipFile(content.reader()) as archive:
            archive.getinfo(WORKBOOK)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError, KeyError):
        return False
    return True


def _one_layer(content: Source, room: Room, limits: IngestLimits) -> list[Member]:
    start = content.read_at(0, _TAR_PLACE + len(_TAR))
    try:
        if start.startswith(_GZIP):
            return [Member((), room.keep(_pieces(gzip.GzipFile(fileobj=content.reader()))))]
        if start.startswith(_ZSTANDARD):
            return [Member((), room.keep(_pieces(pa.CompressedInputStream(content.reader(), "zstd"))))]
        members = _in_zip(content, room, limits) if start.startswith(_ZIP) else _in_tar(content, room)
    except (EOFError, OSError, zlib.error, zipfile.BadZipFile, tarfile.TarError, NotImplementedError, ValueError):
        raise InvalidFile(_DAMAGED) from None
    if not members:
        raise InvalidFile(Message("The archive holds no files."))
    return members


def _pieces(stream: _Stream) -> Iterator[bytes]:
    while piece := stream.read(_PIECE_BYTES):
        yield piece


def _in_zip(content: Source, room: Room, limits: IngestLimits) -> list[Member]:
    few = limits.model_copy(update={"archive_members": min(_MOST_MEMBERS, limits.archive_members)})
    try:
        archive = open_zip(content, few)
    except TooLarge:
        raise _too_many() from None
    with archive:
        members = [(path, info) for info in archive.infolist() if not info.is_dir() and (path := _path(info.filename))]
        _check_names([path for path, _ in members], {info.filename for info in archive.infolist()})
        if any(info.flag_bits & 0x1 for _, info in members):
            raise InvalidFile(Message("The archive is encrypted; pack it without a password."))
        if any(info.compress_type not in _USABLE for _, info in members):
            raise InvalidFile(Message("The archive is compressed in a way other than deflate; make an ordinary ZIP."))
        found = []
        for path, info in members:
            with archive.open(info) as stream:
                found.append(Member(path, room.keep(_pieces(stream))))
        return found


def _in_tar(content: Source, room: Room) -> list[Member]:
    found: list[Member] = []
    with tarfile.open(fileobj=content.reader(), mode="r:") as archive:
        for count, info in enumerate(archive):
            if count >= _MOST_MEMBERS:
                raise _too_many()
            path = _path(info.name)
            if info.isdir() or not path:
                continue
            if not info.isfile():
                raise InvalidFile(Message("The archive holds links or devices; pack plain files."))
            stream = archive.extractfile(info)
            if stream is not None:
                found.append(Member(path, room.keep(_pieces(stream))))
    _check_names([member.path for member in found], set())
    return found


def _path(name: str) -> tuple[str, ...]:
    """Folders and name; nothing where the file says nothing of the rows, as what desktops and Spark leave."""
    parts = tuple(part for part in name.replace("\\", "/").split("/") if part not in {"", "."})
    if ".." in parts or name.startswith(("/", "\\")) or name[1:2] == ":":
        raise InvalidFile(
            Message("The archive holds a file whose name leads out of its folder; pack the table's own folder.")
        )
    if len(parts) > _MOST_FOLDERS or len(name) > 4_096:
        raise InvalidFile(Message("The archive holds a file whose name is too long, or lies too deep."))
    if "_delta_log" in parts or any(part.endswith(".metadata.json") for part in parts):
        raise InvalidFile(
            Message(
                "The archive is a Delta or Iceberg table, whose files also hold rows that were deleted or replaced; "
                "write the table as plain Parquet first."
            )
        )
    return () if not parts or _is_litter(parts) else parts


def _is_litter(parts: tuple[str, ...]) -> bool:
    name = parts[-1]
    if {"__MACOSX", "_temporary"} & set(parts) or name in _LITTER:
        return True
    return name.startswith(("._", "_started_", "_committed_")) or name.endswith(".crc")


def _check_names(paths: list[tuple[str, ...]], all_names: set[str]) -> None:
    for name, what in _OTHER_DOCUMENTS.items():
        if name in all_names:
            raise InvalidFile(Message("The file is %(what)s.", what=what))
    if any(path[-1].lower().endswith(_PICTURES) for path in paths):
        raise InvalidFile(
            Message('The archive holds images; declare a schema of images, {"type": "image", ...}, for them.')
        )
    if len(set(paths)) != len(paths):
        raise InvalidFile(Message("The archive holds two files of the same name."))


def _too_many() -> TooLarge:
    return TooLarge(
        Message(
            "The archive lists more than %(most_members)s files; write the table as fewer parts.",
            most_members=_MOST_MEMBERS,
        ),
        limit_members=_MOST_MEMBERS,
    )
