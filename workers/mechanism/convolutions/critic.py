"""A critic of images as its tensors, and what follows from their sizes alone: how gradients are kept, and how sums round."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from workers.mechanism.convolutions.unit_gradients import (
    STACKED_CANCELLATION,
    STACKED_ROUNDING,
    UNITS_AT_ONCE,
    product_rounding,
)
from workers.numerics.block_sums import float32_gamma

UNITS_AT_ONCE_ON_A_GPU = 512
"""There products are in float64, and many small blocks leave most of it idle."""

HELD_MOST_BYTES = 96 * 2**20
HELD_MOST_BYTES_ON_A_GPU = 256 * 2**20
"""Memory for gradients that are held; a block has as few units as that takes."""

FLOAT64_COST = 3
"""A product in float64, its conversions included, beside one in float32."""


@dataclass(frozen=True, slots=True)
class ImageCriticTensors:
    """A critic's tensors and geometry. Records are (height, width, channels), flattened, then the one-hot label."""

    shape: tuple[int, int, int]
    kernels: Sequence[Tensor]  # (out, in, k, k)
    biases: Sequence[Tensor | None]  # the first is None where there are labels
    labels: Tensor | None  # (out_1, classes)
    output: Tensor  # (1, height_L · width_L · out_L)
    stride: int
    padding: int
    slope: float

    def sides(self) -> list[tuple[int, int]]:
        """Height and width of the input and of every layer's output."""
        sides = [self.shape[:2]]
        for kernel in self.kernels:
            height, width = ((side + 2 * self.padding - kernel.shape[2]) // self.stride + 1 for side in sides[-1])
            sides.append((height, width))
        return sides

    def is_stacked(self, layer: int) -> bool:
        """Whether Gram matrices of that layer's rows cost less than every unit's gradient."""
        height, width = self.sides()[layer + 1]
        kernel = self.kernels[layer]
        rank, left, right = 3 * height * width, len(kernel), kernel[0].numel()
        return FLOAT64_COST * rank * (left + right) < left * right

    def units_per_block(self) -> int:
        """Units whose gradients are held at once."""
        held = sum(kernel.numel() for layer, kernel in enumerate(self.kernels) if not self.is_stacked(layer))
        most_units, most_bytes = UNITS_AT_ONCE, HELD_MOST_BYTES
        if self.output.device.type != "cpu":
            most_units, most_bytes = UNITS_AT_ONCE_ON_A_GPU, HELD_MOST_BYTES_ON_A_GPU
        return max(4, min(most_units, most_bytes // (4 * max(1, held))))

    def terms_per_unit(self) -> int:
        """Products that a unit adds to an entry of any tensor's sum, at most."""
        stacked = [3 * math.prod(self.sides()[k + 1]) for k in range(len(self.kernels)) if self.is_stacked(k)]
        return max([3, *stacked])

    def block_rounding(self) -> float:
        """How far the float32 products of a block can push the sums of two neighbours apart, in clip norms.

        Held gradients: one product over at most UNITS_AT_ONCE units, each of norm at most 1. Stacked rows: those
        of a few units in one product (`_units_per_product`); products and blocks are added up in float64. On a GPU
        products are in float64, too, and round by far less.
        """
        held = 2.0 * float32_gamma(UNITS_AT_ONCE) * UNITS_AT_ONCE
        scaled = 4.0 * torch.finfo(torch.float32).eps * STACKED_CANCELLATION
        return max(held, max(product_rounding(self.terms_per_unit(), 1), STACKED_ROUNDING) + scaled)
