"""The canonical file of an image dataset: decoded pixels, each image followed by its label.

A record is height × width × channels bytes, row by row, channels together, and the label in two bytes (small end
first; `NO_LABEL` without classes). Nothing else is in the file: size and count say where every record lies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from service.errors import InvalidFile

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from service.datasets.image_schema import ImageSchema

LABEL_BYTES = 2


def record_bytes(schema: ImageSchema) -> int:
    return schema.pixels + LABEL_BYTES


def to_records(pixels: NDArray[np.uint8], labels: NDArray[np.uint16]) -> NDArray[np.uint8]:
    """Records (n, record_bytes) of pixels (n, height, width, channels) and labels (n,)."""
    count = len(labels)
    label_bytes = labels.astype("<u2").view(np.uint8).reshape(count, LABEL_BYTES)
    return np.concatenate((pixels.reshape(count, -1), label_bytes), axis=1)


def read_records(
    pieces: Iterable[bytes], schema: ImageSchema, count: int
) -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
    """Pixels (count, height, width, channels) and labels (count,) of a stream of the file's bytes, copied once."""
    size = record_bytes(schema)
    held = np.empty(count * size, dtype=np.uint8)
    at = 0
    for piece in pieces:
        if at + len(piece) > len(held):
            raise _other_count()
        held[at : at + len(piece)] = np.frombuffer(piece, dtype=np.uint8)
        at += len(piece)
    if at != len(held):
        raise _other_count()
    records = held.reshape(count, size)
    labels = np.ascontiguousarray(records[:, schema.pixels :]).view("<u2").reshape(count)
    return records[:, : schema.pixels].reshape(count, *schema.shape), labels


def _other_count() -> InvalidFile:
    return InvalidFile("The stored images are not of the recorded number; upload them again.")
