"""Exact per-unit gradients of a LeakyReLU perceptron critic as outer products, never stored in full.

The formulas, in the order of the code (SPEED note, layers a_l = W_l h_{l-1} + b_l, h_l = φ(a_l), m_l = φ'(a_l)):
  u_L = 1, u_l = m_l ⊙ W_{l+1}ᵀ u_{l+1}      backward at x, G(z) and x̂
  g = W_1ᵀ u_1(x̂),  r = 2λ(‖g‖ - 1)/‖g‖·g   the penalty's pull on the input gradient
  q_0 = r, q_l = m_l(x̂) ⊙ W_l q_{l-1}        tangent pass at x̂
  ∂W_l = u_l(Gz) h_{l-1}(Gz)ᵀ - u_l(x) h_{l-1}(x)ᵀ + u_l(x̂) q_{l-1}ᵀ,   ∂b_l = u_l(Gz) - u_l(x)
Applies where a unit is one row. `gradients.vmap_gradients` is the oracle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from workers.mechanism import CriticBatch, CriticLoss

LARGEST_NORM = 1e15
"""A unit whose gradient is beyond this in any tensor counts as not finite: clipping it would leave rounding only."""

ROUNDING_STEPS = 4.0
"""Roundings of one entry of the rescaled sum of three products: factor, scaling, product, two additions, each eps/2."""


@dataclass(frozen=True, slots=True)
class Perceptron:
    """A critic's tensors: weights W_1..W_L (W_L has one row), biases b_1..b_{L-1}, and LeakyReLU's slope."""

    weights: Sequence[Tensor]
    biases: Sequence[Tensor]
    slope: float


@dataclass(frozen=True)
class OuterProduct:
    """Per unit, the matrix Σ_k left_k right_kᵀ of rank at most three."""

    left: Tensor  # (rank, B, out)
    right: Tensor  # (rank, B, in)

    @cached_property
    def norms(self) -> Tensor:
        """(B,) float64 upper bound on the Frobenius norm, from Gram matrices in float64.

        Grams cancel where the products do: the bound adds float64's own error, and what the float32 product of
        `weighted_sum` may add when it rounds.
        """
        left, right = self.left.transpose(0, 1).double(), self.right.transpose(0, 1).double()
        gram_left, gram_right = left @ left.mT, right @ right.mT  # (B, rank, rank)
        squared = (gram_left * gram_right).sum(dim=(1, 2))  # (B,)
        largest = (_diagonal(gram_left) * _diagonal(gram_right)).sqrt().sum(dim=1)  # (B,) Σ_k ‖left_k‖‖right_k‖
        terms = self.left.shape[2] + self.right.shape[2] + 16
        error = terms * torch.finfo(torch.float64).eps * largest.square()
        rounding = ROUNDING_STEPS * torch.finfo(self.left.dtype).eps * largest
        return (squared.clamp(min=0.0) + error).sqrt() + rounding

    def weighted_sum(self, weights: Tensor, contributes: Tensor) -> Tensor:
        """Σ_i weight_i Σ_k left_ik right_ikᵀ: one product over the stacked, rescaled rows."""
        keep = contributes.unsqueeze(1)  # (B, 1)
        left = torch.where(keep, self.left * weights.to(self.left.dtype).unsqueeze(1), 0.0)
        right = torch.where(keep, self.right, 0.0)
        return left.flatten(0, 1).T @ right.flatten(0, 1)  # (out, in)


@dataclass(frozen=True)
class VectorGradient:
    """Per unit, a gradient small enough to hold: biases and the one-row last layer."""

    vector: Tensor  # (B, d)
    scale: Tensor  # (B,) sum of the norms of the parts it was added up from
    shape: torch.Size

    @cached_property
    def norms(self) -> Tensor:
        exact: Tensor = torch.linalg.vector_norm(self.vector.double(), dim=1)
        return exact + ROUNDING_STEPS * torch.finfo(self.vector.dtype).eps * self.scale

    def weighted_sum(self, weights: Tensor, contributes: Tensor) -> Tensor:
        rows = torch.where(contributes.unsqueeze(1), self.vector, 0.0)
        return (weights.to(rows.dtype) @ rows).reshape(self.shape)


@dataclass(frozen=True)
class OuterProductGradients:
    """Gradients of B one-row units, one part per critic tensor."""

    parts: tuple[OuterProduct | VectorGradient, ...]
    usable: Tensor  # (B,) bool: present, with finite activations at x, G(z) and x̂

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
    """Gradient of every unit's loss, the gradient penalty inside, as sums of at most three outer products.

    Adjacency:   zero-out one unit.
    Sensitivity: unbounded; nothing may be released before clipping.
    Shapes:      batch of B one-row units; gives M tensors in the order W_1, b_1, …, b_{L-1}, W_L.
    Source:      Gulrajani et al. 2017, eq. 3; Gram norms: Goodfellow 2015; PRIVACY.md §3.
    Edge cases:  no rows -> no units' gradients; r = 0 where g = 0; a null row is left out by `contributes`.
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

    parts: list[OuterProduct | VectorGradient] = []
    inputs = [torch.stack((batch.fake, batch.real, tangents[0]))]  # right factors of W_1 (3, B, d_0)
    inputs += [torch.stack((h[0], h[1], q)) for h, q in zip(after, tangents[1:], strict=True)]
    sign = batch.real.new_tensor([1.0 if loss.paired else 0.0, -1.0, 1.0]).view(3, 1, 1)
    first = 0 if loss.paired else 1  # separate: D(G(z)) is outside the private sum
    for delta, right in zip(deltas, inputs[:-1], strict=True):
        left = (sign * delta)[first:]
        parts.append(OuterProduct(left, right[first:]))
        parts.append(_vector_sum(left[: 2 - first], delta.shape[-1:]))
    parts.append(_vector_sum((sign * inputs[-1])[first:], weights[-1].shape))
    # A slope hides what overflowed below it, so finiteness is asked of the activations themselves.
    finite = torch.stack([a.sum(dim=2) for a in before]).isfinite().all(dim=0).all(dim=0)  # (B,)
    return OuterProductGradients(tuple(parts), batch.present & finite)


def _vector_sum(terms: Tensor, shape: torch.Size) -> VectorGradient:
    """Σ over the first axis of (rank, B, d)."""
    return VectorGradient(terms.sum(dim=0), terms.double().norm(dim=2).sum(dim=0), shape)


def _diagonal(matrices: Tensor) -> Tensor:
    return matrices.diagonal(dim1=1, dim2=2)
