"""Images in NPZ: `images` (n, height, width[, channels]) of bytes and `labels` (n,) of whole numbers.

`units` (n,), whole numbers or text, may say whose they are.
"""

from __future__ import annotations

import math
import zipfile
import zlib
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

import numpy as np

from service.base.errors import InvalidFile, TooLarge
from service.base.messages import Listed, Message
from service.intake.image.labels import checked_labels, no_labels
from service.intake.image.units import MOST_ID_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from service.domain.image_schema import ImageSchema
    from service.intake.image.units import Ids
    from service.intake.limits import IngestLimits

CHUNK_BYTES = 4 * 1024 * 1024
_MAX_HEADER_BYTES = 10_000
_DAMAGED = Message("The NPZ file is damaged or cut off.")
_UNITS = "units.npy"
_CHARACTER_BYTES = 4


def is_npz(endings: set[str]) -> bool:
    """Whether a ZIP of files with these endings is NPZ."""
    return endings == {"npy"}


class NpzImages:
    """An NPZ file whose two headers agree with the schema."""

    def __init__(
        self,
        archive: zipfile.ZipFile,
        members: Sequence[zipfile.ZipInfo],
        schema: ImageSchema,
        limits: IngestLimits,
    ) -> None:
        wanted = {"images.npy"} | ({"labels.npy"} if schema.class_names else set())
        names = {member.filename for member in members}
        if names - {_UNITS} != wanted:
            spelled = Listed(Message(" and "), sorted(name.removesuffix(".npy") for name in wanted))
            raise InvalidFile(
                Message(
                    "The NPZ file must hold %(spelled)s for this schema, units where a privacy unit is declared, and "
                    "nothing else.",
                    spelled=spelled,
                )
            )
        self._archive, self._schema = archive, schema
        with self._array("images.npy") as (_, shape, dtype):
            if dtype != np.uint8:
                raise InvalidFile(Message("images in the NPZ file must be of type uint8, 0 to 255."))
            if shape[1:] != schema.shape and (*shape[1:], 1) != schema.shape:
                raise InvalidFile(Message("images in the NPZ file must be of shape %(shape)s.", shape=_spelled(schema)))
            self.count = shape[0]
        _check_amount(self.count, schema, limits, archive)
        if schema.class_names:
            with self._array("labels.npy") as (_, shape, dtype):
                if dtype.kind not in "iu" or shape != (self.count,):
                    raise InvalidFile(Message("labels in the NPZ file must be one whole number for each image."))

        self.unit_ids = self._units(limits) if _UNITS in names else None

    def _units(self, limits: IngestLimits) -> Ids:
        with self._array(_UNITS) as (stream, shape, dtype):
            if dtype.kind not in "iuU" or shape != (self.count,):
                raise InvalidFile(Message("units in the NPZ file must be one whole number or text for each image."))
            if dtype.kind == "U" and dtype.itemsize > _CHARACTER_BYTES * MOST_ID_CHARACTERS:
                raise InvalidFile(
                    Message(
                        "units in the NPZ file must have at most %(most_id_characters)s characters.",
                        most_id_characters=MOST_ID_CHARACTERS,
                    )
                )
            size = self.count * dtype.itemsize
            limit = limits.unpacked_limit(self._archive.getinfo(_UNITS).compress_size)
            if size > limit:
                raise TooLarge(
                    Message("The file unpacks to more than %(limit)s bytes.", limit=limit), limit_bytes=limit
                )
            data = _exactly(stream, size)
            if dtype.kind == "U" and not _is_unicode(np.frombuffer(data, np.dtype("u4").newbyteorder(dtype.byteorder))):
                raise InvalidFile(Message("units in the NPZ file must be Unicode text, without lone surrogates."))
            found: list[int | str] = np.frombuffer(data, dtype=dtype).tolist()
            return found

    def chunks(self) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.uint16]]]:
        labels = self._labels()
        at_a_time = max(1, CHUNK_BYTES // self._schema.pixels)
        with self._array("images.npy") as (stream, _, _):
            for start in range(0, self.count, at_a_time):
                count = min(at_a_time, self.count - start)
                pixels = np.frombuffer(_exactly(stream, count * self._schema.pixels), dtype=np.uint8)
                yield pixels.reshape(count, *self._schema.shape), labels[start : start + count]

    def _labels(self) -> NDArray[np.uint16]:
        if not self._schema.class_names:
            return no_labels(self.count)
        with self._array("labels.npy") as (stream, _, dtype):
            numbers = np.frombuffer(_exactly(stream, self.count * dtype.itemsize), dtype=dtype)
        return checked_labels(numbers, self._schema)

    @contextmanager
    def _array(self, name: str) -> Iterator[tuple[IO[bytes], tuple[int, ...], np.dtype[np.generic]]]:
        """A member behind its header; its announced size is compared with the archive's before a byte is read."""
        try:
            with self._archive.open(name) as stream:
                version = np.lib.format.read_magic(stream)
                read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
                if version not in read_header:
                    raise InvalidFile(
                        Message("The NPZ file is of a version that is not read here; save it again with NumPy.")
                    )
                shape, by_columns, dtype = read_header[version](stream, max_header_size=_MAX_HEADER_BYTES)
                if dtype.hasobject or dtype.names is not None or dtype.subdtype is not None:
                    raise InvalidFile(Message("The NPZ file must hold plain numbers."))
                if by_columns and len(shape) > 1:
                    raise InvalidFile(Message("The NPZ file is stored by columns; save a C-contiguous array."))
                if stream.tell() + math.prod(shape) * dtype.itemsize != self._archive.getinfo(name).file_size:
                    raise InvalidFile(_DAMAGED)
                yield stream, shape, dtype
        except (ValueError, TypeError, EOFError, OSError, zipfile.BadZipFile, zlib.error, SyntaxError, RecursionError):
            raise InvalidFile(_DAMAGED) from None


def _check_amount(count: int, schema: ImageSchema, limits: IngestLimits, archive: zipfile.ZipFile) -> None:
    if count > limits.rows:
        raise TooLarge(Message("The file has more than %(rows)s images.", rows=limits.rows), limit_rows=limits.rows)
    packed = min(archive.start_dir, sum(member.compress_size for member in archive.infolist()))
    limit = limits.unpacked_limit(packed)
    if count * schema.pixels > limit:
        raise TooLarge(Message("The file unpacks to more than %(limit)s bytes.", limit=limit), limit_bytes=limit)


def _is_unicode(characters: NDArray[np.unsignedinteger]) -> bool:
    """What else there may be in four bytes would end in an error of Python's own."""
    beyond = characters > 0x10FFFF
    return not bool((beyond | ((characters >= 0xD800) & (characters <= 0xDFFF))).any())


def _exactly(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise InvalidFile(_DAMAGED)
    return data


def _spelled(schema: ImageSchema) -> str:
    height, width, channels = schema.shape
    return f"(n, {height}, {width})" if channels == 1 else f"(n, {height}, {width}, {channels})"
