"""Clip every unit's gradient group by group and add up the draw."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor

from workers.mechanism import (
    FLOAT32_CANCELLATION,
    LARGEST_CANCELLATION,
    DrawBounds,
    PerUnitGradients,
    PrivateSum,
    SelfClipping,
)
from workers.numerics.block_sums import block_sum_rounding

SHRINK = 1.0 - 1e-6
"""Clip to a little less than clip_norm: room for the float64 rounding of norm and factor, and for what underflows."""

SMALLEST_FACTOR = 1e-30
"""A unit that would be scaled by less is left out: float32 has no accurate number for it."""

SMALLEST_SENSITIVITY = 1e-9
"""No sum declares less: with factors up to LARGEST_NORM, underflow in float32 may add 1e-20 to a unit's share."""


@dataclass(frozen=True, slots=True)
class ClippedSum:
    """The clipped sum with its sensitivity, and the norms before clipping, which are private too."""

    sum: PrivateSum
    found: tuple[tuple[Tensor, Tensor], ...]
    """Of every block: norms (U, M) float64 and who contributes (U,) bool."""

    @property
    def tensor_norms(self) -> Tensor:
        """(contributing units, M) float64."""
        none = torch.zeros(0, len(self.sum.values), dtype=torch.float64, device=self.sum.values[0].device)
        return torch.cat([none, *(norms[contributes] for norms, contributes in self.found)])


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
                 units are clipped shorter by what rounding can add (`sum_rounding`).
    Shapes:      blocks of disjoint units within `bounds`, gradients (U, d_m) per tensor m; returns float64 tensors
                 of `shapes`.
    Source:      Abadi et al. 2016, Alg. 1; groups: McMahan et al. 2018, §3.
    Edge cases:  empty draw -> zeros; a null or non-finite unit contributes zero, decided before the sum.
    """
    shorter = [clip_norm / (1.0 + sum_rounding(bounds)) for clip_norm in clip_norms]
    sizes = [shape.numel() for shape in shapes]
    together = torch.zeros(sum(sizes), dtype=torch.float64, device=device)
    totals = [total.view(shape) for total, shape in zip(torch.split(together, sizes), shapes, strict=True)]
    found: list[tuple[Tensor, Tensor]] = []
    units = 0
    for block in blocks:
        if isinstance(block, SelfClipping):
            group_of = _group_of(groups, len(shapes))
            allowed = [clip_norm * SHRINK for clip_norm in shorter]
            block.add_clipped(together, group_of=group_of, clip_norms=allowed, smallest_factor=SMALLEST_FACTOR)
        else:
            weights = clip_weights(block.tensor_norms, block.contributes, groups=groups, clip_norms=shorter)
            for total, part in zip(totals, block.weighted_sum(weights), strict=True):
                total.add_(part)
        units += len(block.contributes)
        if len(block.contributes) > bounds.units_per_block or units > bounds.most_units:
            raise ValueError("more units than the bound on rounding was computed for")
        found.append((block.tensor_norms, block.contributes))
    sensitivities = tuple(max(clip_norm, SMALLEST_SENSITIVITY) for clip_norm in clip_norms)
    private = PrivateSum(tuple(totals), tuple(tuple(group) for group in groups), sensitivities)
    return ClippedSum(private, tuple(found))


def sum_rounding(bounds: DrawBounds) -> float:
    """How far rounding alone can push the sums of two neighbours apart, in clip norms.

    Per group the terms of a unit have norm at most FLOAT32_CANCELLATION·c in float32 (an engine may have a bound of its
    own, `DrawBounds.block_rounding`), LARGEST_CANCELLATION·c in float64. What rounds: the scaled factors of a unit, each
    by a few u of float32; the float32 sums (`block_sum_rounding`), of which only those with the changed unit differ; and
    everything in float64, off by at most gamma_n Σ|terms| for n additions in any order, twice for two sums.

    Adjacency:   zero-out one unit.
    Sensitivity: none; reads no row.
    Shapes:      one number, to be divided out of every clip norm.
    Source:      Higham 2002, Accuracy and Stability of Numerical Algorithms, §4.2; `workers.numerics.block_sums`.
    Edge cases:  no units -> the rounding of one unit's own factors.
    """
    units = min(bounds.units_per_block, bounds.most_units)
    in_a_block = bounds.block_rounding
    if in_a_block is None:
        scaled = 4.0 * torch.finfo(torch.float32).eps
        summed = block_sum_rounding(units=units, kinds=3, rows_per_unit=bounds.rows_per_unit)
        in_a_block = FLOAT32_CANCELLATION * (scaled + summed)
    unit_roundoff = torch.finfo(torch.float64).eps / 2.0
    additions = (
        bounds.terms_per_row * bounds.rows_per_unit * units + math.ceil(bounds.most_units / bounds.units_per_block) + 9
    )  # the last one is the division that brings a sum to the grid of its noise (`noise.release`)
    gamma = additions * unit_roundoff / (1.0 - additions * unit_roundoff)
    in_float64 = 2.0 * gamma * bounds.most_units
    return in_a_block + LARGEST_CANCELLATION * in_float64


def clip_weights(
    tensor_norms: Tensor, contributes: Tensor, *, groups: Sequence[Sequence[int]], clip_norms: Sequence[float]
) -> Tensor:
    """The factor of every unit and tensor, min(1, c_k/‖g_ik‖) with k the tensor's group; 0 for who does not count.

    Adjacency:   zero-out one unit.
    Sensitivity: none of its own: bounds ‖g_ik‖·weight by clip_norms[k].
    Shapes:      tensor_norms (U, M) float64, contributes (U,) bool; returns (U, M) float64.
    Source:      Abadi et al. 2016, Alg. 1.
    Edge cases:  a zero gradient has factor 1; NaN norms belong to units that do not contribute; a factor that float32
                 cannot hold is 0.
    """
    member = _membership(tuple(tuple(group) for group in groups), tensor_norms.shape[1], tensor_norms.device)
    allowed = tensor_norms.new_tensor(clip_norms).mul_(SHRINK)
    return clip_factors(tensor_norms, contributes, member=member, allowed=allowed, smallest_factor=SMALLEST_FACTOR)


def clip_factors(
    tensor_norms: Tensor, contributes: Tensor, *, member: Tensor, allowed: Tensor, smallest_factor: float
) -> Tensor:
    """`clip_weights` where groups and what is allowed to them are tensors, whose numbers may change while shapes do not.

    Adjacency:   zero-out one unit.
    Sensitivity: none of its own: bounds ‖g_ik‖·weight by allowed[k], but for float64's rounding.
    Shapes:      tensor_norms (U, M) float64, contributes (U,) bool, member (M, K) float64 of zeros and ones, allowed (K,)
                 float64; returns (U, M) float64.
    Source:      Abadi et al. 2016, Alg. 1.
    Edge cases:  as `clip_weights`; a group without members changes nothing.
    """
    norms = (tensor_norms.square() @ member).sqrt()  # (U, K)
    factors = (allowed / norms).clamp_(max=1.0)  # c/0 = inf -> 1
    kept = contributes.unsqueeze(1) & (factors >= smallest_factor)
    return torch.where(kept, factors, 0.0) @ member.T


@lru_cache(maxsize=64)
def _membership(groups: tuple[tuple[int, ...], ...], tensors: int, device: torch.device) -> Tensor:
    """Which tensor is in which group: (M, K) float64 of zeros and ones."""
    return F.one_hot(torch.tensor(_group_of(groups, tensors), device=device), len(groups)).double()


def _group_of(groups: Sequence[Sequence[int]], tensors: int) -> list[int]:
    group_of = [0] * tensors
    for place, group in enumerate(groups):
        for tensor in group:
            group_of[tensor] = place
    return group_of
