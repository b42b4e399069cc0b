"""Per-unit gradients kept in full, of the critic loss and of an autoencoder.

By `vmap(grad)`, which works for any critic and is the oracle of the fast engines, and by formulas for perceptrons of any activation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from workers.mechanism import LARGEST_NORM, CriticBatch, CriticLoss, Perceptron
from workers.numerics.activations import Activation


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
    return MaterialisedGradients(_of_units(per_row, parameters, batch.present, batch.rows_per_unit), usable)


def reconstruction_gradients(
    autoencoder: nn.Module,
    rows: Tensor,
    present: Tensor,
    *,
    rows_per_unit: int,
    loss: Callable[[Tensor, Tensor], Tensor],
) -> MaterialisedGradients:
    """Gradient of every unit's loss, the sum of its rows' reconstruction losses, by all tensors of encoder and decoder.

    Adjacency:   zero-out one unit.
    Sensitivity: unbounded; nothing may be released before clipping. It is of encoder and decoder together: an encoder that was updated
                 without noise would change the decoder's gradient of every other unit at later steps.
    Shapes:      rows (R, W), present (R,), `rows_per_unit` of every unit side by side; loss: (a reconstruction, a row) -> one number;
                 gives M tensors (U, *shape_m) in the order of autoencoder.parameters().
    Source:      Torfi, Fox, Reddy 2020, corrected; docs/methods/rdpcgan.md.
    Edge cases:  no rows -> no units' gradients; null rows add zero.
    """
    parameters = {name: value.detach() for name, value in autoencoder.named_parameters()}
    usable = present.view(-1, rows_per_unit).any(dim=1)
    if len(rows) == 0:
        return MaterialisedGradients(tuple(value.new_zeros(0, *value.shape) for value in parameters.values()), usable)

    def row_loss(weights: dict[str, Tensor], row: Tensor) -> Tensor:
        return loss(functional_call(autoencoder, weights, (row.unsqueeze(0),)).squeeze(0), row)

    per_row = vmap(grad(row_loss), in_dims=(None, 0))(parameters, rows)
    return MaterialisedGradients(_of_units(per_row, parameters, present, rows_per_unit), usable)


def _of_units(
    per_row: dict[str, Tensor], parameters: dict[str, Tensor], present: Tensor, rows_per_unit: int
) -> tuple[Tensor, ...]:
    """Sums over the rows of each unit; a row that is not present adds zero."""
    units = len(present) // rows_per_unit
    gradients = []
    for name, value in parameters.items():
        rows = torch.where(present.unsqueeze(1), per_row[name].flatten(1), 0.0)  # (R, d_m)
        gradients.append(rows.view(units, rows_per_unit, -1).sum(dim=1).view(units, *value.shape))
    return tuple(gradients)


def perceptron_gradients_in_full(
    critic: Perceptron, activation: Activation, batch: CriticBatch, loss: CriticLoss
) -> MaterialisedGradients:
    """The same for a perceptron whose activation φ may be curved, by the formulas of `outer_products` and one pass more.

    r·g is the derivative W_L q_{L-1} of D along r; by the weights it is u_l q_{l-1}ᵀ + v_l h_{l-1}ᵀ, where v_L = 0 and
    v_l = φ''(a_l) ⊙ W_l q_{l-1} ⊙ W_{l+1}ᵀ u_{l+1} + φ'(a_l) ⊙ W_{l+1}ᵀ v_{l+1}.

    Adjacency:   zero-out one unit.
    Sensitivity: unbounded; nothing may be released before clipping.
    Shapes:      as `vmap_gradients`, in the order W_1, b_1, …, W_L.
    Source:      Gulrajani et al. 2017, eq. 3; Pearlmutter 1994 for the pass more.
    Edge cases:  no rows -> no units' gradients; r = 0 where g = 0; null rows add nothing to their unit.
    """
    weights, biases = critic.weights, critic.biases
    between = batch.mix * batch.real + (1.0 - batch.mix) * batch.fake
    states = [torch.stack((batch.fake, batch.real, between))]  # h_l (3, R, d_l)
    for weight, bias in zip(weights, biases, strict=False):
        states.append(activation.value(states[-1] @ weight.T + bias))
    slopes = [activation.slope(state) for state in states[1:]]

    signs = weights[-1].new_tensor([1.0, -1.0, 1.0]).view(3, 1, 1)
    pulled = (signs * weights[-1]).expand_as(states[-1])
    pulls: list[Tensor] = []  # W_{l+1}ᵀ u_{l+1}
    deltas: list[Tensor] = []  # u_l
    for place in range(len(biases) - 1, -1, -1):
        pulls.insert(0, pulled)
        deltas.insert(0, slopes[place] * pulled)
        pulled = deltas[0] @ weights[place]

    slope = pulled[2]  # g (R, d_0)
    length = torch.linalg.vector_norm(slope, dim=1, keepdim=True)
    factor = 2.0 * loss.gradient_penalty * (length - 1.0) / length.masked_fill(length == 0, torch.inf)
    tangents, pushes = [factor * slope], []  # q_l, W_l q_{l-1}
    for place, weight in enumerate(weights[:-1]):
        pushes.append(tangents[-1] @ weight.T)
        tangents.append(slopes[place][2] * pushes[-1])

    bends: list[Tensor | None] = [None] * len(biases)  # v_l (R, d_l)
    if activation.is_smooth and loss.gradient_penalty:
        carried = torch.zeros_like(pulls[-1][2])
        for place in range(len(biases) - 1, -1, -1):
            bend = activation.curvature(states[place + 1][2]) * pushes[place] * pulls[place][2]
            bend = bend + slopes[place][2] * carried
            bends[place], carried = bend, bend @ weights[place]

    first = 0 if loss.paired else 1  # separate: D(G(z)) is outside the private sum
    gradients: list[Tensor] = []
    for place, (delta, bend) in enumerate(zip(deltas, bends, strict=True)):
        left, right = [*delta], [*states[place][:2], tangents[place]]
        direct = delta[first:2].sum(dim=0)
        if bend is not None:
            left, right, direct = [*left, bend], [*right, states[place][2]], direct + bend
        gradients += [_outer_of_units(batch, left[first:], right[first:]), _sum_of_units(batch, direct)]
    fakes = states[-1][0] if loss.paired else 0.0
    last = _sum_of_units(batch, fakes - states[-1][1] + tangents[-1])
    usable = batch.present.view(-1, batch.rows_per_unit).any(dim=1)
    return MaterialisedGradients((*gradients, last.unsqueeze(1)), usable)


def _outer_of_units(batch: CriticBatch, left: list[Tensor], right: list[Tensor]) -> Tensor:
    """(U, out, in): Σ left rightᵀ over the rows of every unit and the kinds of factors; null rows are cleared."""
    absent = ~batch.present.unsqueeze(1)
    by_unit = [
        torch.stack([part.masked_fill(absent, 0.0) for part in parts], dim=1).view(
            batch.units, len(parts) * batch.rows_per_unit, parts[0].shape[1]
        )
        for parts in (left, right)
    ]
    return by_unit[0].mT @ by_unit[1]


def _sum_of_units(batch: CriticBatch, rows: Tensor) -> Tensor:
    """(U, d) from (R, d)."""
    kept = rows.masked_fill(~batch.present.unsqueeze(1), 0.0)
    return kept.view(batch.units, batch.rows_per_unit, rows.shape[1]).sum(dim=1)


def _safe_norm(vector: Tensor) -> Tensor:
    """‖v‖ whose gradient at v = 0 is 0, not NaN."""
    squared = vector.square().sum()
    return torch.where(squared > 0, torch.where(squared > 0, squared, 1.0).sqrt(), 0.0)
