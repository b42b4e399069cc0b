"""Images in IDX, the format of MNIST: a file of images alone, or with its labels in one ZIP; each may be gzipped.

Layout: two zero bytes, the type (8: bytes), the number of dimensions, each dimension as 4 bytes (big end first), data.
Source: http://yann.lecun.com/exdb/mnist/ (LeCun, Cortes, Burges).
"""

from __future__ import annotations

import gzip
import struct
import zipfile
import zlib
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING, cast

import numpy as np

from service.base.errors import InvalidFile, TooLarge
from service.base.messages import Message
from service.intake.image.labels import checked_labels, no_labels
from service.intake.image.npz_reading import CHUNK_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from service.domain.image_schema import ImageSchema
    from service.intake.image.units import Ids
    from service.intake.limits import IngestLimits
    from service.intake.sealed import SealedFile

    Opener = Callable[[], IO[bytes]]

MARKS = (b"\x1f\x8b", b"\x00\x00")
"""How a file of it begins: gzipped, or not."""
_GZIP = MARKS[0]
_BYTES = b"\x00\x00\x08"
_DAMAGED = Message("The IDX file is damaged or cut off.")


def is_idx(start: bytes) -> bool:
    """Whether a file that begins so is IDX, gzipped or not."""
    return start.startswith(MARKS)


class IdxImages:
    """IDX files whose headers agree with the schema. The format cannot say whose an image is."""

    unit_ids: Ids | None = None

    def __init__(
        self, images: Opener, labels: Opener | None, schema: ImageSchema, limits: IngestLimits, file_bytes: int
    ) -> None:
        self._images, self._labels, self._schema = images, labels, schema
        with _opened(images) as (_, shape):
            if shape[1:] != schema.shape and (*shape[1:], 1) != schema.shape:
                size = Message(
                    "%(height)s x %(width)s with %(channels)s channels",
                    height=schema.height,
                    width=schema.width,
                    channels=schema.channels,
                )
                raise InvalidFile(
                    Message("The images in the IDX file are not %(size)s, as the schema says.", size=size)
                )
            self.count = shape[0]
        if self.count > limits.rows:
            raise TooLarge(Message("The file has more than %(rows)s images.", rows=limits.rows), limit_rows=limits.rows)
        limit = limits.unpacked_limit(file_bytes)
        if self.count * schema.pixels > limit:
            raise TooLarge(Message("The file unpacks to more than %(limit)s bytes.", limit=limit), limit_bytes=limit)
        if labels is None and schema.class_names:
            raise InvalidFile(
                Message("The schema declares classes: upload a ZIP with two IDX files, images and labels.")
            )
        if labels is not None:
            if not schema.class_names:
                raise InvalidFile(Message("The schema declares no classes, but the file holds labels."))
            with _opened(labels) as (_, shape):
                if shape != (self.count,):
                    raise InvalidFile(Message("The labels in the IDX file are not as many as the images."))

    @classmethod
    def alone(cls, file: SealedFile, schema: ImageSchema, limits: IngestLimits) -> IdxImages:
        """One file, which holds images."""
        return cls(file.reader, None, schema, limits, file.size)

    @classmethod
    def together(
        cls, archive: zipfile.ZipFile, members: Sequence[zipfile.ZipInfo], schema: ImageSchema, limits: IngestLimits
    ) -> IdxImages:
        """Images and labels in one ZIP, told apart by their dimensions."""
        images: list[Opener] = []
        labels: list[Opener] = []
        for member in members[:3]:

            def opener(member: zipfile.ZipInfo = member) -> IO[bytes]:
                return archive.open(member)

            with opener() as stream:
                if not is_idx(stream.read(4)):
                    raise InvalidFile(
                        Message("The archive holds neither PNG or JPEG files, nor NumPy arrays, nor IDX files.")
                    )
            with _opened(opener) as (_, shape):
                (labels if len(shape) == 1 else images).append(opener)
        if len(members) > 2 or len(images) != 1 or len(labels) > 1:
            raise InvalidFile(Message("A ZIP of IDX files must hold one file of images and one of labels."))
        size = sum(member.compress_size for member in members)
        return cls(images[0], labels[0] if labels else None, schema, limits, size)

    def chunks(self) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.uint16]]]:
        labels = no_labels(self.count)
        if self._labels is not None:
            with _opened(self._labels) as (stream, _):
                labels = checked_labels(_numbers(stream, self.count, last=True), self._schema)
        at_a_time = max(1, CHUNK_BYTES // self._schema.pixels)
        with _opened(self._images) as (stream, _):
            for start in range(0, self.count, at_a_time):
                count = min(at_a_time, self.count - start)
                pixels = _numbers(stream, count * self._schema.pixels, last=start + count == self.count)
                yield pixels.reshape(count, *self._schema.shape), labels[start : start + count]


def idx_header(opener: Opener) -> tuple[int, ...]:
    """The dimensions of an IDX file; raises `InvalidFile` where it is none."""
    with _opened(opener) as (_, shape):
        return shape


def idx_numbers(opener: Opener) -> NDArray[np.uint8]:
    """All numbers of an IDX file of one dimension."""
    with _opened(opener) as (stream, shape):
        return _numbers(stream, shape[0], last=True)


@contextmanager
def _opened(opener: Opener) -> Iterator[tuple[IO[bytes], tuple[int, ...]]]:
    """An IDX file of bytes behind its header, and its dimensions."""
    try:
        with ExitStack() as open_files:
            stream = open_files.enter_context(opener())
            packed = stream.read(2) == _GZIP
            stream = open_files.enter_context(opener())
            if packed:
                stream = cast("IO[bytes]", open_files.enter_context(gzip.GzipFile(fileobj=stream)))
            head = stream.read(4)
            if len(head) != 4 or head[:3] != _BYTES or not 1 <= head[3] <= 4:
                raise InvalidFile(Message("The file is no IDX file of bytes with one to four dimensions."))
            sizes = stream.read(4 * head[3])
            if len(sizes) != 4 * head[3]:
                raise InvalidFile(_DAMAGED)
            yield stream, struct.unpack(f">{head[3]}I", sizes)
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile):
        raise InvalidFile(_DAMAGED) from None


def _numbers(stream: IO[bytes], count: int, *, last: bool) -> NDArray[np.uint8]:
    """The next `count` bytes; after the last ones the file must end."""
    data = stream.read(count)
    if len(data) != count or (last and stream.read(1)):
        raise InvalidFile(_DAMAGED)
    return np.frombuffer(data, dtype=np.uint8)
