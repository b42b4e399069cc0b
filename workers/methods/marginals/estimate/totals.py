"""How many rows there are in each stratum, from noisy tables. Post-processing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from workers.mechanism.marginals import TableLayout
from workers.methods.marginals.estimate.denoising import Floats, onto_simplex
from workers.methods.marginals.measure.measured import Measured

NOISE_OF_NONE = 2.0
"""Standard deviations of its noise that a count of missing cells must exceed: of columns without any, 1 in 44 keeps some."""


@dataclass(frozen=True)
class Units:
    """What is public of the privacy units."""

    count: int
    most_rows: float
    """That one unit has; 1 where units are rows."""
    are_rows: bool


def totals_of(measured: Sequence[Measured], layout: TableLayout, units: Units) -> Floats:
    """(slices,) rows, positive. Where a row is a unit they add up to the public number of units."""
    sliced = [m for m in measured if len(m.counts) == layout.slices]
    precision = np.array([1.0 / (m.variance * math.prod(m.counts.shape[1:])) for m in sliced])
    sums = np.array([m.counts.reshape(layout.slices, -1).sum(axis=1) for m in sliced])  # (tables, slices)
    totals = precision @ sums / precision.sum()
    rows = float(units.count) if units.are_rows else float(np.clip(totals.sum(), 1.0, units.count * units.most_rows))
    possible = onto_simplex(totals, rows)
    if layout.label is not None and layout.has_missing[layout.label]:
        shows_some = totals[-1] > NOISE_OF_NONE / math.sqrt(precision.sum())
        possible[-1] *= shows_some
    positive = np.maximum(possible, 1e-3)
    scaled: Floats = positive * (rows / positive.sum())
    return scaled
