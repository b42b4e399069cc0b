"""Total variation of a known table from one that is known with noise: estimates, and how sure they are. Post-processing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from service.methods.forecast import SURE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

DRAWS = 400


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


def mean_distance(tables: Sequence[NoisyTable], *, seed: int = 0) -> MeanDistance:
    """Noise makes every |difference| larger. How much is estimated from its known variance, and corrected by simulation.

    Σ x² - Σ v estimates Σ d² without bias, so all differences are shrunk by the root of that share: (d̂). Noise is then added to d̂
    again and again; what the same estimate makes of these tables tells its bias and its error.
    """
    noisy = float(np.mean([table.total_variation for table in tables]))
    differences = np.concatenate([table.differences for table in tables])
    variances = np.concatenate([table.variances for table in tables])
    starts = np.cumsum([0, *(len(table.differences) for table in tables)])[:-1]
    shrunk = differences * _shrinkage(differences, variances)
    truth = float(_mean(shrunk[None], starts)[0])
    random = np.random.default_rng(seed)
    again = shrunk + np.sqrt(variances) * random.standard_normal((DRAWS, len(shrunk)))
    factors = np.array([_shrinkage(one, variances) for one in again])
    errors = factors * _mean(again, starts) - truth
    estimate = max(0.0, truth - float(errors.mean()))
    low, high = (truth - float(error) for error in np.quantile(errors, [0.975, 0.025]))
    least, most = _left(differences, variances, shrunk)
    return MeanDistance(noisy, estimate, max(0.0, min(low, noisy * least)), max(high, noisy * most))


def _left(
    differences: NDArray[np.float64], variances: NDArray[np.float64], shrunk: NDArray[np.float64]
) -> tuple[float, float]:
    """The share of root mean squares that is left of the differences without noise: at least, and at most, each 39 times in 40.

    Where noise is nearly all that is seen, the simulation begins where chance has put the estimate: at 0 it says nothing about
    how much may be hidden, and above 0 nothing about how often noise alone gets there.
    """
    squares = float((differences**2).sum())
    if squares <= 0.0:
        return 0.0, 0.0
    error = float(np.sqrt(2.0 * (variances**2).sum() + 4.0 * (variances * shrunk**2).sum()))
    found = float((shrunk**2).sum())
    least, most = max(0.0, found - SURE * error), min(squares, found + SURE * error)
    return float(np.sqrt(least / squares)), float(np.sqrt(most / squares))


def _shrinkage(differences: NDArray[np.float64], variances: NDArray[np.float64]) -> float:
    squares = float((differences**2).sum())
    return float(np.sqrt(max(0.0, squares - float(variances.sum())) / squares)) if squares > 0.0 else 0.0


def _mean(differences: NDArray[np.float64], starts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Of each row of differences (draws, cells): the mean over tables of half the L1 norm."""
    return np.asarray(0.5 * np.add.reduceat(np.abs(differences), starts, axis=1).mean(axis=1))
