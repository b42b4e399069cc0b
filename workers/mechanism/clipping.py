"""Clip every unit's gradient group by group and add up the draw."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from workers.mechanism import PerUnitGradients, PrivateSum

SHRINK = 1.0 - 1e-6
"""Clip to a little less than clip_norm: room for the rounding of the factor and of the scaled gradient itself.

The part of the rounding that grows with the gradient's factors is already inside `tensor_norms`.
"""


@dataclass(frozen=True, slots=True)
class ClippedSum:
    """The clipped sum with its sensitivity, and the norms before clipping, which are private too."""

    sum: PrivateSum
    tensor_norms: Tensor  # (contributing units, M) float64


def clip_and_sum(
    blocks: Iterable[PerUnitGradients],
    *,
    groups: Sequence[Sequence[int]],
    clip_norms: Sequence[float],
    shapes: Sequence[torch.Size],
    device: torch.device | None = None,
) -> ClippedSum:
    """Sum of clipped per-unit gradients, group by group: ḡ_ik = g_ik·min(1, c_k/‖g_ik‖).

    Adjacency:   zero-out one unit.
    Sensitivity: L2 per group, clip_norms[k]; same unit as noise_std.
    Shapes:      blocks of disjoint units, gradients (U, d_m) per tensor m; returns tensors of `shapes`.
    Source:      Abadi et al. 2016, Alg. 1; groups: McMahan et al. 2018, §3.
    Edge cases:  empty draw -> zeros; a null or non-finite unit contributes zero, decided before the sum.
    """
    totals: list[Tensor] | None = None
    norms = [torch.zeros(0, len(shapes), dtype=torch.float64, device=device)]
    for block in blocks:
        weights = clip_weights(block.tensor_norms, block.contributes, groups=groups, clip_norms=clip_norms)
        part = block.weighted_sum(weights)
        totals = list(part) if totals is None else [a + b for a, b in zip(totals, part, strict=True)]
        norms.append(block.tensor_norms[block.contributes])
    values = totals if totals is not None else [torch.zeros(shape, device=device) for shape in shapes]
    private = PrivateSum(tuple(values), tuple(tuple(group) for group in groups), tuple(clip_norms))
    return ClippedSum(private, torch.cat(norms))


def clip_weights(
    tensor_norms: Tensor, contributes: Tensor, *, groups: Sequence[Sequence[int]], clip_norms: Sequence[float]
) -> Tensor:
    """The factor of every unit and tensor, min(1, c_k/‖g_ik‖) with k the tensor's group; 0 for who does not count.

    Adjacency:   zero-out one unit.
    Sensitivity: none of its own: bounds ‖g_ik‖·weight by clip_norms[k].
    Shapes:      tensor_norms (U, M) float64, contributes (U,) bool; returns (U, M) float64.
    Source:      Abadi et al. 2016, Alg. 1.
    Edge cases:  a zero gradient has factor 1; NaN norms belong to units that do not contribute.
    """
    weights = torch.zeros_like(tensor_norms)
    for group, clip_norm in zip(groups, clip_norms, strict=True):
        norm = tensor_norms[:, list(group)].square().sum(dim=1).sqrt()  # (U,)
        factor = (SHRINK * clip_norm / norm).clamp(max=1.0)  # c/0 = inf -> 1
        weights[:, list(group)] = torch.where(contributes, factor, 0.0).unsqueeze(1)
    return weights
