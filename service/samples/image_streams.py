"""Writers of images: NPZ, a ZIP of PNG files, or one PNG to look at. Each checks its request before the first piece."""

from __future__ import annotations

import io
import itertools
import json
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from service.base.errors import InvalidInput
from service.base.messages import Message, fault_of
from service.samples.drain import Drain
from service.samples.formulas import disarmed
from service.samples.image_sampler import ImageSamplingError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from service.samples.image_sampler import ImageSampler
    from service.samples.request import Wanted

MAX_GRID_PIXELS = 2**24
_GAP = 2
"""Pixels between the images of a grid."""
_LONG_AGO = (1980, 1, 1, 0, 0, 0)  # the same images give the same bytes

Chunk = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any] | None]


def npz(sampler: ImageSampler, wanted: Wanted) -> Generator[bytes]:
    """Arrays `images` and `labels`."""
    return _npz(_begun(sampler, wanted), sampler, wanted.rows)


def png_files(sampler: ImageSampler, wanted: Wanted) -> Generator[bytes]:
    """A ZIP of PNG files with their labels."""
    return _zip(_begun(sampler, wanted), sampler, wanted.rows, disarmed if wanted.formulas == "escape" else str)


def picture(sampler: ImageSampler, wanted: Wanted) -> Generator[bytes]:
    """One PNG of `rows` images in all, a class a row."""
    try:
        drawn = _grid(sampler, wanted.rows, wanted.seed, _label(sampler, wanted))
    except ImageSamplingError as error:
        raise InvalidInput(fault_of(error), where="sample") from None
    return (piece for piece in [drawn])


def _begun(sampler: ImageSampler, wanted: Wanted) -> Iterator[Chunk]:
    """The drawn chunks, of which the first is drawn now."""
    try:
        draws = sampler.draws(wanted.rows, seed=wanted.seed, label=_label(sampler, wanted))
        first = list(itertools.islice(draws, 1))
    except ImageSamplingError as error:
        raise InvalidInput(fault_of(error), where="sample") from None
    return itertools.chain(first, draws)


def _label(sampler: ImageSampler, wanted: Wanted) -> int | None:
    """The class that was asked for."""
    where = wanted.where
    if wanted.weights is not None:
        raise ImageSamplingError(Message("weights are for rows; ask for the images of a class by label:CLASS"))
    if isinstance(where, Sequence) and not isinstance(where, str):
        if len(where) > 1:
            raise ImageSamplingError(Message("images have one condition: label:CLASS"))
        where = where[0] if where else None
    if isinstance(where, str) and where.startswith("{"):
        with suppress(ValueError):
            where = json.loads(where)
    if isinstance(where, Mapping):
        where = ",".join(f"{name}={value}" for name, value in where.items())
    return None if where is None else sampler.parse_where(str(where))


def _npz(chunks: Iterable[Chunk], sampler: ImageSampler, rows: int) -> Generator[bytes]:
    """What numpy.savez_compressed writes, as it is drawn; labels wait in memory, two bytes each."""
    sink = Drain()
    labels = [np.empty(0, dtype=np.uint16)]
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open(_member("images.npy"), "w", force_zip64=True) as member:
            member.write(_npy_header((rows, *sampler.shape), "|u1"))
            for pixels, chunk_labels in chunks:
                member.write(pixels.tobytes())
                if chunk_labels is not None:
                    labels.append(chunk_labels)
                yield sink.drain()
        if sampler.classes:
            header = _npy_header((rows,), "<u2")
            archive.writestr(_member("labels.npy"), header + np.concatenate(labels).astype("<u2").tobytes())
    yield sink.drain()


def _zip(chunks: Iterable[Chunk], sampler: ImageSampler, rows: int, written: Callable[[str], str]) -> Generator[bytes]:
    """One PNG file an image, and the labels as an upload would have them, less what a spreadsheet would carry out."""
    sink, digits, number = Drain(), max(6, len(str(rows - 1))), 0
    lines = ["file,label"]
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:  # PNG is compressed already
        for pixels, labels in chunks:
            for i, image in enumerate(pixels):
                name = f"{number:0{digits}}.png"
                archive.writestr(_member(name, zipfile.ZIP_STORED), _png(image))
                if labels is not None:
                    lines.append(f"{name},{_csv_cell(written(sampler.classes[labels[i]]))}")
                number += 1
            yield sink.drain()
        if sampler.classes:
            archive.writestr(_member("labels.csv"), "\n".join(lines) + "\n")
    yield sink.drain()


def _grid(sampler: ImageSampler, rows: int, seed: int | None, label: int | None) -> bytes:
    """About `rows` images side by side: a class a row, or a square where there is only one kind."""
    height, width, _ = sampler.shape
    if not 1 <= rows * (height + _GAP) * (width + _GAP) <= MAX_GRID_PIXELS:
        most = MAX_GRID_PIXELS // ((height + _GAP) * (width + _GAP))
        raise InvalidInput(Message("rows: a picture holds 1 to %(most)s of these images", most=most), where="rows")
    kinds = len(sampler.classes) if sampler.classes and label is None else 1
    if kinds > 1:
        tiles = sampler.grid(-(-rows // kinds), seed=seed)
    else:
        columns = int(np.ceil(np.sqrt(rows)))
        row = sampler.grid(rows, seed=seed, label=label)[0]
        blank = np.zeros((-rows % columns, *sampler.shape), dtype=np.uint8)
        tiles = np.concatenate((row, blank)).reshape(-1, columns, *sampler.shape)
    return picture_of(tiles)


def picture_of(tiles: np.ndarray[Any, Any]) -> bytes:
    """Images (rows, columns, height, width, channels) side by side, as PNG."""
    down, across, height, width, channels = tiles.shape
    canvas = np.full((down * (height + _GAP) - _GAP, across * (width + _GAP) - _GAP, channels), 128, dtype=np.uint8)
    for i, j in itertools.product(range(down), range(across)):
        top, left = i * (height + _GAP), j * (width + _GAP)
        canvas[top : top + height, left : left + width] = tiles[i, j]
    return _png(canvas)


def _png(image: np.ndarray[Any, Any]) -> bytes:
    """One image (height, width, channels) as PNG."""
    from PIL import Image  # noqa: PLC0415 - the API starts without it

    buffer = io.BytesIO()
    Image.fromarray(image[..., 0] if image.shape[-1] == 1 else image).save(buffer, "PNG")
    return buffer.getvalue()


def _npy_header(shape: Sequence[int], kind: str) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": kind, "fortran_order": False, "shape": tuple(shape)})
    return buffer.getvalue()


def _member(name: str, compression: int = zipfile.ZIP_DEFLATED) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, date_time=_LONG_AGO)
    member.compress_type = compression
    return member


def _csv_cell(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(character in text for character in ',"') else text
