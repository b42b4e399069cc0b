"""Generator of images of one class: a perceptron layer, then convolutions at twice the sides each. None mixes records."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class ImageGenerator(nn.Module):
    """(z (B, noise), class (B,)) -> images (B, height, width, channels) in [0, 1].

    Sides begin at those of the image halved once a layer, rounded up, so that any size comes out exactly.
    """

    def __init__(
        self, shape: tuple[int, int, int], *, noise_dimension: int, channels: Sequence[int], classes: int
    ) -> None:
        super().__init__()
        height, width, colours = shape
        halvings = range(len(channels), -1, -1)
        self.sizes = [(-(-height // 2**k), -(-width // 2**k)) for k in halvings]
        first = channels[0] * self.sizes[0][0] * self.sizes[0][1]
        self.channels = channels[0]
        self.inputs = nn.Linear(noise_dimension, first)
        # A one-hot times a matrix is a row of it: an embedding is the class's part of the first layer.
        self.condition = nn.Embedding(classes, first)
        self.norms = nn.ModuleList(nn.GroupNorm(1, size) for size in channels)
        self.layers = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in pairwise((*channels, channels[-1])))
        self.output = nn.Conv2d(channels[-1], colours, 3, padding=1)

    def forward(self, noise: Tensor, condition: Tensor) -> Tensor:
        return torch.sigmoid(self.logits(noise, condition))

    def logits(self, noise: Tensor, condition: Tensor) -> Tensor:
        """Logits of the images, (B, height, width, channels)."""
        first = self.inputs(noise) + self.condition(condition)
        state = first.view(-1, self.channels, *self.sizes[0])
        for norm, layer, size in zip(self.norms, self.layers, self.sizes[1:], strict=True):
            state = layer(F.interpolate(F.relu(norm(state)), size=size))
        return self.output(F.relu(state)).permute(0, 2, 3, 1)  # type: ignore[no-any-return]
