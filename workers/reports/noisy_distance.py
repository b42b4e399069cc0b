"""Total variation of a known table from one that is known with noise: estimates, and how sure they are. Post-processing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr

from service.methods.forecast import SURE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

NORMAL_MEAN = math.sqrt(2.0 / math.pi)
"""E|z| of a standard normal z."""
SCALES = 14
ROUNDS = 200


@dataclass(frozen=True)
class NoisyTable:
    """One table: noisy share of the real rows less share of the synthetic ones, by cell, and the variances of these differences."""

    differences: NDArray[np.float64]
    variances: NDArray[np.float64]

    @property
    def total_variation(self) -> float:
        """With all that noise adds to it."""
        return float(0.5 * np.abs(self.differences).sum())

    @property
    def of_noise_alone(self) -> float:
        """What a generator without error would be expected to show."""
        return float(np.sqrt(self.variances / (2.0 * np.pi)).sum())

    @property
    def noise_std(self) -> float:
        """Standard error of `total_variation`, at most: |x + z| varies no more than z. Cells have independent noise."""
        return float(0.5 * np.sqrt(self.variances.sum()))


@dataclass(frozen=True)
class MeanDistance:
    """Mean total variation over tables: with the noise, and an estimate without it between its bounds."""

    noisy: float
    estimate: float
    low: float
    high: float

    @property
    def is_hidden(self) -> bool:
        """Whether noise may be all that is seen, or hides how far from everything it is: then the estimate says nothing. By noisy figures alone."""
        return self.low <= 0.0 < self.high or self.high > 1.0


def mean_distance(tables: Sequence[NoisyTable]) -> MeanDistance:
    """Noise makes every |difference| larger, by E|z| where there is no difference and by hardly anything where it is large.

    Bounds: of all differences with the same E|x + z|, those in few cells have the least sum, and those that are everywhere the same
    part of the noise have the largest. So both hold whatever the differences are like, 19 times in 20 as noise falls.
    """
    noisy = float(np.mean([table.total_variation for table in tables]))
    alone = float(np.mean([table.of_noise_alone for table in tables]))
    # |x + z| varies no more than z.
    error = SURE * 0.5 * float(np.sqrt(sum(table.variances.sum() for table in tables))) / len(tables)
    low, high = max(0.0, noisy - alone - error), _everywhere(max(noisy, alone) + error, alone)
    return MeanDistance(noisy, min(max(_estimate(tables), low), high), low, high)


def _everywhere(noisy: float, alone: float) -> float:
    """The mean total variation of which noise makes `noisy`, if every difference is the same part of its noise."""
    if alone == 0.0:
        return noisy
    low, high = 0.0, noisy / alone  # in standard deviations; E|c + z| is at least c
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _folded(middle) < noisy / alone * NORMAL_MEAN else (low, middle)
    return high * alone / NORMAL_MEAN


def _folded(c: Any) -> Any:
    """E|c + z|, z standard normal."""
    return NORMAL_MEAN * np.exp(-0.5 * c * c) + c * (2.0 * ndtr(c) - 1.0)


def _estimate(tables: Sequence[NoisyTable]) -> float:
    """Mean total variation without noise: differences are taken to be normal, of several scales.

    How many cells have which scale is what makes the noisy differences likeliest. One scale for all would see large differences in few
    cells, which tables of skewed columns have, as small ones everywhere, and that is up to twice as much.
    """
    noisy = np.concatenate([table.differences for table in tables])
    variances = np.concatenate([table.variances for table in tables])[:, None]
    if not variances.any():
        return float(np.abs(noisy).sum() / 2 / len(tables))
    variances = np.maximum(variances, variances[variances > 0.0].min())
    smallest = 0.3 * np.sqrt(variances.min())
    scales = np.r_[0.0, np.geomspace(smallest, max(np.abs(noisy).max(), 2.0 * smallest), SCALES)] ** 2
    total = scales + variances
    log_density = -0.5 * (np.log(total) + noisy[:, None] ** 2 / total)
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    shares = np.full(len(scales), 1.0 / len(scales))
    for _ in range(ROUNDS):
        weights = density * shares
        weights /= weights.sum(axis=1, keepdims=True)
        shares = weights.mean(axis=0)
    std = np.sqrt(scales * variances / total)
    mean = np.abs(noisy[:, None]) * scales / total
    with np.errstate(invalid="ignore"):
        left = np.where(std > 0.0, std * _folded(mean / std), mean)
    return float((weights * left).sum() / 2 / len(tables))
