"""The gradients of `outer_products` by compiled loops that go over the rows once: norms, clipping and sum, block by block.

The same formulas, the same bounds on rounding, for float32 on a CPU with a C compiler (`workers.numerics.kernels`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from workers.mechanism import (
    FLOAT32_CANCELLATION,
    LARGEST_CANCELLATION,
    LARGEST_NORM,
    CriticBatch,
    CriticLoss,
    Perceptron,
)
from workers.numerics.compiling import DEEPEST, ROWS_AT_ONCE
from workers.numerics.kernels import ClippingRule, Kernels, Limits, Rows, kernels
from workers.numerics.workspace import Workspace

LIMITS = Limits(LARGEST_NORM, LARGEST_CANCELLATION, FLOAT32_CANCELLATION)


@dataclass(frozen=True)
class CompiledGradients:
    """Gradients of U units, found again whenever a sum is asked for."""

    kernels: Kernels
    critic: Perceptron
    rows: Rows
    loss: CriticLoss
    workspace: Workspace
    found: dict[str, Tensor] = field(default_factory=dict)

    @property
    def tensor_norms(self) -> Tensor:
        return self._find("norms")

    @property
    def contributes(self) -> Tensor:
        return self._find("contributes")

    def add_clipped(
        self, together: Tensor, *, group_of: Sequence[int], clip_norms: Sequence[float], smallest_factor: float
    ) -> None:
        self._go_over(ClippingRule(group_of, clip_norms, smallest_factor), together)

    def weighted_sum(self, weights: Tensor) -> tuple[Tensor, ...]:
        shapes = [
            tensor.shape for pair in zip(self.critic.weights, self.critic.biases, strict=False) for tensor in pair
        ]
        shapes.append(self.critic.weights[-1].shape)
        sizes = [shape.numel() for shape in shapes]
        together = torch.zeros(sum(sizes), dtype=torch.float64)
        self._go_over(weights.contiguous(), together)
        return tuple(part.view(shape) for part, shape in zip(torch.split(together, sizes), shapes, strict=True))

    def _find(self, name: str) -> Tensor:
        if not self.found:
            self._go_over()
        return self.found[name]

    def _go_over(self, weighting: ClippingRule | Tensor | None = None, sums: Tensor | None = None) -> None:
        norms, contributes = self.kernels.perceptron_gradients(
            self.critic,
            self.rows,
            paired=self.loss.paired,
            gradient_penalty=self.loss.gradient_penalty,
            limits=LIMITS,
            workspace=self.workspace,
            weighting=weighting,
            sums=sums,
        )
        self.found.update(norms=norms, contributes=contributes)


def compiled_gradients(
    critic: Perceptron, batch: CriticBatch, loss: CriticLoss, workspace: Workspace | None = None
) -> CompiledGradients | None:
    """Gradient of every unit's loss, the sum of its rows' losses, with the gradient penalty inside; None: not known here.

    Adjacency:   zero-out one unit.
    Sensitivity: unbounded; nothing may be released before clipping.
    Shapes:      batch of R rows, those of a unit side by side; gives M tensors in the order W_1, b_1, …, W_L.
    Source:      as `outer_products.outer_product_gradients`.
    Edge cases:  no rows -> no units' gradients; r = 0 where g = 0; null rows add nothing to their unit; a unit with more
                 than ROWS_AT_ONCE rows, no hidden layer or more than DEEPEST, other devices and dtypes -> None.
    """
    loops = kernels(batch.real.device, batch.real.dtype)
    if loops is None or not 1 <= len(critic.biases) <= DEEPEST or batch.rows_per_unit > ROWS_AT_ONCE:
        return None
    rows = Rows(
        batch.fake.contiguous(),
        batch.real.contiguous(),
        batch.mix.view(-1),
        batch.present.contiguous(),
        batch.units,
        batch.rows_per_unit,
    )
    return CompiledGradients(loops, critic, rows, loss, workspace or Workspace())
