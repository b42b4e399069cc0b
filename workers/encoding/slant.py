"""Deskewed images: how much each leans is found from its own pixels, taken out, and kept beside them.

Handwriting leans, and a lean moves every pixel at once along a curve, which no Gaussian follows. An image is sheared along
its rows about its middle until its brightness no longer leans; where nothing was, its border goes on. What was taken out becomes
one more number of it, repeated `SLANT_PIXELS` times so that it counts for as much as a leading direction of the pixels.
All this is a function of one record.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

SLANT_PIXELS = 64
MOST_SLANT = 0.8
"""Columns a row, at most, to either side."""
_BLOCK = 4_096

Pixels = NDArray[np.uint8]


def deskewed(pixels: Pixels, shape: tuple[int, int, int]) -> Pixels:
    """(n, height·width·channels) -> the same deskewed, and after them the slant in SLANT_PIXELS equal numbers."""
    parts = [_stood_up(pixels[start : start + _BLOCK], shape) for start in range(0, len(pixels), _BLOCK)]
    return np.concatenate(parts) if parts else np.zeros((0, math.prod(shape) + SLANT_PIXELS), np.uint8)


def slant_codes(stood: Pixels) -> NDArray[np.int64]:
    """How much each of such images leant, in whole numbers: 0 for -MOST_SLANT … 255 for MOST_SLANT."""
    return stood[:, -1].astype(np.int64)


def with_slant(basis: NDArray[np.float64]) -> NDArray[np.float64]:
    """An orthonormal basis (pixels, d) with one more direction, which the slant's numbers share: (pixels + SLANT_PIXELS, d + 1)."""
    wider = np.zeros((len(basis) + SLANT_PIXELS, basis.shape[1] + 1))
    wider[: len(basis), :-1] = basis
    wider[len(basis) :, -1] = SLANT_PIXELS**-0.5
    return wider


def _stood_up(pixels: Pixels, shape: tuple[int, int, int]) -> Pixels:
    height, width, _ = shape
    images = pixels.reshape(-1, *shape).astype(np.float64)
    grey = images.sum(axis=3)
    whole = np.maximum(grey.sum(axis=(1, 2)), 1.0)
    down, across = np.arange(height)[:, None], np.arange(width)[None, :]
    y, x = ((grey * place).sum(axis=(1, 2)) / whole for place in (down, across))
    off = down - y[:, None, None]  # (n, height, 1)
    spread = (grey * off**2).sum(axis=(1, 2))
    leaning = (grey * off * (across - x[:, None, None])).sum(axis=(1, 2))
    lean = np.where(spread > 0.0, leaning / np.maximum(spread, 1.0), 0.0)
    codes = np.rint(127.5 * (np.clip(lean / MOST_SLANT, -1.0, 1.0) + 1.0)).astype(np.uint8)
    slants = (codes / 127.5 - 1.0) * MOST_SLANT
    from_column = across + slants[:, None, None] * (down - (height - 1) / 2.0)  # (n, height, width)
    left = np.floor(from_column).astype(np.int64)
    part = (from_column - left)[..., None]
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (0, 0)), mode="edge")
    first, second = (np.take_along_axis(padded, np.clip(left + 1 + k, 0, width + 1)[..., None], axis=2) for k in (0, 1))
    moved = np.rint((1.0 - part) * first + part * second).astype(np.uint8).reshape(len(pixels), -1)
    return np.concatenate((moved, np.repeat(codes[:, None], SLANT_PIXELS, axis=1)), axis=1)
