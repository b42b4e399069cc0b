"""One-way tables of all columns together, made smoother by empirical Bayes. Post-processing of noisy counts.

A column's counts are written in cosines over its cells (the DCT-II), of which the k-th has k half waves over the declared
range. Noise is of one size in all of them; what rows say mostly lies in the first few where neighbouring cells are alike,
and is of the same kind in many columns. So for cell counts y of stratum s with N_s rows, as shares and times the root of the
number of cells, coefficients are taken as

    what strata share:             a_k   ~ Normal(0, scale k^(-2 decay)),
    what stratum s says beyond it: d_s,k = u_s,k - Σ_t N_t² u_t,k / Σ_t N_t²,  u_s,k ~ Normal(0, scale' k^(-2 decay')),

where every column draws its (scale, decay) from a distribution that all columns tell. Categories have no order: no decay.
What is shared is a mean by N_t², so a large stratum says little beyond it: the d of S strata are S - 1 facts of unlike size.

Source: parametric empirical Bayes (Efron and Morris 1973), its distribution of scales by nonparametric maximum likelihood (Kiefer
and Wolfowitz 1956), by EM on a grid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.fft import idct

from workers.methods.marginals.estimate.denoising import Floats

_SCALES = np.concatenate([[0.0], np.geomspace(1e-5, 30.0, 24)])
_DECAYS = np.array([0.0, 0.5, 1.0, 1.5, 2.0])
_EM_STEPS, _TINY = 40, 1e-300


@dataclass(frozen=True)
class NoisyColumn:
    """One column's noisy counts (strata, cells), each of this variance; a missing cell is the last."""

    counts: Floats
    variance: float
    is_ordered: bool
    has_missing: bool

    def of_all_slices(self) -> NoisyColumn:
        """All strata together, as one."""
        return replace(self, counts=self.counts.sum(axis=0, keepdims=True), variance=self.variance * len(self.counts))

    def waves(self) -> Floats:
        """(cells, cells - 1) orthogonal waves over the cells, of mean square 1; that of a missing cell to the others comes last."""
        cells = self.counts.shape[1]
        known = cells - self.has_missing
        basis = np.zeros((cells, cells - 1))
        basis[:known, : known - 1] = idct(np.eye(known), norm="ortho", axis=0)[:, 1:] * np.sqrt(cells)
        if self.has_missing:
            basis[:, -1] = -1.0 / np.sqrt(known)
            basis[-1, -1] = np.sqrt(known)
        return basis

    def falls(self) -> Floats:
        """(decays, cells - 1): how variances fall along the waves."""
        half_waves = np.arange(1.0, self.counts.shape[1])
        if self.has_missing:
            half_waves[-1:] = 1.0
        return half_waves ** (-2.0 * (_DECAYS if self.is_ordered else _DECAYS[:1])[:, None])


def smooth_columns(columns: Sequence[NoisyColumn], totals: Floats) -> list[Floats]:
    """Counts (strata, cells) of every column, each stratum with its total; some may be negative.

    totals: (strata,) rows, positive. What strata share is shrunk as the model says. What a stratum says beyond it loses roughness
    alone, and keeps its size: classifiers live on differences that are small beside the noise.
    """
    weight = float(totals @ totals)
    part = totals**2 / weight
    sizes = np.maximum(1.0 - 2.0 * part + part @ part, 0.0)
    # One stratum may have all rows but a thousandth, and says nothing beyond itself.
    noises = np.maximum(1.0 / totals**2 - 1.0 / weight, 1e-30)
    found: dict[int, Floats] = {}
    for is_ordered in {column.is_ordered for column in columns}:
        alike = {place: column for place, column in enumerate(columns) if column.is_ordered == is_ordered}
        waves = [column.waves() for column in alike.values()]
        said = [column.counts @ own for column, own in zip(alike.values(), waves, strict=True)]
        shared = [totals @ own[None] / weight for own in said]
        beyond = [own / totals[:, None] - common for own, common in zip(said, shared, strict=True)]
        kept_of_shared = _kept(list(alike.values()), shared, np.array([1.0 / weight]), np.ones(1))
        kept_of_beyond = _kept(list(alike.values()), beyond, noises, sizes)
        every = zip(alike, waves, shared, beyond, kept_of_shared, kept_of_beyond, strict=True)
        for place, basis, common, own, of_common, of_own in every:
            largest = np.maximum(of_own.max(axis=1, keepdims=True, initial=0.0), 1e-12)
            shares = of_common * common + of_own / largest * own
            found[place] = totals[:, None] * (1.0 + shares @ basis.T) / len(basis)
    return [found[place] for place in range(len(columns))]


def _kept(columns: Sequence[NoisyColumn], said: Sequence[Floats], noises: Floats, sizes: Floats) -> list[Floats]:
    """(strata, waves) of every column, all of one kind: how much the model keeps of each coefficient.

    said: (strata, waves) coefficients of every column. noises: (strata,) their variances where that of a count, times the number
    of cells, is one. sizes: (strata,) prior variances where those of what these are parts of are one.
    """

    def by_stratum(column: NoisyColumn, own: Floats) -> Iterator[tuple[Floats, Floats, float]]:
        """(waves,) coefficients, (grid, waves) their variances by every scale and decay, and the variance of their noise."""
        priors = np.concatenate(_SCALES[:, None, None] * column.falls())
        variance = column.variance * column.counts.shape[1]
        for coefficients, noise, size in zip(own, noises.tolist(), sizes.tolist(), strict=True):
            yield coefficients, priors * size, variance * noise

    every = list(zip(columns, said, strict=True))
    facts = max(1, len(sizes) - 1) / len(sizes)
    logs = np.array([facts * sum(_log_likelihood(*one) for one in by_stratum(*column)) for column in every])
    likelihoods = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights = np.full(likelihoods.shape[1], 1.0 / likelihoods.shape[1])
    for _ in range(_EM_STEPS):
        weights *= likelihoods.T @ (1.0 / np.maximum(likelihoods @ weights, _TINY)) / len(every)
    chances = likelihoods * weights
    chances /= chances.sum(axis=1, keepdims=True)
    return [
        np.array([chance @ (priors / (priors + noise)) for _, priors, noise in by_stratum(*column)])
        for column, chance in zip(every, chances, strict=True)
    ]


def _log_likelihood(values: Floats, priors: Floats, variance: float) -> Floats:
    """(grid,) of coefficients under every prior, up to a constant."""
    variances = priors + variance
    found: Floats = -0.5 * (np.log(variances) + values**2 / variances).sum(axis=1)
    return found
