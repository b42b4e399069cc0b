"""How closely a fit should follow noised counts: not as closely as it can. Post-processing.

Counts y = θ + noise of variance v, fitted values m(y). Stein's estimate of the error, in units of the noise and a cell, is

    |m - θ|²/v  ≈  |m - y|²/v - 1 + 2·df,   df = Σ ∂m/∂y divided by the number of cells;

df comes from a twin fitted to y + SHIFT·√v·z, z standard normal: df ≈ z·(m(twin) - m(y)) / (SHIFT·√v). A fit is kept at the step
where this is least. Sources: Stein 1981; Ramani, Blu and Unser 2008.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.mechanism.marginals import Columns
from workers.methods.mixture_fit import ExpectedCounts

SHIFT = 0.3
"""Large enough not to drown in the fit's own accidents, small enough to be a derivative."""


Counts = NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """One noised table; public."""

    columns: Columns
    counts: Counts
    variance: float


def shifted(measured: Sequence[Measured], *, seed: int) -> tuple[Measured, ...]:
    """The same tables under a little more noise."""
    rng = np.random.default_rng(seed)
    return tuple(
        dataclasses.replace(m, counts=m.counts + SHIFT * math.sqrt(m.variance) * rng.standard_normal(m.counts.shape))
        for m in measured
    )


class EstimatedRisk:
    """Stein's estimate for one slice's two-way tables, or for all tables.

    spans, cells: of each column within V cells of two-way tables side by side, and within W of one-way tables.
    """

    def __init__(
        self,
        measured: Sequence[Measured],
        twin: Sequence[Measured],
        spans: Mapping[int, slice],
        cells: Mapping[int, slice],
    ) -> None:
        both = list(zip(measured, twin, strict=True))
        self._pairs = [(m, t) for m, t in both if len(m.columns) == 2]
        self._singles = [(m, t) for m, t in both if len(m.columns) == 1]
        self._spans, self._cells = spans, cells

    def __call__(self, place: int, fitted: Tensor, twin: Tensor) -> float:
        """Per cell, in units of the noise. fitted, twin: (V, V) expected counts of both fits of slice `place`."""
        cells: int = sum(m.counts[place].size for m, _ in self._pairs)
        return self._of_pairs(place, fitted, twin) / cells

    def of_all_tables(self, fitted: ExpectedCounts, twin: ExpectedCounts) -> float:
        """Of the pairs, and of the one-way tables that have all slices: all cells together, in units of the noise."""
        pairs = zip(fitted.two_way, twin.two_way, strict=True)
        total = sum(self._of_pairs(place, *expected) for place, expected in enumerate(pairs))
        for m, t in self._singles:
            if len(m.counts) == len(fitted.one_way):
                here = self._cells[m.columns[0]]
                total += _estimate(m.counts, t.counts, m.variance, fitted.one_way[:, here], twin.one_way[:, here])
        return total

    def _of_pairs(self, place: int, fitted: Tensor, twin: Tensor) -> float:
        total = 0.0
        for m, t in self._pairs:
            here = (self._spans[m.columns[0]], self._spans[m.columns[1]])
            total += _estimate(m.counts[place], t.counts[place], m.variance, fitted[here], twin[here])
        return total


def _estimate(noised: Counts, noisier: Counts, variance: float, fitted: Tensor, twin: Tensor) -> float:
    """Of one table, all cells together, in units of the noise."""
    counts = torch.from_numpy(noised).to(fitted.device, torch.float32)
    shift = torch.from_numpy(noisier - noised).to(fitted.device, torch.float32)
    error = (fitted - counts).square().sum()
    freedom = (shift * (twin - fitted)).sum() / SHIFT**2
    return float(error + 2.0 * freedom) / variance - counts.numel()
