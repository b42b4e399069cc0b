"""Gradients of one tensor, a few units' at a time: held in full, or as factors of low rank. Their norms and weighted sums."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from workers.mechanism import LARGEST_CANCELLATION, LARGEST_NORM
from workers.numerics.block_sums import float32_gamma
from workers.numerics.kernels import kernels
from workers.numerics.workspace import Workspace

UNITS_AT_ONCE = 64
"""Most units of a block: a float32 product over their held gradients then rounds by at most 0.0005 clip norms."""

STACKED_CANCELLATION = 32.0
"""Rows of a few units are added up in float32 where their norms add up to at most this many times the sum's norm."""

STACKED_ROUNDING = 0.004
"""How many clip norms such a product may round by, in the worst case; this says how many units share one."""

LONG = 4_096
"""Entries from which a gradient's norm is taken by itself."""


@dataclass(frozen=True)
class HeldGradient:
    """Per unit, a gradient in full."""

    rows: Tensor  # (U, d)
    shape: torch.Size
    workspace: Workspace

    @cached_property
    def norms(self) -> Tensor:
        """(U,) float64, NaN beyond LARGEST_NORM. On the CPU by loops or unit by unit, in a buffer that stays in the cache."""
        loops = kernels(self.rows.device, self.rows.dtype)
        if loops is not None:
            norms = loops.squared_lengths(self.rows.contiguous()).sqrt_()
        elif self.rows.device.type == "cpu" and self.rows.shape[1] >= LONG:
            one = self.workspace.take("one gradient", (self.rows.shape[1],), like=self.rows, dtype=torch.float64)
            squares = [torch.dot(one.copy_(row), one) for row in self.rows]
            norms = torch.stack(squares).sqrt_() if squares else self.rows.new_zeros(0, dtype=torch.float64)
        else:
            norms = torch.linalg.vector_norm(self.rows.double(), dim=1)
        return torch.where(norms <= LARGEST_NORM, norms, torch.nan)

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """Σ_i weight_i row_i: one product in float32 on the CPU, in float64 elsewhere (`block_sums`)."""
        bad = self.norms.isnan()
        if bad.device.type != "cpu" or bad.any():
            self.rows.masked_fill_(bad.unsqueeze(1), 0.0)
        rows = self.rows if bad.device.type == "cpu" else self.rows.double()
        return (weights.to(rows.dtype) @ rows).reshape(self.shape)


@dataclass(frozen=True)
class StackedGradient:
    """Per unit, the matrix leftᵀ right of few rows: its products are never stored."""

    left: Tensor  # (U, rank, out)
    right: Tensor  # (U, rank, in)
    workspace: Workspace

    @property
    def norms(self) -> Tensor:
        """(U,) float64 upper bound on the Frobenius norm, from Gram matrices in float64; NaN beyond LARGEST_NORM.

        As in `outer_products`: float64's own error is added, and products far longer than their sum set the norm.
        """
        return self._norms_and_cancelling[0]

    @cached_property
    def _norms_and_cancelling(self) -> tuple[Tensor, Tensor]:
        squared, lengths = self._squared_norms_and_lengths()
        largest = (lengths[0] * lengths[1]).sqrt().sum(dim=1)  # (U,) Σ_k ‖left_k‖‖right_k‖
        terms = self.left.shape[2] + self.right.shape[2] + self.left.shape[1] ** 2 + 16
        error = terms * torch.finfo(torch.float64).eps * largest.square()
        norms = torch.maximum((squared.clamp(min=0.0) + error).sqrt(), largest / LARGEST_CANCELLATION)
        # A product of moderate length may hide a factor that overflows, or that underflows once it is scaled.
        norms = torch.where((lengths <= LARGEST_NORM**2).all(dim=2).all(dim=0), norms, torch.nan)
        return norms, largest > STACKED_CANCELLATION * norms

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """Σ_i weight_i left_iᵀ right_i in float64; what cancels, and everything on a GPU, as products in float64."""
        norms, cancelling = self._norms_and_cancelling
        bad = norms.isnan()
        on_cpu = bad.device.type == "cpu"
        if not on_cpu or bad.any():
            for factor in (self.left, self.right):
                factor.masked_fill_(bad.view(-1, 1, 1), 0.0)
        total = norms.new_zeros(self.left.shape[2], self.right.shape[2])
        if self.left.dtype == torch.float64 or not on_cpu:
            scaled = self.left.double() * weights.view(-1, 1, 1)
            return total.addmm_(scaled.flatten(0, 1).T, self.right.double().flatten(0, 1))
        apart = cancelling.nonzero().squeeze(1)
        scale = weights.index_fill(0, apart, 0.0).to(self.left.dtype)
        together, loops = _units_per_product(self.left.shape[1]), kernels(self.left.device, self.left.dtype)
        if loops is not None:
            factors = self.left.contiguous(), self.right.contiguous()
            loops.add_products(*factors, scale, total, together=together, workspace=self.workspace)
        else:
            scaled = self.left * scale.view(-1, 1, 1)
            for some in (slice(start, start + together) for start in range(0, len(weights), together)):
                total += scaled[some].flatten(0, 1).T @ self.right[some].flatten(0, 1)
        for unit in apart.tolist():
            total.addmm_(self.left[unit].double().T * weights[unit], self.right[unit].double())
        return total

    def _squared_norms_and_lengths(self) -> tuple[Tensor, Tensor]:
        """(U,) float64 without what its rounding may add; and of the rows of both factors (2, U, rank), squared too."""
        loops = kernels(self.left.device, self.left.dtype)
        if loops is not None:
            return loops.gram_norms(self.left.contiguous(), self.right.contiguous(), self.workspace)
        left, right = self._gram(self.left), self._gram(self.right)  # (U, rank, rank)
        return (left * right).sum(dim=(1, 2)), torch.stack((_diagonal(left), _diagonal(right)))

    def _gram(self, factors: Tensor) -> Tensor:
        by_unit = self.workspace.take("gram", tuple(factors.shape), like=factors, dtype=torch.float64).copy_(factors)
        return by_unit @ by_unit.mT


def _units_per_product(rank: int) -> int:
    """As many units of `rank` rows as keep a product's rounding within STACKED_ROUNDING; at least one."""
    units = 1
    while units < UNITS_AT_ONCE and product_rounding(rank, units + 1) <= STACKED_ROUNDING:
        units += 1
    return units


def product_rounding(rank: int, units: int) -> float:
    """2·gamma·Σ|terms| of a product over the rows of some units, in clip norms."""
    return 2.0 * float32_gamma(rank * units) * units * STACKED_CANCELLATION


def _diagonal(matrices: Tensor) -> Tensor:
    return matrices.diagonal(dim1=1, dim2=2)
