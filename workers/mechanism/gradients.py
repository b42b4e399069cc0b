"""Per-unit gradients of the critic loss by `vmap(grad)`: works for any critic, and is the oracle of the fast engine."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from workers.mechanism import LARGEST_NORM, CriticBatch, CriticLoss


@dataclass(frozen=True)
class MaterialisedGradients:
    """Gradients kept in full, one row per unit."""

    gradients: tuple[Tensor, ...]  # M tensors (U, *shape_m)
    usable: Tensor  # (U,) bool: the unit has a record that is not null

    @cached_property
    def tensor_norms(self) -> Tensor:
        return torch.stack([g.flatten(1).double().norm(dim=1) for g in self.gradients], dim=1)

    @cached_property
    def contributes(self) -> Tensor:
        # A comparison with NaN is False.
        return self.usable & (self.tensor_norms <= LARGEST_NORM).all(dim=1)

    def weighted_sum(self, weights: Tensor) -> tuple[Tensor, ...]:
        sums = []
        for index, gradient in enumerate(self.gradients):
            rows = torch.where(self.contributes.unsqueeze(1), gradient.flatten(1), 0.0)  # (U, d_m)
            total = weights[:, index] @ rows.double()
            sums.append(total.reshape(gradient.shape[1:]))
        return tuple(sums)


def vmap_gradients(critic: nn.Module, batch: CriticBatch, loss: CriticLoss) -> MaterialisedGradients:
    """Gradient of every unit's loss, the sum of its rows' losses, with the gradient penalty inside.

    Adjacency:   zero-out one unit.
    Sensitivity: unbounded; nothing may be released before clipping.
    Shapes:      batch of R rows of U units; gives M tensors (U, *shape_m) in the order of critic.parameters().
    Source:      Gulrajani et al. 2017, eq. 3; docs/privacy.md, One private step.
    Edge cases:  no rows -> no units' gradients; null rows add zero; ∇‖g‖ at g = 0 is taken as 0.
    """
    parameters = {name: value.detach() for name, value in critic.named_parameters()}
    usable = batch.present.view(-1, batch.rows_per_unit).any(dim=1)
    if len(batch.real) == 0:
        empty = tuple(value.new_zeros(batch.units, *value.shape) for value in parameters.values())
        return MaterialisedGradients(empty, usable)

    def score(weights: dict[str, Tensor], record: Tensor) -> Tensor:
        return functional_call(critic, weights, (record.unsqueeze(0),)).squeeze()  # type: ignore[no-any-return]

    def row_loss(weights: dict[str, Tensor], real: Tensor, fake: Tensor, mix: Tensor) -> Tensor:
        between = mix * real + (1.0 - mix) * fake  # x̂ (W,)
        slope = grad(score, argnums=1)(weights, between)  # ∇D(x̂) (W,)
        value = loss.gradient_penalty * (_safe_norm(slope) - 1.0) ** 2 - score(weights, real)
        return value + score(weights, fake) if loss.paired else value

    per_row = vmap(grad(row_loss), in_dims=(None, 0, 0, 0))(parameters, batch.real, batch.fake, batch.mix)
    gradients = []
    for name, value in parameters.items():
        rows = torch.where(batch.present.unsqueeze(1), per_row[name].flatten(1), 0.0)  # (R, d_m)
        units = rows.view(batch.units, batch.rows_per_unit, -1).sum(dim=1)
        gradients.append(units.view(batch.units, *value.shape))
    return MaterialisedGradients(tuple(gradients), usable)


def _safe_norm(vector: Tensor) -> Tensor:
    """‖v‖ whose gradient at v = 0 is 0, not NaN."""
    squared = vector.square().sum()
    return torch.where(squared > 0, torch.where(squared > 0, squared, 1.0).sqrt(), 0.0)
