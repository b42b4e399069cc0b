"""The keyed fingerprint of a set of images: the same pictures, the same fingerprint, in any order and any lossless file.

The multiset hash of the table fingerprint (see `fingerprint.py`), over the pixels of every image. Labels are left out
on purpose: an owner who renames, reorders or drops the classes still has the same people's pictures, and must not get a
second budget for them.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from service.domain.image_schema import ImageSchema

_VERSION = b"imprimatur images 1"
_MODULUS = 2**256


class ImageFingerprint:
    """Sums the images of chunks."""

    def __init__(self, key: bytes, schema: ImageSchema) -> None:
        self._key, self._shape = key, schema.shape
        self._hash = hashlib.blake2b(
            key=hashlib.blake2b(key, digest_size=32, person=b"imprim. images").digest(), digest_size=32
        )
        self._sum = 0
        self.images = 0

    def add(self, pixels: NDArray[np.uint8]) -> None:
        """Count every image of the chunk (n, height, width, channels) in."""
        total = 0
        for image in pixels:
            digest = self._hash.copy()
            digest.update(image.tobytes())
            total += int.from_bytes(digest.digest(), "little")
        self._sum = (self._sum + total) % _MODULUS
        self.images += len(pixels)

    def digest(self) -> bytes:
        """32 bytes."""
        head = json.dumps([list(self._shape), self.images]).encode()
        return hmac.digest(self._key, _VERSION + head + self._sum.to_bytes(32, "little"), hashlib.sha256)
