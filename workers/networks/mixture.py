"""A mixture of product distributions as a network: noise picks a component, whose logits it returns."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class MixtureGenerator(nn.Module):
    """(z, condition) -> logits of every column, side by side, of one equally likely component of that condition.

    The component's number is written in bits, the signs of the noise: z ~ N(0, I) picks uniformly, and exactly so in any
    arithmetic. logits: (conditions, components, total_width), components a power of two.
    """

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        conditions, components, width = logits.shape
        self.noise_dimension = max(1, components.bit_length() - 1)
        if components != 1 << self.noise_dimension:
            raise ValueError("the number of components must be a power of two, and at least two")
        self.components = components
        self.logits = nn.Parameter(logits.reshape(conditions * components, width).contiguous(), requires_grad=False)
        self.register_buffer("places", 2 ** torch.arange(self.noise_dimension), persistent=False)

    def forward(self, noise: Tensor, condition: Tensor | None = None) -> Tensor:
        picked = ((noise > 0).long() * self.get_buffer("places")).sum(dim=1)  # (B,)
        if condition is not None:
            picked = picked + condition * self.components
        return self.logits[picked]
