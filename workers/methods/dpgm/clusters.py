"""Private k-means on random Fourier features: noisy counts and sums of every cluster, round by round."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from workers.mechanism.image_moments import WholeVectors
from workers.methods.dpgm.records import PlacedRecords
from workers.methods.whole_sums import clear_shifts

PIXEL_SPREAD = 0.3
"""Images lie about so far apart, divided by √pixels."""
FIRST_DISTANCE = 0.2
"""Of the first centres from the mean: what is nearest to which is told by their directions alone."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Fourier:
    """φ(x) = √(2/D)·cos(xWᵀ + b): ⟨φ(x), φ(y)⟩ is about exp(-‖x - y‖²/2w²) (Rahimi and Recht 2007). Public."""

    weights: torch.Tensor  # (D, width)
    offsets: torch.Tensor  # (D,)
    scale: float
    """Whole numbers to a feature of 1."""

    @classmethod
    def drawn(cls, records: PlacedRecords, *, features: int, kernel_width: float, scale: float) -> Fourier:
        """The public features of a declared width; always the same for the same width."""
        random = torch.Generator().manual_seed(0)
        spread = len(records.widths) ** 0.5 if records.widths is not None else PIXEL_SPREAD * records.width**0.5
        weights = torch.randn(features, records.width, generator=random) / (kernel_width * spread)
        offsets = 2.0 * math.pi * torch.rand(features, generator=random)
        return cls(weights.to(records.device), offsets.to(records.device), scale)

    @property
    def longest(self) -> float:
        """An upper bound on the L2 norm of a record's features."""
        return self.scale * math.sqrt(2.0) + math.sqrt(len(self.offsets))

    def of(self, records: PlacedRecords) -> WholeVectors:
        """The features (places, D) of every place; those without a record are left out by their cluster. Private."""
        found = np.empty((records.most, len(self.offsets)), dtype=np.int32)
        size = self.scale * math.sqrt(2.0 / len(self.offsets))
        for rows, given in records.everything():
            # Weights of a very narrow kernel are infinite, and a cosine of that is no number.
            waves = torch.cos(torch.addmm(self.offsets, given.records, self.weights.T)).nan_to_num(0.0)
            found[rows] = torch.round(size * waves).to(torch.int32).cpu().numpy()
        return WholeVectors(found, self.longest)


def first_centres(mean: Floats, clusters: int, scale: float, rng: np.random.Generator) -> Floats:
    """As many centres as clusters, at one distance from the noisy mean in random directions, which tell nothing of the records."""
    directions = rng.standard_normal((clusters, len(mean)))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    centres: Floats = np.rint(mean + FIRST_DISTANCE * scale * directions)
    return centres


def moved_centres(centres: Floats, counts: Floats, sums: Floats, noise_stds: tuple[float, ...]) -> Floats:
    """Centres moved by the means of their records, as far as these stand out of the noise (James and Stein). Reads released numbers alone.

    One that hardly any record is nearest to begins anew beside the largest.
    """
    least = max(1.0, 2.0 * noise_stds[0])
    moved: Floats = centres + clear_shifts(counts, sums, noise_std=noise_stds[1], least=least)
    return np.rint(moved)
