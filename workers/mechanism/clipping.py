"""Clip every unit's gradient group by group and add up the draw."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from workers.mechanism import LARGEST_CANCELLATION, DrawBounds, PerUnitGradients, PrivateSum

SHRINK = 1.0 - 1e-6
"""Clip to a little less than clip_norm: room for the float64 rounding of norm, factor, scaled gradient and noise."""


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
    bounds: DrawBounds,
    device: torch.device | None = None,
) -> ClippedSum:
    """Sum of clipped per-unit gradients, group by group: ḡ_ik = g_ik·min(1, c_k/‖g_ik‖).

    Adjacency:   zero-out one unit.
    Sensitivity: L2 per group, clip_norms[k]; same unit as noise_std. It holds for the float64 numbers returned:
                 units are clipped shorter by what rounding of the whole sum can add (`sum_rounding`).
    Shapes:      blocks of disjoint units within `bounds`, gradients (U, d_m) per tensor m; returns float64 tensors
                 of `shapes`.
    Source:      Abadi et al. 2016, Alg. 1; groups: McMahan et al. 2018, §3.
    Edge cases:  empty draw -> zeros; a null or non-finite unit contributes zero, decided before the sum.
    """
    shorter = [clip_norm / (1.0 + sum_rounding(bounds)) for clip_norm in clip_norms]
    totals = [torch.zeros(shape, dtype=torch.float64, device=device) for shape in shapes]
    norms = [torch.zeros(0, len(shapes), dtype=torch.float64, device=device)]
    units = 0
    for block in blocks:
        units += len(block.contributes)
        if len(block.contributes) > bounds.units_per_block or units > bounds.most_units:
            raise ValueError("more units than the bound on rounding was computed for")
        weights = clip_weights(block.tensor_norms, block.contributes, groups=groups, clip_norms=shorter)
        totals = [total.add_(part) for total, part in zip(totals, block.weighted_sum(weights), strict=True)]
        norms.append(block.tensor_norms[block.contributes])
    private = PrivateSum(tuple(totals), tuple(tuple(group) for group in groups), tuple(clip_norms))
    return ClippedSum(private, torch.cat(norms))


def sum_rounding(bounds: DrawBounds) -> float:
    """How far rounding alone can push the sums of two neighbours apart, in clip norms.

    Entry by entry |fl(Σ) - Σ| ≤ bound_n Σ|terms| in any order of addition, with n additions on the longest way and
    bound_n = n·u/(1 - n·u). Per group the terms of a unit have norm at most LARGEST_CANCELLATION·c, so a sum is off by at
    most bound_n·most_units·LARGEST_CANCELLATION·c, and two sums by twice that. In float32 the same bound is useless.

    Adjacency:   zero-out one unit.
    Sensitivity: none; reads no row.
    Shapes:      one number, to be divided out of every clip norm.
    Source:      Higham 2002, Accuracy and Stability of Numerical Algorithms, §4.2.
    Edge cases:  no units -> 0.
    """
    unit_roundoff = torch.finfo(torch.float64).eps / 2.0
    in_a_block = 3 * bounds.rows_per_unit * min(bounds.units_per_block, bounds.most_units)
    additions = in_a_block + math.ceil(bounds.most_units / bounds.units_per_block) + 8
    gamma = additions * unit_roundoff / (1.0 - additions * unit_roundoff)
    return 2.0 * gamma * bounds.most_units * LARGEST_CANCELLATION


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
