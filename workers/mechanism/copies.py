"""Several copies of each record: the mean of their gradients is one record's gradient, and is clipped as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from workers.mechanism import PerUnitGradients, SelfClipping


def mean_of_copies(gradients: PerUnitGradients, copies: int) -> PerUnitGradients:
    """The gradients of units whose rows are so many copies of each record, divided by that number before anything is clipped.

    A unit's part stays a function of its own rows and coins, so the sum of clipped parts moves by one clip norm, as without copies.
    A power of two: dividing by it rounds nothing.

    Adjacency:   zero-out one unit.
    Sensitivity: unbounded; nothing may be released before clipping. Clipped by `clipping.clip_and_sum`, one clip norm, whatever `copies` is.
    Shapes:      gradients of U units; the same U units.
    Source:      De, Berrada, Hayes, Smith, Balle 2022, Unlocking high-accuracy differentially private image classification through scale,
                 arXiv 2204.13650 (augmentation multiplicity).
    Edge cases:  one copy -> the same gradients; a unit that does not contribute still adds 0.
    """
    if copies < 1 or copies & (copies - 1):
        raise ValueError("copies: a power of two, so that the mean is exact")
    if copies == 1:
        return gradients
    if isinstance(gradients, SelfClipping):
        return SelfClippingMeans(gradients, copies)
    return Means(gradients, copies)


@dataclass(frozen=True)
class Means:
    """Of every unit the `copies`-th part of a sum."""

    sums: PerUnitGradients
    copies: int

    @property
    def tensor_norms(self) -> Tensor:
        return self.sums.tensor_norms / self.copies

    @property
    def contributes(self) -> Tensor:
        return self.sums.contributes

    def weighted_sum(self, weights: Tensor) -> tuple[Tensor, ...]:
        return self.sums.weighted_sum(weights / self.copies)


@dataclass(frozen=True)
class SelfClippingMeans(Means):
    """The same of gradients that are clipped as they are found: sums are clipped to so many clip norms, and divided afterwards."""

    def add_clipped(
        self, together: Tensor, *, group_of: Sequence[int], clip_norms: Sequence[float], smallest_factor: float
    ) -> None:
        """As `SelfClipping` says: ‖g/k‖ ≤ c where ‖g‖ ≤ k·c, with the same factor."""
        if not isinstance(self.sums, SelfClipping):
            raise TypeError("these gradients do not clip themselves")
        of_sums = torch.zeros_like(together)
        allowed = [self.copies * clip_norm for clip_norm in clip_norms]
        self.sums.add_clipped(of_sums, group_of=group_of, clip_norms=allowed, smallest_factor=smallest_factor)
        together.add_(of_sums, alpha=1.0 / self.copies)
