"""Moments of records in whole numbers: counts, sums and sums of outer products of clipped vectors, of images or of codes.

Everything up to the noise is exact. Pixels are whole numbers, the public basis is rounded to whole numbers, and what a
record adds is a vector of whole numbers whose norm is checked in whole numbers; all sums stay below 2^53, where float64
adds and multiplies whole numbers without rounding, in any order. So the declared sensitivities hold to the last bit.

A unit is one record, or several side by side (`Units`), and then moves a sum by as many times what one record moves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from workers.mechanism import PrivateSum

NO_CELL = -1
"""The cell of a null record, or of one that counts nowhere."""

EXACT = 2**53
_BASIS_SCALE = 2.0**20
_MOST_BITS = 12
_WHITE = 255.0
WEIGHT = 2**10
"""Whole numbers that a record's responsibilities sum to at most."""
_BLOCK_RECORDS = 8_192

Whole = NDArray[np.float64]
"""float64 holding whole numbers below 2^53."""


@dataclass(frozen=True)
class Units:
    """Which records are whose, where a unit may have several: those of unit i are starts[i]:starts[i+1].

    Adjacency:   zero-out one unit.
    Sensitivity: none of its own: multiplies that of one record by `most`.
    Shapes:      starts (units + 1,), from 0 to the number of records.
    Source:      docs/privacy.md, images.
    Edge cases:  records beyond `most` of their unit are left out here, whatever the reader promised.
    """

    starts: NDArray[np.int64]
    most: int

    def bounded(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """The cells (n,), NO_CELL for records that are too many of their unit."""
        place_in_unit = np.arange(len(cells)) - np.repeat(self.starts[:-1], np.diff(self.starts))
        return np.where(place_in_unit < self.most, cells, NO_CELL)


def _bounded(cells: NDArray[np.int64], units: Units | None) -> tuple[NDArray[np.int64], float]:
    """The cells of records that count, and how many of one unit may."""
    return (cells, 1.0) if units is None else (units.bounded(cells), float(units.most))


class Records(Protocol):
    """Vectors of whole numbers, one for each record: a function of that record and its place alone."""

    @property
    def longest(self) -> float:
        """No record's vector has a larger norm, whatever the record is."""

    def blocks(self) -> Iterator[tuple[slice, Whole]]:
        """Vectors of consecutive records."""


@dataclass(frozen=True)
class WholeVectors:
    """Vectors that were found and rounded before.

    Adjacency:   zero-out one unit.
    Sensitivity: none of its own; their maker sees to it that a record's vector depends on no other record.
    Shapes:      vectors (n, d) int32; blocks (records, d).
    Source:      docs/privacy.md, images.
    Edge cases:  no records -> no blocks.
    """

    vectors: NDArray[np.int32]
    longest: float

    def blocks(self) -> Iterator[tuple[slice, Whole]]:
        """Consecutive records."""
        for start in range(0, len(self.vectors), _BLOCK_RECORDS):
            rows = slice(start, min(start + _BLOCK_RECORDS, len(self.vectors)))
            yield rows, self.vectors[rows].astype(np.float64)


@dataclass(frozen=True)
class Coefficients:
    """Images as whole-number coefficients of a public basis: a coefficient of 1 is `scale`.

    Adjacency:   zero-out one unit.
    Sensitivity: none of its own: a record's coefficients are a function of its pixels alone.
    Shapes:      pixels (n, D) uint8; basis (D, d) with entries in [-1, 1]; blocks (records, d).
    Source:      fixed-point arithmetic; docs/privacy.md, Limits.
    Edge cases:  no records -> no blocks.
    """

    pixels: NDArray[np.uint8]
    basis: NDArray[np.float64]
    scale: float

    @property
    def longest(self) -> float:
        """No record's coefficients have a larger norm, whatever its pixels are."""
        largest = self.scale * np.abs(self.basis).sum(axis=0).max() + 1.0
        return float(largest * math.sqrt(self.basis.shape[1]))

    def blocks(self) -> Iterator[tuple[slice, Whole]]:
        """Coefficients of consecutive records."""
        rounded = np.rint(self.basis * _BASIS_SCALE)
        for start in range(0, len(self.pixels), _BLOCK_RECORDS):
            rows = slice(start, min(start + _BLOCK_RECORDS, len(self.pixels)))
            exact = self.pixels[rows].astype(np.float64) @ rounded  # |entries| ≤ 255·2^20·D, far below 2^53
            yield rows, np.rint(exact * (self.scale / (_WHITE * _BASIS_SCALE)))


def scale_for(units: int, radius: float, *, most: int = 1) -> float:
    """The largest power of two s with units·most·(s·radius)² < 2^53: what one coefficient of 1 counts. most: records of a unit.

    Adjacency:   zero-out one unit.
    Sensitivity: none; reads no row.
    Shapes:      one number.
    Source:      sums of at most units·most products, each at most (s·radius)².
    Edge cases:  at most 2^12/√most, finer than any noise and no noisier in whole numbers; below 2^4 the data set is too
                 large for this method.
    """
    bits = math.floor((53 - math.log2(max(2, units * most)) - 2.0 * math.log2(radius) - 0.01) / 2.0)
    if bits < 4:
        raise ValueError("too many records for exact sums")
    return 2.0 ** min(bits, _MOST_BITS - math.ceil(math.log2(most) / 2.0))


def clip(vectors: Whole, radius: int) -> Whole:
    """Every row of whole numbers shortened to a norm of at most `radius`, towards zero, in whole numbers.

    Adjacency:   zero-out one unit.
    Sensitivity: bounds each row's L2 norm by `radius`, exactly: a row that rounding left longer becomes zeros.
    Shapes:      vectors (n, d); returns the same.
    Source:      Abadi et al. 2016, clipping; rounding towards zero never lengthens.
    Edge cases:  rows within the radius are unchanged; entries beyond 2^25.5 / √d are cut to it first.
    """
    most = math.floor(math.sqrt(EXACT / max(1, vectors.shape[1])) / 2.0)
    whole = np.clip(vectors, -most, most)
    squares = np.square(whole).sum(axis=1, keepdims=True)  # exact: at most 2^51
    with np.errstate(divide="ignore"):
        factor = np.minimum(1.0, radius * (1.0 - 1e-9) / np.sqrt(squares))
    shortened = np.where(squares <= radius * radius, whole, np.trunc(whole * factor))
    too_long = np.square(shortened).sum(axis=1, keepdims=True) > radius * radius
    return np.where(too_long, 0.0, shortened)


def first_moments(
    records: Records, cells: NDArray[np.int64], *, centres: Whole, radius: int, units: Units | None = None
) -> PrivateSum:
    """Of every cell, how many records it has and the sum of d, with d = clip(x - centre of the cell).

    Adjacency:   zero-out one unit.
    Sensitivity: L2 1 for the counts and `radius` for the sums, of one record, which is in at most one cell; times
                 `units.most`, as all records of a unit may be alike.
    Shapes:      cells (n,) in [0, K) or NO_CELL; centres (K, d) public whole numbers; returns (K,) and (K, d).
    Source:      docs/privacy.md, images.
    Edge cases:  an empty cell has zeros; a record in NO_CELL adds nothing.
    """
    cells, most = _bounded(cells, units)
    sums = np.zeros(centres.shape)
    for rows, vectors in records.blocks():
        of = cells[rows]
        for cell in np.unique(of[of >= 0]):
            sums[cell] += clip(vectors[of == cell] - centres[cell], radius).sum(axis=0)
    values = (torch.from_numpy(_count(cells, len(centres))), torch.from_numpy(sums))
    return PrivateSum(values, ((0,), (1,)), (most, most * radius))


def second_moments(
    records: Records, cells: NDArray[np.int64], *, centres: Whole, radius: int, units: Units | None = None
) -> PrivateSum:
    """Of every cell: its records, the sum of d and the sum of d·dᵀ, with d = clip(x - centre of the cell).

    Adjacency:   zero-out one unit.
    Sensitivity: L2 1 for the counts, `radius` for the sums and radius² for the products, since ‖d·dᵀ‖ = ‖d‖² in the
                 Frobenius norm, which counts both triangles; of one record, which is in at most one cell. Times `units.most`.
    Shapes:      cells (n,) in [0, K) or NO_CELL; centres (K, d) public whole numbers; returns (K,), (K, d), (K, d, d).
    Source:      docs/privacy.md, images; Dwork, Talwar, Thakurta, Zhang 2014 for the noisy covariance.
    Edge cases:  an empty cell has zeros; a record in NO_CELL adds nothing.
    """
    cells, most = _bounded(cells, units)
    count, width = centres.shape
    sums, products = np.zeros((count, width)), np.zeros((count, width, width))
    for rows, vectors in records.blocks():
        of = cells[rows]
        for cell in np.unique(of[of >= 0]):
            kept = clip(vectors[of == cell] - centres[cell], radius)
            sums[cell] += kept.sum(axis=0)
            products[cell] += kept.T @ kept
    values = (torch.from_numpy(_count(cells, count)), torch.from_numpy(sums), torch.from_numpy(products))
    return PrivateSum(values, ((0,), (1,), (2,)), (most, most * radius, most * radius**2))


def shared_moments(
    records: Records, cells: NDArray[np.int64], *, centres: Whole, radius: int, units: Units | None = None
) -> PrivateSum:
    """The sum of d·dᵀ over all records, with d = clip(x - centre of the record's cell): one for all cells.

    Adjacency:   zero-out one unit.
    Sensitivity: L2 radius², as for `second_moments`.
    Shapes:      cells (n,) in [0, K) or NO_CELL; centres (K, d) public whole numbers; returns (d, d).
    Source:      docs/privacy.md, images; Dwork, Talwar, Thakurta, Zhang 2014.
    Edge cases:  no records -> zeros; a record in NO_CELL adds nothing.
    """
    cells, most = _bounded(cells, units)
    products = np.zeros((centres.shape[1], centres.shape[1]))
    for rows, vectors in records.blocks():
        there = cells[rows] >= 0
        kept = clip(vectors[there] - centres[cells[rows][there]], radius)
        products += kept.T @ kept
    return PrivateSum((torch.from_numpy(products),), ((0,),), (most * radius**2,))


def soft_moments(
    records: Records,
    log_weights: Callable[[slice, Whole], NDArray[np.float64]],
    *,
    centres: Whole,
    radius: int,
    units: Units,
) -> PrivateSum:
    """Of every component: Σ r, Σ r·d and Σ r·d·dᵀ, with d = clip(z - its centre) and r a record's responsibility in `WEIGHT`-ths.

    Adjacency:   zero-out one unit.
    Sensitivity: L2 WEIGHT for the responsibilities of one record, which are whole, not negative and sum to at most WEIGHT;
                 WEIGHT·radius for the sums, WEIGHT·radius² for the products, since the blocks of components move by
                 r_k‖d_k‖ and r_k‖d_k‖², and Σ r_k² ≤ (Σ r_k)². Times `units.most`.
    Shapes:      log_weights(rows, vectors) (records, K), a function of each record and its place alone, -inf where a component
                 may not have a record; centres (K, d) public whole numbers; returns (K,), (K, d), (K, d, d).
    Source:      Park, Foulds, Chaudhuri, Welling 2017 (DP-EM); docs/methods/dpsyn.md.
    Edge cases:  a record whose weights are all -inf, or one of them NaN, adds nothing; responsibilities are rounded down.
    """
    used = units.bounded(np.zeros(int(units.starts[-1]), dtype=np.int64)) >= 0
    count, width = centres.shape
    counts, sums, products = np.zeros(count), np.zeros((count, width)), np.zeros((count, width, width))
    for rows, vectors in records.blocks():
        shares = whole_shares(np.where(used[rows, None], log_weights(rows, vectors), -np.inf))
        counts += shares.sum(axis=0)
        for k in np.flatnonzero(shares.any(axis=0)):
            of = np.flatnonzero(shares[:, k])
            kept = clip(vectors[of] - centres[k], radius)
            weighted = kept * shares[of, k, None]
            sums[k] += weighted.sum(axis=0)
            products[k] += weighted.T @ kept
    values = (torch.from_numpy(counts), torch.from_numpy(sums), torch.from_numpy(products))
    bound = float(units.most * WEIGHT)
    return PrivateSum(values, ((0,), (1,), (2,)), (bound, bound * radius, bound * radius**2))


def whole_shares(log_weights: NDArray[np.float64]) -> Whole:
    """Responsibilities (n, K) in `WEIGHT`-ths, rounded down: whole numbers, not negative, at most WEIGHT together in every row.

    Adjacency:   zero-out one unit.
    Sensitivity: none of its own: a row is a function of that row.
    Shapes:      log_weights (n, K) -> (n, K).
    Source:      E step of a mixture; rounding down never makes a sum larger.
    Edge cases:  rows of -inf or with a NaN, and what rounding made too large, become zeros.
    """
    with np.errstate(invalid="ignore"):
        weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
        shares = np.floor(WEIGHT * weights / weights.sum(axis=1, keepdims=True))
    is_right = (shares >= 0.0).all(axis=1) & (shares.sum(axis=1) <= WEIGHT)  # a comparison with NaN is False
    return np.where(is_right[:, None], shares, 0.0)


def tone_counts(
    pixels: NDArray[np.uint8], cells: NDArray[np.int64], *, bins: int, units: Units | None = None
) -> PrivateSum:
    """How many numbers of all images lie in each of `bins` equal parts of 0..255.

    Adjacency:   zero-out one unit.
    Sensitivity: L2 D: a record adds whole counts that are D together, at most all of them to one bin. Times `units.most`.
    Shapes:      pixels (n, D) uint8; cells (n,), NO_CELL for null records; returns (bins,).
    Source:      docs/privacy.md, images.
    Edge cases:  no records -> zeros; a record in NO_CELL adds nothing.
    """
    cells, most = _bounded(cells, units)
    bin_of = np.arange(256) * bins // 256
    counts = np.zeros(bins)
    for start in range(0, len(pixels), _BLOCK_RECORDS):
        rows = slice(start, start + _BLOCK_RECORDS)
        by_value = np.bincount(pixels[rows][cells[rows] >= 0].ravel(), minlength=256)
        counts += np.bincount(bin_of, weights=by_value, minlength=bins)
    return PrivateSum((torch.from_numpy(counts),), ((0,),), (most * pixels.shape[1],))


def leaning_counts(
    slant_codes: NDArray[np.int64], cells: NDArray[np.int64], *, classes: int, bins: int, units: Units | None = None
) -> PrivateSum:
    """How many records of every class have a slant in each of `bins` equal parts of 0..255.

    Adjacency:   zero-out one unit.
    Sensitivity: L2 1: a record is counted once, at one place. Times `units.most`.
    Shapes:      slant_codes (n,) whole numbers of 0..255; cells (n,) in [0, classes) or NO_CELL; returns (classes, bins).
    Source:      docs/privacy.md, images.
    Edge cases:  no records -> zeros; a record in NO_CELL adds nothing.
    """
    cells, most = _bounded(cells, units)
    places = np.where(cells >= 0, cells * bins + slant_codes * bins // 256, NO_CELL)
    counts = _count(places, classes * bins).reshape(classes, bins)
    return PrivateSum((torch.from_numpy(counts),), ((0,),), (most,))


def nearest_cells(
    records: Records, labels: NDArray[np.int64], *, centres: Whole, centre_labels: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The nearest centre of every record among those of its own label: disjoint cells by a public rule.

    Adjacency:   zero-out one unit.
    Sensitivity: none of its own: a record's cell is a function of that record and of public centres.
    Shapes:      labels (n,) or NO_CELL; centres (K, d) public, centre_labels (K,); returns (n,) in [0, K) or NO_CELL.
    Source:      Lloyd's assignment step.
    Edge cases:  ties go to the first centre; a label without a centre, and NO_CELL, go to NO_CELL. Centres that noise
                 carried far beyond all images are brought back, so that products are exact: a rounded one could depend
                 on a record's place, which others' records move where a unit has several.
    """
    lengths = np.linalg.norm(centres, axis=1, keepdims=True)
    centres = np.trunc(centres * np.minimum(1.0, EXACT / 4.0 / records.longest / np.maximum(lengths, 1.0)))
    norms = np.square(centres).sum(axis=1)
    cells = np.full(len(labels), NO_CELL, dtype=np.int64)
    for rows, vectors in records.blocks():
        distances = norms - 2.0 * (vectors @ centres.T)
        distances[labels[rows][:, None] != centre_labels] = np.inf
        nearest = distances.argmin(axis=1)
        cells[rows] = np.where(np.isfinite(distances.min(axis=1)), nearest, NO_CELL)
    return cells


def _count(cells: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    return np.bincount(cells[cells >= 0], minlength=count).astype(np.float64)
