"""Images from a mixture of Gaussians: a component's mean plus its factor times noise, in a public basis, then toned."""

from __future__ import annotations

import math

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
        *,
        most_slant: float | None = None,
    ) -> None:
        """Means (K, d), factors (K, r, d), basis (d, pixels), all in the coefficients of the basis.

        tones: what numbers (rising) become what brightness; straight lines in between, constant outside.
        most_slant: where given, what follows the pixels says how much an image leans, 1 for so many columns a row.
        """
        super().__init__()
        self.register_buffer("means", means.float())
        self.register_buffer("factors", factors.float())
        self.register_buffer("basis", basis.float())
        self.shape = shape
        self.tones, self.most_slant = tones, most_slant
        self.pixels = math.prod(shape)
        down, across = torch.meshgrid(torch.linspace(-1, 1, shape[0]), torch.linspace(-1, 1, shape[1]), indexing="ij")
        self.register_buffer("places", torch.stack((across, down), dim=2), persistent=False)  # (height, width, 2)
        # A row's own shift, for a slant of one column a row, in units of half the width.
        shifts = down * (shape[0] - 1) / max(1, shape[1] - 1)
        self.register_buffer("shifts", torch.stack((shifts, torch.zeros_like(shifts)), dim=2), persistent=False)

    @property
    def noise_dimension(self) -> int:
        return int(self.factors.shape[1])

    def numbers(self, noise: Tensor, condition: Tensor) -> Tensor:
        """(n, pixels) before they are toned."""
        mean = self.means.index_select(0, condition)  # (1, d)
        factor = self.factors.index_select(0, condition).squeeze(0)  # (r, d)
        return (mean + noise @ factor) @ self.basis

    def forward(self, noise: Tensor, condition: Tensor) -> Tensor:
        return self._images(self.numbers(noise, condition))

    def mixed(self, noise: Tensor, components: Tensor) -> Tensor:
        """Images (n, height, width, channels) of a component each, (n,): more memory, for one pass over them all."""
        moved = torch.bmm(noise.unsqueeze(1), self.factors[components]).squeeze(1)  # (n, d)
        return self._images((self.means[components] + moved) @ self.basis)

    def _images(self, numbers: Tensor) -> Tensor:
        images = self._toned(numbers[:, : self.pixels]).reshape(-1, *self.shape)
        if self.most_slant is None:
            return images
        slants = (2.0 * numbers[:, self.pixels :].mean(dim=1) - 1.0).clamp(-1.0, 1.0) * self.most_slant
        places = self.get_buffer("places") - slants[:, None, None, None] * self.get_buffer("shifts")
        leaning = F.grid_sample(images.permute(0, 3, 1, 2), places, align_corners=True)
        return leaning.clamp(0.0, 1.0).permute(0, 2, 3, 1)

    def _toned(self, numbers: Tensor) -> Tensor:
        places, values = self.tones
        # A broken line as a sum of hinges, one for every change of slope.
        toned, before = torch.full_like(numbers, values[0]), 0.0
        for k in range(len(places) - 1):
            slope = (values[k + 1] - values[k]) / (places[k + 1] - places[k])
            if slope != before:
                toned = toned + (slope - before) * F.relu(numbers - places[k])
            before = slope
        toned = toned - before * F.relu(numbers - places[-1])
        return toned.clamp(0.0, 1.0)
