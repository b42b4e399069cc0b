"""How much to keep of what two-way tables say along an ordered column, wave by wave. Post-processing of noisy counts.

What is left of a column's tables after independence is written in cosines along it (the DCT-II), of which the k-th has k half
waves over the declared range. Noise is of one size in all of them. Where the relations of a column are smooth, as those of ages
are, they lie in the first few, and the others can go before singular values are looked at. Where a column's relations have spikes
(a week of 40 hours) or no order (years of schooling by degree), they lie in all, and nothing is taken away.

Source: Wiener 1949, with variances from all tables of the column together, as in empirical Bayes (Efron and Morris 1973), made to
fall by isotonic regression (Barlow, Bartholomew, Bremner, Brunk 1972).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy.fft import dct
from scipy.optimize import isotonic_regression

from workers.methods.marginals.estimate.denoising import SHRUNK_NOISE, Floats

FEWEST_CELLS = 6
"""Of an ordered column: of fewer, there is no saying what is a wave and what a spike."""

ROUGH_SHARE = 0.1
"""A column is smooth where the upper half of its waves has at most this part of what its tables say (docs/log.md)."""


def kept_waves(tables: Iterable[tuple[Floats, float]]) -> Floats | None:
    """The part to keep of each wave of one column: (slices, cells), with 1 for what is kept best; None where it is not smooth.

    tables: counts beyond independence (slices, cells, cells of another column) and the variance of a count, for every two-way
    table of the column; a missing cell is left out.
    """
    energies, noises = [], []
    for counts, variance in tables:
        energies.append(np.square(dct(counts, axis=1, norm="ortho")).sum(axis=2))
        noises.append(variance * (counts.shape[2] - 1))
    if sum(noises) <= 0.0 or energies[0].shape[1] < FEWEST_CELLS:
        return None
    # (slices, waves), in units of the noise; a constant along the column is in its margins.
    found = sum(energies)[:, 1:] / sum(noises) - 1.0
    slices, cells = energies[0].shape
    of_all = found.sum(axis=0)
    if of_all[cells // 2 :].sum() > ROUGH_SHARE * of_all.sum():
        return None
    kept = np.ones((slices, cells))
    for place, row in enumerate(found):
        signal = np.maximum(isotonic_regression(row, increasing=False).x, 0.0)
        if signal[0] > 0.0:
            weights = signal / (signal + SHRUNK_NOISE**2)
            kept[place, 1:] = weights / weights[0]
    return kept
