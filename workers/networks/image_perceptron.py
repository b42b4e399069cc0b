"""Generator of small images of one class: a perceptron. No layer mixes records."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class PerceptronImageGenerator(nn.Module):
    """(z (B, noise), class (B,)) -> images (B, height, width, channels) in [0, 1]."""

    def __init__(
        self, shape: tuple[int, int, int], *, noise_dimension: int, hidden: Sequence[int], classes: int
    ) -> None:
        super().__init__()
        self.shape = shape
        self.inputs = nn.Linear(noise_dimension, hidden[0])
        # A one-hot times a matrix is a row of it: an embedding is the class's part of the first layer.
        self.condition = nn.Embedding(classes, hidden[0])
        self.norms = nn.ModuleList(nn.LayerNorm(size) for size in hidden)
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(hidden))
        self.output = nn.Linear(hidden[-1], shape[0] * shape[1] * shape[2])

    def forward(self, noise: Tensor, condition: Tensor) -> Tensor:
        return torch.sigmoid(self.logits(noise, condition))

    def logits(self, noise: Tensor, condition: Tensor) -> Tensor:
        """Logits of the images, (B, height, width, channels)."""
        first, *norms = self.norms
        state = F.relu(first(self.inputs(noise) + self.condition(condition)))
        for layer, norm in zip(self.hidden, norms, strict=True):
            state = F.relu(norm(layer(state)))
        return self.output(state).view(-1, *self.shape)  # type: ignore[no-any-return]
