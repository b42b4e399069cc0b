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

SHIFT = 0.3
"""Large enough not to drown in the fit's own accidents, small enough to be a derivative."""


@dataclass(frozen=True)
class Measured:
    """One noised table; public."""

    columns: Columns
    counts: NDArray[np.int64] | NDArray[np.float64]
    variance: float


def shifted(measured: Sequence[Measured], *, seed: int) -> tuple[Measured, ...]:
    """The same tables under a little more noise."""
    rng = np.random.default_rng(seed)
    return tuple(
        dataclasses.replace(m, counts=m.counts + SHIFT * math.sqrt(m.variance) * rng.standard_normal(m.counts.shape))
        for m in measured
    )


class EstimatedRisk:
    """Stein's estimate for one slice's two-way tables.

    spans: the cells of each column within V cells side by side.
    """

    def __init__(
        self, measured: Sequence[Measured], twin: Sequence[Measured], spans: Mapping[int, slice], device: torch.device
    ) -> None:
        self._pairs = [(m, t) for m, t in zip(measured, twin, strict=True) if len(m.columns) == 2]
        self._spans, self._device = spans, device

    def __call__(self, place: int, fitted: Tensor, twin: Tensor) -> float:
        """Per cell, in units of the noise. fitted, twin: (V, V) expected counts of both fits of slice `place`."""
        total, cells = 0.0, 0
        for m, t in self._pairs:
            here = (self._spans[m.columns[0]], self._spans[m.columns[1]])
            counts = torch.from_numpy(m.counts[place]).to(self._device, torch.float32)
            shift = torch.from_numpy(t.counts[place] - m.counts[place]).to(self._device, torch.float32)
            error = (fitted[here] - counts).square().sum()
            freedom = (shift * (twin[here] - fitted[here])).sum() / SHIFT**2
            total += float(error + 2.0 * freedom) / m.variance
            cells += counts.numel()
        return total / cells - 1.0
