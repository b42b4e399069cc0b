"""One-way tables of all columns together, made smoother by empirical Bayes. Post-processing of noisy counts.

A column's counts are written in cosines over its cells (the DCT-II), of which the k-th has k half waves over the declared
range. Noise is of one size in all of them; what rows say mostly lies in the first few where neighbouring cells are alike,
and is of the same kind in many columns. So for cell counts y of stratum s with N_s rows, as shares and times the root of the
number of cells, coefficients are taken as

    what strata share:           a_k   ~ Normal(mean_k, scale k^(-2 decay)),
    what stratum s says beyond it: d_s,k = u_s,k - Σ_t N_t² u_t,k / Σ_t N_t²,  u_s,k ~ Normal(0, scale' k^(-2 decay')),

where mean_k ~ Normal(0, spread / k²) is the same for all ordered columns (declared ranges are rarely full to their ends), and
every column draws its (scale, decay) from a distribution that all columns tell. Categories have no order: no mean, no decay.
What is shared is a mean by N_t², so a large stratum says little beyond it: the d of S strata are S - 1 facts of unlike size.

Source: parametric empirical Bayes (Efron and Morris 1973), its distribution of scales by nonparametric maximum likelihood (Kiefer
and Wolfowitz 1956), by EM on a grid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct, idct

from workers.methods.marginals.estimate.denoising import Floats, mixing_weights

_SCALES = np.concatenate([[0.0], np.geomspace(1e-5, 30.0, 24)])
_DECAYS = np.array([0.0, 0.5, 1.0, 1.5, 2.0])
_EM_STEPS = 40

KEPT_OF_A_COLUMN = 0.5
"""0: how strata differ keeps its size in every column. 1: columns whose strata differ by noise alone lose it (docs/decisions/0028)."""

FEW_SLICES = 10
"""How more strata differ is told by the model, the more so the more there are: each says little, and all of them say how little."""


@dataclass(frozen=True)
class NoisyColumn:
    """One column's noisy counts (slices, cells), each of this variance; a missing cell is the last."""

    counts: Floats
    variance: float
    is_ordered: bool
    has_missing: bool

    def of_all_slices(self) -> NoisyColumn:
        """All strata together, as one."""
        return replace(self, counts=self.counts.sum(axis=0, keepdims=True), variance=self.variance * len(self.counts))


def smooth_columns(columns: Sequence[NoisyColumn], totals: Floats) -> list[Floats]:
    """Counts (slices, cells) of every column, each stratum with its total; some may be negative.

    totals: (slices,) rows, positive. What strata share is shrunk as the model says. What a stratum says beyond it loses roughness, and
    as a whole half (KEPT_OF_A_COLUMN) of what the model takes from a column beside the one that keeps most, and no more: classifiers
    live on differences that are small beside the noise. Of more than FEW_SLICES all columns lose what the model says, too.
    """
    parts = [_Part.of(column, totals) for column in columns]
    common: dict[int, Floats] = {}
    weights: dict[int, Floats] = {}
    for is_ordered in (False, True):
        places = [place for place, column in enumerate(columns) if column.is_ordered == is_ordered]
        alike = [parts[place] for place in places]
        common |= zip(places, _common(alike), strict=True)
        weights |= zip(places, _weights_beyond(alike), strict=True)
    most = np.max([_largest(kept) for kept in weights.values()], axis=0)
    believed = max(0.0, 1.0 - FEW_SLICES / len(totals))
    found = []
    for place, (column, part) in enumerate(zip(columns, parts, strict=True)):
        own = _largest(weights[place])
        kept = weights[place] / own * (own / most) ** KEPT_OF_A_COLUMN * most**believed
        shares = (common[place] + part.beyond * kept) / np.sqrt(part.cells)
        found.append(_counts(totals[:, None] * shares, totals, has_missing=column.has_missing))
    return found


def _largest(weights: Floats) -> Floats:
    """(slices, 1) of weights (slices, coefficients), of which there may be none."""
    largest: Floats = np.maximum(weights.max(axis=1, keepdims=True, initial=0.0), 1e-12)
    return largest


@dataclass(frozen=True)
class _Part:
    """A column's coefficients, as shares times the root of its cells, and their noise."""

    cells: int
    waves: NDArray[np.int64]
    """(coefficients,); zero where there is no order."""
    priors: Floats
    """(grid, coefficients): variances by every scale and decay."""
    common: Floats
    common_variance: float
    beyond: Floats
    """(slices, coefficients)"""
    beyond_variances: Floats
    """(slices,) of their noise."""
    beyond_sizes: Floats
    """(slices,): their variances where those of the u are one."""

    @classmethod
    def of(cls, column: NoisyColumn, totals: Floats) -> _Part:
        cells = column.counts.shape[1]
        coefficients = _coefficients(column.counts, has_missing=column.has_missing) * np.sqrt(cells)
        waves = np.arange(1, cells) if column.is_ordered else np.zeros(cells - 1, np.int64)
        if column.has_missing:
            waves[-1:] = 0
        decays = _DECAYS if column.is_ordered else _DECAYS[:1]
        falls = np.maximum(waves, 1.0) ** (-2.0 * decays[:, None])  # (decays, coefficients)
        variance, weight = column.variance * cells, float(totals @ totals)
        parts_of_common = totals**2 / weight
        common = totals @ coefficients / weight
        return cls(
            cells=cells,
            waves=waves,
            priors=(_SCALES[:, None, None] * falls).reshape(len(_SCALES) * len(decays), cells - 1),
            common=common,
            common_variance=variance / weight,
            beyond=coefficients / totals[:, None] - common,
            # One stratum may have all rows but a thousandth, and says nothing beyond itself.
            beyond_variances=np.maximum(variance * (1.0 / totals**2 - 1.0 / weight), 1e-30),
            beyond_sizes=np.maximum(1.0 - 2.0 * parts_of_common + parts_of_common @ parts_of_common, 0.0),
        )

    def by_slice(self) -> Iterator[tuple[Floats, Floats, float]]:
        """What each says beyond the others (coefficients,), its priors (grid, coefficients), the variance of its noise."""
        for beyond, size, variance in zip(self.beyond, self.beyond_sizes, self.beyond_variances, strict=True):
            yield beyond, self.priors * size, float(variance)


