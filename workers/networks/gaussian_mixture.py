"""Images from a mixture of Gaussians: a component's mean plus its factor times noise, in a public basis, moved, then toned."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class Movement:
    """How drawn images are moved, as people move when they write and cameras when they look. Public numbers."""

    most_slant: float | None = None
    """Where given, what follows the pixels says how much an image leans, 1 for so many columns a row."""
    shift: float = 0.0
    """Standard deviation of a shift down and of one across, in pixels."""
    degrees: float = 0.0
    """Standard deviation of a turn."""

    @property
    def numbers(self) -> int:
        """How many numbers of noise a movement takes for each image."""
        return 3 if self.shift or self.degrees else 0


STILL = Movement()


class GaussianMixture(torch.nn.Module):
    """forward(noise (n, r), condition (1,) int64) -> images (n, height, width, channels) in [0, 1].

    All images of one call are of one component, so that its factor is looked up once and not for every image.
    """

    means: Tensor
    factors: Tensor
    basis: Tensor
    across: Tensor
    down: Tensor

    def __init__(
        self,
        means: Tensor,
        factors: Tensor,
        basis: Tensor,
        shape: tuple[int, int, int],
        tones: tuple[tuple[float, ...], tuple[float, ...]] = ((0.0, 1.0), (0.0, 1.0)),
        movement: Movement = STILL,
    ) -> None:
        """Means (K, d), factors (K, r, d), basis (d, pixels), all in the coefficients of the basis.

        tones: what numbers (rising) become what brightness; straight lines in between, constant outside.
        """
        super().__init__()
        self.register_buffer("means", means.float())
        self.register_buffer("factors", factors.float())
        self.register_buffer("basis", basis.float())
        self.shape, self.pixels = shape, math.prod(shape)
        self.tones, self.movement = tones, movement
        middle_down, middle_across = ((side - 1) / 2.0 for side in shape[:2])
        down, across = torch.meshgrid(
            torch.arange(shape[0]) - middle_down, torch.arange(shape[1]) - middle_across, indexing="ij"
        )
        self.register_buffer("down", down, persistent=False)
        self.register_buffer("across", across, persistent=False)
        self.halves = max(middle_across, 0.5), max(middle_down, 0.5)

    @property
    def noise_dimension(self) -> int:
        return int(self.factors.shape[1]) + self.movement.numbers

    def numbers(self, noise: Tensor, condition: Tensor) -> Tensor:
        """(n, pixels) before they are moved and toned; after them the slant, where there is one."""
        mean = self.means.index_select(0, condition)  # (1, d)
        factor = self.factors.index_select(0, condition).squeeze(0)  # (r, d)
        return (mean + noise[:, : self.factors.shape[1]] @ factor) @ self.basis

    def forward(self, noise: Tensor, condition: Tensor) -> Tensor:
        return self._images(self.numbers(noise, condition), noise)

    def mixed(self, noise: Tensor, components: Tensor) -> Tensor:
        """Images (n, height, width, channels) of a component each, (n,): more memory, for one pass over them all."""
        wide = noise[:, : self.factors.shape[1]].unsqueeze(1)
        varied = torch.bmm(wide, self.factors[components]).squeeze(1)  # (n, d)
        return self._images((self.means[components] + varied) @ self.basis, noise)

    def _images(self, numbers: Tensor, noise: Tensor) -> Tensor:
        return self._toned(self.moved(numbers, noise)).reshape(-1, *self.shape)

    def moved(self, numbers: Tensor, noise: Tensor) -> Tensor:
        """What `numbers` gives -> (n, pixels), to be toned: a pixel between two others loses contrast, and the curve gives it back."""
        move = self.movement
        if move.most_slant is None and not move.numbers:
            return numbers
        # Where each pixel comes from, in pixels from the middle: first the turn and the shift, then the slant.
        across, down = self.across.unsqueeze(0), self.down.unsqueeze(0)  # (1, height, width)
        if move.numbers:
            extra = noise[:, self.factors.shape[1] :].unsqueeze(2)  # (n, 3, 1)
            angle = extra[:, 0:1] * math.radians(move.degrees)
            cosine, sine, shift = torch.cos(angle), torch.sin(angle), extra * move.shift
            across, down = (
                cosine * across - sine * down + shift[:, 1:2],
                sine * across + cosine * down + shift[:, 2:3],
            )
        if move.most_slant is not None:
            slant = (2.0 * numbers[:, self.pixels :].mean(dim=1) - 1.0).clamp(-1.0, 1.0) * move.most_slant
            across = across - slant[:, None, None] * down
            down = down.expand_as(across)
        places = torch.stack((across / self.halves[0], down / self.halves[1]), dim=3)
        images = numbers[:, : self.pixels].reshape(-1, *self.shape).permute(0, 3, 1, 2)
        moved = F.grid_sample(images, places, padding_mode="border", align_corners=True)
        return moved.permute(0, 2, 3, 1).flatten(1)

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
