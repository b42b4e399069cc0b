"""Per-unit gradients that are found, clipped and added up in one go on a GPU, block after block of a few sizes (`replays`)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from workers.mechanism import CriticBatch, PerUnitGradients
from workers.mechanism.clipping import clip_factors
from workers.numerics.replays import Replays
from workers.numerics.workspace import Workspace

SMALLEST_STEP = 32
"""Units: blocks are padded to a multiple of it, larger ones to one of at most an eighth of themselves."""


@dataclass(frozen=True)
class ReplayedGradients:
    """Gradients of U units. A block is padded with null units, which add nothing, and keep every unit in its place."""

    engine: Callable[[CriticBatch, Workspace], PerUnitGradients]
    batch: CriticBatch
    key: Hashable
    """Says what the engine does: its critic and its loss."""
    most_units: int
    replays: Replays
    workspace: Workspace
    found: dict[str, Tensor] = field(default_factory=dict)

    @property
    def tensor_norms(self) -> Tensor:
        return self._find("norms")

    @property
    def contributes(self) -> Tensor:
        return self._find("contributes")

    def weighted_sum(self, weights: Tensor) -> tuple[Tensor, ...]:
        return self.engine(self.batch, self.workspace).weighted_sum(weights)

    def add_clipped(
        self, together: Tensor, *, group_of: Sequence[int], clip_norms: Sequence[float], smallest_factor: float
    ) -> None:
        """As `SelfClipping` says. A graph learns the smallest factor, which is a constant, and looks the rules up each time."""
        units, each = self.batch.units, self.batch.rows_per_unit
        padded = min(self.most_units, padded_units(units))
        rules = _rules(group_of, clip_norms).to(together.device)

        def go_over(inputs: Sequence[Tensor], workspace: Workspace) -> tuple[Tensor, ...]:
            real, fake, mix, present, rules = inputs
            gradients = self.engine(CriticBatch(real, fake, mix, present, each), workspace)
            norms, contributes = gradients.tensor_norms, gradients.contributes
            weights = clip_factors(
                norms, contributes, member=rules[1:], allowed=rules[0], smallest_factor=smallest_factor
            )
            return torch.cat([part.flatten() for part in gradients.weighted_sum(weights)]), norms, contributes

        batch = self.batch
        inputs = (batch.real, batch.fake, batch.mix, batch.present, rules)
        lengths = (*[padded * each] * 4, len(rules))
        sums, norms, contributes = self.replays.run((self.key, smallest_factor, padded, each), go_over, inputs, lengths)
        together.add_(sums)
        self.found.update(norms=norms[:units].clone(), contributes=contributes[:units].clone())

    def _find(self, name: str) -> Tensor:
        if not self.found:
            gradients = self.engine(self.batch, self.workspace)
            self.found.update(norms=gradients.tensor_norms, contributes=gradients.contributes)
        return self.found[name]


def padded_units(units: int) -> int:
    """The number of units rounded up to one of a few sizes, so that draws of different sizes share a recorded graph."""
    step = max(SMALLEST_STEP, 1 << max(0, units.bit_length() - 4))
    return -(-units // step) * step


def _rules(group_of: Sequence[int], clip_norms: Sequence[float]) -> Tensor:
    """(1 + M, M) float64 for M tensors: what is allowed to each group, then which tensor is in which; empty groups fill up."""
    tensors = len(group_of)
    rules = torch.zeros(1 + tensors, tensors, dtype=torch.float64)
    rules[0] = 1.0
    rules[0, : len(clip_norms)] = torch.tensor(clip_norms, dtype=torch.float64)
    rules[1 + torch.arange(tensors), torch.tensor(group_of)] = 1.0
    return rules
