"""How many rows of all units a classifier gets wrong."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from workers.mechanism import PrivateIntegers, PrivateLosses, PrivateSum, RowsOfUnits


def error_losses(wrong: NDArray[np.bool_], *, rows: RowsOfUnits) -> PrivateLosses:
    """Errors of each candidate, among which an exponential mechanism chooses.

    Adjacency:   zero-out one unit, whose rows are then in no count: every loss falls, or stays, so losses are monotone.
    Sensitivity: of a loss rows.most.
    Shapes:      wrong (candidates, rows); returns (candidates,).
    Source:      IDPGAN paper 3.1, corrected; docs/privacy.md, Choosing among orders.
    Edge cases:  rows beyond the most of their unit are left out; no rows -> all losses are 0, and any candidate may be chosen.
    """
    counted = np.array([int(rows.used(one).sum()) for one in wrong], dtype=np.int64)
    return PrivateLosses(counted, rows.most, is_monotone=True)


def error_count(wrong: NDArray[np.bool_], *, rows: RowsOfUnits) -> PrivateIntegers:
    """Errors of one candidate, to be released with noise.

    Adjacency:   zero-out one unit.
    Sensitivity: L1 rows.most.
    Shapes:      wrong (rows,); returns one number.
    Source:      Papernot and Steinke 2022, for a score that is paid for.
    Edge cases:  rows beyond the most of their unit are left out; no rows -> 0.
    """
    return PrivateIntegers(np.array([int(rows.used(wrong).sum())], dtype=np.int64), rows.most)


def right_and_wrong(wrong: NDArray[np.bool_], known: NDArray[np.bool_], *, rows: RowsOfUnits) -> PrivateSum:
    """How many rows a classifier gets right, and how many wrong.

    Adjacency:   zero-out one unit.
    Sensitivity: L2 rows.most: a row adds one to one of the two counts, so a unit adds (a, b) with a + b at most rows.most.
    Shapes:      wrong and known (rows,), known where the row is no null record; returns one int64 tensor (2,).
    Source:      docs/privacy.md, The rest of a release.
    Edge cases:  rows beyond the most of their unit are left out here; null records are in neither count; no rows -> zeros.
    """
    used = rows.used(known)
    counts = torch.tensor([int((used & ~wrong).sum()), int((used & wrong).sum())], dtype=torch.int64)
    return PrivateSum((counts,), ((0,),), (float(rows.most),))
