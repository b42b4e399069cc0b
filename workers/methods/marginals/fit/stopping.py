"""How closely a fit should follow noisy counts: not as closely as it can. Post-processing.

Counts y = θ + noise of variance v, fitted values m(y). Stein's estimate of the error, in units of the noise and a cell, is

    |m - θ|²/v  ≈  |m - y|²/v - 1 + 2·df,   df = Σ ∂m/∂y divided by the number of cells;

df comes from a twin fitted to y + SHIFT·√v·z, z standard normal: df ≈ z·(m(twin) - m(y)) / (SHIFT·√v). A fit is kept at the step
where this is least. Sources: Stein 1981; Ramani, Blu and Unser 2008.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workers.methods.marginals.fit.mixture_fit import ExpectedCounts
from workers.methods.marginals.measure.measured import Measured

SHIFT = 0.3
"""Large enough not to drown in the fit's own accidents, small enough to be a derivative."""


def shifted(measured: Sequence[Measured], *, seed: int) -> tuple[Measured, ...]:
    """The tables of the twin: the same counts with a little more noise, SHIFT of its standard deviation."""
    rng = np.random.default_rng(seed)
    return tuple(
        dataclasses.replace(m, counts=m.counts + SHIFT * math.sqrt(m.variance) * rng.standard_normal(m.counts.shape))
        for m in measured
    )


class EstimatedRisk:
    """Stein's estimate for one stratum's two-way tables, or for all tables.

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
        pairs = [(m, t) for m, t in both if len(m.columns) == 2]
        width = max(span.stop for span in spans.values())
        every_pair = np.arange(width**2).reshape(width, width)
        self._pairs = _CellsTwice.of(pairs, [every_pair[spans[i], spans[j]] for i, j in (m.columns for m, _ in pairs)])
        strata = max((len(m.counts) for m in measured), default=0)
        singles = [(m, t) for m, t in both if len(m.columns) == 1 and len(m.counts) == strata]
        every_cell = np.arange(max(span.stop for span in cells.values()))
        self._singles = _CellsTwice.of(singles, [every_cell[cells[m.columns[0]]] for m, _ in singles])

    def __call__(self, place: int, fitted: Tensor, twin: Tensor) -> float:
        """Per cell, in units of the noise. fitted, twin: (V, V) expected counts of both fits of stratum `place`."""
        return self._pairs.estimate(place, fitted, twin) / len(self._pairs.places)

    def of_all_tables(self, fitted: ExpectedCounts, twin: ExpectedCounts) -> float:
        """The estimated error of the pairs and of the one-way tables that have all strata: all cells together, in units of the noise."""
        of_both = ((self._pairs, fitted.two_way, twin.two_way), (self._singles, fitted.one_way, twin.one_way))
        return sum(
            cells.estimate(place, *expected)
            for cells, ours, theirs in of_both
            if len(cells.places)
            for place, expected in enumerate(zip(ours, theirs, strict=True))
        )


@dataclass(frozen=True)
class _CellsTwice:
    """Cells of some tables side by side, noisy and noisy further."""

    places: Tensor  # (cells,) of each among those that are fitted
    noisy: Tensor  # (strata, cells)
    shift: Tensor  # (strata, cells) from these to the twin's
    precision: Tensor  # (cells,) 1/variance
    elsewhere: dict[torch.device, _CellsTwice] = field(default_factory=dict, init=False)
    """The same on other devices, for those who ask often."""

    @classmethod
    def of(cls, both: Sequence[tuple[Measured, Measured]], places: Sequence[NDArray[np.int64]]) -> _CellsTwice:
        strata = len(both[0][0].counts) if both else 0

        def side_by_side(tables: Iterable[NDArray[Any]]) -> Tensor:
            flat = (table.reshape(strata, -1) for table in tables)
            return torch.from_numpy(np.concatenate([np.empty((strata, 0)), *flat], axis=1)).float()

        return cls(
            torch.from_numpy(np.concatenate([np.empty(0, np.int64), *(at.ravel() for at in places)])),
            side_by_side(m.counts for m, _ in both),
            side_by_side(t.counts - m.counts for m, t in both),
            torch.from_numpy(np.repeat([1.0 / m.variance for m, _ in both], [at.size for at in places])).float(),
        )

    def estimate(self, place: int, fitted: Tensor, twin: Tensor) -> float:
        """The estimated error of one stratum: all cells together, in units of the noise."""
        own = self._on(fitted.device)
        ours, theirs = (expected.reshape(-1).index_select(0, own.places) for expected in (fitted, twin))
        error = (ours - own.noisy[place]).square_().mul_(own.precision).sum()
        freedom = (theirs - ours).mul_(own.shift[place]).mul_(own.precision).sum() / SHIFT**2
        return float(error + 2.0 * freedom) - len(self.places)

    def _on(self, device: torch.device) -> _CellsTwice:
        if device == self.places.device:
            return self
        if device not in self.elsewhere:
            parts = (self.places, self.noisy, self.shift, self.precision)
            self.elsewhere[device] = _CellsTwice(*(part.to(device) for part in parts))
        return self.elsewhere[device]
