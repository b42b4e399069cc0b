"""Images from a mixture of Gaussians: a component's mean plus its factor times noise, in a public basis, then toned."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor


class GaussianMixture(torch.nn.Module):
    """forward(noise (n, r), condition (1,) int64) -> images (n, height, width, channels) in [0, 1].

    All images of one call are of one component, so that its factor is looked up once and not for every image.
    """

    means: Tensor
    factors: Tensor
    basis: Tensor

    def __init__(
        self,
        means: Tensor,
        factors: Tensor,
        basis: Tensor,
        shape: tuple[int, int, int],
        tones: tuple[tuple[float, ...], tuple[float, ...]] = ((0.0, 1.0), (0.0, 1.0)),
    ) -> None:
        """Means (K, d), factors (K, r, d), basis (d, pixels), all in the coefficients of the basis.

        tones: what numbers (rising) become what brightness; straight lines in between, constant outside.
        """
        super().__init__()
        self.register_buffer("means", means.float())
        self.register_buffer("factors", factors.float())
        self.register_buffer("basis", basis.float())
        self.shape = shape
        self.tones = tones

    @property
    def noise_dimension(self) -> int:
        return int(self.factors.shape[1])

    def numbers(self, noise: Tensor, condition: Tensor) -> Tensor:
        """(n, pixels) before they are toned."""
        mean = self.means.index_select(0, condition)  # (1, d)
        factor = self.factors.index_select(0, condition).squeeze(0)  # (r, d)
        return (mean + noise @ factor) @ self.basis

    def forward(self, noise: Tensor, condition: Tensor) -> Tensor:
        numbers, (places, values) = self.numbers(noise, condition), self.tones
        # A broken line as a sum of hinges, one for every change of slope.
        toned, before = torch.full_like(numbers, values[0]), 0.0
        for k in range(len(places) - 1):
            slope = (values[k + 1] - values[k]) / (places[k + 1] - places[k])
            if slope != before:
                toned = toned + (slope - before) * F.relu(numbers - places[k])
            before = slope
        toned = toned - before * F.relu(numbers - places[-1])
        return toned.clamp(0.0, 1.0).reshape(-1, *self.shape)
