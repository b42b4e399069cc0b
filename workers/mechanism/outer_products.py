"""Exact per-unit gradients of a LeakyReLU perceptron critic as outer products, never stored in full.

The formulas, in the order of the code (SPEED note, layers a_l = W_l h_{l-1} + b_l, h_l = φ(a_l), m_l = φ'(a_l)):
  u_L = 1, u_l = m_l ⊙ W_{l+1}ᵀ u_{l+1}      backward at x, G(z) and x̂
  g = W_1ᵀ u_1(x̂),  r = 2λ(‖g‖ - 1)/‖g‖·g   the penalty's pull on the input gradient
  q_0 = r, q_l = m_l(x̂) ⊙ W_l q_{l-1}        tangent pass at x̂
  ∂W_l = u_l(Gz) h_{l-1}(Gz)ᵀ - u_l(x) h_{l-1}(x)ᵀ + u_l(x̂) q_{l-1}ᵀ,   ∂b_l = u_l(Gz) - u_l(x)
A unit of several rows is the sum of its rows' products, of rank 3R. `gradients.vmap_gradients` is the oracle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from workers.mechanism import LARGEST_CANCELLATION, LARGEST_NORM, CriticBatch, CriticLoss


@dataclass(frozen=True, slots=True)
class Perceptron:
    """A critic's tensors: weights W_1..W_L (W_L has one row), biases b_1..b_{L-1}, and LeakyReLU's slope."""

    weights: Sequence[Tensor]
    biases: Sequence[Tensor]
    slope: float


@dataclass(frozen=True)
class OuterProduct:
    """Per unit, the matrix Σ_k left_k right_kᵀ; rank is at most three for every row of a unit."""

    left: Tensor  # (rank, U, out)
    right: Tensor  # (rank, U, in)

    @cached_property
    def norms(self) -> Tensor:
        """(U,) float64 upper bound on the Frobenius norm, from Gram matrices in float64.

        Grams cancel where the products do: the bound adds float64's own error. And what cancels still rounds: where
        the products are far longer than their sum, they set the norm (`LARGEST_CANCELLATION`).
        """
        left, right = self.left.transpose(0, 1).double(), self.right.transpose(0, 1).double()
        gram_left, gram_right = left @ left.mT, right @ right.mT  # (U, rank, rank)
        squared = (gram_left * gram_right).sum(dim=(1, 2))  # (U,)
        largest = (_diagonal(gram_left) * _diagonal(gram_right)).sqrt().sum(dim=1)  # (U,) Σ_k ‖left_k‖‖right_k‖
        rank = len(self.left)
        terms = self.left.shape[2] + self.right.shape[2] + rank**2 + 16
        error = terms * torch.finfo(torch.float64).eps * largest.square()
        return torch.maximum((squared.clamp(min=0.0) + error).sqrt(), largest / LARGEST_CANCELLATION)

    def weighted_sum(self, weights: Tensor, contributes: Tensor) -> Tensor:
        """Σ_i weight_i Σ_k left_ik right_ikᵀ: one product over the stacked, rescaled rows."""
        keep = contributes.unsqueeze(1)  # (U, 1)
        left = torch.where(keep, self.left, 0.0).double().mul_(weights.unsqueeze(1))
        right = torch.where(keep, self.right, 0.0).double()
        return left.flatten(0, 1).T @ right.flatten(0, 1)  # (out, in)


@dataclass(frozen=True)
class VectorGradient:
    """Per unit, a gradient small enough to hold: biases and the one-row last layer."""

    vector: Tensor  # (U, d)
    shape: torch.Size

    @cached_property
    def norms(self) -> Tensor:
        exact: Tensor = torch.linalg.vector_norm(self.vector.double(), dim=1)
        return exact

    def weighted_sum(self, weights: Tensor, contributes: Tensor) -> Tensor:
        rows = torch.where(contributes.unsqueeze(1), self.vector, 0.0)
        return (weights @ rows.double()).reshape(self.shape)


@dataclass(frozen=True)
class OuterProductGradients:
    """Gradients of U units, one part per critic tensor."""

    parts: tuple[OuterProduct | VectorGradient, ...]
    usable: Tensor  # (U,) bool: some row is present, and those have finite activations at x, G(z) and x̂

    @cached_property
    def tensor_norms(self) -> Tensor:
        return torch.stack([part.norms for part in self.parts], dim=1)

    @cached_property
    def contributes(self) -> Tensor:
        # A comparison with NaN is False.
        return self.usable & (self.tensor_norms <= LARGEST_NORM).all(dim=1)

    def weighted_sum(self, weights: Tensor) -> tuple[Tensor, ...]:
        return tuple(part.weighted_sum(weights[:, m], self.contributes) for m, part in enumerate(self.parts))


def outer_product_gradients(critic: Perceptron, batch: CriticBatch, loss: CriticLoss) -> OuterProductGradients:
    """Gradient of every unit's loss, the sum of its rows' losses, with the gradient penalty inside.

    Adjacency:   zero-out one unit.
    Sensitivity: unbounded; nothing may be released before clipping.
    Shapes:      batch of R rows, those of a unit side by side; gives M tensors in the order W_1, b_1, …, W_L.
    Source:      Gulrajani et al. 2017, eq. 3; Gram norms: Goodfellow 2015; PRIVACY.md §3.
    Edge cases:  no rows -> no units' gradients; r = 0 where g = 0; null rows add nothing to their unit.
    """
    weights, biases = critic.weights, critic.biases
    # Forward. The first layer is affine, so a_1(x̂) = e·a_1(x) + (1 - e)·a_1(Gz) needs no third product.
    at_real = F.linear(batch.real, weights[0], biases[0])
    at_fake = F.linear(batch.fake, weights[0], biases[0])
    at_between = batch.mix * at_real + (1.0 - batch.mix) * at_fake
    before = [torch.stack((at_fake, at_real, at_between))]  # a_1 (3, B, d_1)
    for weight, bias in zip(weights[1:-1], biases[1:], strict=True):
        before.append(F.linear(F.leaky_relu(before[-1], critic.slope), weight, bias))
    after = [F.leaky_relu(a, critic.slope) for a in before]  # h_1 … h_{L-1}
    slopes = [torch.where(a > 0, a.new_tensor(1.0), a.new_tensor(critic.slope)) for a in before]  # m_1 … m_{L-1}

    # Backward: u_l = m_l ⊙ W_{l+1}ᵀ u_{l+1}, from u_L = 1.
    deltas = [slopes[-1] * weights[-1]]  # u_{L-1} (3, B, d_{L-1})
    for weight, slope in zip(reversed(weights[1:-1]), reversed(slopes[:-1]), strict=True):
        deltas.insert(0, slope * (deltas[0] @ weight))

    # Penalty: r, then the tangents q_0 … q_{L-1} at x̂.
    pull = deltas[0][2] @ weights[0]  # g (B, d_0)
    length = pull.norm(dim=1, keepdim=True)
    factor = 2.0 * loss.gradient_penalty * (length - 1.0) / torch.where(length > 0, length, 1.0)
    tangents = [torch.where(length > 0, factor * pull, 0.0)]
    for weight, slope in zip(weights[:-1], slopes, strict=True):
        tangents.append(slope[2] * F.linear(tangents[-1], weight))

    # A slope hides what overflowed below it, so finiteness is asked of the activations themselves.
    finite = torch.stack([a.sum(dim=2) for a in before]).isfinite().all(dim=0).all(dim=0)  # (R,)
    units = _Units.of(batch, finite)
    inputs = [torch.stack((batch.fake, batch.real, tangents[0]))]  # right factors of W_1 (3, R, d_0)
    inputs += [torch.stack((h[0], h[1], q)) for h, q in zip(after, tangents[1:], strict=True)]
    sign = batch.real.new_tensor([1.0 if loss.paired else 0.0, -1.0, 1.0]).view(3, 1, 1)
    first = 0 if loss.paired else 1  # separate: D(G(z)) is outside the private sum
    parts: list[OuterProduct | VectorGradient] = []
    for delta, right in zip(deltas, inputs[:-1], strict=True):
        left = (sign * delta)[first:]
        parts.append(OuterProduct(units.stack(left), units.stack(right[first:])))
        parts.append(units.add(left[: 2 - first], delta.shape[-1:]))
    parts.append(units.add((sign * inputs[-1])[first:], weights[-1].shape))
    return OuterProductGradients(tuple(parts), units.usable)


@dataclass(frozen=True)
class _Units:
    """Which rows are whose: unit u has its rows at places u·rows_per_unit, u·rows_per_unit + 1, … of a grid."""

    units: int
    rows_per_unit: int
    one_row_each: bool
    unit_of_row: Tensor  # (R,)
    place: Tensor  # (R,)
    present: Tensor  # (R,) bool
    usable: Tensor  # (U,) bool

    @classmethod
    def of(cls, batch: CriticBatch, finite: Tensor) -> _Units:
        owner = batch.unit_of_row
        usable = torch.zeros(batch.units, dtype=torch.bool, device=owner.device)
        usable[owner[batch.present]] = True
        usable[owner[batch.present & ~finite]] = False
        counts = torch.bincount(owner, minlength=batch.units)
        rows_per_unit = int(counts.max()) if len(owner) else 1
        place_in_unit = torch.arange(len(owner), device=owner.device) - (counts.cumsum(0) - counts)[owner]
        one_row_each = rows_per_unit == 1 and len(owner) == batch.units
        place = owner * rows_per_unit + place_in_unit
        return cls(batch.units, rows_per_unit, one_row_each, owner, place, batch.present, usable)

    def stack(self, factors: Tensor) -> Tensor:
        """Row factors (rank, R, d) -> unit factors (rank·rows_per_unit, U, d), zero for null rows and empty places."""
        if self.one_row_each:
            return factors
        rank, _, size = factors.shape
        grid = factors.new_zeros(rank, self.units * self.rows_per_unit, size)
        grid[:, self.place] = torch.where(self.present.unsqueeze(1), factors, 0.0)
        by_unit = grid.view(rank, self.units, self.rows_per_unit, size).transpose(1, 2)
        return by_unit.reshape(rank * self.rows_per_unit, self.units, size)

    def add(self, terms: Tensor, shape: torch.Size) -> VectorGradient:
        """Sum over the terms (rank, R, d) of every unit."""
        vector = terms.sum(dim=0)  # (R, d)
        if not self.one_row_each:
            empty = vector.new_zeros(self.units, vector.shape[1])
            vector = empty.index_add_(0, self.unit_of_row[self.present], vector[self.present])
        return VectorGradient(vector, shape)


def _diagonal(matrices: Tensor) -> Tensor:
    return matrices.diagonal(dim1=1, dim2=2)
