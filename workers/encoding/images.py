"""Images as they lie in the canonical file, and the public basis in which they are measured."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from service.domain.image_schema import NO_LABEL
from service.intake.image.canonical_file import read_records, read_unit_records
from workers.encoding.kept_rows import RandomKeys, choose_rows, operating_system_keys

if TYPE_CHECKING:
    from service.domain.image_schema import ImageSchema


@dataclass(frozen=True)
class EncodedImages:
    """Without classes every label is 0.

    Without a privacy unit, record i is unit i and `unit_starts` is None. With one, unit i holds the records
    unit_starts[i]:unit_starts[i+1], at most max_images_per_unit of them.
    """

    pixels: NDArray[np.uint8]  # (n, height·width·channels)
    labels: NDArray[np.int64]  # (n,)
    shape: tuple[int, int, int]
    classes: int
    unit_starts: NDArray[np.int64] | None = None  # (units + 1,)
    max_images_per_unit: int = 1

    @property
    def units(self) -> int:
        return len(self.pixels) if self.unit_starts is None else len(self.unit_starts) - 1

    @property
    def most_images(self) -> int:
        """How many there may be, by what is public."""
        return self.units * self.max_images_per_unit


def encode_images(
    pieces: Iterable[bytes],
    schema: ImageSchema,
    *,
    units: int,
    max_images_per_unit: int | None = None,
    random_keys: RandomKeys = operating_system_keys,
) -> EncodedImages:
    """Read the canonical file; raises `InvalidFile` where it does not hold the recorded number of units.

    max_images_per_unit: of a dataset with a privacy unit; None where each image is one. Of a unit with more, so many
    are chosen uniformly at random by sorting on `random_keys`, as rows of a table are.
    """
    starts: NDArray[np.int64] | None = None
    if max_images_per_unit is None:
        pixels, labels = read_records(pieces, schema, units)
    else:
        pixels, labels, sizes = read_unit_records(pieces, schema, units)
        kept = choose_rows(np.repeat(np.arange(units), sizes), max_images_per_unit, random_keys)
        if len(kept) < len(pixels):
            pixels, labels = pixels[kept], labels[kept]
        starts = np.append(0, np.minimum(sizes, max_images_per_unit).cumsum()).astype(np.int64)
    places = np.where(labels == NO_LABEL, 0, labels).astype(np.int64)
    flat = pixels.reshape(len(pixels), -1)
    return EncodedImages(flat, places, schema.shape, len(schema.class_names), starts, max_images_per_unit or 1)


def cosine_basis(shape: tuple[int, int, int], most: int) -> NDArray[np.float64]:
    """Orthonormal cosines of low frequency, each channel by itself: (pixels, d) with d at most `most`.

    Public: it depends on the size alone. As many frequencies are kept along both sides as `most` allows; where all
    fit, the basis is complete and nothing is lost. Source: the discrete cosine transform (DCT-II).
    """
    height, width, channels = shape
    per_channel = max(1, most // channels)
    down = min(height, math.isqrt(per_channel)) if height * width > per_channel else height
    across = min(width, per_channel // down)
    down = min(height, per_channel // across)
    spatial = np.kron(cosines(height, down), cosines(width, across))  # rows: y·width + x
    return np.kron(spatial, np.eye(channels))  # channels together, as the pixels lie


def cosines(size: int, kept: int) -> NDArray[np.float64]:
    """Orthonormal columns (size, kept): cosines of low frequency along one side."""
    place, frequency = np.arange(size)[:, None], np.arange(kept)[None, :]
    waves = np.cos(np.pi * (place + 0.5) * frequency / size) * math.sqrt(2.0 / size)
    waves[:, 0] /= math.sqrt(2.0)
    return waves
