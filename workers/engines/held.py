"""Per-unit gradients kept in full, a few units' at a time: the engine for steps that look at each gradient itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from workers.mechanism import LARGEST_NORM
from workers.mechanism.convolutions.unit_gradients import UNITS_AT_ONCE, HeldGradient
from workers.numerics.block_sums import float32_gamma
from workers.numerics.workspace import Workspace

HELD_UNITS = UNITS_AT_ONCE
HELD_ROUNDING = 2.0 * float32_gamma(HELD_UNITS) * HELD_UNITS + 32.0 * torch.finfo(torch.float32).eps
"""How far a block's float32 products can push the sums of two neighbours apart, in clip norms: one product over at most HELD_UNITS
gradients of norm at most 1, and factors that were rounded to float32."""


@dataclass(frozen=True)
class HeldGradients:
    """Gradients of at most HELD_UNITS units, for each tensor (U, *shape)."""

    gradients: tuple[Tensor, ...]
    usable: Tensor  # (U,) bool
    workspace: Workspace

    @cached_property
    def tensor_norms(self) -> Tensor:
        return torch.stack([part.norms for part in self._parts], dim=1)

    @cached_property
    def contributes(self) -> Tensor:
        # A comparison with NaN is False.
        return self.usable & (self.tensor_norms <= LARGEST_NORM).all(dim=1)

    def weighted_sum(self, weights: Tensor) -> tuple[Tensor, ...]:
        kept = torch.where(self.contributes, weights.T, 0.0)  # (M, U)
        return tuple(part.weighted_sum(kept[m]).double() for m, part in enumerate(self._parts))

    def seen_as(self, gradients: Sequence[Tensor]) -> HeldGradients:
        """Others in the place of these, unit by unit."""
        return HeldGradients(tuple(gradients), self.usable, self.workspace)

    @cached_property
    def _parts(self) -> list[HeldGradient]:
        if len(self.usable) > HELD_UNITS:
            raise ValueError("more units than the bound on rounding was computed for")
        return [HeldGradient(g.flatten(1).contiguous(), g.shape[1:], self.workspace) for g in self.gradients]
