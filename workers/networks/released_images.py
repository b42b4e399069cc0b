"""Images that were released one by one: a component is one of them, and noise changes nothing."""

from __future__ import annotations

import torch
from torch import Tensor

MIDDLE = 0.5
"""The grey that coefficients are less of."""


class ReleasedImages(torch.nn.Module):
    """forward(noise (n, 1), condition (n,) int64) -> images (n, height, width, channels) in [0, 1].

    coefficients (images, k, k, channels), down (height, k), across (width, k): an image is grey plus down·coefficients·acrossᵀ.
    """

    coefficients: Tensor
    down: Tensor
    across: Tensor
    silence: Tensor

    def __init__(self, coefficients: Tensor, down: Tensor, across: Tensor) -> None:
        super().__init__()
        self.register_buffer("coefficients", coefficients.permute(0, 3, 1, 2).contiguous().float())
        self.register_buffer("down", down.float())
        self.register_buffer("across", across.float())
        self.register_buffer("silence", torch.zeros(1, 1))

    def forward(self, noise: Tensor, condition: Tensor) -> Tensor:
        chosen = self.coefficients.index_select(0, condition)  # (n, channels, k, k)
        images = torch.matmul(torch.matmul(self.down, chosen), self.across.transpose(0, 1))
        # Samplers give every generator noise.
        unmoved = torch.matmul(noise, self.silence).reshape(-1, 1, 1, 1)
        return (images.permute(0, 2, 3, 1) + MIDDLE + unmoved).clamp(0.0, 1.0)
