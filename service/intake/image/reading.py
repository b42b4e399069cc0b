"""Open an uploaded set of images, told apart by content: a ZIP of PNG or JPEG files, NPZ, or IDX.

All end as the same chunks of pixels and labels. Every header is checked before what it announces is unpacked, so a
small file cannot ask for much memory. Errors name places and counts; file names and contents are never repeated.
"""

from __future__ import annotations

import io
import zipfile
from typing import IO, TYPE_CHECKING, BinaryIO, Protocol, cast

from service.base.errors import InvalidFile, TooLarge
from service.base.messages import Message
from service.intake.image import idx_reading
from service.intake.image.idx_reading import IdxImages
from service.intake.image.npz_reading import NpzImages, is_npz
from service.intake.image.picture_reading import Pictures, is_of_pictures
from service.intake.image.units import check_units

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from service.domain.image_schema import ImageSchema
    from service.intake.image.units import Ids
    from service.intake.limits import IngestLimits
    from service.intake.room import Source
    from service.intake.sealed import SealedFile

_USABLE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENTRY = b"PK\x01\x02"
_ENTRY_BYTES = 512
"""What an entry of the directory may take on average; most are below 100 bytes."""


class Images(Protocol):
    """An opened file that agrees with the schema as far as its headers tell; `count` images."""

    count: int
    unit_ids: Ids | None
    """Of every image whose it is, where the file says so."""

    def chunks(self) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.uint16]]]:
        """Pixels (n, height, width, channels) and labels (n,): places in the list of classes, or `NO_LABEL`."""


def open_images(file: SealedFile, schema: ImageSchema, limits: IngestLimits, *, units: bool | None = None) -> Images:
    """Tell the formats apart and check their headers; raises `InvalidFile` or `TooLarge`.

    units: whether the file must say whose an image is. Where no unit is declared it must not: the owner who wrote units
    down would believe that they are used. None: either will do.
    """
    images = _opened(file, schema, limits)
    if units is not None:
        check_units(images.unit_ids, wanted=units)
    return images


def _opened(file: SealedFile, schema: ImageSchema, limits: IngestLimits) -> Images:
    start = file.read_at(0, 4)
    if not start:
        raise InvalidFile(Message("The file is empty."))
    for mark, reader in READERS.items():
        if start.startswith(mark):
            return reader(file, schema, limits)
    raise no_images()


def no_images() -> InvalidFile:
    """A file that is none of what is read; a picture by itself, too."""
    return InvalidFile(Message("Upload images as a ZIP of PNG or JPEG files, as NPZ, or as IDX (.gz too)."))


def _open_archive(file: SealedFile, schema: ImageSchema, limits: IngestLimits) -> Images:
    archive = open_zip(file, limits)
    members = members_of(archive, limits)
    endings = {member.filename.rpartition(".")[2].lower() for member in members}
    reader = next(reader for is_it, reader in ARCHIVE_READERS.items() if is_it(endings))
    return reader(archive, members, schema, limits)


def open_zip(file: Source, limits: IngestLimits) -> zipfile.ZipFile:
    """A ZIP whose directory has been read; raises `TooLarge` before that where it lists too many files."""
    listed = _Directory(file.reader(), limits.archive_members)
    try:
        archive = zipfile.ZipFile(cast("IO[bytes]", listed))
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OSError):
        raise InvalidFile(Message("The archive is damaged or cut off.")) from None
    listed.most = None
    return archive


class _Directory(io.BufferedReader):
    """Refuses a ZIP's directory, which the library reads in one piece and turns into objects, where it is too large."""

    def __init__(self, file: BinaryIO, most: int) -> None:
        super().__init__(cast("io.RawIOBase", file))
        self.most: int | None = most
        """Entries; None once the directory has been read."""

    def read(self, size: int | None = -1) -> bytes:
        if self.most is None:
            return super().read(size)
        data = b"" if size is not None and size > self.most * _ENTRY_BYTES else super().read(size)
        if (size or 0) > self.most * _ENTRY_BYTES or data.count(_ENTRY) > self.most:
            raise TooLarge(
                Message(
                    "The archive lists more than %(most)s files; upload the images as NPZ, or only some of them.",
                    most=self.most,
                ),
                limit_members=self.most,
            )
        return data


READERS: dict[bytes, Callable[[SealedFile, ImageSchema, IngestLimits], Images]] = {
    **dict.fromkeys(idx_reading.MARKS, IdxImages.alone),
    b"PK\x03\x04": _open_archive,
}
"""How a file begins -> what reads it."""

ARCHIVE_READERS: dict[
    Callable[[set[str]], bool],
    Callable[[zipfile.ZipFile, Sequence[zipfile.ZipInfo], ImageSchema, IngestLimits], Images],
] = {
    is_npz: NpzImages,
    is_of_pictures: Pictures,
    lambda _: True: IdxImages.together,  # it says what an archive may hold where this is something else
}
"""Which endings the names in a ZIP have -> what reads it; the first that fits does."""


def members_of(archive: zipfile.ZipFile, limits: IngestLimits) -> list[zipfile.ZipInfo]:
    """The files inside, without folders and what desktops leave in archives; none is encrypted or unreadable."""
    members = [m for m in archive.infolist() if not m.is_dir() and not _is_litter(m.filename)]
    if not members:
        raise InvalidFile(Message("The archive holds no files."))
    if len(members) > limits.rows + 1:
        raise TooLarge(
            Message("The archive holds more than %(rows)s images.", rows=limits.rows), limit_rows=limits.rows
        )
    if any(m.flag_bits & 0x1 for m in members):
        raise InvalidFile(Message("The archive is encrypted; upload it without a password."))
    if any(m.compress_type not in _USABLE for m in members):
        raise InvalidFile(Message("The archive is compressed in a way other than deflate; make an ordinary ZIP."))
    if len({m.filename for m in members}) != len(members):
        raise InvalidFile(Message("The archive holds two files of the same name."))
    return members


def _is_litter(name: str) -> bool:
    return name.startswith("__MACOSX/") or name.rpartition("/")[2] in {".DS_Store", "Thumbs.db", "desktop.ini"}
