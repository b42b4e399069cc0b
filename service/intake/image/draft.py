"""Draft an image schema from the owner's local file, and say in it that it comes from the data.

Sibling of `table/draft.py`, which says where this runs. Size and colours are usually known
to everybody; which classes there are is read from the labels, and is the owner's to declare.
"""

from __future__ import annotations

import csv
import gzip
import io
import zipfile
import zlib
from functools import partial
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from service.base.errors import InvalidFile
from service.base.messages import Message
from service.domain.image_schema import MAX_CLASSES, ImageSchema
from service.intake.image.idx_reading import idx_header, idx_numbers
from service.intake.image.reading import members_of, no_images, open_images, open_zip
from service.intake.limits import IngestLimits
from service.intake.sealed import SealedFile

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_ABOUT = (
    "DRAFT, made by reading the private data. The classes below were read from the labels, and the size and the channels from the"
    " images: publishing under them as they are would leak them, and no privacy budget pays for that. That an upload is accepted says that"
    " every image meets its schema. Replace what was read by what is publicly known, and then remove this notice."
)


_LOOKED_AT = 10
"""Members of a ZIP that may be IDX files; sets have four."""
_PICTURES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"II*\x00", b"MM\x00*")
"""How pictures begin: PNG, JPEG, GIF, TIFF."""
_PICTURE_ENDINGS = (".png", ".jpg", ".jpeg", ".npy", ".pgm", ".ppm", ".bmp", ".gif", ".tif", ".tiff", ".webp")
"""Of files in a ZIP of images, also where the reader will take none of them."""
_OF_A_WORKBOOK = "[Content_Types].xml"


def looks_like_images(path: Path) -> bool:
    """Whether a file is of images, also one that cannot be read: IDX, packed or not, a picture, or a ZIP of pictures, arrays or IDX files. By content."""
    try:
        with path.open("rb") as file:
            return are_images(file)
    except OSError:
        return False  # the reader of tables says what is wrong


def are_images(file: IO[bytes]) -> bool:
    """Whether an open file is of images, so that what is wrong with it is said of images."""
    try:
        if _is_idx(file) or _is_picture(file):
            return True
        file.seek(0)
        if not zipfile.is_zipfile(file):
            return False
        with zipfile.ZipFile(file) as archive:
            names = [member.filename for member in archive.infolist() if not member.is_dir()]
            if _OF_A_WORKBOOK in names:
                return False  # which may hold pictures, too
            return any(name.lower().endswith(_PICTURE_ENDINGS) for name in names) or _has_idx(archive, names)
    except (OSError, EOFError, ValueError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error):
        return False  # the reader of tables says what is wrong


def _has_idx(archive: zipfile.ZipFile, names: Sequence[str]) -> bool:
    for name in names[:_LOOKED_AT]:
        with archive.open(name) as member:
            if _is_idx(member):
                return True
    return False


def _is_idx(file: IO[bytes]) -> bool:
    """Two zeros, then the kind of number (0x08 to 0x0E) and the dimensions."""
    start = file.read(4)
    if start.startswith(b"\x1f\x8b"):
        file.seek(0)
        start = gzip.GzipFile(fileobj=file).read(4)
    return len(start) == 4 and start[:2] == b"\x00\x00" and 0x08 <= start[2] <= 0x0E


def _is_picture(file: IO[bytes]) -> bool:
    file.seek(0)
    return file.read(4).startswith(_PICTURES)


def draft_image_schema(path: Path, limits: IngestLimits | None = None) -> dict[str, Any]:
    """A schema that the file fits, for the owner to correct. `InvalidFile` if the file cannot be read as images."""
    with SealedFile.in_the_clear(path) as file:
        return draft_images(file, limits or IngestLimits())


