"""Gaussian noise, once, on a private sum: the only way out of a `PrivateSum`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, Protocol

import torch
from torch import Tensor

from workers.mechanism import PrivateSum

Allocation = Literal["least_noise", "equal_share", "flat"]

LARGEST_NOISE_STD = 2.0**48
"""Of counts. All noise up to ten times as much is a whole number that float64 tells from its neighbours, and that an int64 holds:
what does not fit becomes one and the same number, so that counts would be published as they are."""


class Normals(Protocol):
    """A secure source of standard normals in float64."""

    def normals(self, *shape: int, device: torch.device = ...) -> Tensor: ...


def allocate(
    sensitivities: Sequence[float], sizes: Sequence[int], *, noise_multiplier: float, allocation: Allocation
) -> tuple[float, ...]:
    """noise_std s_k of every group. All three satisfy Σ(c_k/s_k)² = 1/σ² (docs/privacy.md, One private step), so K costs nothing.

    least_noise minimises Σ d_k s_k²: s_k = σ·√c_k·d_k^(-1/4)·√(Σ_j c_j √d_j).
    """
    if allocation == "equal_share":
        return tuple(noise_multiplier * math.sqrt(len(sensitivities)) * c for c in sensitivities)
    if allocation == "flat":
        return (noise_multiplier * math.sqrt(sum(c * c for c in sensitivities)),) * len(sensitivities)
    total = math.sqrt(sum(c * math.sqrt(d) for c, d in zip(sensitivities, sizes, strict=True)))
    return tuple(noise_multiplier * math.sqrt(c) * d**-0.25 * total for c, d in zip(sensitivities, sizes, strict=True))


def release(
    private: PrivateSum, *, noise_multiplier: float, randomness: Normals, allocation: Allocation = "least_noise"
) -> tuple[Tensor, ...]:
    """The values of a private sum with Gaussian noise added; what comes back is public.

    Adjacency:   zero-out one unit.
    Sensitivity: read from the sum, L2 per group; Σ(sensitivity_k / noise_std_k)² = 1/noise_multiplier².
    Shapes:      one float64 tensor per value, of the value's shape.
    Source:      Dwork and Roth 2014, Theorem A.1; several groups as one Gaussian: docs/privacy.md, One private step.
    Edge cases:  the sum of an empty draw is zeros and is noised like any other.
    """
    sizes = [sum(private.values[tensor].numel() for tensor in group) for group in private.groups]
    noise_stds = allocate(private.sensitivities, sizes, noise_multiplier=noise_multiplier, allocation=allocation)
    noise_std_of = {tensor: std for group, std in zip(private.groups, noise_stds, strict=True) for tensor in group}
    values = [value.double() for value in private.values]
    counts = [value.numel() for value in values]
    normals = torch.split(randomness.normals(sum(counts), device=values[0].device), counts)
    noised = [noise.view(value.shape) for noise, value in zip(normals, values, strict=True)]
    for index, (noise, value) in enumerate(zip(noised, values, strict=True)):
        torch.add(value, noise, alpha=noise_std_of[index], out=noise)  # one pass over memory instead of two
    return tuple(noised)


def count_noise_stds(
    sensitivities: Sequence[float], sizes: Sequence[float], *, noise_multiplier: float, exponent: float
) -> tuple[float, ...]:
    """noise_std s_k of tables of counts: precision 1/s_k² ∝ size^exponent, with Σ(c_k/s_k)² = 1/σ².

    `sizes` may be weighted. exponent 2/3 minimises the mean absolute noise over all cells: min Σ d_k s_k gives
    1/s_k² ∝ d_k^(2/3) where the sensitivities are equal.
    """
    weights = [size**exponent for size in sizes]
    total = sum(c * c * weight for c, weight in zip(sensitivities, weights, strict=True))
    return tuple(noise_multiplier * math.sqrt(total / weight) for weight in weights)


def release_counts(
    private: PrivateSum, *, noise_stds: Sequence[float], noise_multiplier: float, randomness: Normals
) -> tuple[Tensor, ...]:
    """Whole counts with Gaussian noise rounded to whole numbers; what comes back is public.

    A rounded Gaussian added to a whole count is the rounding of the Gaussian mechanism's output, so the price is the
    Gaussian's; and as sums of whole numbers the results hold no low bits that could tell what was noised.

    Adjacency:   zero-out one unit.
    Sensitivity: read from the sum, L2 per group; refused unless Σ(sensitivity_k / noise_std_k)² ≤ 1/noise_multiplier², and
                 where a noise_std is above LARGEST_NOISE_STD.
    Shapes:      one int64 tensor per value, of the value's shape.
    Source:      Mironov 2012 on low bits; docs/decisions/0008.
    Edge cases:  counts of an empty table are zeros and are noised like any others.
    """
    spent = sum((c / s) ** 2 for c, s in zip(private.sensitivities, noise_stds, strict=True))
    if not spent <= noise_multiplier**-2 * (1.0 + 1e-9):
        raise ValueError("the noise of these tables is smaller than what was charged")
    if not max(noise_stds, default=0.0) <= LARGEST_NOISE_STD:
        raise ValueError("the noise of these tables is larger than whole numbers can hold")
    std_of = {tensor: std for group, std in zip(private.groups, noise_stds, strict=True) for tensor in group}
    # A half goes up: rounded to even numbers, which many halves of large noise would be, counts would show in the last digit.
    return tuple(
        value.long() + (std_of[index] * randomness.normals(*value.shape)).add_(0.5).floor_().long()
        for index, value in enumerate(private.values)
    )
