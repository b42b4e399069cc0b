"""How many rows there are in each stratum, from noisy tables. Post-processing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workers.mechanism.marginals import TableLayout
from workers.methods.marginals.estimate.denoising import STANDS_OUT, Floats, averaged, onto_simplex
from workers.methods.marginals.measure.measured import Measured


@dataclass(frozen=True)
class Units:
    """What is public of the privacy units."""

    count: int
    most_rows: float
    """That one unit has; 1 where units are rows."""
    are_rows: bool


def totals_of(measured: Sequence[Measured], layout: TableLayout, units: Units) -> Floats:
    """(strata,) rows, positive. Where a row is a unit they add up to the public number of units."""
    by_stratum = [(m.counts.reshape(len(m.counts), -1), m.variance) for m in measured if len(m.counts) == layout.slices]
    totals, variance = averaged([(cells.sum(axis=1), variance * cells.shape[1]) for cells, variance in by_stratum])
    rows = float(units.count) if units.are_rows else float(np.clip(totals.sum(), 1.0, units.count * units.most_rows))
    possible = onto_simplex(totals, rows)
    if layout.label is not None and layout.has_missing[layout.label]:
        shows_some = totals[-1] > STANDS_OUT * math.sqrt(variance)
        possible[-1] *= shows_some
    positive = np.maximum(possible, 1e-3)
    scaled: Floats = positive * (rows / positive.sum())
    return scaled