def draft_images(file: SealedFile, limits: IngestLimits) -> dict[str, Any]:
    if zipfile.is_zipfile(file.reader()):
        try:
            with open_zip(file, limits) as archive:
                shape, classes = _in_archive(archive, members_of(archive, limits))
        except (ValueError, EOFError, OSError, zipfile.BadZipFile, zlib.error, csv.Error):
            raise InvalidFile(Message("The archive is damaged, or its labels cannot be read.")) from None
    elif _is_picture(file.reader()):
        raise no_images()
    else:
        shape, classes = idx_header(file.reader)[1:], None
    height, width, channels = (*shape, 1)[:3]
    document: dict[str, Any] = {"type": "image", "description": _ABOUT}
    document |= {"height": height, "width": width, "channels": channels}
    if classes is not None:
        document["classes"] = classes
    try:
        schema = ImageSchema.model_validate(document)
    except ValueError:
        raise InvalidFile(
            Message(
                "These images are %(width)s x %(height)s with %(channels)s channels and %(classes)s classes; no schema "
                "can declare that.",
                width=width,
                height=height,
                channels=channels,
                classes=classes or Message("no"),
            )
        ) from None
    open_images(file, schema, limits)
    return document


def _in_archive(
    archive: zipfile.ZipFile, members: Sequence[zipfile.ZipInfo]
) -> tuple[tuple[int, ...], int | list[str] | None]:
    """The size of an image, and the classes that its labels name, if there are any."""
    names = {member.filename for member in members}
    if "images.npy" in names:
        with archive.open("images.npy") as stream:
            np.lib.format.read_magic(stream)
            shape = np.lib.format.read_array_header_1_0(stream)[0]
        if "labels.npy" not in names:
            return shape[1:], None
        with archive.open("labels.npy") as stream:
            return shape[1:], _counted(np.lib.format.read_array(stream, allow_pickle=False))
    pictures = [name for name in sorted(names) if name.lower().endswith((".png", ".jpg", ".jpeg"))]
    if pictures:
        return _picture_shape(archive.read(pictures[0])), _named(archive, names)
    headers = {
        name: idx_header(partial(archive.open, name))
        for name in sorted(names)
        if not name.lower().endswith(_PICTURE_ENDINGS)
    }
    shapes = [header[1:] for header in headers.values() if len(header) > 1]
    labels = [name for name, header in headers.items() if len(header) == 1]
    if len(shapes) != 1:
        raise InvalidFile(
            Message("The archive holds neither PNG or JPEG files, nor NumPy arrays, nor IDX files of images.")
        )
    return shapes[0], _counted(idx_numbers(partial(archive.open, labels[0]))) if labels else None


def _picture_shape(data: bytes) -> tuple[int, ...]:
    from PIL import Image, UnidentifiedImageError  # noqa: PLC0415 - the commands start without it

    try:
        with Image.open(io.BytesIO(data), formats=("PNG", "JPEG")) as picture:
            channels = {"L": 1, "RGB": 3, "P": 3}.get(picture.mode)
            size = picture.height, picture.width
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        raise InvalidFile(
            Message("The first image of the archive is damaged, cut off, or neither PNG nor JPEG.")
        ) from None
    if channels is None:
        raise InvalidFile(
            Message(
                "The first image of the archive is neither 8-bit grey nor 8-bit red, green and blue without transparency; "
                "convert the images."
            )
        )
    return *size, channels


def _named(archive: zipfile.ZipFile, names: set[str]) -> list[str] | None:
    tables = [name for name in names if name.lower().endswith(".csv")]
    if not tables:
        return None
    lines = csv.DictReader(io.StringIO(archive.read(tables[0]).decode("utf-8-sig"), newline=""))
    if "label" not in (lines.fieldnames or ()):
        return None
    found = {(line.get("label") or "").strip() for line in lines}
    if len(found) > MAX_CLASSES or "" in found:
        raise InvalidFile(
            Message(
                "The CSV file of labels must name at most %(max_classes)s classes, none of them empty.",
                max_classes=MAX_CLASSES,
            )
        )
    return sorted(found)


def _counted(labels: np.ndarray[Any, Any]) -> int:
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or not len(labels) or labels.min() < 0:
        raise InvalidFile(Message("The labels are no whole numbers from 0."))
    return int(labels.max()) + 1
