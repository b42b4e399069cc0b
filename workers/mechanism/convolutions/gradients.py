"""The gradients of all tensors of an image critic, put together from the factors that the passes leave."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from workers.mechanism import LARGEST_NORM, CriticBatch, CriticLoss
from workers.mechanism.convolutions.critic import ImageCriticTensors
from workers.mechanism.convolutions.passes import image_passes
from workers.mechanism.convolutions.unit_gradients import HeldGradient, StackedGradient
from workers.numerics.workspace import Workspace


@dataclass(frozen=True)
class PlacedKernel:
    """A convolution's sum, found with rows in the order (k, k, in), as a kernel (out, in, k, k)."""

    gradient: HeldGradient | StackedGradient
    shape: torch.Size

    @property
    def norms(self) -> Tensor:
        return self.gradient.norms

    def weighted_sum(self, weights: Tensor) -> Tensor:
        outputs, inputs, *sides = self.shape
        return self.gradient.weighted_sum(weights).view(outputs, *sides, inputs).permute(0, 3, 1, 2)


@dataclass(frozen=True)
class ConvolutionGradients:
    """Gradients of U units, one part per critic tensor. They live in a workspace: use them before the next ones."""

    parts: tuple[PlacedKernel | HeldGradient, ...]
    usable: Tensor  # (U,) bool: the row is present and has finite activations at x, G(z) and x̂

    @cached_property
    def tensor_norms(self) -> Tensor:
        return torch.stack([part.norms for part in self.parts], dim=1)

    @cached_property
    def contributes(self) -> Tensor:
        # A comparison with NaN is False.
        return self.usable & (self.tensor_norms <= LARGEST_NORM).all(dim=1)

    def weighted_sum(self, weights: Tensor) -> tuple[Tensor, ...]:
        kept = torch.where(self.contributes.unsqueeze(1), weights, 0.0)
        return tuple(part.weighted_sum(kept[:, m]) for m, part in enumerate(self.parts))


@torch.no_grad()
def convolution_gradients(
    critic: ImageCriticTensors, batch: CriticBatch, loss: CriticLoss, workspace: Workspace | None = None
) -> ConvolutionGradients:
    """Gradient of every unit's loss with the gradient penalty inside, which is over the pixels and not the label.

    Adjacency:   zero-out one unit.
    Sensitivity: unbounded; nothing may be released before clipping.
    Shapes:      batch of U rows of U units, at most `units_per_block`; gives M tensors in the order of the critic's
                 parameters: W_1, b_1 (without labels), W_2, b_2, …, the labels' matrix, the output.
    Source:      Gulrajani et al. 2017, eq. 3; Gram norms: Goodfellow 2015, Rochette et al. 2019; docs/privacy.md, One private step.
    Edge cases:  no rows -> no units' gradients; r = 0 where g = 0; several rows a unit -> ValueError.
    """
    if len(batch.real) != batch.units or batch.units > critic.units_per_block():
        raise ValueError(f"this engine takes at most {critic.units_per_block()} units of one row")
    space = workspace or Workspace()
    # On a GPU a convolution may add up in an order of its own each time: a unit's part must be the same bits again.
    with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False):
        passes = image_passes(critic, batch, loss, space)
    first = 0 if loss.paired else 1  # separate: D(G(z)) is outside the private sum
    ends = slice(first, 2)
    deltas = [_by_kind(delta) for delta in passes.deltas]  # (U, 3, P, C)
    parts: list[PlacedKernel | HeldGradient] = []
    for layer, (kernel, bias) in enumerate(zip(critic.kernels, critic.biases, strict=True)):
        left = deltas[layer][:, first:].flatten(1, 2)
        right = _by_unit(passes.columns[layer], deltas[layer], first)
        product: HeldGradient | StackedGradient
        if critic.is_stacked(layer):
            product = StackedGradient(left, right, space)
        else:
            out = space.take(f"held {layer}", (batch.units, left.shape[2], right.shape[2]), like=left)
            torch.bmm(left.mT, right, out=out)
            product = HeldGradient(out.flatten(1), out.shape[1:], space)
        parts.append(PlacedKernel(product, kernel.shape))
        if bias is not None:
            parts.append(HeldGradient(deltas[layer][:, ends].sum(dim=(1, 2)), bias.shape, space))
    if critic.labels is not None:
        total = deltas[0][:, ends].sum(dim=2).mT @ passes.labels[:, ends]  # (U, C_1, classes)
        parts.append(HeldGradient(total.flatten(1), critic.labels.shape, space))
    last = passes.last
    total = last[:, 2] - last[:, 1]
    parts.append(HeldGradient(total.add_(last[:, 0]) if loss.paired else total, critic.output.shape, space))
    return ConvolutionGradients(tuple(parts), batch.present & passes.finite)


def _by_kind(tensor: Tensor) -> Tensor:
    """(3U, C, H, W) in channels-last memory as (U, 3, H·W, C)."""
    count, channels, height, width = tensor.shape
    return tensor.permute(0, 2, 3, 1).reshape(count // 3, 3, height * width, channels)


def _by_unit(columns: Tensor, delta: Tensor, first: int) -> Tensor:
    """Rows of im2col (3U, h, w, k, k, C) as (U, rank, k·k·C), beside delta (U, 3, h·w, out)."""
    return columns.view(*delta.shape[:3], math.prod(columns.shape[3:]))[:, first:].flatten(1, 2)
