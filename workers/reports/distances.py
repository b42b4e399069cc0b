"""How far two sets of rows are apart: tables of columns and pairs, values, correlations, and rows that are the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import wasserstein_distance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from workers.encoding.table import TableDomain
    from workers.reports.rows import Rows

PAIR_CELLS = 16
"""Cells of a column in two-way tables, at most: neighbouring ones are counted together."""

MOST_PAIRS = 2_000


def grouped(codes: NDArray[np.int64], domain: TableDomain, most: int) -> tuple[NDArray[np.int64], tuple[int, ...]]:
    """Codes with at most so many cells a column, neighbours together; a missing cell stays alone. And how many there are."""
    columns, widths = [], []
    for place, column in enumerate(domain.columns):
        cells = column.size - column.missing
        groups = max(1, min(cells, most - column.missing))
        own = np.minimum(codes[:, place] * groups // cells, groups - 1)
        if column.missing:
            own = np.where(codes[:, place] == column.size - 1, groups, own)
        columns.append(own)
        widths.append(groups + column.missing)
    return np.stack(columns, axis=1), tuple(widths)


def total_variation(one: NDArray[np.int64], other: NDArray[np.int64], widths: Sequence[int]) -> float:
    """Half the L1 distance of two tables; codes (rows, ways)."""
    cells = int(np.prod(widths))
    tables = [
        np.bincount(np.ravel_multi_index(tuple(codes.T), tuple(widths)), minlength=cells) / max(1, len(codes))
        for codes in (one, other)
    ]
    return float(0.5 * np.abs(tables[0] - tables[1]).sum())


def value_distance(one: NDArray[np.float64], other: NDArray[np.float64], span: float) -> float | None:
    """Wasserstein distance of the values that are there, as a part of the declared range; None where there are none."""
    one, other = one[~np.isnan(one)], other[~np.isnan(other)]
    if not len(one) or not len(other) or span <= 0.0:
        return None
    return float(wasserstein_distance(one, other)) / span


def correlations(rows: Rows, columns: Sequence[int]) -> NDArray[np.float64]:
    """Of these columns' values, missing ones at their mean; 0 for a column of one value."""
    values = rows.numbers[:, list(columns)]
    known = ~np.isnan(values)
    means = np.where(known, values, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    filled = np.where(known, values, means)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.nan_to_num(np.atleast_2d(np.corrcoef(filled.T))), dtype=np.float64)


def same_rows(rows: NDArray[np.generic], among: NDArray[np.generic]) -> float:
    """Part of the rows that are among the others, in all columns."""
    one, other = (_as_keys(each) for each in (rows, among))
    return float(np.isin(one, other).mean()) if len(one) else 0.0


def _as_keys(rows: NDArray[np.generic]) -> NDArray[np.void]:
    filled = np.nan_to_num(rows.astype(np.float64), nan=1.5e308) + 0.0  # -0.0 is 0.0
    filled = np.ascontiguousarray(filled)
    return filled.view(np.dtype((np.void, filled.dtype.itemsize * filled.shape[1]))).ravel()
