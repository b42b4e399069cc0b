"""Images from a mixture of Gaussians: a component's mean plus its factor times noise, in a public basis, clamped."""

from __future__ import annotations

import torch
from torch import Tensor


class GaussianMixture(torch.nn.Module):
    """forward(noise (n, r), condition (1,) int64) -> images (n, height, width, channels) in [0, 1].

    All images of one call are of one component, so that its factor is looked up once and not for every image.
    """

    means: Tensor
    factors: Tensor
    basis: Tensor

    def __init__(self, means: Tensor, factors: Tensor, basis: Tensor, shape: tuple[int, int, int]) -> None:
        """Means (K, d), factors (K, r, d), basis (d, pixels), all in the coefficients of the basis."""
        super().__init__()
        self.register_buffer("means", means.float())
        self.register_buffer("factors", factors.float())
        self.register_buffer("basis", basis.float())
        self.shape = shape

    @property
    def noise_dimension(self) -> int:
        return int(self.factors.shape[1])

    def forward(self, noise: Tensor, condition: Tensor) -> Tensor:
        mean = self.means.index_select(0, condition)  # (1, d)
        factor = self.factors.index_select(0, condition).squeeze(0)  # (r, d)
        pixels = (mean + noise @ factor) @ self.basis
        return pixels.clamp(0.0, 1.0).reshape(-1, *self.shape)
