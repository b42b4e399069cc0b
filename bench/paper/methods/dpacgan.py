"""DP-ACGAN (Beaulieu-Jones et al. 2019): the critic also names the class of an image, and the generator pleases both heads.

D(x, y) = s(x) + log p(y|x), where a real image has its label; for a generated one the critic sees no label, so that it learns
classes from real images alone, while the generator's step has them. One loss an image, clipped as a whole; Wasserstein
instead of the original's logistic loss, as for every method here.
"""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise
from typing import Any

import numpy as np
import torch.nn.functional as F
from torch import Tensor, nn

from bench.paper.methods.idpgan import NONE
from service.methods.idpgan.order import IdpganOrder
from workers.mechanism import CriticBatch
from workers.methods.idpgan.images import ImageIdpgan
from workers.networks.image import ImageCritic
from workers.networks.table import LEAKY_SLOPE


class AuxiliaryPerceptron(nn.Module):
    """Two heads on a perceptron of the pixels alone. Its per-unit gradients are found by vmap."""

    def __init__(self, pixels: int, hidden: tuple[int, ...], classes: int) -> None:
        super().__init__()
        self.pixels = pixels
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise((pixels, *hidden)))
        self.output = nn.Linear(hidden[-1], 1, bias=False)
        self.classify = nn.Linear(hidden[-1], classes)

    def forward(self, record: Tensor) -> Tensor:
        state = record[:, : self.pixels]
        for layer in self.layers:
            state = F.leaky_relu(layer(state), LEAKY_SLOPE)
        label = (record[:, self.pixels :].detach() > 0.0).float()
        named = F.log_softmax(self.classify(state), dim=1) * label
        return self.output(state).squeeze(-1) + named.sum(dim=1)  # type: ignore[no-any-return]


class AuxiliaryCritic(nn.Module):
    """A second head of classes on the critic's last layer. Its per-unit gradients are found by vmap."""

    def __init__(self, shape: tuple[int, int, int], channels: tuple[int, ...], classes: int) -> None:
        super().__init__()
        self.trunk = ImageCritic(shape, channels)
        self.classify = nn.Linear(self.trunk.output.in_features, classes)

    def forward(self, record: Tensor) -> Tensor:
        trunk = self.trunk
        state = record[:, : trunk.pixels].view(-1, *trunk.shape).permute(0, 3, 1, 2)
        for layer in trunk.layers:
            state = F.leaky_relu(layer(state), LEAKY_SLOPE)
        seen = state.permute(0, 2, 3, 1).flatten(1)
        named = F.log_softmax(self.classify(seen), dim=1) * record[:, trunk.pixels :].detach()
        return trunk.output(seen).squeeze(-1) + named.sum(dim=1)  # type: ignore[no-any-return]


class Run(ImageIdpgan):
    """With a critic of two heads."""

    def make_critic(self) -> nn.Module:
        if self.sizes.layers == "perceptrons":
            return AuxiliaryPerceptron(math.prod(self.images.shape), self.sizes.critic_hidden, self.classes)
        return AuxiliaryCritic(self.images.shape, self.sizes.critic_channels, self.classes)

    def _critic_batch(self, units: np.ndarray) -> CriticBatch:
        batch = super()._critic_batch(units)
        fake = batch.fake.clone()
        fake[:, -self.classes :] = 0.0
        return dataclasses.replace(batch, fake=fake)


def knobs(order: dict[str, Any]) -> IdpganOrder:
    """The order of a run."""
    return IdpganOrder.model_validate({**NONE, **order})
