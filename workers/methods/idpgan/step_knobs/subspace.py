"""Gradient subspaces (FSDP, corrected): a weight matrix's gradient g as E = gB and Φ = g - EBᵀ, with a public orthonormal basis B.

As published (Zhou, Qian 2022) every example has a factor H of its own that is used raw, and nothing is clipped before noise: that is
not private (docs/methods/private_step.md). Here B is known before rows are read, both parts are clipped, and they are one Gaussian release.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from workers.methods.idpgan.step_knobs.maps import GradientMap, coins

if TYPE_CHECKING:
    from service.methods.idpgan.private_step import GradientSubspace

MEAN_DECAY = 0.9
"""Of the moving mean of released gradients."""
SWEEPS = 5
"""Of the factorisation: each solves for V, then for H."""


class Subspace(GradientMap):
    """Matrices of at least two rows are cut; biases and single rows stay as they are."""

    name = "subspace"

    def __init__(self, tensors: Sequence[Tensor], knob: GradientSubspace) -> None:
        super().__init__(tensors)
        self.knob = knob
        self.means = [torch.zeros(size, device=self.device) for size in self.sizes]
        self.bases: dict[int, Tensor] = {}
        """Of every matrix by its place, (r, k)."""
        self.prepare(0, tensors)

    @property
    def shapes(self) -> list[torch.Size]:
        """E of every matrix and what is not cut, then the residuals."""
        cut = [(size[0], self._rank(size)) if self._is_cut(size) else tuple(size) for size in self.sizes]
        return [torch.Size(shape) for shape in [*cut, *self._residual_shapes]]

    @property
    def kinds(self) -> list[int]:
        return [0] * len(self.sizes) + [1] * len(self._residual_shapes)

    @property
    def is_bias(self) -> list[bool]:
        return [*super().is_bias, *[False] * len(self._residual_shapes)]

    @property
    def importance(self) -> tuple[float, ...] | None:
        """Noise of a residual that lies within the basis is taken off again, and does not count."""
        if not self._residual_shapes:
            return None
        residuals = [max(1e-3, 1.0 - self._rank(size) / _width(size)) for size in self.sizes if self._is_cut(size)]
        return (1.0,) * len(self.sizes) + tuple(residuals)

    def prepare(self, step: int, tensors: Sequence[Tensor]) -> None:
        del tensors
        if self.bases and step % self.knob.every_steps:
            return
        for place, size in enumerate(self.sizes):
            if self._is_cut(size):
                drawn = torch.from_numpy(coins(step, place).standard_normal((self._rank(size), _width(size))))
                self.bases[place] = self._basis(self.means[place], drawn.to(self.device))

    def forward(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        blocks, residuals = list(gradients), []
        for place, basis in sorted(self.bases.items()):
            matrix = gradients[place].flatten(2)  # (U, p, r)
            blocks[place] = matrix @ basis
            residuals.append(matrix - blocks[place] @ basis.T)
        return [*blocks, *residuals] if self.knob.residual else blocks

    def back(self, blocks: Sequence[Tensor]) -> list[Tensor]:
        """ẼBᵀ + Φ̃(I - BBᵀ)."""
        applied = list(blocks[: len(self.sizes)])
        for number, (place, basis) in enumerate(sorted(self.bases.items())):
            matrix = blocks[place] @ basis.T
            if self.knob.residual:
                rest = blocks[len(self.sizes) + number]
                matrix = matrix + rest - (rest @ basis) @ basis.T
            applied[place] = matrix.view(self.sizes[place])
        return applied

    def learn(self, applied: Sequence[Tensor]) -> None:
        for mean, gradient in zip(self.means, applied, strict=True):
            mean.lerp_(gradient, 1.0 - MEAN_DECAY)

    def tensors(self) -> dict[str, Tensor]:
        means = {f"step_map.mean.{place}": mean for place, mean in enumerate(self.means)}
        return means | {f"step_map.basis.{place}": basis for place, basis in self.bases.items()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        for place, mean in enumerate(self.means):
            mean.copy_(tensors[f"step_map.mean.{place}"])
        for place, basis in self.bases.items():
            basis.copy_(tensors[f"step_map.basis.{place}"])

    @property
    def _residual_shapes(self) -> list[tuple[int, int]]:
        if not self.knob.residual:
            return []
        return [(size[0], _width(size)) for size in self.sizes if self._is_cut(size)]

    def _basis(self, mean: Tensor, drawn: Tensor) -> Tensor:
        """(r, k) orthonormal, from a released mean (p, …) or from coins (k, r)."""
        rows = drawn
        if self.knob.source == "released" and bool(mean.any()) and bool(mean.isfinite().all()):
            _, rows = funk_svd(mean.flatten(1).double(), drawn, ridge=self.knob.ridge)
        basis: Tensor = torch.linalg.qr(rows.T).Q
        return basis.to(torch.float32)

    def _rank(self, size: torch.Size) -> int:
        return min(self.knob.rank, _width(size))

    @staticmethod
    def _is_cut(size: torch.Size) -> bool:
        return len(size) >= 2 and size[0] > 1 and _width(size) > 1


def funk_svd(matrix: Tensor, rows: Tensor, *, ridge: float) -> tuple[Tensor, Tensor]:
    """V (p, k) and H (k, r) that make ‖G - VH‖² + τ(‖V‖² + ‖H‖²) small for G of root mean square 1, from H = `rows`.

    The objective of a Funk-SVD by alternating least squares, which needs no learning rate. Reads released matrices alone.
    """
    scale = matrix.square().mean().sqrt()
    scaled = matrix / scale
    right = rows
    left = scaled @ right.T
    for _ in range(SWEEPS):
        left = _solved(right @ right.T, right @ scaled.T, ridge).T
        right = _solved(left.T @ left, left.T @ scaled, ridge)
    return left * scale, right


def _solved(gram: Tensor, wanted: Tensor, ridge: float) -> Tensor:
    """(gram + τ'I)⁻¹ wanted; a hair more than τ keeps it solvable."""
    slack = ridge + 1e-12 * float(gram.diagonal().sum())
    solved: Tensor = torch.linalg.solve(
        gram + slack * torch.eye(len(gram), dtype=gram.dtype, device=gram.device), wanted
    )
    return solved


def _width(size: torch.Size) -> int:
    return size[1:].numel()
