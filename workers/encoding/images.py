"""Images as they lie in the canonical file, and the public basis in which they are measured."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from service.datasets.image_file import read_records
from service.datasets.image_schema import NO_LABEL

if TYPE_CHECKING:
    from service.datasets.image_schema import ImageSchema


@dataclass(frozen=True)
class EncodedImages:
    """Record i is unit i. Without classes every label is 0."""

    pixels: NDArray[np.uint8]  # (n, height·width·channels)
    labels: NDArray[np.int64]  # (n,)
    shape: tuple[int, int, int]
    classes: int


def encode_images(pieces: Iterable[bytes], schema: ImageSchema, *, units: int) -> EncodedImages:
    """Read the canonical file; raises `InvalidFile` where it does not hold the recorded number of images."""
    pixels, labels = read_records(pieces, schema, units)
    places = np.where(labels == NO_LABEL, 0, labels).astype(np.int64)
    return EncodedImages(pixels.reshape(units, -1), places, schema.shape, len(schema.class_names))


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
    spatial = np.kron(_cosines(height, down), _cosines(width, across))  # rows: y·width + x
    return np.kron(spatial, np.eye(channels))  # channels together, as the pixels lie


def _cosines(size: int, kept: int) -> NDArray[np.float64]:
    place, frequency = np.arange(size)[:, None], np.arange(kept)[None, :]
    waves = np.cos(np.pi * (place + 0.5) * frequency / size) * math.sqrt(2.0 / size)
    waves[:, 0] /= math.sqrt(2.0)
    return waves
