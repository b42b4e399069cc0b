"""Single images as whole-number coefficients of a public basis; what one unit, a block of pixels, moves in them.

Pixels a of 0 to 255 count as the whole numbers 2a - 255: grey is 0, and a unit that is zeroed out is grey, so that each of its numbers
moves by at most 255. The basis is rounded to whole numbers, all products stay below 2^53, and so coefficients and their sensitivities
are exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from workers.mechanism import PrivateIntegers, PrivateLosses, PrivateSum

BASIS_SCALE = 2**12
WHITE = 255
LOSS_SCALE = 16
"""Losses are whole numbers of 1/LOSS_SCALE of half a level of grey."""
VALUE_SCALE = 2**10
"""The same of singular values."""
_BLOCK_NUMBERS = 2**22

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class UnitPixels:
    """How much of an image one unit is: a block of so many rows and columns, in all channels, wherever it lies; of so many images at most.

    Adjacency:   zero-out one unit: its pixels become grey.
    Sensitivity: none of its own; a unit's numbers 2a - 255 have a norm of at most `norm`.
    Shapes:      whole numbers.
    Source:      docs/methods/image_release.md.
    Edge cases:  (height, 1) is a column of pixels; (height, width) the image.
    """

    rows: int
    columns: int
    channels: int
    images: int = 1

    @property
    def squared_norm(self) -> int:
        return WHITE**2 * self.rows * self.columns * self.channels * self.images


@dataclass(frozen=True)
class WholeBasis:
    """Cosines along one side, (side, kept), rounded to multiples of 1/BASIS_SCALE.

    Adjacency:   none; public.
    Sensitivity: none.
    Shapes:      numbers (side, kept) int64.
    Source:      fixed-point arithmetic, as `image_moments`.
    Edge cases:  the norms below are bounds that hold exactly, of the rounded numbers.
    """

    numbers: Integers

    @classmethod
    def of(cls, basis: NDArray[np.float64]) -> WholeBasis:
        return cls(np.rint(basis * BASIS_SCALE).astype(np.int64))

    @property
    def kept(self) -> int:
        return int(self.numbers.shape[1])

    def squared_norm(self, length: int) -> int:
        """At least the squared spectral norm of any `length` neighbouring rows X: ‖X‖² ≤ trace(XᵀX), ‖X‖² ≤ max_a Σ_b |XᵀX|_ab."""
        return max(self._of_window(self.numbers[start : start + length]) for start in self._starts(length))

    def absolute_sum(self, length: int) -> int:
        """The largest sum of absolute values of `length` neighbouring rows."""
        of_rows = np.abs(self.numbers).sum(axis=1)
        return max(int(of_rows[start : start + length].sum()) for start in self._starts(length))

    def _starts(self, length: int) -> range:
        return range(len(self.numbers) - length + 1)

    @staticmethod
    def _of_window(rows: Integers) -> int:
        gram = rows.T @ rows
        return min(int(np.trace(gram)), int(np.abs(gram).sum(axis=1).max()))


def squared_l2(down: WholeBasis, across: WholeBasis, unit: UnitPixels) -> int:
    """Of the coefficients, at least the squared L2 distance that one unit moves them: ‖UᵀδW‖ ≤ ‖U_I‖·‖δ‖·‖W_J‖, I and J its rows and columns."""
    return unit.squared_norm * down.squared_norm(unit.rows) * across.squared_norm(unit.columns)


def l1(down: WholeBasis, across: WholeBasis, unit: UnitPixels) -> int:
    """The same in L1: the smallest of three bounds."""
    squared = squared_l2(down, across, unit)
    by_entries = WHITE * unit.channels * unit.images * down.absolute_sum(unit.rows) * across.absolute_sum(unit.columns)
    of_a_column = root_above(down.kept * unit.rows * down.squared_norm(unit.rows))
    by_columns = WHITE * unit.channels * unit.images * of_a_column * across.absolute_sum(unit.columns)
    by_norm = root_above(down.kept * across.kept * unit.channels * unit.images * squared)
    return min(by_entries, by_columns, by_norm)


def root_above(squared: int) -> int:
    """The smallest whole number that is no smaller than the root."""
    root = math.isqrt(squared)
    return root if root * root == squared else root + 1


def centred(pixels: NDArray[np.uint8], present: NDArray[np.bool_]) -> Iterator[NDArray[np.float64]]:
    """Blocks of 2a - 255 of consecutive images; 0 for a null image.

    Adjacency:   zero-out one unit: its pixels become grey.
    Sensitivity: none is stated: private as the images are, and nothing of it is released.
    Shapes:      pixels (n, height, width, channels), present (n,); yields float64 blocks of them.
    Source:      docs/methods/image_release.md.
    Edge cases:  no images -> no blocks; an image that `present` does not name is 0 everywhere.
    """
    at_a_time = max(1, _BLOCK_NUMBERS // max(1, math.prod(pixels.shape[1:])))
    for start in range(0, len(pixels), at_a_time):
        block = slice(start, start + at_a_time)
        half = pixels[block].astype(np.float64) * 2.0 - WHITE
        half[~present[block]] = 0.0
        yield half


def coefficients_of(
    pixels: NDArray[np.uint8], present: NDArray[np.bool_], down: WholeBasis, across: WholeBasis
) -> Integers:
    """UᵀAW of every image and channel: exact in float64, as 255·2^24·√(pixels)·… < 2^53.

    Adjacency:   zero-out one unit: one block of one image.
    Sensitivity: L2 `squared_l2`, L1 `l1`; private as the images are until `gaussian_coefficients` or `whole_coefficients` is released.
    Shapes:      pixels (n, height, width, channels), present (n,); returns (n, k, k, channels) int64.
    Source:      docs/methods/image_release.md.
    Edge cases:  no images -> no coefficients; a null image has coefficients 0.
    """
    left, right = down.numbers.T.astype(np.float64), across.numbers.astype(np.float64)
    found = [
        np.moveaxis(left @ np.moveaxis(block, 3, 1) @ right, 1, 3).astype(np.int64)
        for block in centred(pixels, present)
    ]
    return np.concatenate([np.empty((0, down.kept, across.kept, pixels.shape[3]), np.int64), *found])


def gaussian_coefficients(coefficients: Integers, down: WholeBasis, across: WholeBasis, unit: UnitPixels) -> PrivateSum:
    """The coefficients of all images, for Gaussian noise.

    Adjacency:   zero-out one unit: one block of one image.
    Sensitivity: L2, `squared_l2`; all images together, since a unit is in one of them.
    Shapes:      (n, k, k, channels) int64.
    Source:      docs/methods/image_release.md.
    Edge cases:  no images -> nothing.
    """
    return PrivateSum((torch.from_numpy(coefficients),), ((0,),), (float(root_above(squared_l2(down, across, unit))),))


def whole_coefficients(
    coefficients: Integers, down: WholeBasis, across: WholeBasis, unit: UnitPixels
) -> PrivateIntegers:
    """The same for geometric noise.

    Adjacency:   zero-out one unit: one block of one image.
    Sensitivity: `l1`.
    Shapes:      (n·k·k·channels,) int64.
    Source:      docs/methods/image_release.md.
    Edge cases:  no images -> nothing.
    """
    return PrivateIntegers(coefficients.reshape(-1), l1(down, across, unit))


def singular_values(coefficients: Integers) -> Integers:
    """Of the coefficients of every image and channel, in 1/VALUE_SCALE of half a level.

    Adjacency:   zero-out one unit: one block of one image.
    Sensitivity: L2 `values_l2`, L1 `values_l1`; private as the images are until they are released with noise.
    Shapes:      coefficients (n, k, k, channels) int64; returns (n, channels, k) int64.
    Source:      Mirsky 1960; docs/methods/image_release.md.
    Edge cases:  no images -> no values.
    """
    matrices = np.moveaxis(coefficients, 3, 1).astype(np.float64) / BASIS_SCALE**2
    found: Integers = np.rint(np.linalg.svd(matrices, compute_uv=False) * VALUE_SCALE).astype(np.int64)
    return found


def values_l2(down: WholeBasis, across: WholeBasis, unit: UnitPixels) -> int:
    """How far one unit moves `singular_values` in L2, at most: (Σ|σ_i - σ'_i|²)^½ ≤ ‖UᵀδW‖_F (Mirsky). Rounding adds 1 a number, and 1 in all."""
    count = min(down.kept, across.kept) * unit.channels * unit.images
    return _scaled(squared_l2(down, across, unit)) + root_above(count) + 1


def values_l1(down: WholeBasis, across: WholeBasis, unit: UnitPixels) -> int:
    """The same in L1: Σ|σ_i - σ'_i| ≤ the nuclear norm of UᵀδW ≤ √rank·‖UᵀδW‖_F, and a block's rank is at most its shorter side."""
    rank = min(unit.rows, unit.columns, down.kept, across.kept) * unit.channels * unit.images
    count = min(down.kept, across.kept) * unit.channels * unit.images
    return _scaled(rank * squared_l2(down, across, unit)) + count + 1


def _scaled(squared: int) -> int:
    """The root of a squared norm of coefficients, in 1/VALUE_SCALE of half a level, rounded up."""
    return -(-root_above(squared * VALUE_SCALE**2) // BASIS_SCALE**2)


def gaussian_values(values: Integers, sensitivity: int) -> PrivateSum:
    """Singular values for Gaussian noise.

    Adjacency:   zero-out one unit: one block of one image.
    Sensitivity: L2, `values_l2`.
    Shapes:      (n, channels, k) int64.
    Source:      Mirsky 1960; docs/methods/image_release.md.
    Edge cases:  no images -> nothing.
    """
    return PrivateSum((torch.from_numpy(values),), ((0,),), (float(sensitivity),))


def size_losses(
    pixels: NDArray[np.uint8],
    present: NDArray[np.bool_],
    bases: Sequence[tuple[NDArray[np.float64], NDArray[np.float64]]],
    expected_noise: Sequence[float],
    unit: UnitPixels,
) -> PrivateLosses:
    """For each candidate size, ‖A - UUᵀAWWᵀ‖_F over all images plus the norm of its noise to be expected.

    Adjacency:   zero-out one unit: one block of one image.
    Sensitivity: 255·√(pixel values of a unit) in half levels: A - UUᵀAWWᵀ is a projection of A, so its norm is 1-Lipschitz; the noise
                 is public. Rounding to whole numbers adds 1, that of float64 less than 1.
    Shapes:      bases: orthonormal (height, k) and (width, k) of each candidate; expected_noise in half levels; returns (candidates,).
    Source:      McSherry and Talwar 2007; docs/methods/image_release.md.
    Edge cases:  no images -> the candidate with the least noise has the least loss.
    """
    losses = []
    for (down, across), noise in zip(bases, expected_noise, strict=True):
        squared = 0.0
        for block in centred(pixels, present):
            image = np.moveaxis(block, 3, 1)
            squared += float(np.square(image - down @ (down.T @ image @ across) @ across.T).sum())
        losses.append(math.floor((math.sqrt(squared) + noise) * LOSS_SCALE))
    return PrivateLosses(np.array(losses, dtype=np.int64), root_above(unit.squared_norm * LOSS_SCALE**2) + 2)
