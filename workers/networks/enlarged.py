"""Images of fewer pixels than they are published with: public maps of each image by itself."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workers.networks.image_generator import ImageGenerator
from workers.networks.image_perceptron import PerceptronImageGenerator


def shrunk_sides(shape: tuple[int, int, int], shrink: int) -> tuple[int, int, int]:
    """Height and width divided and rounded up; the channels stay."""
    return -(-shape[0] // shrink), -(-shape[1] // shrink), shape[2]


def shrunk(images: Tensor, shrink: int) -> Tensor:
    """(R, H, W, C) -> (R, H', W', C): means of shrink × shrink pixels, at the far edges of those there are."""
    if shrink == 1:
        return images
    pooled = F.avg_pool2d(images.permute(0, 3, 1, 2), shrink, ceil_mode=True, count_include_pad=False)
    return pooled.permute(0, 2, 3, 1)


class Enlarged(nn.Module):
    """(noise, condition) -> images of `shape` in [0, 1], from those that `generator` makes of fewer pixels.

    Logits are what is drawn out between pixels, so that an edge can be as sharp as the larger image allows.
    """

    def __init__(self, generator: ImageGenerator | PerceptronImageGenerator, shape: tuple[int, int, int]) -> None:
        super().__init__()
        self.generator, self.sides = generator, shape[:2]

    def forward(self, noise: Tensor, condition: Tensor) -> Tensor:
        small = self.generator.logits(noise, condition).permute(0, 3, 1, 2)
        large = F.interpolate(small, size=self.sides, mode="bilinear", align_corners=False)
        return torch.sigmoid(large).permute(0, 2, 3, 1)
