"""Whole sums that several methods release alike: the event, then the sum, then noise by shares; and means that noise allows for."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from workers.mechanism.noise import drawn_std, most_moved, release_counts

if TYPE_CHECKING:
    from workers.mechanism import PrivateSum
    from workers.mechanism.noise import DiscreteGaussians
    from workers.plan import Plan

Floats = NDArray[np.float64]


class NoisySums(NamedTuple):
    """What was released, with the standard deviations of its noise: those that the event pays for, and as it was drawn."""

    released: tuple[Floats, ...]
    noise_stds: tuple[float, ...]
    drawn_stds: tuple[float, ...]


def release_whole(
    plan: Plan,
    purpose: str,
    sums: Callable[[], PrivateSum],
    shares: Sequence[float],
    *,
    randomness: DiscreteGaussians,
) -> NoisySums:
    """Whole sums with noise; `shares` of the precision 1/σ² for each of them, 1 together.

    sums: adds up private rows. It is called once its event was taken, so that whatever it reads is paid for.
    """
    noise_multiplier = plan.take_gaussian(purpose)
    private = sums()
    noise_stds = tuple(
        sensitivity * noise_multiplier / math.sqrt(share)
        for sensitivity, share in zip(private.sensitivities, shares, strict=True)
    )
    noisy = release_counts(private, noise_stds=noise_stds, noise_multiplier=noise_multiplier, randomness=randomness)
    drawn = tuple(drawn_std(noise_std, moved=most_moved(private)) for noise_std in noise_stds)
    return NoisySums(tuple(value.double().cpu().numpy() for value in noisy), noise_stds, drawn)


def clear_shifts(counts: Floats, sums: Floats, *, noise_std: float, least: float) -> Floats:
    """(K, d) noisy sums about centres -> the means of their records, as far as they stand out of the noise (James and Stein).

    noise_std: of the sums. least: a count below it, which may be noise, is taken as that.
    """
    n = np.maximum(counts, least)[:, None]
    shifts = sums / n
    expected = np.square(noise_std / n) * shifts.shape[1]
    squared = np.square(shifts).sum(axis=1, keepdims=True)
    kept: Floats = shifts * np.clip(1.0 - expected / np.maximum(squared, 1e-12), 0.0, None)
    return kept
