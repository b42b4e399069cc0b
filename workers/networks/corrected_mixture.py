"""A measured mixture whose images a perceptron corrects; before its first step it changes nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workers.networks.gaussian_mixture import GaussianMixture


class CorrectedMixture(nn.Module):
    """forward(noise (n, r), component (1,)) -> images (n, height, width, channels) in [0, 1].

    The mixture comes later than the weights, once it has been measured: `begin_with`. None of its numbers is trained.
    """

    def __init__(self, shape: tuple[int, int, int], *, hidden: Sequence[int], classes: int) -> None:
        super().__init__()
        pixels = math.prod(shape)
        self.shape = shape
        self.inputs = nn.Linear(pixels, hidden[0])
        self.condition = nn.Embedding(classes, hidden[0])
        self.norms = nn.ModuleList(nn.LayerNorm(size) for size in hidden)
        self.hidden = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(hidden))
        self.output = nn.Linear(hidden[-1], pixels)
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def begin_with(self, mixture: GaussianMixture, component_labels: Sequence[int]) -> None:
        """Whose images are corrected, and the class of each of its components."""
        self.mixture = mixture
        self.register_buffer("component_labels", torch.tensor(component_labels, dtype=torch.int64))

    @property
    def noise_dimension(self) -> int:
        return self.mixture.noise_dimension

    def corrected(self, images: Tensor, classes: Tensor) -> Tensor:
        """Images (n, pixels) of these classes, (n,) or (1,), and a correction; not held to [0, 1]."""
        first, *norms = self.norms
        state = F.relu(first(self.inputs(2.0 * images - 1.0) + self.condition(classes)))
        for layer, norm in zip(self.hidden, norms, strict=True):
            state = F.relu(norm(layer(state)))
        corrected: Tensor = images + self.output(state)
        return corrected

    def drawn(self, noise: Tensor, components: Tensor) -> Tensor:
        """(n, pixels) of a component each, for training: beyond black and white there is still a slope."""
        with torch.no_grad():
            images = self.mixture.mixed(noise, components).flatten(1)
        return self.corrected(images, self.get_buffer("component_labels")[components])

    def forward(self, noise: Tensor, condition: Tensor) -> Tensor:
        images = self.mixture(noise, condition).flatten(1)
        labels = self.get_buffer("component_labels").index_select(0, condition)
        return self.corrected(images, labels).clamp(0.0, 1.0).reshape(-1, *self.shape)
