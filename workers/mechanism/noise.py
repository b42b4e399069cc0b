"""Discrete Gaussian noise, once, on a private sum: the only way out of a `PrivateSum`.

Whole numbers stay whole: their noise is drawn on the integers. Sums in float64 go to a public grid, 1/128 of the noise wide, and
their noise is drawn on it around where they lie between two of its points. Either way every output is possible on every dataset, and its
probability is exactly the one written here: no float decides once a sum is on its grid.

Why the price of a Gaussian with standard deviation s stands (docs/privacy.md, Discrete noise): a discrete Gaussian of variance s² + ρ²
is what randomised rounding of variance ρ² makes of it, up to a factor of e^(±4η) a number, η = 2·exp(-2π²ρ²).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, Protocol

import torch
from torch import Tensor

from workers.mechanism import PrivateSum

Allocation = Literal["least_noise", "equal_share", "flat"]

LEAST_ROUNDING_VARIANCE = 1.2
"""ρ² of whole numbers of which a unit moves one: η = 1.0e-10. Of more, ρ² grows so that η times their number stays what it is; an
event of the price list then costs 4.2e-10 at most beyond its price, which `service.privacy.calibration.NOISE_RESERVE` pays for."""

MOST_STEPS = 10**6
"""Whole numbers that a step releases are released so often, at most."""

GRID_STD = 128.0
"""Of noise on sums in float64, in points of the grid."""

GRID_ROUNDING_VARIANCE = 4.0
"""ρ² of these, in squared points: η = 1.1e-34, and noise 1.00012 times s."""

LARGEST_NOISE_STD = 2.0**57
"""Of whole numbers: sixty times as much, and a count, fit in 64 bits."""

_ROUND_UP = 1.0 + 1e-12
"""Noise computed in float64 is never smaller than meant."""


class DiscreteGaussians(Protocol):
    """A secure source of whole numbers k with P(k) ∝ exp(-(k - f)²/2v)."""

    def discrete_gaussian(
        self, *shape: int, variance: float, fractions: Tensor | None = ..., device: torch.device = ...
    ) -> Tensor: ...


def allocate(
    sensitivities: Sequence[float], sizes: Sequence[float], *, noise_multiplier: float, allocation: Allocation
) -> tuple[float, ...]:
    """noise_std s_k of every group. All three satisfy Σ(c_k/s_k)² = 1/σ² (docs/privacy.md, One private step), so K costs nothing.

    least_noise minimises Σ d_k s_k²: s_k = σ·√c_k·d_k^(-1/4)·√(Σ_j c_j √d_j). Sizes d_k may be weighted.
    """
    if allocation == "equal_share":
        return tuple(noise_multiplier * math.sqrt(len(sensitivities)) * c for c in sensitivities)
    if allocation == "flat":
        return (noise_multiplier * math.sqrt(sum(c * c for c in sensitivities)),) * len(sensitivities)
    total = math.sqrt(sum(c * math.sqrt(d) for c, d in zip(sensitivities, sizes, strict=True)))
    return tuple(noise_multiplier * math.sqrt(c) * d**-0.25 * total for c, d in zip(sensitivities, sizes, strict=True))


def release(
    private: PrivateSum,
    *,
    noise_multiplier: float,
    randomness: DiscreteGaussians,
    allocation: Allocation = "least_noise",
    importance: Sequence[float] | None = None,
) -> tuple[Tensor, ...]:
    """The values of a private sum with noise added; what comes back is public.

    importance: of each value, how much a squared unit of its noise weighs; public. least_noise minimises Σ w_k d_k s_k².

    Adjacency:   zero-out one unit.
    Sensitivity: read from the sum, L2 per group; Σ(sensitivity_k / noise_std_k)² = 1/noise_multiplier².
    Shapes:      one tensor per value, of the value's shape: int64 where it is int64, else float64.
    Source:      Canonne, Kamath, Steinke 2020; several groups as one Gaussian, and discrete noise at its price: docs/privacy.md.
    Edge cases:  the sum of an empty draw is zeros and gets noise like any other.
    """
    weights = importance or (1,) * len(private.values)
    sizes = [sum(weights[tensor] * private.values[tensor].numel() for tensor in group) for group in private.groups]
    noise_stds = allocate(private.sensitivities, sizes, noise_multiplier=noise_multiplier, allocation=allocation)
    return _with_noise(private, noise_stds, randomness, times=MOST_STEPS)


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


def drawn_std(noise_std: float, *, moved: float = 1.0) -> float:
    """Standard deviation of the noise on whole numbers that a noise_std pays for, where a unit moves at most so many of them."""
    return math.sqrt(noise_std**2 + LEAST_ROUNDING_VARIANCE + math.log(max(1.0, moved)) / (2.0 * math.pi**2))


def most_moved(private: PrivateSum) -> float:
    """How many whole numbers of a sum a unit can move: each by one at least, so no more than the squared sensitivities."""
    sizes = [
        sum(private.values[tensor].numel() for tensor in group if not private.values[tensor].is_floating_point())
        for group in private.groups
    ]
    return sum(min(float(size), c * c) for size, c in zip(sizes, private.sensitivities, strict=True))


def release_counts(
    private: PrivateSum,
    *,
    noise_stds: Sequence[float],
    noise_multiplier: float,
    randomness: DiscreteGaussians,
    times: int = 1,
) -> tuple[Tensor, ...]:
    """Whole numbers with noise of these standard deviations, and a little more; what comes back is public.

    times: how many such sums one event of the price list is made of.

    Adjacency:   zero-out one unit.
    Sensitivity: read from the sum, L2 per group; refused unless Σ(sensitivity_k / noise_std_k)² ≤ 1/noise_multiplier², and
                 where a noise_std is above LARGEST_NOISE_STD.
    Shapes:      one int64 tensor per value, of the value's shape. Its noise has standard deviation `drawn_std(noise_std, moved=times * most_moved(private))`.
    Source:      Canonne, Kamath, Steinke 2020; at the price of a Gaussian: docs/privacy.md, Discrete noise.
    Edge cases:  counts of an empty table are zeros and get noise like any others.
    """
    spent = sum((c / s) ** 2 for c, s in zip(private.sensitivities, noise_stds, strict=True))
    if not spent <= noise_multiplier**-2 * (1.0 + 1e-9):
        raise ValueError("the noise of these tables is smaller than what was charged")
    whole = PrivateSum(tuple(value.long() for value in private.values), private.groups, private.sensitivities)
    return _with_noise(whole, noise_stds, randomness, times=times)


def _with_noise(
    private: PrivateSum, noise_stds: Sequence[float], randomness: DiscreteGaussians, *, times: int
) -> tuple[Tensor, ...]:
    std_of = {tensor: std for group, std in zip(private.groups, noise_stds, strict=True) for tensor in group}
    noisy: dict[int, Tensor] = {}
    on_grid = [index for index, value in enumerate(private.values) if value.is_floating_point()]
    moved = times * most_moved(private)
    for index in std_of.keys() - set(on_grid):
        noisy[index] = _on_integers(private.values[index], std_of[index], randomness, moved=moved)
    if on_grid:
        sums = _on_grid([private.values[index] for index in on_grid], [std_of[index] for index in on_grid], randomness)
        noisy |= dict(zip(on_grid, sums, strict=True))
    return tuple(noisy[index] for index in range(len(private.values)))


def _on_integers(value: Tensor, noise_std: float, randomness: DiscreteGaussians, *, moved: float) -> Tensor:
    if not noise_std <= LARGEST_NOISE_STD:
        raise ValueError("the noise of these tables is larger than whole numbers can hold")
    variance = drawn_std(noise_std, moved=moved) ** 2 * _ROUND_UP
    return value + randomness.discrete_gaussian(*value.shape, variance=variance).to(value.device)


def _on_grid(values: Sequence[Tensor], noise_stds: Sequence[float], randomness: DiscreteGaussians) -> list[Tensor]:
    """Each value divided by its spacing, a whole number drawn around it, times the spacing.

    The quotient is rounded, which is one more rounding of the sum: `clipping.sum_rounding` counts it. What is left of it beyond the
    nearest point of the grid is exact. (The nearest, not the one below: a sum of zero would lie now above it and now below.)
    """
    wider = _ROUND_UP / math.sqrt(GRID_STD**2 - GRID_ROUNDING_VARIANCE)
    spacings = [noise_std * wider for noise_std in noise_stds]
    places = torch.cat([(value.double() / spacing).flatten() for value, spacing in zip(values, spacings, strict=True)])
    nearest = places.round()
    drawn = randomness.discrete_gaussian(
        len(places), variance=GRID_STD**2, fractions=places.sub_(nearest), device=places.device
    )
    released = torch.split(nearest.add_(drawn), [value.numel() for value in values])
    return [
        points.mul_(spacing).view(value.shape)
        for points, spacing, value in zip(released, spacings, values, strict=True)
    ]