def _common(parts: list[_Part]) -> list[Floats]:
    """What all strata share, column by column."""
    most = max((part.waves.max(initial=0) for part in parts), default=0)
    falls = 1.0 / np.maximum(np.arange(most + 1), 1.0) ** 2
    mean, spread = np.zeros(most + 1), 0.1
    chances: list[Floats] = []
    for _ in range(_EM_STEPS):
        chances = _chances(
            [_log_likelihood(part.common - mean[part.waves], part.priors, part.common_variance) for part in parts]
        )
        precision, sums = np.zeros(most + 1), np.zeros(most + 1)
        for part, chance in zip(parts, chances, strict=True):
            of_part = chance @ (1.0 / (part.priors + part.common_variance))
            np.add.at(precision, part.waves, of_part)
            np.add.at(sums, part.waves, of_part * part.common)
        left = spread * falls / (1.0 + spread * falls * precision)
        mean = left * sums
        mean[0] = 0.0
        if most:
            spread = float(np.mean(((mean**2 + left) / falls)[1:]))
    found = []
    for part, chance in zip(parts, chances, strict=True):
        expected = mean[part.waves]
        weights = chance @ (part.priors / (part.priors + part.common_variance))
        found.append(expected + weights * (part.common - expected))
    return found


def _weights_beyond(parts: list[_Part]) -> list[Floats]:
    """(slices, coefficients) of every column: how much the model keeps of what strata say beyond what they share."""
    if not parts or len(parts[0].beyond) == 1:
        return [np.zeros_like(part.beyond) for part in parts]
    slices = len(parts[0].beyond)
    chances = _chances(
        [
            (slices - 1)
            / slices  # of facts to values
            * np.sum([_log_likelihood(row, priors, variance) for row, priors, variance in part.by_slice()], axis=0)
            for part in parts
        ]
    )
    return [
        np.array([chance @ (priors / (priors + variance)) for _, priors, variance in part.by_slice()])
        for part, chance in zip(parts, chances, strict=True)
    ]


def _log_likelihood(values: Floats, priors: Floats, variance: float) -> Floats:
    """(grid,) of coefficients under every prior, up to a constant."""
    variances = priors + variance
    found: Floats = -0.5 * (np.log(variances) + values**2 / variances).sum(axis=1)
    return found


def _chances(log_likelihoods: list[Floats]) -> list[Floats]:
    """Each column's chances (grid,) of every scale and decay, drawn from the distribution that all columns tell."""
    if not log_likelihoods:
        return []
    logs = np.stack(log_likelihoods)
    likelihoods = np.exp(logs - logs.max(axis=1, keepdims=True))
    chances = likelihoods * mixing_weights(likelihoods, steps=_EM_STEPS)
    return list(chances / chances.sum(axis=1, keepdims=True))


def _coefficients(counts: Floats, *, has_missing: bool) -> Floats:
    """(slices, cells - 1): orthonormal contrasts of the cells; that of a missing cell to the others comes last."""
    if not has_missing:
        return np.asarray(dct(counts, norm="ortho", axis=1)[:, 1:], np.float64)
    others = counts.shape[1] - 1
    known = dct(counts[:, :-1], norm="ortho", axis=1)
    missing = (np.sqrt(others) * counts[:, -1] - known[:, 0]) / np.sqrt(others + 1.0)
    return np.column_stack([known[:, 1:], missing])


def _counts(coefficients: Floats, totals: Floats, *, has_missing: bool) -> Floats:
    """The counts with these contrasts and totals: (slices, cells)."""
    cells = coefficients.shape[1] + 1
    level = totals / np.sqrt(cells)
    if not has_missing:
        return np.asarray(idct(np.column_stack([level, coefficients]), norm="ortho", axis=1), np.float64)
    others, contrast = cells - 1.0, coefficients[:, -1]
    first = (np.sqrt(others) * level - contrast) / np.sqrt(cells)
    known = idct(np.column_stack([first, coefficients[:, :-1]]), norm="ortho", axis=1)
    return np.column_stack([known, (level + np.sqrt(others) * contrast) / np.sqrt(cells)])
