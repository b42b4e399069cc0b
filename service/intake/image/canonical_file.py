"""The canonical file of an image dataset: decoded pixels, each image followed by its label.

A record is height × width × channels bytes, row by row, channels together, and the label in two bytes (small end
first; `NO_LABEL` without classes). Without a privacy unit nothing else is in the file: size and count say where every
record lies. With one, the images of a unit lie side by side, and before the first record stand `UNITS`, the number of
images and of units in eight bytes each, and in four bytes of every unit how many images it has.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Self

import numpy as np

from service.base.errors import InvalidFile
from service.base.messages import Message

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from service.domain.image_schema import ImageSchema
    from service.intake.sealed import SealedFile

LABEL_BYTES = 2
UNITS = b"imprimatur images by unit, 2\n"
_HEAD_BYTES = len(UNITS) + 16
_SIZE_BYTES = 4


def record_bytes(schema: ImageSchema) -> int:
    """Bytes of one record: the pixels and the label."""
    return schema.pixels + LABEL_BYTES


def to_records(pixels: NDArray[np.uint8], labels: NDArray[np.uint16]) -> NDArray[np.uint8]:
    """Records (n, record_bytes) of pixels (n, height, width, channels) and labels (n,)."""
    count = len(labels)
    label_bytes = labels.astype("<u2").view(np.uint8).reshape(count, LABEL_BYTES)
    return np.concatenate((pixels.reshape(count, -1), label_bytes), axis=1)


class RecordFile:
    """Writes images as they come: each is a unit."""

    def __init__(self, file: SealedFile) -> None:
        self._file = file.writer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, records: NDArray[np.uint8]) -> None:
        """The next images of the upload."""
        self._file.write(records.data)


class UnitFile:
    """Writes images at their units' places, in whatever order they come. `unit_of_image` (n,) counts units from 0."""

    def __init__(self, file: SealedFile, schema: ImageSchema, unit_of_image: NDArray[np.int64]) -> None:
        sizes = np.bincount(unit_of_image)
        self._head = UNITS + np.array([len(unit_of_image), len(sizes)], dtype="<u8").tobytes()
        self._head += sizes.astype("<u4").tobytes()
        self._file, self._size = file, record_bytes(schema)
        self._place_of = np.empty(len(unit_of_image), dtype=np.int64)
        self._place_of[np.argsort(unit_of_image, kind="stable")] = np.arange(len(unit_of_image))
        self._written = 0

    def __enter__(self) -> Self:
        self._file.write_at(0, self._head)
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def write(self, records: NDArray[np.uint8]) -> None:
        """The next images of the upload."""
        places = self._place_of[self._written : self._written + len(records)]
        for place, record in zip(places.tolist(), records, strict=True):
            self._file.write_at(len(self._head) + place * self._size, record.data)
        self._written += len(records)


def read_records(
    pieces: Iterable[bytes], schema: ImageSchema, count: int
) -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
    """Pixels (count, height, width, channels) and labels (count,) of a stream of the file's bytes, copied once."""
    return _parted(_read(pieces, count * record_bytes(schema)), schema, count)


def read_unit_records(
    pieces: Iterable[bytes], schema: ImageSchema, units: int
) -> tuple[NDArray[np.uint8], NDArray[np.uint16], NDArray[np.int64]]:
    """The images of a file with units: pixels and labels as `read_records`, and how many images each unit has (units,)."""
    head, coming = b"", iter(pieces)
    while len(head) < _HEAD_BYTES and (piece := next(coming, None)) is not None:
        head += piece
    if len(head) < _HEAD_BYTES or not head.startswith(UNITS):
        raise _other_count()
    images, recorded = np.frombuffer(head[len(UNITS) : _HEAD_BYTES], dtype="<u8").tolist()
    if recorded != units:
        raise _other_count()
    table_bytes = _SIZE_BYTES * units
    held = _read(chain((head[_HEAD_BYTES:],), coming), table_bytes + images * record_bytes(schema))
    sizes = held[:table_bytes].view("<u4").astype(np.int64)
    if sizes.sum() != images or sizes.min(initial=1) < 1:
        raise _other_count()
    return *_parted(held[table_bytes:], schema, images), sizes


def _read(pieces: Iterable[bytes], size: int) -> NDArray[np.uint8]:
    held = np.empty(size, dtype=np.uint8)
    at = 0
    for piece in pieces:
        if at + len(piece) > size:
            raise _other_count()
        held[at : at + len(piece)] = np.frombuffer(piece, dtype=np.uint8)
        at += len(piece)
    if at != size:
        raise _other_count()
    return held


def _parted(held: NDArray[np.uint8], schema: ImageSchema, count: int) -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
    records = held.reshape(count, record_bytes(schema))
    labels = np.ascontiguousarray(records[:, schema.pixels :]).view("<u2").reshape(count)
    return records[:, : schema.pixels].reshape(count, *schema.shape), labels


def _other_count() -> InvalidFile:
    return InvalidFile(Message("The stored images are not of the recorded number; upload them again."))
