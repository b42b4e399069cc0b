"""Critics of images with a second head that names the class (Odena, Olah, Shlens 2017). No layer mixes records.

D(x, y) = s(x) + log p(y|x), where a real image has its label; of a generated one the critic sees no label, so that it learns
classes from real images alone, while the generator's step has them.
"""

from __future__ import annotations

from itertools import pairwise

import torch.nn.functional as F
from torch import Tensor, nn

from workers.networks.image import ImageCritic
from workers.networks.table import LEAKY
from workers.numerics.activations import Activation


class AuxiliaryPerceptron(nn.Module):
    """Two heads on a perceptron of the pixels alone. Its per-unit gradients are found by vmap."""

    def __init__(self, pixels: int, hidden: tuple[int, ...], classes: int, activation: Activation = LEAKY) -> None:
        super().__init__()
        self.pixels, self.activation = pixels, activation
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise((pixels, *hidden)))
        self.output = nn.Linear(hidden[-1], 1, bias=False)
        self.classify = nn.Linear(hidden[-1], classes)

    def forward(self, record: Tensor) -> Tensor:
        state = record[:, : self.pixels]
        for layer in self.layers:
            state = self.activation.value(layer(state))
        label = (record[:, self.pixels :].detach() > 0.0).float()
        named = F.log_softmax(self.classify(state), dim=1) * label
        return self.output(state).squeeze(-1) + named.sum(dim=1)  # type: ignore[no-any-return]


class AuxiliaryCritic(nn.Module):
    """A second head of classes on the critic's last layer. Its per-unit gradients are found by vmap."""

    def __init__(
        self, shape: tuple[int, int, int], channels: tuple[int, ...], classes: int, activation: Activation = LEAKY
    ) -> None:
        super().__init__()
        self.trunk = ImageCritic(shape, channels, activation=activation)
        self.classify = nn.Linear(self.trunk.output.in_features, classes)

    def forward(self, record: Tensor) -> Tensor:
        trunk = self.trunk
        state = record[:, : trunk.pixels].view(-1, *trunk.shape).permute(0, 3, 1, 2)
        for layer in trunk.layers:
            state = trunk.activation.value(layer(state))
        seen = state.permute(0, 2, 3, 1).flatten(1)
        named = F.log_softmax(self.classify(seen), dim=1) * record[:, trunk.pixels :].detach()
        return trunk.output(seen).squeeze(-1) + named.sum(dim=1)  # type: ignore[no-any-return]
